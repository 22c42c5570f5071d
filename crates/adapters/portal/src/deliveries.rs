//! Webhook deliveries with their attempts, and resending.

use actix_web::{HttpResponse, http::StatusCode, web};
use chrono::{DateTime, NaiveDateTime, Utc};
use domain::id::DeliveryId;
use ports::{
    delivery_log::{DeliveryState, StoredAttempt, StoredDelivery, TimeRange},
    driving::PortalError,
};
use serde::Serialize;

use crate::{
    Portal,
    authenticated::Authenticated,
    error::{PageError, redirect},
    forms::CsrfForm,
    message::message,
    methods::{reading, submitting},
    page::{PageTime, PortalPage},
    webhooks,
};

pub(crate) const HERE: &str = "/portal/deliveries";
/// The format of a local date and time in a form (HTML, section 2.3.5.5).
const FORM_TIME: &str = "%Y-%m-%dT%H:%M";

pub(crate) fn routes(config: &mut web::ServiceConfig) {
    config
        .route("/portal/deliveries/{id}", reading(show))
        .route("/portal/deliveries/{id}/again", submitting(again))
        .route("/portal/webhooks/{id}/again", submitting(all_again));
}

#[derive(Serialize)]
pub(crate) struct DeliveryListRow {
    id: String,
    webhook: String,
    session: String,
    test: bool,
    state: &'static str,
    created: PageTime,
    due: Option<PageTime>,
}

impl From<&StoredDelivery> for DeliveryListRow {
    fn from(kept: &StoredDelivery) -> Self {
        Self {
            id: kept.id.to_string(),
            webhook: kept.webhook.to_string(),
            session: kept.session.to_string(),
            test: kept.test,
            state: kept.state.as_str(),
            created: kept.created_at.into(),
            due: kept.due.map(PageTime::from),
        }
    }
}

#[derive(Serialize)]
struct Attempt {
    number: i32,
    at: PageTime,
    took_ms: i32,
    /// The status line of the response, if there is one.
    result: Option<String>,
    error: Option<String>,
    answer: String,
    sent: String,
}

impl From<StoredAttempt> for Attempt {
    fn from(stored: StoredAttempt) -> Self {
        let StoredAttempt { number, at, took_ms, status, error, answer, sent } = stored;
        let result = status.map(status_text);
        Self { number, at: at.into(), took_ms, result, error, answer, sent }
    }
}

/// Returns a status code with its reason phrase (RFC 9110, section 15), such as `204 No Content`.
fn status_text(status: i32) -> String {
    let known = u16::try_from(status).ok().and_then(|status| StatusCode::from_u16(status).ok());
    match known.and_then(|known| known.canonical_reason()) {
        Some(reason) => format!("{status} {reason}"),
        None => status.to_string(),
    }
}

async fn show(
    portal: web::Data<Portal>,
    id: web::Path<String>,
    signed: Authenticated,
) -> Result<HttpResponse, PageError> {
    let id = read(&id)?;
    let (kept, attempts) = portal.webhooks.webhook_delivery(&signed.0, id).await?;
    let payload = portal.webhooks.delivery_payload(&signed.0, id).await?;
    let attempts: Vec<_> = attempts.into_iter().map(Attempt::from).collect();
    Ok(PortalPage::of_team("delivery.html", message("Delivery"), "webhooks", &signed.0)
        .with("delivery", DeliveryListRow::from(&kept))
        .with("pending", kept.state == DeliveryState::Pending)
        .with("attempts", attempts)
        .with("payload", payload)
        .into_response())
}

async fn again(
    portal: web::Data<Portal>,
    id: web::Path<String>,
    submitted: CsrfForm,
) -> Result<HttpResponse, PageError> {
    let id = read(&id)?;
    portal.webhooks.send_delivery_again(&submitted.user, id).await?;
    Ok(redirect(&format!("{HERE}/{id}")))
}

async fn all_again(
    portal: web::Data<Portal>,
    id: web::Path<String>,
    submitted: CsrfForm,
) -> Result<HttpResponse, PageError> {
    let (user, fields, id) = (submitted.user, submitted.fields, webhooks::read(&id)?);
    let span = match (form_moment(fields.text("from")), form_moment(fields.text("to"))) {
        (Some(from), Some(to)) => Ok(TimeRange { from, to }),
        _ => Err(PortalError::Invalid(
            "enter a start and an end, for example 2026-01-31T12:00".into(),
        )),
    };
    let submitted = match span {
        Ok(span) => portal.webhooks.send_all_again(&user, id, span).await,
        Err(error) => Err(error),
    };
    match submitted {
        Ok(count) => {
            let done = message("Deliveries queued: {count}.").with("count", count);
            Ok(webhooks::page(&portal, &user, id).await?.with("done", done).into_response())
        }
        Err(error @ PortalError::Invalid(_)) => {
            Ok(webhooks::page(&portal, &user, id).await?.refused(&error))
        }
        Err(error) => Err(error.into()),
    }
}

/// Formats a time for a form field, to the minute.
pub(crate) fn form_time(at: DateTime<Utc>) -> String {
    at.format(FORM_TIME).to_string()
}

fn form_moment(text: &str) -> Option<DateTime<Utc>> {
    let whole = |format| NaiveDateTime::parse_from_str(text, format).ok();
    whole(FORM_TIME).or_else(|| whole("%Y-%m-%dT%H:%M:%S")).map(|at| at.and_utc())
}

fn read(id: &str) -> Result<DeliveryId, PortalError> {
    id.parse().map_err(|_| PortalError::NotFound("delivery"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_is_named_by_its_code_and_reason() {
        for (status, expected) in
            [(204, "204 No Content"), (500, "500 Internal Server Error"), (599, "599"), (-1, "-1")]
        {
            assert_eq!(status_text(status), expected);
        }
    }

    #[test]
    fn a_moment_comes_back_from_a_form() {
        let at = DateTime::from_timestamp(1_800_000_000, 0).unwrap_or_default();
        assert_eq!(form_time(at), "2027-01-15T08:00");
        assert_eq!(form_moment("2027-01-15T08:00"), Some(at));
        assert_eq!(form_moment("2027-01-15T08:00:00"), Some(at));
        for odd in ["", "2027-01-15", "2027-13-15T08:00", "yesterday", "2027-01-15T08:00Z"] {
            assert_eq!(form_moment(odd), None, "{odd}");
        }
    }
}
