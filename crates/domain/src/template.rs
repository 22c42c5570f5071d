//! Templates: a team's own text of the mail that brings an applicant their link, and its review.

use std::{fmt, str::FromStr};

use crate::language::Language;

/// The maximum number of templates of one team.
pub const MAX_TEMPLATES: usize = 100;
pub const MAX_TEMPLATE_NAME_CHARS: usize = 60;
pub const MAX_SUBJECT_CHARS: usize = 150;
pub const MAX_BODY_CHARS: usize = 10_000;
/// The maximum length of the reason of a rejection.
pub const MAX_REASON_CHARS: usize = 500;
/// The kind of every template; partners see it as `type`.
pub const KIND: &str = "SESSION_LINK";

/// The text of a mail, in the template language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateText {
    pub language: Language,
    pub subject: String,
    /// The body in Markdown.
    pub body: String,
}

/// A template as a team drafts it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    pub name: String,
    pub wording: TemplateText,
}

impl Draft {
    /// Validates the parts of a draft.
    ///
    /// # Errors
    /// A part is empty, too long, or has control characters other than line breaks in the body.
    pub fn new(
        name: &str,
        language: Language,
        subject: &str,
        body: &str,
    ) -> Result<Self, InvalidDraft> {
        let (name, subject) = (name.trim(), subject.trim());
        // Forms send line breaks as CRLF (HTML, section 4.10.22.4).
        let body = body.replace("\r\n", "\n");
        let fits = |text: &str, max_chars| (1..=max_chars).contains(&text.chars().count());
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
    #[error("enter a name of 1 to {MAX_TEMPLATE_NAME_CHARS} characters on one line")]
    Name,
    #[error("enter a subject of 1 to {MAX_SUBJECT_CHARS} characters on one line")]
    Subject,
    #[error("enter a body of 1 to {MAX_BODY_CHARS} characters without control characters")]
    Body,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemplateStatus {
    Draft,
    /// Waits for the review of an operator.
    Submitted,
    /// Can be used, and no longer changes.
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

    /// Returns whether the team may edit the template.
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

/// A step of the review of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReviewStep {
    Submit,
    /// The team takes the template back before it is reviewed.
    Withdraw,
    Approve,
    Reject,
}

impl ReviewStep {
    /// Returns the statuses in which the step is allowed.
    #[must_use]
    pub const fn from(self) -> &'static [TemplateStatus] {
        match self {
            Self::Submit => &[TemplateStatus::Draft, TemplateStatus::Rejected],
            Self::Withdraw | Self::Approve | Self::Reject => &[TemplateStatus::Submitted],
        }
    }

    /// Returns the status after the step.
    #[must_use]
    pub const fn to(self) -> TemplateStatus {
        match self {
            Self::Submit => TemplateStatus::Submitted,
            Self::Withdraw => TemplateStatus::Draft,
            Self::Approve => TemplateStatus::Approved,
            Self::Reject => TemplateStatus::Rejected,
        }
    }

    /// Returns the name of the step in the audit log.
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
    fn the_parts_of_a_draft_are_bounded() {
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
    fn an_approved_template_does_not_change() {
        for step in
            [ReviewStep::Submit, ReviewStep::Withdraw, ReviewStep::Approve, ReviewStep::Reject]
        {
            assert!(!step.from().contains(&TemplateStatus::Approved), "{step:?}");
        }
        assert!(!TemplateStatus::Approved.is_open() && !TemplateStatus::Submitted.is_open());
    }
}
