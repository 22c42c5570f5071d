//! Webhooks: made, changed, switched, tested; their secrets are shown once.

use std::time::Duration;

use actix_web::{HttpResponse, web};
use chrono::{DateTime, Utc};
use domain::id::WebhookId;
use ports::{
    delivery_log::DeliveryState,
    driving::{PortalError, SignedInUser},
    webhook_store::StoredWebhook,
};
use serde::{Deserialize, Serialize};

use crate::{
    Portal,
    authenticated::Authenticated,
    deliveries,
    error::{PageError, see},
    forms::CsrfForm,
    page::{PageTime, PortalPage},
    reauthentication::{Confirmed, Team},
    webhook_form::{Entered, change, order},
};

const HERE: &str = "/portal/webhooks";
const HOUR: Duration = Duration::from_secs(3600);

pub(crate) fn routes(config: &mut web::ServiceConfig) {
    config
        .route(HERE, web::get().to(list))
        .route(HERE, web::post().to(make))
        .route("/portal/webhooks/{id}", web::get().to(show))
        .route("/portal/webhooks/{id}", web::post().to(alter))
        .route("/portal/webhooks/{id}/switch", web::post().to(switch))
        .route("/portal/webhooks/{id}/rotate", web::post().to(rotate))
        .route("/portal/webhooks/{id}/test", web::post().to(test));
}

#[derive(Serialize)]
struct WebhookListRow {
    id: String,
    url: String,
    state: &'static str,
    active: bool,
    header: Option<String>,
    keys: usize,
    timeout: u64,
    retries: u8,
    created: PageTime,
    failures: u32,
    failing_since: Option<PageTime>,
    paused_until: Option<PageTime>,
    old_secret_until: Option<PageTime>,
}

impl WebhookListRow {
    fn of(kept: &StoredWebhook, now: DateTime<Utc>) -> Self {
        let (webhook, health) = (&kept.webhook, &kept.health);
        let state = match (webhook.active, health.failing(now)) {
            (false, _) => "off",
            (true, true) => "failing",
            (true, false) => "active",
        };
        let old = webhook.retiring.as_ref().map(|old| old.until).filter(|until| now < *until);
        Self {
            id: webhook.id.to_string(),
            url: webhook.url.clone(),
            state,
            active: webhook.active,
            header: webhook.header.as_ref().map(|header| header.name.clone()),
            keys: kept.keys.len(),
            timeout: webhook.timeout.as_secs(),
            retries: webhook.retries,
            created: kept.created_at.into(),
            failures: health.failures,
            failing_since: health.failing_since.map(PageTime::from),
            paused_until: health.paused_until.filter(|until| now < *until).map(PageTime::from),
            old_secret_until: old.map(PageTime::from),
        }
    }
}

async fn all(
    portal: &Portal,
    visitor: &SignedInUser,
    fields: Option<&crate::forms::Fields>,
) -> Result<PortalPage, PortalError> {
    let now = portal.clock.now();
    let webhooks = portal.webhooks.webhooks(visitor).await?;
    let keys = portal.keys.keys(visitor).await?;
    let rows: Vec<_> = webhooks.iter().map(|kept| WebhookListRow::of(kept, now)).collect();
    let entered =
        fields.map_or_else(|| Entered::none(&keys), |fields| Entered::again(fields, &keys));
    Ok(PortalPage::of_team("webhooks.html", "Webhooks", "webhooks", visitor)
        .with("webhooks", rows)
        .with("entered", entered))
}

async fn list(portal: web::Data<Portal>, signed: Authenticated) -> Result<HttpResponse, PageError> {
    Ok(all(&portal, &signed.0, None).await?.shown())
}

async fn make(portal: web::Data<Portal>, sent: Confirmed<Team>) -> Result<HttpResponse, PageError> {
    let (visitor, fields) = (sent.visitor, sent.fields);
    let made = match order(&visitor, &fields) {
        Ok(order) => portal.webhooks.make_webhook(&visitor, order).await,
        Err(error) => Err(error),
    };
    match made {
        Ok(kept) => {
            let secret = kept.webhook.secret.expose();
            Ok(shown_once(&visitor, "Your new webhook", secret, kept.webhook.id, None))
        }
        Err(error @ PortalError::Invalid(_)) => {
            Ok(all(&portal, &visitor, Some(&fields)).await?.refused(&error))
        }
        Err(error) => Err(error.into()),
    }
}

#[derive(Deserialize)]
struct DeliverySearch {
    #[serde(default)]
    state: String,
}

const STATES: [DeliveryState; 3] =
    [DeliveryState::Pending, DeliveryState::Delivered, DeliveryState::Exhausted];

async fn one(
    portal: &Portal,
    visitor: &SignedInUser,
    id: WebhookId,
    state: Option<DeliveryState>,
) -> Result<PortalPage, PortalError> {
    let now = portal.clock.now();
    let kept = portal.webhooks.webhook(visitor, id).await?;
    let keys = portal.keys.keys(visitor).await?;
    let deliveries = portal.webhooks.webhook_deliveries(visitor, id, state).await?;
    let rows: Vec<_> = deliveries.iter().map(deliveries::DeliveryListRow::from).collect();
    Ok(PortalPage::of_team("webhook.html", "Webhook", "webhooks", visitor)
        .with("webhook", WebhookListRow::of(&kept, now))
        .with("entered", Entered::of(&kept, &keys))
        .with("deliveries", rows)
        .with("states", STATES.map(DeliveryState::as_str))
        .with("state", state.map_or("", DeliveryState::as_str))
        .with("from", deliveries::form_time(now - chrono::TimeDelta::days(1)))
        .with("to", deliveries::form_time(now + chrono::TimeDelta::minutes(1)))
        .with("done", ""))
}

async fn show(
    portal: web::Data<Portal>,
    id: web::Path<String>,
    asked: web::Query<DeliverySearch>,
    signed: Authenticated,
) -> Result<HttpResponse, PageError> {
    let state = STATES.into_iter().find(|state| state.as_str() == asked.state);
    Ok(one(&portal, &signed.0, read(&id)?, state).await?.shown())
}

/// The page of a webhook, to say on what was done.
pub(crate) async fn page(
    portal: &Portal,
    visitor: &SignedInUser,
    id: WebhookId,
) -> Result<PortalPage, PortalError> {
    one(portal, visitor, id, None).await
}

async fn alter(
    portal: web::Data<Portal>,
    id: web::Path<String>,
    sent: Confirmed<Team>,
) -> Result<HttpResponse, PageError> {
    let (visitor, fields, id) = (sent.visitor, sent.fields, read(&id)?);
    let kept = portal.webhooks.webhook(&visitor, id).await?;
    let changed = match change(&kept, &fields) {
        Ok(change) => portal.webhooks.change_webhook(&visitor, id, change).await,
        Err(error) => Err(error),
    };
    match changed {
        Ok(()) => {
            let done = page(&portal, &visitor, id).await?.with("done", "The webhook was changed.");
            Ok(done.shown())
        }
        Err(error @ PortalError::Invalid(_)) => {
            let keys = portal.keys.keys(&visitor).await?;
            let page = page(&portal, &visitor, id).await?;
            Ok(page.with("entered", Entered::again(&fields, &keys)).refused(&error))
        }
        Err(error) => Err(error.into()),
    }
}

async fn switch(
    portal: web::Data<Portal>,
    id: web::Path<String>,
    sent: CsrfForm,
) -> Result<HttpResponse, PageError> {
    let (id, active) = (read(&id)?, sent.fields.text("active") == "true");
    portal.webhooks.switch_webhook(&sent.visitor, id, active).await?;
    Ok(see(&format!("{HERE}/{id}")))
}

async fn rotate(
    portal: web::Data<Portal>,
    id: web::Path<String>,
    sent: Confirmed<Team>,
) -> Result<HttpResponse, PageError> {
    let id = read(&id)?;
    let hours = match sent.fields.text("overlap") {
        "0" => 0,
        "24" => 24,
        "168" => 168,
        _ => {
            let why = "the old secret signs for 0, 24 or 168 hours";
            return Err(PortalError::Invalid(why.into()).into());
        }
    };
    let fresh = portal.webhooks.rotate_webhook(&sent.visitor, id, HOUR * hours).await?;
    let until = (hours > 0).then_some(fresh.old_until);
    let title = "The secret was rotated";
    Ok(shown_once(&sent.visitor, title, fresh.secret.expose(), id, until))
}

async fn test(
    portal: web::Data<Portal>,
    id: web::Path<String>,
    sent: CsrfForm,
) -> Result<HttpResponse, PageError> {
    let id = read(&id)?;
    match portal.webhooks.test_webhook(&sent.visitor, id).await {
        Ok(delivery) => Ok(see(&format!("{}/{delivery}", deliveries::HERE))),
        Err(error @ PortalError::Invalid(_)) => {
            Ok(page(&portal, &sent.visitor, id).await?.refused(&error))
        }
        Err(error) => Err(error.into()),
    }
}

pub(crate) fn read(id: &str) -> Result<WebhookId, PortalError> {
    id.parse().map_err(|_| PortalError::NotFound("webhook"))
}

/// A secret that is shown this once.
fn shown_once(
    visitor: &SignedInUser,
    title: &str,
    secret: &str,
    id: WebhookId,
    until: Option<DateTime<Utc>>,
) -> HttpResponse {
    let note = until.map(|until| {
        format!("Until {}, deliveries are signed with the old one too.", PageTime::from(until))
    });
    PortalPage::of_team("secret.html", title, "webhooks", visitor)
        .with("secret", secret)
        .with("what", "signing secret")
        .with("kept", "it is kept encrypted")
        .with("note", note)
        .with("back", format!("{HERE}/{id}"))
        .shown()
}
