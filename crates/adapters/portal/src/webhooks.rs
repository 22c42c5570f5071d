//! Webhooks: created, changed, switched, tested; their secrets are shown once.

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
    error::{PageError, redirect},
    forms::CsrfForm,
    message::{Message, message},
    methods::{reading, submitting},
    page::{PageTime, PortalPage},
    reauthentication::{Confirmed, TeamSettings},
    webhook_form::{Entered, change, order},
};

const HERE: &str = "/portal/webhooks";
const HOUR: Duration = Duration::from_secs(3600);

pub(crate) fn routes(config: &mut web::ServiceConfig) {
    config
        .route(HERE, reading(list))
        .route(HERE, submitting(make))
        .route("/portal/webhooks/{id}", reading(show))
        .route("/portal/webhooks/{id}", submitting(alter))
        .route("/portal/webhooks/{id}/switch", submitting(switch))
        .route("/portal/webhooks/{id}/rotate", submitting(rotate))
        .route("/portal/webhooks/{id}/test", submitting(test));
}

#[derive(Serialize)]
pub(crate) struct WebhookListRow {
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
    pub(crate) fn of(kept: &StoredWebhook, now: DateTime<Utc>) -> Self {
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
    user: &SignedInUser,
    fields: Option<&crate::forms::Fields>,
) -> Result<PortalPage, PortalError> {
    let now = portal.clock.now();
    let webhooks = portal.webhooks.webhooks(user).await?;
    let keys = portal.keys.keys(user).await?;
    let rows: Vec<_> = webhooks.iter().map(|kept| WebhookListRow::of(kept, now)).collect();
    let entered =
        fields.map_or_else(|| Entered::none(&keys), |fields| Entered::again(fields, &keys));
    Ok(PortalPage::of_team("webhooks.html", message("Webhooks"), "webhooks", user)
        .with("webhooks", rows)
        .with("entered", entered))
}

async fn list(portal: web::Data<Portal>, signed: Authenticated) -> Result<HttpResponse, PageError> {
    Ok(all(&portal, &signed.0, None).await?.into_response())
}

async fn make(
    portal: web::Data<Portal>,
    submitted: Confirmed<TeamSettings>,
) -> Result<HttpResponse, PageError> {
    let (user, fields) = (submitted.user, submitted.fields);
    let made = match order(&user, &fields) {
        Ok(order) => portal.webhooks.make_webhook(&user, order).await,
        Err(error) => Err(error),
    };
    match made {
        Ok(kept) => {
            let secret = kept.webhook.secret.expose();
            Ok(shown_once(&user, message("Endpoint created"), secret, kept.webhook.id, None))
        }
        Err(error @ PortalError::Invalid(_)) => {
            Ok(all(&portal, &user, Some(&fields)).await?.refused(&error))
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
    user: &SignedInUser,
    id: WebhookId,
    state: Option<DeliveryState>,
) -> Result<PortalPage, PortalError> {
    let now = portal.clock.now();
    let kept = portal.webhooks.webhook(user, id).await?;
    let keys = portal.keys.keys(user).await?;
    let deliveries = portal.webhooks.webhook_deliveries(user, id, state).await?;
    let rows: Vec<_> = deliveries.iter().map(deliveries::DeliveryListRow::from).collect();
    Ok(PortalPage::of_team("webhook.html", message("Webhook endpoint"), "webhooks", user)
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
    Ok(one(&portal, &signed.0, read(&id)?, state).await?.into_response())
}

/// Returns the page of a webhook, to which the result of an action is added.
pub(crate) async fn page(
    portal: &Portal,
    user: &SignedInUser,
    id: WebhookId,
) -> Result<PortalPage, PortalError> {
    one(portal, user, id, None).await
}

async fn alter(
    portal: web::Data<Portal>,
    id: web::Path<String>,
    submitted: Confirmed<TeamSettings>,
) -> Result<HttpResponse, PageError> {
    let (user, fields, id) = (submitted.user, submitted.fields, read(&id)?);
    let kept = portal.webhooks.webhook(&user, id).await?;
    let changed = match change(&kept, &fields) {
        Ok(change) => portal.webhooks.change_webhook(&user, id, change).await,
        Err(error) => Err(error),
    };
    match changed {
        Ok(()) => {
            let done = message("Changes saved.");
            Ok(page(&portal, &user, id).await?.with("done", done).into_response())
        }
        Err(error @ PortalError::Invalid(_)) => {
            let keys = portal.keys.keys(&user).await?;
            let page = page(&portal, &user, id).await?;
            Ok(page.with("entered", Entered::again(&fields, &keys)).refused(&error))
        }
        Err(error) => Err(error.into()),
    }
}

async fn switch(
    portal: web::Data<Portal>,
    id: web::Path<String>,
    submitted: CsrfForm,
) -> Result<HttpResponse, PageError> {
    let (id, active) = (read(&id)?, submitted.fields.text("active") == "true");
    portal.webhooks.switch_webhook(&submitted.user, id, active).await?;
    Ok(redirect(&format!("{HERE}/{id}")))
}

async fn rotate(
    portal: web::Data<Portal>,
    id: web::Path<String>,
    submitted: Confirmed<TeamSettings>,
) -> Result<HttpResponse, PageError> {
    let id = read(&id)?;
    let hours = match submitted.fields.text("overlap") {
        "0" => 0,
        "24" => 24,
        "168" => 168,
        _ => {
            let why = "keep the old secret valid for 0, 24 or 168 hours";
            return Err(PortalError::Invalid(why.into()).into());
        }
    };
    let fresh = portal.webhooks.rotate_webhook(&submitted.user, id, HOUR * hours).await?;
    let until = (hours > 0).then_some(fresh.old_until);
    let title = message("Signing secret rotated");
    Ok(shown_once(&submitted.user, title, fresh.secret.expose(), id, until))
}

async fn test(
    portal: web::Data<Portal>,
    id: web::Path<String>,
    submitted: CsrfForm,
) -> Result<HttpResponse, PageError> {
    let id = read(&id)?;
    match portal.webhooks.test_webhook(&submitted.user, id).await {
        Ok(delivery) => Ok(redirect(&format!("{}/{delivery}", deliveries::HERE))),
        Err(error @ PortalError::Invalid(_)) => {
            Ok(page(&portal, &submitted.user, id).await?.refused(&error))
        }
        Err(error) => Err(error.into()),
    }
}

pub(crate) fn read(id: &str) -> Result<WebhookId, PortalError> {
    id.parse().map_err(|_| PortalError::NotFound("endpoint"))
}

/// A secret that is shown once.
fn shown_once(
    user: &SignedInUser,
    title: Message,
    secret: &str,
    id: WebhookId,
    until: Option<DateTime<Utc>>,
) -> HttpResponse {
    let note = until.map(|until| {
        let until = PageTime::from(until).text();
        message("The old secret stays valid until {time}.").with("time", until)
    });
    PortalPage::of_team("secret.html", title, "webhooks", user)
        .with("secret", secret)
        .with("lead", message("Copy this signing secret now. You won't be able to see it again."))
        .with("label", message("Signing secret"))
        .with("note", note)
        .with("back", format!("{HERE}/{id}"))
        .into_response()
}
