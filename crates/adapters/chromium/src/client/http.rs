//! Single HTTP requests to an endpoint of a fleet, each on a connection of its own.

use std::{sync::Arc, time::Duration};

use domain::secret::Secret;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{Method, Request, Uri, body::Bytes, client::conn::http1, header};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;

use super::socket::{SocketError, connect};

/// A request without redirects, cookies or retries.
pub(crate) struct HttpRequest<'a> {
    pub(crate) method: HttpMethod,
    /// Its path and query are those of the request, its scheme `http`, `https`, `ws` or `wss`.
    pub(crate) url: &'a str,
    /// The value of the header `Authorization`.
    pub(crate) authorization: Option<&'a Secret>,
    /// In JSON.
    pub(crate) body: String,
    /// The time for everything, from the connection to the last byte of the response.
    pub(crate) timeout: Duration,
    /// The maximum number of bytes of the response's body.
    pub(crate) max_bytes: usize,
}

#[derive(Clone, Copy)]
pub(crate) enum HttpMethod {
    Get,
    Post,
    Delete,
}

pub(crate) struct HttpResponse {
    pub(crate) status: u16,
    pub(crate) body: Bytes,
}

impl HttpRequest<'_> {
    /// Sends the request, and returns the response with all of its body.
    pub(crate) async fn send(self, tls: &Arc<ClientConfig>) -> Result<HttpResponse, SocketError> {
        let (url, timeout) = (self.url.parse().map_err(|_| SocketError::Address)?, self.timeout);
        let exchanged = tokio::time::timeout(timeout, self.exchange(&url, tls)).await;
        exchanged.map_err(|_| SocketError::TimedOut)?
    }

    async fn exchange(
        self,
        url: &Uri,
        tls: &Arc<ClientConfig>,
    ) -> Result<HttpResponse, SocketError> {
        let stream = connect(url, tls).await?;
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(SocketError::Http)?;
        // It ends with the sender, which is dropped with this future.
        tokio::spawn(connection);
        let mut request = Request::builder()
            .method(match self.method {
                HttpMethod::Get => Method::GET,
                HttpMethod::Post => Method::POST,
                HttpMethod::Delete => Method::DELETE,
            })
            .uri(url.path_and_query().map_or("/", |path| path.as_str()))
            .header(header::HOST, host(url))
            .header(header::CONNECTION, "close")
            .header(header::ACCEPT, "application/json");
        if let Some(authorization) = self.authorization {
            request = request.header(header::AUTHORIZATION, authorization.expose());
        }
        if !self.body.is_empty() {
            request = request.header(header::CONTENT_TYPE, "application/json; charset=utf-8");
        }
        let request = request.body(Full::new(Bytes::from(self.body)));
        let request = request.map_err(|_| SocketError::Address)?;
        let response = sender.send_request(request).await.map_err(SocketError::Http)?;
        let status = response.status().as_u16();
        let body = Limited::new(response.into_body(), self.max_bytes).collect().await;
        let body = body.map_err(|_| SocketError::Body)?.to_bytes();
        Ok(HttpResponse { status, body })
    }
}

/// Returns the host and port of a URL, without its user.
fn host(url: &Uri) -> String {
    let host = url.host().unwrap_or_default();
    url.port_u16().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}
