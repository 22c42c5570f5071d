//! API keys: made, rotated and revoked. A key is shown by the page that made it, once.

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
    error::{PageError, see},
    page::{PageTime, PortalPage},
    reauthentication::{Confirmed, Team},
};

pub(crate) fn routes(config: &mut web::ServiceConfig) {
    config
        .route("/portal/keys", web::get().to(list))
        .route("/portal/keys", web::post().to(make))
        .route("/portal/keys/{id}/rotate", web::post().to(rotate))
        .route("/portal/keys/{id}/revoke", web::post().to(revoke));
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

async fn page(portal: &Portal, visitor: &SignedInUser) -> Result<PortalPage, PortalError> {
    let now = portal.clock.now();
    let keys = portal.keys.keys(visitor).await?;
    let rows: Vec<_> = keys.iter().map(|kept| ApiKeyRow::of(kept, now)).collect();
    Ok(PortalPage::of_team("keys.html", "API keys", "keys", visitor).with("keys", rows))
}

async fn list(portal: web::Data<Portal>, signed: Authenticated) -> Result<HttpResponse, PageError> {
    Ok(page(&portal, &signed.0).await?.shown())
}

async fn make(portal: web::Data<Portal>, sent: Confirmed<Team>) -> Result<HttpResponse, PageError> {
    let (visitor, fields) = (sent.visitor, sent.fields);
    let made = match order(&portal, &fields) {
        Ok(order) => portal.keys.make_key(&visitor, order).await,
        Err(error) => Err(error),
    };
    match made {
        Ok(key) => Ok(secret(&visitor, "Your new API key", key.expose())),
        Err(error @ PortalError::Invalid(_)) => Ok(page(&portal, &visitor).await?.refused(&error)),
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
        _ => return Err(invalid("a key expires never, or after 30, 90 or 180 days")),
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
    sent: Confirmed<Team>,
) -> Result<HttpResponse, PageError> {
    let key = portal.keys.rotate_key(&sent.visitor, read(&id)?).await?;
    Ok(secret(&sent.visitor, "The key was rotated", key.expose()))
}

async fn revoke(
    portal: web::Data<Portal>,
    id: web::Path<String>,
    sent: Confirmed<Team>,
) -> Result<HttpResponse, PageError> {
    portal.keys.revoke_key(&sent.visitor, read(&id)?).await?;
    Ok(see("/portal/keys"))
}

fn read(id: &str) -> Result<ApiKeyId, PortalError> {
    id.parse().map_err(|_| PortalError::NotFound("key"))
}

/// What is shown this once.
fn secret(visitor: &SignedInUser, title: &str, secret: &str) -> HttpResponse {
    PortalPage::of_team("secret.html", title, "keys", visitor)
        .with("secret", secret)
        .with("what", "API key")
        .with("kept", "it is kept as a hash")
        .with("note", ())
        .with("back", "/portal/keys")
        .shown()
}
