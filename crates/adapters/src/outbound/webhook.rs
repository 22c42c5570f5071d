//! POSTs a delivery, signed after Standard Webhooks 1.0.0.

use std::{net::IpAddr, sync::Arc, time::Duration};

use async_trait::async_trait;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use chrono::{DateTime, Utc};
use domain::{egress::Egress, webhook::Webhook};
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, Response, Uri, body::Incoming, header};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use ports::{
    delivery::Delivery,
    webhook_sender::{Answer, WebhookSender},
};
use ring::hmac;
use rustls::{
    ClientConfig, RootCertStore, crypto::ring::default_provider as ring_provider,
    pki_types::CertificateDer,
};

use super::guard::GuardedResolver;

/// This much of an answer is read and kept; the rest is not even received.
const ANSWER_KEPT: usize = 2048;
const CONNECT_PATIENCE: Duration = Duration::from_secs(10);
const LONGEST_RETRY_AFTER: u64 = 3600;

/// The sender for real receivers.
pub struct HyperWebhookSender {
    client: Client<HttpsConnector<HttpConnector<GuardedResolver>>, Full<Bytes>>,
    egress: Arc<Egress>,
}

impl HyperWebhookSender {
    /// A sender that believes the usual roots and these, DER.
    ///
    /// # Errors
    /// One of them is no certificate.
    pub fn new(egress: Egress, roots: &[Vec<u8>]) -> Result<Self, rustls::Error> {
        let mut believed = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        for root in roots {
            believed.add(CertificateDer::from_slice(root))?;
        }
        let tls = ClientConfig::builder_with_provider(Arc::new(ring_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(believed)
            .with_no_client_auth();
        let egress = Arc::new(egress);
        let resolver = GuardedResolver { egress: egress.clone() };
        let mut http = HttpConnector::new_with_resolver(resolver);
        http.enforce_http(false);
        http.set_connect_timeout(Some(CONNECT_PATIENCE));
        http.set_nodelay(true);
        let https =
            HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1();
        let client = Client::builder(TokioExecutor::new()).build(https.wrap_connector(http));
        Ok(Self { client, egress })
    }

    async fn post(&self, delivery: &Delivery, now: DateTime<Utc>) -> Result<Answer, &'static str> {
        let webhook = &delivery.webhook;
        let uri: Uri = webhook.url.parse().map_err(|_| "url")?;
        self.check(&uri)?;
        let request = request(delivery, uri, now).ok_or("request")?;
        let response = self.client.request(request).await.map_err(|error| class(&error))?;
        answer(response).await
    }

    /// What the resolver cannot see: literal addresses, plain HTTP, and exceptions with a port.
    fn check(&self, uri: &Uri) -> Result<(), &'static str> {
        let host = uri.host().ok_or("url")?.trim_start_matches('[').trim_end_matches(']');
        let secure = uri.scheme_str() == Some("https");
        let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
        let named = self.egress.names(host, port);
        if !secure && !named {
            return Err("blocked");
        }
        // A name is permitted by its address, or with the very port that the operator named.
        match host.parse::<IpAddr>() {
            Ok(ip) if !self.egress.permits(host, (ip, port).into()) => Err("blocked"),
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

#[async_trait]
impl WebhookSender for HyperWebhookSender {
    async fn send(&self, delivery: &Delivery, now: DateTime<Utc>) -> Answer {
        let call = self.post(delivery, now);
        match tokio::time::timeout(delivery.webhook.timeout, call).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(class)) => Answer::Failed(class),
            Err(_) => Answer::Failed("timeout"),
        }
    }
}

fn request(delivery: &Delivery, uri: Uri, now: DateTime<Utc>) -> Option<Request<Full<Bytes>>> {
    let (id, timestamp) = (delivery.id.to_string(), now.timestamp().to_string());
    let signature = sign(&delivery.webhook, &id, &timestamp, &delivery.body)?;
    let mut request = Request::post(uri)
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::USER_AGENT, concat!("avouch/", env!("CARGO_PKG_VERSION")))
        .header("webhook-id", id)
        .header("webhook-timestamp", timestamp)
        .header("webhook-signature", &signature)
        .header("x-webhook-signature", &signature);
    if let Some(own) = &delivery.webhook.header {
        request = request.header(own.name.as_str(), own.value.expose());
    }
    request.body(Full::new(Bytes::from(delivery.body.clone()))).ok()
}

/// `v1,` and the HMAC-SHA256 over `id.timestamp.body`, in base64.
fn sign(webhook: &Webhook, id: &str, timestamp: &str, body: &str) -> Option<String> {
    let key = STANDARD.decode(webhook.secret.expose().strip_prefix("whsec_")?).ok()?;
    let mut mac = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, &key));
    for part in [id, ".", timestamp, ".", body] {
        mac.update(part.as_bytes());
    }
    Some(format!("v1,{}", STANDARD.encode(mac.sign())))
}

async fn answer(response: Response<Incoming>) -> Result<Answer, &'static str> {
    let code = response.status().as_u16();
    let retry_after = response
        .headers()
        .get(header::RETRY_AFTER)
        .and_then(|value| value.to_str().ok()?.trim().parse::<u64>().ok())
        .map(|seconds| Duration::from_secs(seconds.min(LONGEST_RETRY_AFTER)));
    let mut kept = Vec::new();
    let mut body = response.into_body();
    while kept.len() < ANSWER_KEPT {
        let Some(frame) = body.frame().await else { break };
        let frame = frame.map_err(|_| "body")?;
        kept.extend_from_slice(frame.data_ref().map_or(&[], |data| data.as_ref()));
    }
    kept.truncate(ANSWER_KEPT);
    // PostgreSQL takes no NUL in text.
    let body = String::from_utf8_lossy(&kept).replace('\0', "\u{fffd}");
    Ok(Answer::Status { code, body, retry_after })
}

fn class(error: &hyper_util::client::legacy::Error) -> &'static str {
    let mut source: Option<&dyn std::error::Error> = Some(error);
    while let Some(cause) = source {
        if cause.is::<super::guard::Blocked>() {
            return "blocked";
        }
        if let Some(io) = cause.downcast_ref::<std::io::Error>()
            && io.kind() == std::io::ErrorKind::PermissionDenied
        {
            return "blocked";
        }
        if cause.is::<rustls::Error>() {
            return "tls";
        }
        source = cause.source();
    }
    if error.is_connect() { "connect" } else { "http" }
}
