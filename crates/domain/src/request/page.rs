//! The query of a list request: filter and pagination.

use super::InvalidRequest;
use crate::session::Status;

/// A range of a list: 1 to 100 items, starting at an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRequest {
    pub limit: i64,
    pub offset: i64,
}

/// A list query, parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListQuery {
    pub status: Option<Status>,
    pub page: PageRequest,
}

impl ListQuery {
    /// Parses the query parameters; by default, 20 items from the start.
    ///
    /// # Errors
    /// All findings at once, each naming its parameter.
    pub fn read(
        status: Option<&str>,
        limit: Option<&str>,
        offset: Option<&str>,
    ) -> Result<Self, InvalidRequest> {
        let mut findings = Vec::new();
        let status = match status.map(str::parse::<Status>) {
            Some(Err(_)) => {
                findings.push("status must be a session status".to_owned());
                None
            }
            Some(Ok(status)) => Some(status),
            None => None,
        };
        let mut number = |name: &str, text: Option<&str>, min: i64, max: i64, default: i64| {
            let Some(text) = text else { return default };
            match text.parse::<i64>() {
                Ok(number) if (min..=max).contains(&number) => number,
                Ok(_) if max == i64::MAX => {
                    findings.push(format!("{name} must be at least {min}"));
                    default
                }
                Ok(_) => {
                    findings.push(format!("{name} must be between {min} and {max}"));
                    default
                }
                Err(_) => {
                    findings.push(format!("{name} must be an integer"));
                    default
                }
            }
        };
        let limit = number("limit", limit, 1, 100, 20);
        let offset = number("offset", offset, 0, i64::MAX, 0);
        if findings.is_empty() {
            Ok(Self { status, page: PageRequest { limit, offset } })
        } else {
            Err(InvalidRequest(findings))
        }
    }
}
