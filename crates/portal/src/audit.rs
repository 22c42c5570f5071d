//! What was done in the portal.

use std::fmt::Write as _;

use actix_web::{HttpResponse, web};
use domain::audit::AuditEntry;
use serde::{Deserialize, Serialize};

use crate::{
    Portal,
    failure::Failure,
    page::{Moment, Page},
    signed::Signed,
};

pub(crate) fn routes(config: &mut web::ServiceConfig) {
    config.route("/portal/audit", web::get().to(list));
}

#[derive(Deserialize)]
struct Before {
    before: Option<i64>,
}

#[derive(Serialize)]
struct Row {
    number: i64,
    at: Moment,
    actor: String,
    address: Option<String>,
    action: String,
    subject: String,
    hash: String,
}

impl From<AuditEntry> for Row {
    fn from(entry: AuditEntry) -> Self {
        let AuditEntry { number, deed, hash } = entry;
        let mut text = String::with_capacity(64);
        for byte in hash {
            // Writing to a string does not fail.
            let _ = write!(text, "{byte:02x}");
        }
        Self {
            number,
            at: deed.at.into(),
            actor: deed.actor,
            address: deed.address.map(|address| address.to_string()),
            action: deed.action,
            subject: deed.subject,
            hash: text,
        }
    }
}

async fn list(
    portal: web::Data<Portal>,
    before: web::Query<Before>,
    signed: Signed,
) -> Result<HttpResponse, Failure> {
    let entries = portal.audit.audit(&signed.0, before.before).await?;
    let rows: Vec<_> = entries.into_iter().map(Row::from).collect();
    let last = rows.last().map(|row| row.number).filter(|number| *number > 1);
    Ok(Page::of_team("audit.html", "Audit log", "audit", &signed.0)
        .with("entries", rows)
        .with("older", last)
        .shown())
}
