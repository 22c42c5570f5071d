//! The audit log of the team.

use std::net::IpAddr;

use actix_web::{
    HttpResponse,
    http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE},
    web,
};
use chrono::SecondsFormat;
use domain::audit::AuditEntry;
use ports::driving::{PortalError, SignedInUser};
use serde::{Deserialize, Serialize};

use crate::{
    Portal,
    authenticated::Authenticated,
    error::PageError,
    forms::CsrfForm,
    message::message,
    methods::{reading, submitting},
    page::{PageTime, PortalPage},
};

/// Entries per page.
const ON_A_PAGE: u16 = 50;
/// Entries per exported file, and per query of the service.
const FILE: u16 = 20_000;
const BATCH: u16 = 1000;

pub(crate) fn routes(config: &mut web::ServiceConfig) {
    config
        .route("/portal/audit", reading(list))
        .route("/portal/audit/verify", submitting(verify))
        .route("/portal/audit/entries.jsonl", reading(export));
}

#[derive(Deserialize)]
struct Before {
    before: Option<i64>,
}

#[derive(Serialize)]
struct AuditListRow {
    number: i64,
    at: PageTime,
    actor: String,
    address: Option<String>,
    action: String,
    subject: String,
    hash: String,
}

impl From<AuditEntry> for AuditListRow {
    fn from(entry: AuditEntry) -> Self {
        let hash = entry.hash_text();
        let AuditEntry { number, event: deed, .. } = entry;
        Self {
            number,
            at: deed.at.into(),
            actor: deed.actor,
            address: deed.address.map(|address| address.to_string()),
            action: deed.action,
            subject: deed.subject,
            hash,
        }
    }
}

async fn page(
    portal: &Portal,
    user: &SignedInUser,
    before: Option<i64>,
) -> Result<PortalPage, PortalError> {
    let entries = portal.audit.audit(user, before, ON_A_PAGE).await?;
    let rows: Vec<_> = entries.into_iter().map(AuditListRow::from).collect();
    let last = rows.last().map(|row| row.number).filter(|number| *number > 1);
    Ok(PortalPage::of_team("audit.html", message("Audit log"), "audit", user)
        .with("entries", rows)
        .with("older", last)
        .with("checked", ())
        .with("broken", ()))
}

async fn list(
    portal: web::Data<Portal>,
    before: web::Query<Before>,
    signed: Authenticated,
) -> Result<HttpResponse, PageError> {
    Ok(page(&portal, &signed.0, before.before).await?.into_response())
}

async fn verify(portal: web::Data<Portal>, submitted: CsrfForm) -> Result<HttpResponse, PageError> {
    let check = portal.audit.verify_audit(&submitted.user).await?;
    let last = check.last.as_ref().map(AuditEntry::hash_text);
    let page = page(&portal, &submitted.user, None).await?;
    Ok(page
        .with("checked", Checked { entries: check.entries, last })
        .with("broken", check.broken)
        .into_response())
}

/// The result of verifying the hash chain.
#[derive(Serialize)]
struct Checked {
    entries: i64,
    last: Option<String>,
}

/// An exported entry: everything that its hash covers.
#[derive(Serialize)]
struct Exported<'a> {
    team: String,
    number: i64,
    at: String,
    actor: &'a str,
    address: Option<IpAddr>,
    action: &'a str,
    subject: &'a str,
    hash: String,
}

/// Exports the entries before a number, the newest first, one JSON object per line.
async fn export(
    portal: web::Data<Portal>,
    before: web::Query<Before>,
    signed: Authenticated,
) -> Result<HttpResponse, PageError> {
    let (mut from, mut lines) = (before.before, Vec::new());
    for _ in 0..FILE / BATCH {
        let entries = portal.audit.audit(&signed.0, from, BATCH).await?;
        from = entries.last().map(|entry| entry.number);
        for entry in &entries {
            let deed = &entry.event;
            let line = Exported {
                team: signed.0.team.to_string(),
                number: entry.number,
                at: deed.at.to_rfc3339_opts(SecondsFormat::Micros, true),
                actor: &deed.actor,
                address: deed.address,
                action: &deed.action,
                subject: &deed.subject,
                hash: entry.hash_text(),
            };
            lines.extend(serde_json::to_vec(&line).unwrap_or_default());
            lines.push(b'\n');
        }
        if entries.len() < usize::from(BATCH) {
            break;
        }
    }
    Ok(HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, "application/jsonl"))
        .insert_header((CONTENT_DISPOSITION, "attachment; filename=\"audit-log.jsonl\""))
        .insert_header((CACHE_CONTROL, "no-store"))
        .body(lines))
}
