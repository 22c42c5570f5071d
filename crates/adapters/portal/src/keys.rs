//! API keys: created, rotated and revoked. A key is shown once, by the page that created it.

use actix_web::{HttpResponse, web};
use chrono::{TimeDelta, Utc};
use domain::{api_key::Environment, id::ApiKeyId};
use ports::{
    driving::{NewKey, PortalError, SignedInUser},
    key_store::StoredKey,
};
use serde::Serialize;

use crate::{
    Portal,
    authenticated::Authenticated,
    error::PageError,
    message::{Message, message},
    methods::{reading, submitting},
    page::{NoticeQuery, PageTime, PortalPage, redirect_with_notice},
    reauthentication::{Confirmed, TeamSettings},
};

pub(crate) fn routes(config: &mut web::ServiceConfig) {
    config
        .route("/portal/keys", reading(list))
        .route("/portal/keys", submitting(make))
        .route("/portal/keys/{id}/rotate", submitting(rotate))
        .route("/portal/keys/{id}/revoke", submitting(revoke));
}

#[derive(Serialize)]
struct ApiKeyRow {
    id: String,
    label: String,
    environment: &'static str,
    state: &'static str,
    live: bool,
    created: PageTime,
    expires: Option<PageTime>,
    used: Option<PageTime>,
}

impl ApiKeyRow {
    fn of(kept: &StoredKey, now: chrono::DateTime<Utc>) -> Self {
        let key = &kept.key;
        let state = match (key.revoked_at, key.opens(now)) {
            (Some(_), _) => "revoked",
            (None, true) => "active",
            (None, false) => "expired",
        };
        Self {
            id: key.id.to_string(),
            label: kept.label.clone(),
            environment: key.environment.as_str(),
            state,
            live: key.revoked_at.is_none(),
            created: kept.created_at.into(),
            expires: key.expires_at.map(PageTime::from),
            used: kept.used_at.map(PageTime::from),
        }
    }
}

async fn page(portal: &Portal, user: &SignedInUser) -> Result<PortalPage, PortalError> {
    let now = portal.clock.now();
    let keys = portal.keys.keys(user).await?;
    let rows: Vec<_> = keys.iter().map(|kept| ApiKeyRow::of(kept, now)).collect();
    Ok(PortalPage::of_team("keys.html", message("API keys"), "keys", user).with("keys", rows))
}

async fn list(
    portal: web::Data<Portal>,
    notice: web::Query<NoticeQuery>,
    signed: Authenticated,
) -> Result<HttpResponse, PageError> {
    Ok(page(&portal, &signed.0).await?.with_notice(&notice).into_response())
}

async fn make(
    portal: web::Data<Portal>,
    submitted: Confirmed<TeamSettings>,
) -> Result<HttpResponse, PageError> {
    let (user, fields) = (submitted.user, submitted.fields);
    let made = match order(&portal, &fields) {
        Ok(order) => portal.keys.make_key(&user, order).await,
        Err(error) => Err(error),
    };
    match made {
        Ok(key) => Ok(secret(&user, message("API key created"), key.expose())),
        Err(error @ PortalError::Invalid(_)) => Ok(page(&portal, &user).await?.refused(&error)),
        Err(error) => Err(error.into()),
    }
}

fn order(portal: &Portal, fields: &crate::forms::Fields) -> Result<NewKey, PortalError> {
    let invalid = |what: &str| PortalError::Invalid(what.to_owned());
    let environment = fields.text("environment").parse::<Environment>();
    let days = match fields.text("expiry") {
        "never" => None,
        "30" => Some(30),
        "90" => Some(90),
        "180" => Some(180),
        _ => return Err(invalid("select an expiration of 30, 90 or 180 days, or never")),
    };
    Ok(NewKey {
        label: fields.text("label").to_owned(),
        environment: environment.map_err(|error| invalid(&error.to_string()))?,
        expires_at: days.map(|days| portal.clock.now() + TimeDelta::days(days)),
    })
}

async fn rotate(
    portal: web::Data<Portal>,
    id: web::Path<String>,
    submitted: Confirmed<TeamSettings>,
) -> Result<HttpResponse, PageError> {
    let key = portal.keys.rotate_key(&submitted.user, read(&id)?).await?;
    Ok(secret(&submitted.user, message("API key rotated"), key.expose()))
}

async fn revoke(
    portal: web::Data<Portal>,
    id: web::Path<String>,
    submitted: Confirmed<TeamSettings>,
) -> Result<HttpResponse, PageError> {
    portal.keys.revoke_key(&submitted.user, read(&id)?).await?;
    Ok(redirect_with_notice("/portal/keys", "key-revoked"))
}

fn read(id: &str) -> Result<ApiKeyId, PortalError> {
    id.parse().map_err(|_| PortalError::NotFound("API key"))
}

/// The values that are shown once.
fn secret(user: &SignedInUser, title: Message, secret: &str) -> HttpResponse {
    PortalPage::of_team("secret.html", title, "keys", user)
        .with("secret", secret)
        .with("lead", message("Copy this API key now. You won't be able to see it again."))
        .with("label", message("API key"))
        .with("note", ())
        .with("back", "/portal/keys")
        .into_response()
}
