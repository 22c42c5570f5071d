//! The document an author writes for a platform.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{Attest, AttestMode, Condition};
use crate::{api_key::Environment, error_code::ErrorCode};

/// The format this engine reads.
pub(super) const SCHEMA: &str = "avouch-workflow/1";

/// A platform's definition. Nodes carry the road, signals what tells one page from another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Definition {
    /// `avouch-workflow/1`.
    pub schema: String,
    /// The platform's name: lower-case letters, digits and hyphens.
    pub platform: String,
    /// Semantic version. A version once published never changes.
    pub version: String,
    pub environment: Environment,
    pub display_name: String,
    #[serde(default)]
    pub description: String,
    /// URL of a picture.
    pub icon: String,
    pub login_url: String,
    /// The hosts the applicant's browser may visit.
    pub hosts: Vec<String>,
    /// Hosts of single sign-on providers that it may visit on the way.
    #[serde(default)]
    pub sso_hosts: Vec<String>,
    pub budgets: Budgets,
    pub signals: BTreeMap<String, Condition>,
    #[serde(default)]
    pub interrupts: Vec<Interrupt>,
    pub start: String,
    pub nodes: BTreeMap<String, Node>,
    #[serde(default)]
    pub requests: BTreeMap<String, Request>,
    pub output: BTreeMap<String, Field>,
    /// What can be attested; none where nothing can. Left out where it is none, so that documents
    /// that were published before it came still have their hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attest: Option<Attest>,
    /// Language tag, then text key, then text.
    pub texts: BTreeMap<String, BTreeMap<String, String>>,
}

/// What a run may spend before it fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Budgets {
    /// 10 to 7,200.
    pub total_seconds: u32,
    /// Nodes entered: 1 to 500.
    pub steps: u16,
}

/// A condition that can arise anywhere while a page is watched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Interrupt {
    /// A signal.
    pub when: String,
    pub then: WorkflowExit,
}

/// One station of the road.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[serde(deny_unknown_fields)]
pub enum Node {
    Goto {
        url: String,
        next: String,
        on_fail: WorkflowExit,
    },
    /// Goes to the first case whose signal holds on a settled page.
    Branch {
        cases: Vec<Case>,
        /// 1 to 120.
        settle_seconds: u32,
        default: WorkflowExit,
    },
    /// Waits until the applicant has brought one of the signals about.
    AwaitUser {
        kind: PromptKind,
        text_key: String,
        /// 5 to 3,600.
        timeout_seconds: u32,
        until: Vec<String>,
        #[serde(default)]
        hints: Vec<Hint>,
        next: String,
        on_timeout: WorkflowExit,
    },
    Collect {
        via: Source,
        /// Field of the output, and where it is: a JSON pointer, or a selector for the DOM.
        fields: BTreeMap<String, String>,
        /// 0 to 5 more attempts.
        #[serde(default)]
        retries: u8,
        /// Where a required field is not to be had.
        on_missing: WorkflowExit,
        next: String,
    },
    /// Shows the applicant what was collected and asks to share it.
    Review {
        text_key: String,
        timeout_seconds: u32,
        next: String,
    },
    Done,
    Fail {
        code: ErrorCode,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// A signal.
    pub when: String,
    pub next: String,
}

/// Something to tell the applicant while waiting, and what follows when it happens too often.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Hint {
    /// A signal.
    pub when: String,
    pub text_key: String,
    /// How many times it may come up: 1 to 20.
    pub count: u8,
    pub then: WorkflowExit,
}

/// A way out of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum WorkflowExit {
    Next(String),
    Fail(ErrorCode),
}

/// What the applicant is asked to do; partners see it as the kind of the next action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptKind {
    Login,
    Otp,
    Push,
    SecurityQuestion,
    AccountPicker,
    Captcha,
    Consent,
}

impl PromptKind {
    pub const ALL: &'static [Self] = &[
        Self::Login,
        Self::Otp,
        Self::Push,
        Self::SecurityQuestion,
        Self::AccountPicker,
        Self::Captcha,
        Self::Consent,
    ];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Login => "login",
            Self::Otp => "otp",
            Self::Push => "push",
            Self::SecurityQuestion => "security_question",
            Self::AccountPicker => "account_picker",
            Self::Captcha => "captcha",
            Self::Consent => "consent",
        }
    }
}

/// Where data is read from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Source {
    /// A named request, made in the page.
    Fetch(String),
    /// A response the page was given; a pattern over its path.
    Response(String),
    /// The page itself; the fields' places are CSS selectors.
    Dom {},
}

/// A named request of the definition: a GET with the page's own cookies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Request {
    pub url: String,
    pub expect_status: u16,
    /// 1 to 1,048,576.
    pub max_bytes: u32,
}

/// One field of the output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Field {
    #[serde(rename = "type")]
    pub kind: FieldType,
    #[serde(default)]
    pub required: bool,
    /// What the applicant reads beside the value before sharing it.
    pub label_key: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FieldType {
    /// At most 4,096 characters.
    String,
    Integer,
    Number,
    Boolean,
}

impl Definition {
    /// Whether an attestation of it shows the witness the whole exchange, credentials too.
    #[must_use]
    pub fn opens_all(&self) -> bool {
        self.attest.as_ref().and_then(Attest::mode) == Some(AttestMode::FullReveal)
    }

    /// Every selector that a condition names: what is to be looked for in a page.
    #[must_use]
    pub fn selectors(&self) -> BTreeSet<&str> {
        self.named(|condition| {
            let Condition::Selector(selector) = condition else { return None };
            Some(selector.as_str())
        })
    }

    /// Every pattern of a response that a condition or a collection names.
    #[must_use]
    pub fn responses(&self) -> BTreeSet<&str> {
        let mut patterns = self.named(|condition| {
            let Condition::Response { url, .. } = condition else { return None };
            Some(url.as_str())
        });
        patterns.extend(self.nodes.values().filter_map(|node| {
            let Node::Collect { via: Source::Response(pattern), .. } = node else { return None };
            Some(pattern.as_str())
        }));
        patterns
    }

    /// The text of a key in the first of the languages that has it, English last.
    #[must_use]
    pub fn text<'a>(&'a self, language: Option<&str>, key: &'a str) -> &'a str {
        let primary = language.and_then(|tag| tag.split('-').next());
        [language, primary, Some("en")]
            .into_iter()
            .flatten()
            .find_map(|tag| self.texts.get(tag)?.get(key))
            .map_or(key, String::as_str)
    }

    fn named<'a>(&'a self, pick: impl Fn(&'a Condition) -> Option<&'a str>) -> BTreeSet<&'a str> {
        let mut names = BTreeSet::new();
        for condition in self.signals.values() {
            condition.walk(&mut |condition| names.extend(pick(condition)));
        }
        names
    }
}
