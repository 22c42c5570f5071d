//! Sends a delivery as a signed POST request (Standard Webhooks 1.0.0).

use std::{io, net::IpAddr, sync::Arc, time::Duration};

use async_trait::async_trait;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use chrono::{DateTime, Utc};
use domain::{egress::Egress, secret::Secret};
use http_body_util::{BodyExt as _, Full};
use http_client::{PoolLimits, PooledClient, pooled_client, tls_config};
use hyper::{
    HeaderMap, Request, Response, Uri,
    body::Incoming,
    header::{self, HeaderName, HeaderValue},
};
use hyper_util::client::legacy::connect::HttpConnector;
use ports::{
    delivery::Delivery,
    webhook_sender::{FailureCause, WebhookRequest, WebhookResponse, WebhookSender},
};
use ring::hmac;
use rustls::{ClientConfig, pki_types::InvalidDnsNameError};

use super::guard::{EgressDenied, GuardedResolver, Lookup, ResolveError, system};

/// The maximum size of the stored part of a response body.
const MAX_STORED_BODY_BYTES: usize = 2048;
/// The maximum size of a response body that is read, so that the connection can be reused; a
/// connection with a longer one is closed.
const MAX_READ_BODY_BYTES: usize = 64 * 1024;
/// The maximum number of idle connections to one endpoint.
const MAX_IDLE_CONNECTIONS: usize = 128;
/// How long an idle connection is kept: shorter than the five seconds after which Node.js and Apache
/// close one by default, since a request that crosses such a close is lost (RFC 9112, section 9.3.1).
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);
/// Replaces the value of a sensitive header in the log.
const REDACTED: &str = "(hidden)";

/// Sends webhooks to endpoints under an egress policy.
pub struct HyperWebhookSender {
    /// For hosts that the operator has permitted together with a port.
    named_hosts: PooledClient<GuardedResolver>,
    /// For all other hosts: an exception for another port of the same host does not apply.
    other_hosts: PooledClient<GuardedResolver>,
    egress: Arc<Egress>,
}

/// Returns a client that connects only to addresses that its resolver permits.
fn client(resolver: GuardedResolver, tls: ClientConfig) -> PooledClient<GuardedResolver> {
    let limits = PoolLimits { idle_connections: MAX_IDLE_CONNECTIONS, idle: IDLE_TIMEOUT };
    pooled_client(HttpConnector::new_with_resolver(resolver), tls, limits)
}

impl HyperWebhookSender {
    /// Creates a sender that trusts the usual roots and these (DER).
    ///
    /// # Errors
    /// A root is not a valid certificate.
    pub fn new(egress: Egress, roots: &[Vec<u8>]) -> Result<Self, rustls::Error> {
        Self::with_lookup(egress, roots, system())
    }

    /// Like [`HyperWebhookSender::new`], with another lookup of host names.
    ///
    /// # Errors
    /// See [`HyperWebhookSender::new`].
    pub fn with_lookup(
        egress: Egress,
        roots: &[Vec<u8>],
        lookup: Lookup,
    ) -> Result<Self, rustls::Error> {
        let tls = tls_config(roots)?;
        let other_hosts = GuardedResolver { egress: Arc::new(egress.networks_alone()), lookup };
        let egress = Arc::new(egress);
        let named_hosts = GuardedResolver { egress: egress.clone(), ..other_hosts.clone() };
        let (named_hosts, other_hosts) =
            (client(named_hosts, tls.clone()), client(other_hosts, tls));
        Ok(Self { named_hosts, other_hosts, egress })
    }
    async fn post(
        &self,
        delivery: &Delivery,
        headers: &HeaderMap,
        now: DateTime<Utc>,
    ) -> Result<WebhookResponse, FailureCause> {
        let uri: Uri = delivery.webhook.url.parse().map_err(|_| FailureCause::Url)?;
        let client = if self.check(&uri)? { &self.named_hosts } else { &self.other_hosts };
        let mut request = Request::post(uri)
            .body(Full::new(Bytes::from(delivery.body.clone())))
            .map_err(|_| FailureCause::Request)?;
        request.headers_mut().clone_from(headers);
        let response = client.request(request).await.map_err(|error| failure_cause(&error))?;
        answer(response, now).await
    }

    /// Checks what the resolver cannot: IP addresses in URLs, plain HTTP, and exceptions with a
    /// port. Returns whether the operator has permitted this host with this port.
    fn check(&self, uri: &Uri) -> Result<bool, FailureCause> {
        let host =
            uri.host().ok_or(FailureCause::Url)?.trim_start_matches('[').trim_end_matches(']');
        let secure = uri.scheme_str() == Some("https");
        let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
        let named_hosts = self.egress.names(host, port);
        if !secure && !named_hosts {
            return Err(FailureCause::Blocked);
        }
        // A host name is permitted by its addresses, or together with the port that the operator
        // named.
        match host.parse::<IpAddr>() {
            Ok(ip) if !self.egress.permits(host, (ip, port).into()) => Err(FailureCause::Blocked),
            Ok(_) | Err(_) => Ok(named_hosts),
        }
    }
}

#[async_trait]
impl WebhookSender for HyperWebhookSender {
    async fn send(&self, delivery: &Delivery, now: DateTime<Utc>) -> WebhookRequest {
        let Some(headers) = headers(delivery, now) else {
            return WebhookRequest {
                sent: String::new(),
                answer: WebhookResponse::Failed(FailureCause::Request),
            };
        };
        let call = self.post(delivery, &headers, now);
        let answer = match tokio::time::timeout(delivery.webhook.timeout, call).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(failure_cause)) => WebhookResponse::Failed(failure_cause),
            Err(_) => WebhookResponse::Failed(FailureCause::Timeout),
        };
        WebhookRequest { sent: log_lines(&headers), answer }
    }
}

/// Returns the headers of a delivery; `None` if a secret is malformed.
fn headers(delivery: &Delivery, now: DateTime<Utc>) -> Option<HeaderMap> {
    let webhook = &delivery.webhook;
    let (id, timestamp) = (delivery.id.to_string(), now.timestamp().to_string());
    let signatures: Option<Vec<_>> =
        webhook.secrets(now).map(|secret| sign(secret, &id, &timestamp, &delivery.body)).collect();
    let signatures = HeaderValue::try_from(signatures?.join(" ")).ok()?;
    let agent = HeaderValue::from_static(concat!("avouch/", env!("CARGO_PKG_VERSION")));
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::USER_AGENT, agent);
    headers.insert("webhook-id", id.try_into().ok()?);
    headers.insert("webhook-timestamp", timestamp.try_into().ok()?);
    headers.insert("x-webhook-signature", signatures.clone());
    headers.insert("webhook-signature", signatures);
    if let Some(own) = &webhook.header {
        let mut value = HeaderValue::try_from(own.value.expose()).ok()?;
        value.set_sensitive(true);
        headers.insert(HeaderName::try_from(own.name.as_str()).ok()?, value);
    }
    Some(headers)
}

/// Formats headers for the log of deliveries.
fn log_lines(headers: &HeaderMap) -> String {
    let mut lines = String::with_capacity(512);
    for (name, value) in headers {
        let value =
            if value.is_sensitive() { REDACTED } else { value.to_str().unwrap_or(REDACTED) };
        for part in [name.as_str(), ": ", value, "\n"] {
            lines.push_str(part);
        }
    }
    lines
}

/// Returns `v1,` and the HMAC-SHA256 over `id.timestamp.body`, in base64.
fn sign(secret: &Secret, id: &str, timestamp: &str, body: &str) -> Option<String> {
    let key = STANDARD.decode(secret.expose().strip_prefix("whsec_")?).ok()?;
    let mut mac = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, &key));
    for part in [id, ".", timestamp, ".", body] {
        mac.update(part.as_bytes());
    }
    Some(format!("v1,{}", STANDARD.encode(mac.sign())))
}

async fn answer(
    response: Response<Incoming>,
    now: DateTime<Utc>,
) -> Result<WebhookResponse, FailureCause> {
    let code = response.status().as_u16();
    let header_value = response.headers().get(header::RETRY_AFTER);
    let retry_after = header_value.and_then(|value| retry_after(value.to_str().ok()?.trim(), now));
    let (mut stored, mut read) = (Vec::new(), 0_usize);
    let mut body = response.into_body();
    while read < MAX_READ_BODY_BYTES {
        let Some(frame) = body.frame().await else { break };
        let frame = frame.map_err(|_| FailureCause::Body)?;
        let data = frame.data_ref().map_or(&[][..], |data| data.as_ref());
        let count = MAX_STORED_BODY_BYTES.saturating_sub(stored.len()).min(data.len());
        stored.extend_from_slice(data.get(..count).unwrap_or_default());
        read = read.saturating_add(data.len());
    }
    // PostgreSQL does not accept NUL in text.
    let body = String::from_utf8_lossy(&stored).replace('\0', "\u{fffd}");
    Ok(WebhookResponse::Status { code, body, retry_after })
}

/// Parses a number of seconds or a date (RFC 9110, section 10.2.3).
fn retry_after(text: &str, now: DateTime<Utc>) -> Option<Duration> {
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = DateTime::parse_from_rfc2822(text).ok()?;
    Some((date.to_utc() - now).to_std().unwrap_or_default())
}

fn failure_cause(error: &hyper_util::client::legacy::Error) -> FailureCause {
    let mut source: Option<&dyn std::error::Error> = Some(error);
    while let Some(cause) = source {
        if let Some(inner) = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            if inner.is::<EgressDenied>() {
                return FailureCause::Blocked;
            }
            if inner.is::<ResolveError>() {
                return FailureCause::Dns;
            }
            if inner.is::<rustls::Error>() {
                return FailureCause::Tls;
            }
        }
        if cause.is::<rustls::Error>() {
            return FailureCause::Tls;
        }
        // The host, for example a malformed number, cannot be the name of a certificate.
        if cause.is::<InvalidDnsNameError>() {
            return FailureCause::Url;
        }
        source = cause.source();
    }
    if error.is_connect() { FailureCause::Connect } else { FailureCause::Http }
}
