//! The list of sessions as a CSV file (RFC 4180).

use actix_web::{
    HttpResponse,
    http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE},
    web,
};
use chrono::{DateTime, SecondsFormat, Utc};
use ports::driving::{SessionSearch, TeamSession};

use crate::{Portal, authenticated::Authenticated, error::PageError, session_search::SessionQuery};

/// The maximum number of sessions in a file. The page of the list states it.
pub(crate) const MAX_ROWS: usize = 10_000;
/// The sessions per query of the service.
const BATCH: u16 = 500;
/// The maximum number of queries for a file. A search for a part of a reference may find nothing in
/// some.
const MAX_QUERIES: usize = 100;
const COLUMNS: [&str; 9] = [
    "sessionId",
    "externalReferenceId",
    "status",
    "errorCode",
    "platform",
    "environment",
    "apiKey",
    "createdAt",
    "closedAt",
];

/// Exports the sessions that match the search of the list, the newest first.
pub(crate) async fn export(
    portal: web::Data<Portal>,
    query: web::Query<SessionQuery>,
    signed: Authenticated,
) -> Result<HttpResponse, PageError> {
    let (filter, mut after) = query.into_inner().read();
    let (mut text, mut rows) = (line(COLUMNS.map(str::to_owned)), 0);
    for _ in 0..MAX_QUERIES {
        let search = SessionSearch { filter: filter.clone(), after, limit: BATCH };
        let page = portal.sessions.team_sessions(&signed.0, search).await?;
        for session in page.sessions.iter().take(MAX_ROWS - rows) {
            text.push_str(&line(cells(session)));
            rows += 1;
        }
        after = page.next;
        if after.is_none() || rows == MAX_ROWS {
            break;
        }
    }
    Ok(HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, "text/csv; charset=utf-8"))
        .insert_header((CONTENT_DISPOSITION, "attachment; filename=\"sessions.csv\""))
        .insert_header((CACHE_CONTROL, "no-store"))
        .body(text))
}

fn cells(session: &TeamSession) -> [String; COLUMNS.len()] {
    let TeamSession { listed, platform, key } = session;
    let summary = &listed.summary;
    let time = |at: DateTime<Utc>| at.to_rfc3339_opts(SecondsFormat::Millis, true);
    [
        summary.id.to_string(),
        listed.reference.clone().unwrap_or_default(),
        summary.status.as_str().to_owned(),
        listed.error_code.clone().unwrap_or_default(),
        platform.clone(),
        listed.environment.as_str().to_owned(),
        key.clone(),
        time(summary.created_at),
        summary.closed_at.map(time).unwrap_or_default(),
    ]
}

fn line(cells: [String; COLUMNS.len()]) -> String {
    let cells = cells.map(|text| cell(&text));
    format!("{}\r\n", cells.join(","))
}

/// Quotes a cell where that is required. Spreadsheet programs run a cell as a formula if it begins
/// with one of a few characters; an apostrophe before it makes it a text (OWASP, CSV injection).
fn cell(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let text = if is_formula { format!("'{text}") } else { text.to_owned() };
    if text.contains(['"', ',', '\r', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_quoted_and_is_no_formula() {
        for (text, expected) in [
            ("loan-7", "loan-7"),
            ("", ""),
            ("a,b", "\"a,b\""),
            ("say \"hi\"", "\"say \"\"hi\"\"\""),
            ("two\nlines", "\"two\nlines\""),
            ("=1+1", "'=1+1"),
            ("+1", "'+1"),
            ("-1", "'-1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\t=1", "'\t=1"),
            ("\r=1", "\"'\r=1\""),
            (
                "=HYPERLINK(\"https://evil.example\",1)",
                "\"'=HYPERLINK(\"\"https://evil.example\"\",1)\"",
            ),
        ] {
            assert_eq!(cell(text), expected, "{text:?}");
        }
    }
}
