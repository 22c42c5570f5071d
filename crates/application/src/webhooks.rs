//! Creates and changes a team's webhooks, and sends deliveries again.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use chrono::TimeDelta;
use domain::{
    egress::Egress,
    id::{ApiKeyId, DeliveryId, SessionId, TeamId, WebhookId},
    secret::Secret,
    webhook::{EndpointHealth, RetiringSecret, Webhook, WebhookHeader, redacted, test_payload},
};
use ports::{
    clock::Clock,
    delivery_log::{DeliveryFilter, DeliveryLog, DeliveryWithAttempts, StoredDelivery, TimeRange},
    driving::{NewWebhook, Rotated, WebhookError, WebhookService},
    key_store::{KeyStore, TeamStore},
    random::RandomSource,
    webhook_store::{HeaderChange, StoredWebhook, WebhookChange, WebhookStore},
};
use serde_json::Value;
use url::Url;

/// How long two secrets of a webhook may be valid at the same time.
const MAX_SECRET_OVERLAP: Duration = Duration::from_secs(7 * 24 * 3600);
const MAX_URL_CHARS: usize = 2000;
const MAX_TIMEOUT: Duration = Duration::from_secs(120);
/// Deliveries that are sent again in one transaction.
const RESEND_BATCH: u16 = 500;
/// Deliveries that are sent again in one call.
const MAX_RESENT: usize = 100_000;
/// Deliveries in one list.
const MAX_LISTED_DELIVERIES: u16 = 1000;

/// Names that a webhook's own header must not have: the service or HTTP uses them.
const RESERVED_HEADERS: &[&str] = &[
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "webhook-id",
    "webhook-signature",
    "webhook-timestamp",
    "x-webhook-signature",
];

/// The use cases of webhooks, for the portal and for operators.
pub struct WebhookUseCases {
    pub store: Arc<dyn WebhookStore>,
    pub log: Arc<dyn DeliveryLog>,
    pub teams: Arc<dyn TeamStore>,
    pub keys: Arc<dyn KeyStore>,
    pub clock: Arc<dyn Clock>,
    pub random: Arc<dyn RandomSource>,
    pub egress: Egress,
}

#[async_trait]
impl WebhookService for WebhookUseCases {
    async fn check(&self, order: &NewWebhook) -> Result<(), WebhookError> {
        self.checked(order).await.map(drop)
    }

    async fn check_change(
        &self,
        id: WebhookId,
        change: &WebhookChange,
    ) -> Result<(), WebhookError> {
        self.checked_change(id, change).await.map(drop)
    }

    async fn create(&self, order: NewWebhook) -> Result<StoredWebhook, WebhookError> {
        let (url, header) = self.checked(&order).await?;
        let webhook = Webhook {
            id: WebhookId::from_u128(self.random.new_id()),
            team: order.team,
            url,
            header,
            secret: self.secret(),
            retiring: None,
            timeout: order.timeout,
            retries: order.retries,
            active: order.active,
        };
        let created_at = self.clock.now();
        self.store.add_webhook(&webhook, &order.keys, created_at).await?;
        Ok(StoredWebhook {
            webhook,
            keys: order.keys,
            health: EndpointHealth::default(),
            created_at,
        })
    }

    async fn list(&self, team: TeamId) -> Result<Vec<StoredWebhook>, WebhookError> {
        Ok(self.store.webhooks(team).await?)
    }

    async fn change(&self, id: WebhookId, change: WebhookChange) -> Result<(), WebhookError> {
        let (url, header) = self.checked_change(id, &change).await?;
        let change = WebhookChange { url, header, ..change };
        found(self.store.change_webhook(id, &change).await?, "webhook")
    }

    async fn set_active(&self, id: WebhookId, active: bool) -> Result<(), WebhookError> {
        found(self.store.set_active(id, active).await?, "webhook")
    }

    async fn rotate_secret(
        &self,
        id: WebhookId,
        overlap: Duration,
    ) -> Result<Rotated, WebhookError> {
        if overlap > MAX_SECRET_OVERLAP {
            return invalid("the old secret can stay valid for up to 7 days");
        }
        let stored = self.store.webhook(id).await?.ok_or(WebhookError::NotFound("webhook"))?;
        let overlap = TimeDelta::from_std(overlap).unwrap_or_default();
        let (secret, old_until) = (self.secret(), self.clock.now() + overlap);
        let retiring = RetiringSecret { secret: stored.webhook.secret, until: old_until };
        found(self.store.rotate_secret(id, &secret, &retiring).await?, "webhook")?;
        Ok(Rotated { secret, old_until })
    }

    async fn test(&self, id: WebhookId) -> Result<DeliveryId, WebhookError> {
        let stored = self.store.webhook(id).await?.ok_or(WebhookError::NotFound("webhook"))?;
        if !stored.webhook.active {
            return invalid("the endpoint is disabled");
        }
        let session = SessionId::from_u128(self.random.new_id());
        let now = self.clock.now();
        let body = test_payload(session, now).to_string();
        Ok(self.log.enqueue_test(id, session, &body, now).await?)
    }

    async fn deliveries(&self, find: DeliveryFilter) -> Result<Vec<StoredDelivery>, WebhookError> {
        let find = DeliveryFilter { limit: find.limit.min(MAX_LISTED_DELIVERIES), ..find };
        Ok(self.log.find_deliveries(&find).await?)
    }

    async fn delivery(&self, id: DeliveryId) -> Result<DeliveryWithAttempts, WebhookError> {
        self.log.delivery(id).await?.ok_or(WebhookError::NotFound("delivery"))
    }

    async fn redacted_payload(&self, id: DeliveryId) -> Result<String, WebhookError> {
        let body = self.log.delivery_body(id).await?.ok_or(WebhookError::NotFound("delivery"))?;
        // A body that cannot be parsed is not shown either.
        let body: Value = serde_json::from_str(&body).unwrap_or_default();
        Ok(format!("{:#}", redacted(&body)))
    }

    async fn send_again(&self, id: DeliveryId) -> Result<(), WebhookError> {
        found(self.log.send_again(id, self.clock.now()).await?, "delivery")
    }

    async fn send_exhausted_again(
        &self,
        id: WebhookId,
        span: TimeRange,
    ) -> Result<usize, WebhookError> {
        if span.from >= span.to {
            return invalid("the start must be before the end");
        }
        self.store.webhook(id).await?.ok_or(WebhookError::NotFound("webhook"))?;
        let mut sent = 0;
        while sent < MAX_RESENT {
            let now = self.clock.now();
            let more = self.log.send_exhausted_again(id, span, now, RESEND_BATCH).await?;
            sent += more;
            if more < usize::from(RESEND_BATCH) {
                break;
            }
        }
        Ok(sent)
    }
}

impl WebhookUseCases {
    /// Returns the URL and the header of a webhook to be created, in the forms that are stored.
    async fn checked(
        &self,
        order: &NewWebhook,
    ) -> Result<(String, Option<WebhookHeader>), WebhookError> {
        if !self.teams.has_team(order.team).await? {
            return Err(WebhookError::NotFound("team"));
        }
        self.check_keys(order.team, &order.keys).await?;
        let url = check_url(&self.egress, &order.url)?;
        check_limits(order.timeout, order.retries)?;
        Ok((url, order.header.as_ref().map(check_header).transpose()?))
    }

    /// Returns the URL and the header of a changed webhook, in the forms that are stored.
    async fn checked_change(
        &self,
        id: WebhookId,
        change: &WebhookChange,
    ) -> Result<(String, HeaderChange), WebhookError> {
        let stored = self.store.webhook(id).await?.ok_or(WebhookError::NotFound("webhook"))?;
        self.check_keys(stored.webhook.team, &change.keys).await?;
        check_limits(change.timeout, change.retries)?;
        let url = check_url(&self.egress, &change.url)?;
        let header = match &change.header {
            HeaderChange::Set(header) => HeaderChange::Set(check_header(header)?),
            // A member who may change the webhook must not learn the value by sending it elsewhere.
            HeaderChange::Keep
                if stored.webhook.header.is_some()
                    && origin(&url) != origin(&stored.webhook.url) =>
            {
                return invalid("enter the header value again to send it to another host");
            }
            HeaderChange::Keep | HeaderChange::Drop => change.header.clone(),
        };
        Ok((url, header))
    }

    fn secret(&self) -> Secret {
        Secret::new(format!("whsec_{}", STANDARD.encode(self.random.random_bytes())))
    }

    async fn check_keys(&self, team: TeamId, keys: &[ApiKeyId]) -> Result<(), WebhookError> {
        if keys.len() > Webhook::MAX_KEYS {
            return invalid("select up to 100 keys, or none for all keys");
        }
        for id in keys {
            let key = self.keys.key(*id).await?;
            if key.is_none_or(|key| key.team != team) {
                return Err(WebhookError::NotFound("API key"));
            }
        }
        Ok(())
    }
}

fn invalid<T>(why: &str) -> Result<T, WebhookError> {
    Err(WebhookError::Invalid(why.to_owned()))
}

fn found(found: bool, what: &'static str) -> Result<(), WebhookError> {
    if found { Ok(()) } else { Err(WebhookError::NotFound(what)) }
}

/// Checks a URL, and returns it in the form in which it is called, so that readers of the setting see
/// the address that is used.
fn check_url(egress: &Egress, text: &str) -> Result<String, WebhookError> {
    if text.len() > MAX_URL_CHARS {
        return invalid("the URL can have up to 2000 characters");
    }
    let url = Url::parse(text)
        .map_err(|error| WebhookError::Invalid(format!("the URL is not valid: {error}")))?;
    let Some(host) = url.host_str() else { return invalid("the URL has no host") };
    if !url.username().is_empty() || url.password().is_some() {
        return invalid("the URL can't contain credentials. Use a header instead");
    }
    let port = url.port_or_known_default().unwrap_or(0);
    match url.scheme() {
        "http" if !egress.names(host, port) => invalid("the URL must use HTTPS"),
        "http" | "https" if !egress.may_permit(host, port) => {
            invalid("the URL's host is not reachable from the internet")
        }
        "http" | "https" => Ok(url.into()),
        _ => invalid("the URL must use HTTPS"),
    }
}

/// Returns the origin of a URL, which holds no secret; empty if the URL cannot be read.
#[must_use]
pub fn origin(url: &str) -> String {
    Url::parse(url).map_or_else(|_| String::new(), |url| url.origin().ascii_serialization())
}

fn check_limits(timeout: Duration, retries: u8) -> Result<(), WebhookError> {
    if !(Duration::from_secs(1)..=MAX_TIMEOUT).contains(&timeout) {
        return invalid("enter a timeout between 1 and 120 seconds");
    }
    if retries > Webhook::MAX_RETRIES {
        return invalid("enter between 0 and 10 retries");
    }
    Ok(())
}

fn check_header(header: &WebhookHeader) -> Result<WebhookHeader, WebhookError> {
    let name = header.name.trim().to_ascii_lowercase();
    let value = header.value.expose().trim().to_owned();
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if name.is_empty() || name.len() > 100 || !name.bytes().all(token) {
        return invalid("enter a header name of 1 to 100 letters, digits and hyphens");
    }
    if RESERVED_HEADERS.contains(&name.as_str()) {
        return Err(WebhookError::Invalid(format!("the header {name} can't be set")));
    }
    if value.is_empty() || value.len() > 2000 || !value.bytes().all(|b| (32..127).contains(&b)) {
        return invalid("enter a header value of 1 to 2000 printable ASCII characters");
    }
    Ok(WebhookHeader { name, value: Secret::new(value) })
}

#[cfg(test)]
mod tests;
