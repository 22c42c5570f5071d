//! Calls to the HTTP interfaces of providers that an operator has chosen.
//!
//! **Invariant:** what is secret in a call goes over TLS, or to this machine; a call has an end, and
//! its answer a bound.

mod address;

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
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use rustls::{ClientConfig, RootCertStore, crypto::ring::default_provider as ring_provider};

pub use self::address::{Address, BadAddress};

/// How long one call may take.
const PATIENCE: Duration = Duration::from_secs(20);
const CONNECT_PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of an answer.
const LARGEST: usize = 256 * 1024;
const IDLE: usize = 8;
const IDLE_FOR: Duration = Duration::from_secs(30);

/// Why a provider gave no answer. Names no address.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum NoAnswer {
    #[error("there was no answer in {} s", PATIENCE.as_secs())]
    Late,
    #[error("there was no connection")]
    Unconnected,
    #[error("the connection broke off")]
    Broken,
    #[error("the answer is too long or broke off")]
    Body,
    #[error("the call could not be made of what it has")]
    Request,
}

/// What a provider answered.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub body: Vec<u8>,
}

impl Answer {
    #[must_use]
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The body; null where it is no JSON.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// How somebody shows who calls.
#[derive(Clone)]
pub enum Credentials {
    /// RFC 7617.
    Basic { user: String, password: Secret },
    /// RFC 6750.
    Bearer(Secret),
}

impl Credentials {
    fn header(&self) -> Result<HeaderValue, NoAnswer> {
        let text = match self {
            Self::Basic { user, password } => {
                format!("Basic {}", STANDARD.encode(format!("{user}:{}", password.expose())))
            }
            Self::Bearer(token) => format!("Bearer {}", token.expose()),
        };
        let mut value = HeaderValue::from_str(&text).map_err(|_| NoAnswer::Request)?;
        value.set_sensitive(true);
        Ok(value)
    }
}

/// What a call brings.
pub struct Content {
    /// Its media type.
    pub kind: &'static str,
    pub body: String,
}

impl Content {
    #[must_use]
    pub fn json(value: &serde_json::Value) -> Self {
        Self { kind: "application/json", body: value.to_string() }
    }

    /// Fields of a form, as a browser would send them.
    #[must_use]
    pub fn form(fields: &[(&str, &str)]) -> Self {
        let mut form = url::form_urlencoded::Serializer::new(String::new());
        form.extend_pairs(fields);
        Self { kind: "application/x-www-form-urlencoded", body: form.finish() }
    }
}

/// Makes calls, follows no redirect, and keeps connections for the next ones.
pub struct Caller {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

impl Caller {
    /// A caller that believes the usual roots.
    ///
    /// # Errors
    /// Where TLS cannot be set up.
    pub fn new() -> Result<Self, rustls::Error> {
        let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        let tls = ClientConfig::builder_with_provider(Arc::new(ring_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_connect_timeout(Some(CONNECT_PATIENCE));
        http.set_nodelay(true);
        let https =
            HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_all_versions();
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_FOR)
            .pool_max_idle_per_host(IDLE)
            .build(https.wrap_connector(http));
        Ok(Self { client })
    }

    /// Sends.
    ///
    /// # Errors
    /// Where there is no answer; any status is one. What was sent may have arrived nevertheless.
    pub async fn post(
        &self,
        address: &Address,
        credentials: &Credentials,
        content: Content,
    ) -> Result<Answer, NoAnswer> {
        let request = Request::post(address.as_str())
            .header(ACCEPT, "application/json")
            .header(AUTHORIZATION, credentials.header()?)
            .header(CONTENT_TYPE, content.kind)
            .body(Full::new(Bytes::from(content.body)));
        let answer = self.made(request.map_err(|_| NoAnswer::Request)?).await?;
        Ok(Answer { status: answer.status().as_u16(), body: answer.into_body() })
    }

    /// Fetches what is there for everybody.
    ///
    /// # Errors
    /// As [`Caller::post`].
    pub async fn get(&self, address: &Address) -> Result<Answer, NoAnswer> {
        let request = Request::get(address.as_str()).body(Full::new(Bytes::new()));
        let answer = self.made(request.map_err(|_| NoAnswer::Request)?).await?;
        Ok(Answer { status: answer.status().as_u16(), body: answer.into_body() })
    }

    /// Makes a call that somebody else has put together.
    ///
    /// # Errors
    /// As [`Caller::post`].
    pub async fn send(&self, request: Request<Vec<u8>>) -> Result<Response<Vec<u8>>, NoAnswer> {
        self.made(request.map(|body| Full::new(Bytes::from(body)))).await
    }

    async fn made(&self, request: Request<Full<Bytes>>) -> Result<Response<Vec<u8>>, NoAnswer> {
        tokio::time::timeout(PATIENCE, async {
            let answer = self.client.request(request).await.map_err(|error| {
                if error.is_connect() { NoAnswer::Unconnected } else { NoAnswer::Broken }
            })?;
            let (head, body) = answer.into_parts();
            let body = Limited::new(body, LARGEST).collect().await;
            let body = body.map_err(|_| NoAnswer::Body)?.to_bytes();
            Ok(Response::from_parts(head, body.into()))
        })
        .await
        .unwrap_or(Err(NoAnswer::Late))
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
    };

    use super::*;

    /// Answers one connection with these bytes, and nothing after them.
    async fn answering(bytes: Vec<u8>) -> Address {
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
    async fn an_answer_has_a_bound_and_no_redirect_is_followed() {
        let caller = Caller::new().unwrap();
        let key = Credentials::Bearer(Secret::new("x".to_owned()));
        let post = async |bytes| {
            caller.post(&answering(bytes).await, &key, Content::form(&[("a", "b")])).await
        };
        let moved = b"HTTP/1.1 302 Found\r\nlocation: /x\r\ncontent-length: 2\r\n\r\n{}";
        let answer = post(moved.to_vec()).await.unwrap();
        assert_eq!((answer.status, answer.is_success()), (302, false));
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", LARGEST + 1);
        let long = [head.into_bytes(), vec![b' '; LARGEST + 1]].concat();
        let error = post(long).await.unwrap_err();
        assert_eq!(error, NoAnswer::Body);
        let broken = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{}".to_vec();
        let error = post(broken).await.unwrap_err();
        assert_eq!(error, NoAnswer::Body);
        let error = post(vec![]).await.unwrap_err();
        assert_eq!(error, NoAnswer::Broken);
    }
}
