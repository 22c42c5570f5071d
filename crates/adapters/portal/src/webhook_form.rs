//! The form with which a webhook is created and changed.

use std::{collections::BTreeSet, time::Duration};

use domain::{
    id::ApiKeyId,
    webhook::{Webhook, WebhookHeader},
};
use ports::{
    driving::{NewWebhook, PortalError, SignedInUser},
    key_store::StoredKey,
    webhook_store::{HeaderChange, StoredWebhook, WebhookChange},
};
use serde::Serialize;

use crate::forms::Fields;

/// The prefix of the names of the checkboxes that choose keys.
const KEY: &str = "key-";

/// The values of the form.
#[derive(Serialize)]
pub(crate) struct Entered {
    url: String,
    /// The name of the header; its value is never shown.
    header: String,
    timeout: String,
    retries: String,
    active: bool,
    keys: Vec<Choice>,
}

/// A key that can be chosen.
#[derive(Serialize)]
struct Choice {
    field: String,
    label: String,
    environment: &'static str,
    chosen: bool,
}

impl Entered {
    /// Returns an empty form.
    pub(crate) fn none(keys: &[StoredKey]) -> Self {
        Self {
            url: String::new(),
            header: String::new(),
            timeout: Webhook::DEFAULT_TIMEOUT.as_secs().to_string(),
            retries: Webhook::DEFAULT_RETRIES.to_string(),
            active: true,
            keys: choices(keys, &BTreeSet::new()),
        }
    }

    /// Returns a form with the values of a webhook.
    pub(crate) fn of(kept: &StoredWebhook, keys: &[StoredKey]) -> Self {
        let webhook = &kept.webhook;
        Self {
            url: webhook.url.clone(),
            header: webhook.header.as_ref().map_or_else(String::new, |own| own.name.clone()),
            timeout: webhook.timeout.as_secs().to_string(),
            retries: webhook.retries.to_string(),
            active: webhook.active,
            keys: choices(keys, &kept.keys.iter().copied().collect()),
        }
    }

    /// Returns the submitted values.
    pub(crate) fn again(fields: &Fields, keys: &[StoredKey]) -> Self {
        let text = |name| fields.text(name).chars().take(2100).collect::<String>();
        Self {
            url: text("url"),
            header: text("header-name"),
            timeout: text("timeout"),
            retries: text("retries"),
            active: fields.has("active"),
            keys: choices(keys, &chosen(fields)),
        }
    }
}

fn choices(keys: &[StoredKey], chosen: &BTreeSet<ApiKeyId>) -> Vec<Choice> {
    let usable =
        keys.iter().filter(|kept| kept.key.revoked_at.is_none() || chosen.contains(&kept.key.id));
    let choice = usable.map(|kept| Choice {
        field: format!("{KEY}{}", kept.key.id),
        label: kept.label.clone(),
        environment: kept.key.environment.as_str(),
        chosen: chosen.contains(&kept.key.id),
    });
    choice.collect()
}

fn chosen(fields: &Fields) -> BTreeSet<ApiKeyId> {
    fields.names().filter_map(|name| name.strip_prefix(KEY)?.parse().ok()).collect()
}

/// Returns the webhook to be created.
pub(crate) fn order(user: &SignedInUser, fields: &Fields) -> Result<NewWebhook, PortalError> {
    let header = match change_of_header(fields, "")? {
        HeaderChange::Set(header) => Some(header),
        HeaderChange::Keep | HeaderChange::Drop => None,
    };
    Ok(NewWebhook {
        team: user.team,
        url: fields.text("url").trim().to_owned(),
        header,
        keys: chosen(fields).into_iter().collect(),
        timeout: timeout(fields)?,
        retries: retries(fields)?,
        active: fields.has("active"),
    })
}

/// Returns the new configuration of the webhook.
pub(crate) fn change(kept: &StoredWebhook, fields: &Fields) -> Result<WebhookChange, PortalError> {
    let own = kept.webhook.header.as_ref().map_or("", |header| &header.name);
    Ok(WebhookChange {
        url: fields.text("url").trim().to_owned(),
        header: change_of_header(fields, own)?,
        keys: chosen(fields).into_iter().collect(),
        timeout: timeout(fields)?,
        retries: retries(fields)?,
    })
}

fn change_of_header(fields: &Fields, own: &str) -> Result<HeaderChange, PortalError> {
    let (name, value) = (fields.text("header-name").trim(), fields.secret("header-value"));
    match (name.is_empty(), value.expose().is_empty()) {
        (true, true) => Ok(HeaderChange::Drop),
        (false, false) => Ok(HeaderChange::Set(WebhookHeader { name: name.to_owned(), value })),
        (false, true) if name.eq_ignore_ascii_case(own) => Ok(HeaderChange::Keep),
        (false, true) => Err(invalid("enter a header value")),
        (true, false) => Err(invalid("enter a header name")),
    }
}

fn timeout(fields: &Fields) -> Result<Duration, PortalError> {
    let seconds = fields.text("timeout").trim().parse();
    seconds
        .map(Duration::from_secs)
        .map_err(|_| invalid("enter a timeout between 1 and 120 seconds"))
}

fn retries(fields: &Fields) -> Result<u8, PortalError> {
    let retries = fields.text("retries").trim().parse();
    retries.map_err(|_| invalid("enter between 0 and 10 retries"))
}

fn invalid(why: &str) -> PortalError {
    PortalError::Invalid(why.to_owned())
}
