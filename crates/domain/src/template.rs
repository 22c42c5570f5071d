//! A team's own wording of the mail that brings a link, from a draft to being approved.

use std::{fmt, str::FromStr};

use crate::language::Language;

/// Templates of one team.
pub const MOST: usize = 100;
pub const LONGEST_NAME: usize = 60;
pub const LONGEST_SUBJECT: usize = 150;
pub const LONGEST_BODY: usize = 10_000;
/// Of the words in which one is rejected.
pub const LONGEST_REASON: usize = 500;
/// What each of them is for; partners see it as `type`.
pub const KIND: &str = "SESSION_LINK";

/// What a mail says, in the template language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wording {
    pub language: Language,
    pub subject: String,
    /// In Markdown.
    pub body: String,
}

/// What a team writes down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    pub name: String,
    pub wording: Wording,
}

impl Draft {
    /// # Errors
    /// A part is empty, too long, or has control characters other than the body's line breaks.
    pub fn new(
        name: &str,
        language: Language,
        subject: &str,
        body: &str,
    ) -> Result<Self, BadDraft> {
        let (name, subject) = (name.trim(), subject.trim());
        // As forms send them (HTML, section 4.10.22.4).
        let body = body.replace("\r\n", "\n");
        let fits = |text: &str, longest| (1..=longest).contains(&text.chars().count());
        if !fits(name, LONGEST_NAME) || name.contains(char::is_control) {
            return Err(BadDraft::Name);
        }
        if !fits(subject, LONGEST_SUBJECT) || subject.contains(char::is_control) {
            return Err(BadDraft::Subject);
        }
        if !fits(body.trim(), LONGEST_BODY) || body.contains(|c: char| c.is_control() && c != '\n')
        {
            return Err(BadDraft::Body);
        }
        let wording = Wording { language, subject: subject.into(), body: body.trim().into() };
        Ok(Self { name: name.to_owned(), wording })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadDraft {
    #[error("a template's name has 1 to {LONGEST_NAME} characters in one line")]
    Name,
    #[error("a subject has 1 to {LONGEST_SUBJECT} characters in one line")]
    Subject,
    #[error("a text has 1 to {LONGEST_BODY} characters, and no control characters")]
    Body,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemplateStatus {
    Draft,
    /// An operator is to read it.
    Submitted,
    /// It can be used, and does not change any more.
    Approved,
    Rejected,
}

impl TemplateStatus {
    pub const ALL: [Self; 4] = [Self::Draft, Self::Submitted, Self::Approved, Self::Rejected];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Draft => "DRAFT",
            Self::Submitted => "SUBMITTED",
            Self::Approved => "APPROVED",
            Self::Rejected => "REJECTED",
        }
    }

    /// Whether its team may write in it.
    #[must_use]
    pub const fn is_open(self) -> bool {
        match self {
            Self::Draft | Self::Rejected => true,
            Self::Submitted | Self::Approved => false,
        }
    }
}

impl fmt::Display for TemplateStatus {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

impl FromStr for TemplateStatus {
    type Err = UnknownStatus;

    fn from_str(text: &str) -> Result<Self, UnknownStatus> {
        Self::ALL.into_iter().find(|status| status.as_str() == text).ok_or(UnknownStatus)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a template is DRAFT, SUBMITTED, APPROVED or REJECTED")]
pub struct UnknownStatus;

/// What is done with a template as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Submit,
    /// Its team takes it back before it was read.
    Withdraw,
    Approve,
    Reject,
}

impl Step {
    /// From which status it can be done.
    #[must_use]
    pub const fn from(self) -> &'static [TemplateStatus] {
        match self {
            Self::Submit => &[TemplateStatus::Draft, TemplateStatus::Rejected],
            Self::Withdraw | Self::Approve | Self::Reject => &[TemplateStatus::Submitted],
        }
    }

    #[must_use]
    pub const fn to(self) -> TemplateStatus {
        match self {
            Self::Submit => TemplateStatus::Submitted,
            Self::Withdraw => TemplateStatus::Draft,
            Self::Approve => TemplateStatus::Approved,
            Self::Reject => TemplateStatus::Rejected,
        }
    }

    /// What the audit log calls it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Submit => "submit",
            Self::Withdraw => "withdraw",
            Self::Approve => "approve",
            Self::Reject => "reject",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_has_bounds() {
        let new = |name: &str, subject: &str, body: &str| {
            Draft::new(name, Language::ENGLISH, subject, body).map(|draft| draft.wording.body)
        };
        assert_eq!(new(" A ", "B", "one\r\n\r\ntwo\n"), Ok("one\n\ntwo".into()));
        for (name, subject, body, error) in [
            ("", "B", "C", BadDraft::Name),
            (&"é".repeat(61), "B", "C", BadDraft::Name),
            ("A", "B\nBcc: all@example.org", "C", BadDraft::Subject),
            ("A", &"é".repeat(151), "C", BadDraft::Subject),
            ("A", "B", " \n", BadDraft::Body),
            ("A", "B", "\0", BadDraft::Body),
            ("A", "B", &"é".repeat(10_001), BadDraft::Body),
        ] {
            assert_eq!(new(name, subject, body), Err(error));
        }
    }

    #[test]
    fn what_is_approved_stays_as_it_is() {
        for step in [Step::Submit, Step::Withdraw, Step::Approve, Step::Reject] {
            assert!(!step.from().contains(&TemplateStatus::Approved), "{step:?}");
        }
        assert!(!TemplateStatus::Approved.is_open() && !TemplateStatus::Submitted.is_open());
    }
}
