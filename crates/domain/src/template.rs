//! A team's own wording of the mail that brings a link, from a draft to being approved.

use std::{fmt, str::FromStr};

use crate::language::Language;

/// Templates of one team.
pub const MAX_TEMPLATES: usize = 100;
pub const MAX_TEMPLATE_NAME_CHARS: usize = 60;
pub const MAX_SUBJECT_CHARS: usize = 150;
pub const MAX_BODY_CHARS: usize = 10_000;
/// Of the words in which one is rejected.
pub const MAX_REASON_CHARS: usize = 500;
/// What each of them is for; partners see it as `type`.
pub const KIND: &str = "SESSION_LINK";

/// What a mail says, in the template language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateText {
    pub language: Language,
    pub subject: String,
    /// In Markdown.
    pub body: String,
}

/// What a team writes down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    pub name: String,
    pub wording: TemplateText,
}

impl Draft {
    /// # Errors
    /// A part is empty, too long, or has control characters other than the body's line breaks.
    pub fn new(
        name: &str,
        language: Language,
        subject: &str,
        body: &str,
    ) -> Result<Self, InvalidDraft> {
        let (name, subject) = (name.trim(), subject.trim());
        // As forms send them (HTML, section 4.10.22.4).
        let body = body.replace("\r\n", "\n");
        let fits = |text: &str, longest| (1..=longest).contains(&text.chars().count());
        if !fits(name, MAX_TEMPLATE_NAME_CHARS) || name.contains(char::is_control) {
            return Err(InvalidDraft::Name);
        }
        if !fits(subject, MAX_SUBJECT_CHARS) || subject.contains(char::is_control) {
            return Err(InvalidDraft::Subject);
        }
        if !fits(body.trim(), MAX_BODY_CHARS)
            || body.contains(|c: char| c.is_control() && c != '\n')
        {
            return Err(InvalidDraft::Body);
        }
        let wording = TemplateText { language, subject: subject.into(), body: body.trim().into() };
        Ok(Self { name: name.to_owned(), wording })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidDraft {
    #[error("a template's name has 1 to {MAX_TEMPLATE_NAME_CHARS} characters in one line")]
    Name,
    #[error("a subject has 1 to {MAX_SUBJECT_CHARS} characters in one line")]
    Subject,
    #[error("a text has 1 to {MAX_BODY_CHARS} characters, and no control characters")]
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
    type Err = UnknownTemplateStatus;

    fn from_str(text: &str) -> Result<Self, UnknownTemplateStatus> {
        Self::ALL.into_iter().find(|status| status.as_str() == text).ok_or(UnknownTemplateStatus)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a template is DRAFT, SUBMITTED, APPROVED or REJECTED")]
pub struct UnknownTemplateStatus;

/// What is done with a template as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReviewStep {
    Submit,
    /// Its team takes it back before it was read.
    Withdraw,
    Approve,
    Reject,
}

impl ReviewStep {
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
            ("", "B", "C", InvalidDraft::Name),
            (&"é".repeat(61), "B", "C", InvalidDraft::Name),
            ("A", "B\nBcc: all@example.org", "C", InvalidDraft::Subject),
            ("A", &"é".repeat(151), "C", InvalidDraft::Subject),
            ("A", "B", " \n", InvalidDraft::Body),
            ("A", "B", "\0", InvalidDraft::Body),
            ("A", "B", &"é".repeat(10_001), InvalidDraft::Body),
        ] {
            assert_eq!(new(name, subject, body), Err(error));
        }
    }

    #[test]
    fn what_is_approved_stays_as_it_is() {
        for step in
            [ReviewStep::Submit, ReviewStep::Withdraw, ReviewStep::Approve, ReviewStep::Reject]
        {
            assert!(!step.from().contains(&TemplateStatus::Approved), "{step:?}");
        }
        assert!(!TemplateStatus::Approved.is_open() && !TemplateStatus::Submitted.is_open());
    }
}
