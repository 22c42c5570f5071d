//! Which part of a list a partner asks for.

use super::InvalidRequest;
use crate::session::Status;

/// 1 to 100 items from an offset on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    pub limit: i64,
    pub offset: i64,
}

/// The list's query, read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListQuery {
    pub status: Option<Status>,
    pub page: Page,
}

impl ListQuery {
    /// Reads the query as it came; 20 items from the start unless it says otherwise.
    ///
    /// # Errors
    /// Every finding at once, each naming its parameter.
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
        let mut number = |name: &str, text: Option<&str>, least: i64, most: i64, or: i64| {
            let Some(text) = text else { return or };
            match text.parse::<i64>() {
                Ok(number) if (least..=most).contains(&number) => number,
                Ok(_) if most == i64::MAX => {
                    findings.push(format!("{name} must be at least {least}"));
                    or
                }
                Ok(_) => {
                    findings.push(format!("{name} must be between {least} and {most}"));
                    or
                }
                Err(_) => {
                    findings.push(format!("{name} must be an integer"));
                    or
                }
            }
        };
        let limit = number("limit", limit, 1, 100, 20);
        let offset = number("offset", offset, 0, i64::MAX, 0);
        if findings.is_empty() {
            Ok(Self { status, page: Page { limit, offset } })
        } else {
            Err(InvalidRequest(findings))
        }
    }
}
