//! An HTTP client for the interfaces of providers that an operator has chosen.
//!
//! **Invariant:** secrets are sent over TLS or to this machine only; a request has a timeout, and its
//! response a size limit.

mod base_url;

use std::{sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use domain::secret::Secret;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{
    Request, Response,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue},
};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{
        Client,
        connect::{Connect, HttpConnector, dns::GaiResolver},
    },
    rt::{TokioExecutor, TokioTimer},
};
use rustls::{
    ClientConfig, RootCertStore, crypto::ring::default_provider as ring_provider,
    pki_types::CertificateDer,
};

pub use self::base_url::{BaseUrl, InvalidUrl};

/// The time for one request and its response.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of the head of a response.
const MAX_HEAD_BYTES: u16 = 32 * 1024;
/// Bytes of a response body.
const MAX_BODY_BYTES: usize = 256 * 1024;
/// Idle connections kept for each host.
const MAX_IDLE_CONNECTIONS: usize = 8;
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// The reason why there is no response. Contains no URL.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum HttpClientError {
    #[error("no response in {} s", REQUEST_TIMEOUT.as_secs())]
    TimedOut,
    #[error("failed to connect")]
    Connect,
    #[error("the connection was interrupted")]
    Interrupted,
    #[error("the response is too long or incomplete")]
    Body,
    #[error("the request has an invalid header or URL")]
    Invalid,
}

/// A response of a provider.
#[derive(Debug)]
pub struct HttpResponse {
    pub status: u16,
    pub body: Vec<u8>,
}

impl HttpResponse {
    #[must_use]
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Parses the body as JSON; null if it is not JSON.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// The credentials of a request.
#[derive(Clone)]
pub enum ApiCredentials {
    /// RFC 7617.
    Basic { user: String, password: Secret },
    /// RFC 6750.
    Bearer(Secret),
}

impl ApiCredentials {
    fn header(&self) -> Result<HeaderValue, HttpClientError> {
        let text = match self {
            Self::Basic { user, password } => {
                format!("Basic {}", STANDARD.encode(format!("{user}:{}", password.expose())))
            }
            Self::Bearer(token) => format!("Bearer {}", token.expose()),
        };
        let mut value = HeaderValue::from_str(&text).map_err(|_| HttpClientError::Invalid)?;
        value.set_sensitive(true);
        Ok(value)
    }
}

/// The body of a request.
pub struct RequestBody {
    /// Its media type.
    pub media_type: &'static str,
    pub body: String,
}

impl RequestBody {
    #[must_use]
    pub fn json(value: &serde_json::Value) -> Self {
        Self { media_type: "application/json", body: value.to_string() }
    }

    /// Returns the fields of a form, encoded as a browser does.
    #[must_use]
    pub fn form(fields: &[(&str, &str)]) -> Self {
        let mut form = url::form_urlencoded::Serializer::new(String::new());
        form.extend_pairs(fields);
        Self { media_type: "application/x-www-form-urlencoded", body: form.finish() }
    }
}

/// A client of hyper that reuses connections, over TLS where the URL asks for it.
pub type PooledClient<R> = Client<HttpsConnector<HttpConnector<R>>, Full<Bytes>>;

/// How many connections a client keeps for the next request.
#[derive(Debug, Clone, Copy)]
pub struct PoolLimits {
    /// Idle connections kept for each host.
    pub idle_connections: usize,
    /// The time after which an idle connection is closed.
    pub idle: Duration,
}

/// Returns TLS settings that trust the root certificates of Mozilla and `roots`, in DER.
///
/// # Errors
/// One of `roots` is not a certificate, or TLS cannot be set up.
pub fn tls_config(roots: &[Vec<u8>]) -> Result<ClientConfig, rustls::Error> {
    let mut trusted = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    for root in roots {
        trusted.add(CertificateDer::from_slice(root))?;
    }
    Ok(ClientConfig::builder_with_provider(Arc::new(ring_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(trusted)
        .with_no_client_auth())
}

/// Returns a client that connects through `http`, which may have a resolver of its own. The head of
/// a response has up to 32 KiB.
#[must_use]
pub fn pooled_client<R>(
    mut http: HttpConnector<R>,
    tls: ClientConfig,
    limits: PoolLimits,
) -> PooledClient<R>
where
    HttpsConnector<HttpConnector<R>>: Connect + Clone,
{
    http.enforce_http(false);
    http.set_connect_timeout(Some(CONNECT_TIMEOUT));
    http.set_nodelay(true);
    let https =
        HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_all_versions();
    Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(limits.idle)
        .pool_max_idle_per_host(limits.idle_connections)
        .http1_max_buf_size(MAX_HEAD_BYTES.into())
        .http2_max_header_list_size(MAX_HEAD_BYTES.into())
        .build(https.wrap_connector(http))
}

/// A client that follows no redirects and reuses connections.
pub struct HttpClient {
    client: PooledClient<GaiResolver>,
}

impl HttpClient {
    /// Creates a client that trusts the root certificates of Mozilla.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub fn new() -> Result<Self, rustls::Error> {
        Self::trusting(&[])
    }

    /// Creates a client that trusts the root certificates of Mozilla and `roots`, in DER.
    ///
    /// # Errors
    /// One of `roots` is not a certificate, or TLS cannot be set up.
    pub fn trusting(roots: &[Vec<u8>]) -> Result<Self, rustls::Error> {
        let limits = PoolLimits { idle_connections: MAX_IDLE_CONNECTIONS, idle: IDLE_TIMEOUT };
        let client = pooled_client(HttpConnector::new(), tls_config(roots)?, limits);
        Ok(Self { client })
    }

    /// Sends a POST request.
    ///
    /// # Errors
    /// There is no response; one with any status is not an error. The provider may have received the
    /// request nevertheless.
    pub async fn post(
        &self,
        url: &BaseUrl,
        credentials: &ApiCredentials,
        body: RequestBody,
    ) -> Result<HttpResponse, HttpClientError> {
        let request = Request::post(url.as_str())
            .header(ACCEPT, "application/json")
            .header(AUTHORIZATION, credentials.header()?)
            .header(CONTENT_TYPE, body.media_type)
            .body(Full::new(Bytes::from(body.body)));
        let response = self.execute(request.map_err(|_| HttpClientError::Invalid)?).await?;
        Ok(HttpResponse { status: response.status().as_u16(), body: response.into_body() })
    }

    /// Sends a GET request without credentials.
    ///
    /// # Errors
    /// As [`HttpClient::post`].
    pub async fn get(&self, url: &BaseUrl) -> Result<HttpResponse, HttpClientError> {
        let request = Request::get(url.as_str()).body(Full::new(Bytes::new()));
        let response = self.execute(request.map_err(|_| HttpClientError::Invalid)?).await?;
        Ok(HttpResponse { status: response.status().as_u16(), body: response.into_body() })
    }

    /// Sends a request that the caller has built.
    ///
    /// # Errors
    /// As [`HttpClient::post`].
    pub async fn send(
        &self,
        request: Request<Vec<u8>>,
    ) -> Result<Response<Vec<u8>>, HttpClientError> {
        self.execute(request.map(|body| Full::new(Bytes::from(body)))).await
    }

    async fn execute(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Vec<u8>>, HttpClientError> {
        tokio::time::timeout(REQUEST_TIMEOUT, async {
            let response = self.client.request(request).await.map_err(|error| {
                if error.is_connect() {
                    HttpClientError::Connect
                } else {
                    HttpClientError::Interrupted
                }
            })?;
            let (head, body) = response.into_parts();
            let body = Limited::new(body, MAX_BODY_BYTES).collect().await;
            let body = body.map_err(|_| HttpClientError::Body)?.to_bytes();
            Ok(Response::from_parts(head, body.into()))
        })
        .await
        .unwrap_or(Err(HttpClientError::TimedOut))
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
    };

    use super::*;

    /// Starts a server that sends these bytes to one connection, and nothing after them.
    async fn server_sending(bytes: Vec<u8>) -> BaseUrl {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(&bytes).await;
        });
        address.parse().unwrap()
    }

    #[tokio::test]
    async fn a_response_is_bounded_and_redirects_are_not_followed() {
        let client = HttpClient::new().unwrap();
        let key = ApiCredentials::Bearer(Secret::new("x".to_owned()));
        let post = async |bytes| {
            client.post(&server_sending(bytes).await, &key, RequestBody::form(&[("a", "b")])).await
        };
        let redirect = b"HTTP/1.1 302 Found\r\nlocation: /x\r\ncontent-length: 2\r\n\r\n{}";
        let response = post(redirect.to_vec()).await.unwrap();
        assert_eq!((response.status, response.is_success()), (302, false));
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", MAX_BODY_BYTES + 1);
        let long = [head.into_bytes(), vec![b' '; MAX_BODY_BYTES + 1]].concat();
        let error = post(long).await.unwrap_err();
        assert_eq!(error, HttpClientError::Body);
        let truncated = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{}".to_vec();
        let error = post(truncated).await.unwrap_err();
        assert_eq!(error, HttpClientError::Body);
        let error = post(vec![]).await.unwrap_err();
        assert_eq!(error, HttpClientError::Interrupted);
    }
}
