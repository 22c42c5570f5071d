//! The search of the list of sessions, which is kept in the page's URL.

use chrono::{DateTime, Days, NaiveDate, NaiveTime, Utc};
use domain::{
    api_key::Environment, error_code::ErrorCode, id::PlatformId, id::SessionId, session::Status,
};
use ports::session_store::{SessionCursor, SessionFilter};
use serde::{Deserialize, Serialize};

/// The maximum size of a searched text: an external reference has up to 255 characters.
const MAX_TEXT_BYTES: usize = 1020;
/// The size of a date such as 2026-01-31.
const DATE_BYTES: usize = 10;
/// Larger than every cursor.
const MAX_CURSOR_BYTES: usize = 64;

/// The values of the search form, and the position in the list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SessionQuery {
    pub(crate) status: String,
    pub(crate) error: String,
    pub(crate) platform: String,
    pub(crate) environment: String,
    /// The first day (UTC).
    pub(crate) from: String,
    /// The last day (UTC).
    pub(crate) to: String,
    /// A part of an external reference or of a session's identifier.
    pub(crate) find: String,
    /// The position after which the page begins.
    pub(crate) after: String,
}

impl SessionQuery {
    /// Returns the search. Invalid values are removed from the query, so that the page shows which
    /// filters apply.
    pub(crate) fn read(&mut self) -> (SessionFilter, Option<SessionCursor>) {
        let filter = SessionFilter {
            status: keep(&mut self.status, |text| text.parse::<Status>().ok()),
            error_code: keep(&mut self.error, ErrorCode::named),
            platform: keep(&mut self.platform, |text| text.parse().ok().map(PlatformId)),
            environment: keep(&mut self.environment, |text| text.parse::<Environment>().ok()),
            from: keep(&mut self.from, |text| date(text).map(start_of)),
            to: keep(&mut self.to, |text| date(text)?.checked_add_days(Days::new(1)).map(start_of)),
            text: keep(&mut self.find, |text| {
                let fits = !text.is_empty() && text.len() <= MAX_TEXT_BYTES;
                fits.then(|| text.to_owned())
            }),
        };
        (filter, keep(&mut self.after, read_cursor))
    }

    /// Returns whether a filter applies.
    pub(crate) fn is_filtered(&self) -> bool {
        self.filters().iter().any(|(_, value)| !value.is_empty())
    }

    /// Returns a path with this search, from after a cursor on.
    pub(crate) fn path(&self, path: &str, after: Option<SessionCursor>) -> String {
        let after = after.map(cursor_text).unwrap_or_default();
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        for (name, value) in self.filters().into_iter().chain([("after", after.as_str())]) {
            if !value.is_empty() {
                query.append_pair(name, value);
            }
        }
        let query = query.finish();
        if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
    }

    fn filters(&self) -> [(&'static str, &str); 7] {
        [
            ("status", &self.status),
            ("error", &self.error),
            ("platform", &self.platform),
            ("environment", &self.environment),
            ("from", &self.from),
            ("to", &self.to),
            ("find", &self.find),
        ]
    }
}

fn keep<T>(text: &mut String, parse: impl FnOnce(&str) -> Option<T>) -> Option<T> {
    let value = parse(text.trim());
    if value.is_none() {
        text.clear();
    }
    value
}

fn date(text: &str) -> Option<NaiveDate> {
    let date = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?;
    (text.len() == DATE_BYTES).then_some(date)
}

fn start_of(date: NaiveDate) -> DateTime<Utc> {
    date.and_time(NaiveTime::MIN).and_utc()
}

fn cursor_text(cursor: SessionCursor) -> String {
    format!("{}.{}", cursor.created_at.timestamp_micros(), cursor.id)
}

fn read_cursor(text: &str) -> Option<SessionCursor> {
    if text.len() > MAX_CURSOR_BYTES {
        return None;
    }
    let (micros, id) = text.split_once('.')?;
    let created_at = DateTime::from_timestamp_micros(micros.parse().ok()?)?;
    Some(SessionCursor { created_at, id: id.parse::<SessionId>().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(status: &str, from: &str, to: &str, find: &str, after: &str) -> SessionQuery {
        SessionQuery {
            status: status.to_owned(),
            from: from.to_owned(),
            to: to.to_owned(),
            find: find.to_owned(),
            after: after.to_owned(),
            ..SessionQuery::default()
        }
    }

    #[test]
    fn a_search_is_read_and_written_again() {
        let id = "11111111-2222-4333-8444-555555555555";
        let after = format!("1767268800123456.{id}");
        let mut query = query("ERROR", "2026-01-31", "2026-01-31", " loan & 7 ", &after);
        query.error = "NO_DATA".to_owned();
        query.platform = "7".to_owned();
        query.environment = "production".to_owned();
        let (filter, cursor) = query.read();
        assert_eq!(filter.status, Some(Status::Error));
        assert_eq!(filter.error_code, Some(ErrorCode::NoData));
        assert_eq!(filter.platform, Some(PlatformId(7)));
        assert_eq!(filter.environment, Some(Environment::Production));
        let day = filter.to.zip(filter.from).map(|(to, from)| to - from);
        assert_eq!(day, Some(chrono::TimeDelta::days(1)), "the last day is part of the period");
        assert_eq!(filter.text.as_deref(), Some("loan & 7"));
        let path = query.path("/portal/sessions", cursor);
        let expected = format!(
            "/portal/sessions?status=ERROR&error=NO_DATA&platform=7&environment=production\
             &from=2026-01-31&to=2026-01-31&find=+loan+%26+7+&after=1767268800123456.{id}"
        );
        assert_eq!(path, expected);
        assert!(query.is_filtered());
    }

    #[test]
    fn invalid_values_are_removed() {
        let long = "x".repeat(1021);
        let deep = format!("{}.11111111-2222-4333-8444-555555555555", "9".repeat(40));
        for (from, find, after) in [
            ("yesterday", "", "x"),
            ("2026-02-30", &long, "1.2"),
            ("262142-01-01", " ", &deep),
            ("-5", "", "9223372036854775807.11111111-2222-4333-8444-555555555555"),
        ] {
            let mut query = query("NONSENSE", from, from, find, after);
            query.platform = "99999999999".to_owned();
            query.error = "<script>".to_owned();
            let (filter, cursor) = query.read();
            assert_eq!((filter, cursor), (SessionFilter::default(), None), "{from}");
            assert_eq!(query, SessionQuery::default());
            assert_eq!(query.path("/portal/sessions", None), "/portal/sessions");
            assert!(!query.is_filtered());
        }
    }
}
