//! The platform definition: the document that describes how to verify accounts on a platform.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Attest, AttestMode, ChannelHint, Condition, CsrfHeader, CsrfToken, CustomUrl, Extraction,
    Field, JsonPath, NextPage, Pages, Request, output::in_order,
};
use crate::{api_key::Environment, error_code::ErrorCode};

/// Separates the selectors of a frame or a shadow host and of an element in it.
pub const FRAME_SEPARATOR: &str = ">>>";
/// The schema version that this interpreter supports.
pub(super) const SCHEMA: &str = "avouch-workflow/1";

/// A platform definition. Its nodes form the workflow; its signals distinguish pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Definition {
    /// The address of a JSON Schema, for editors. It has no effect.
    #[serde(rename = "$schema", default, skip_serializing_if = "Option::is_none")]
    pub json_schema: Option<String>,
    /// The schema, `avouch-workflow/1`.
    pub schema: String,
    /// The platform's name: lower-case letters, digits and hyphens.
    pub platform: String,
    /// The semantic version. A published version never changes.
    pub version: String,
    pub environment: Environment,
    pub display_name: String,
    #[serde(default)]
    pub description: String,
    /// The URL of an image.
    pub icon: String,
    pub login_url: String,
    /// The hosts that the applicant's browser may visit.
    pub hosts: Vec<String>,
    /// The hosts of single sign-on providers, which it may visit as well.
    #[serde(default)]
    pub sso_hosts: Vec<String>,
    /// The address that each session gives, for nodes and requests that open it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_url: Option<CustomUrl>,
    pub budgets: Budgets,
    pub signals: BTreeMap<String, Condition>,
    #[serde(default)]
    pub interrupts: Vec<Interrupt>,
    pub start: String,
    pub nodes: BTreeMap<String, Node>,
    #[serde(default)]
    pub requests: BTreeMap<String, Request>,
    pub output: BTreeMap<String, Field>,
    /// The order in which applicants read the fields of the output; fields that are not listed
    /// follow, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub output_order: Vec<String>,
    // Members without a value are not serialized, so that documents that were published before there
    // were such members keep their hash.
    /// The attestation, if anything can be attested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attest: Option<Attest>,
    /// The texts, by language tag and then by text key.
    pub texts: BTreeMap<String, BTreeMap<String, String>>,
}

/// The limits that a run fails beyond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Budgets {
    /// The duration of a run: 10 to 7,200.
    pub total_seconds: u32,
    /// The number of nodes entered: 1 to 500.
    pub steps: u16,
}

/// A signal that ends any node that observes a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Interrupt {
    /// The name of a signal.
    pub when: String,
    pub then: InterruptTarget,
}

/// What an interrupt leads to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum InterruptTarget {
    /// The name of the next node.
    Next(String),
    Fail(ErrorCode),
    /// An action in the page, after which the node goes on, such as to close a banner: at most five
    /// times in a node.
    Act(Action),
    /// Waits, and goes on at a node, such as one that opens the site again.
    Retry(InterruptRetry),
}

/// Another attempt at what a signal has interrupted, such as a page of a platform that is not available
/// for a moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InterruptRetry {
    /// The number of attempts in a run: 1 to 5.
    pub times: u8,
    /// How long to wait before each: 1 to 60. If the signal ceases to hold meanwhile, the node that was
    /// interrupted goes on instead.
    pub after_seconds: u32,
    /// The name of the node to go on at.
    pub next: String,
    /// The exit after the last attempt.
    pub otherwise: WorkflowExit,
}

/// A node of the workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[serde(deny_unknown_fields)]
pub enum Node {
    Goto {
        url: String,
        next: String,
        on_fail: WorkflowExit,
    },
    /// Does something in the page that needs no secret.
    Act {
        action: Action,
        next: String,
        /// The exit if no element matches, or the page does not answer in time.
        on_fail: WorkflowExit,
    },
    /// Continues with the first case whose signal holds on a settled page.
    Branch {
        cases: Vec<Case>,
        /// How long to wait for a case: 1 to 120.
        settle_seconds: u32,
        default: WorkflowExit,
    },
    /// Waits until the applicant has caused one of the signals to hold. A sign-in and a choice of an
    /// account drop what was collected before, since it may be of another account.
    AwaitUser {
        kind: PromptKind,
        text_key: String,
        /// How long to wait: 5 to 3,600.
        timeout_seconds: u32,
        until: Vec<String>,
        #[serde(default)]
        hints: Vec<Hint>,
        /// Where the platform has sent a code.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        channel_hint: Option<ChannelHint>,
        next: String,
        on_timeout: WorkflowExit,
    },
    Collect {
        via: Source,
        /// The fields of the output, each with the place of its value: a JSON pointer, or a
        /// selector for the DOM.
        fields: BTreeMap<String, Extraction>,
        /// Values for later URLs and requests, which are not shared and count as required. Their names
        /// differ from those of fields.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        variables: BTreeMap<String, Extraction>,
        /// Further pages with rows of the same lists.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pages: Option<Pages>,
        /// The number of further attempts if a field cannot be read, required or not: 0 to 5. Each page
        /// of a list has as many. The run waits before each: 0.5 seconds, then 1, then 2, so that five
        /// take 7.5 seconds. The page itself is also read as soon as its address, its document, a signal
        /// or a watched response has changed meanwhile, and a response as soon as there is another one; a
        /// request is made at the end of the wait.
        #[serde(default)]
        retries: u8,
        /// The exit if a required field cannot be read.
        on_missing: WorkflowExit,
        next: String,
    },
    /// Shows the applicant the collected data and asks for consent to share it.
    Review {
        text_key: String,
        timeout_seconds: u32,
        /// What must still hold when the applicant has agreed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        confirm: Option<Confirmation>,
        next: String,
    },
    Done,
    Fail {
        code: ErrorCode,
    },
}

/// An action in the page. Selectors are those of [`Condition::Selector`]; the first visible element
/// that matches is used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    /// Clicks an element.
    Click(String),
    /// Chooses an option of a list.
    #[serde(rename_all = "camelCase")]
    Choose {
        selector: String,
        /// The value of the option, or its text.
        option: String,
    },
    /// Scrolls an element into view.
    ScrollTo(String),
}

impl Action {
    /// Returns the selector of the element.
    #[must_use]
    pub fn selector(&self) -> &str {
        match self {
            Self::Click(selector) | Self::Choose { selector, .. } | Self::ScrollTo(selector) => {
                selector
            }
        }
    }

    /// Returns the action with another selector.
    #[must_use]
    pub fn with_selector(self, selector: String) -> Self {
        match self {
            Self::Click(_) => Self::Click(selector),
            Self::Choose { option, .. } => Self::Choose { selector, option },
            Self::ScrollTo(_) => Self::ScrollTo(selector),
        }
    }

    /// Returns the place of the selector in an action that is at `path`.
    fn selector_path(&self, path: &JsonPath) -> JsonPath {
        match self {
            Self::Click(_) => path.member("click"),
            Self::Choose { .. } => path.member("choose").member("selector"),
            Self::ScrollTo(_) => path.member("scrollTo"),
        }
    }
}

/// A signal that must still hold when the applicant has agreed to share. A run in which the same review
/// was not confirmed three times fails with `UNEXPECTED_PAGE`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Confirmation {
    /// The name of a signal. The page has ten seconds to settle.
    pub when: String,
    pub otherwise: WorkflowExit,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The name of a signal.
    pub when: String,
    pub next: String,
}

/// A text shown to the applicant when a signal appears during a wait, and the exit if it appears
/// too often.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Hint {
    /// The name of a signal.
    pub when: String,
    pub text_key: String,
    /// The number of appearances that leads to the exit: 1 to 20.
    pub count: u8,
    pub then: WorkflowExit,
}

/// An exit of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum WorkflowExit {
    Next(String),
    Fail(ErrorCode),
}

/// The action that the applicant is asked for; partners see it as the kind of the next action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PromptKind {
    Login,
    Otp,
    Push,
    SecurityQuestion,
    AccountPicker,
    Captcha,
    Consent,
    /// The address that the session opens.
    CustomUrl,
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
        Self::CustomUrl,
    ];

    /// Returns whether the service asks on a page of its own, in place of the platform's.
    #[must_use]
    pub const fn is_asked_by_service(self) -> bool {
        match self {
            Self::Consent | Self::CustomUrl => true,
            Self::Login
            | Self::Otp
            | Self::Push
            | Self::SecurityQuestion
            | Self::AccountPicker
            | Self::Captcha => false,
        }
    }

    /// Returns whether the page may be that of another account afterwards.
    pub(super) const fn may_change_account(self) -> bool {
        match self {
            Self::Login | Self::AccountPicker => true,
            Self::Otp
            | Self::Push
            | Self::SecurityQuestion
            | Self::Captcha
            | Self::Consent
            | Self::CustomUrl => false,
        }
    }

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
            Self::CustomUrl => "custom_url",
        }
    }
}

/// The source that data is read from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Source {
    /// The name of a request, which is made in the page.
    Fetch(String),
    /// A pattern for the path of a response that the page has received.
    Response(String),
    /// The page itself; the places of the fields are CSS selectors.
    Dom {},
}

impl Definition {
    /// Returns whether the attestor sees the whole exchange of an attestation, including the
    /// credentials.
    #[must_use]
    pub fn opens_all(&self) -> bool {
        self.attest.as_ref().and_then(Attest::mode) == Some(AttestMode::FullReveal)
    }

    /// Returns all selectors that conditions name, which have to be looked up in a page.
    #[must_use]
    pub fn selectors(&self) -> BTreeSet<&str> {
        self.condition_names(|condition| {
            let Condition::Selector(selector) = condition else { return None };
            Some(selector.as_str())
        })
    }

    /// Returns the selectors of the elements whose texts conditions compare or prompts mention.
    #[must_use]
    pub fn text_selectors(&self) -> BTreeSet<&str> {
        let mut selectors = self.condition_names(|condition| {
            let Condition::Text { selector, .. } = condition else { return None };
            Some(selector.as_str())
        });
        selectors.extend(self.nodes.values().filter_map(|node| {
            let Node::AwaitUser { channel_hint: Some(hint), .. } = node else { return None };
            Some(hint.selector.as_str())
        }));
        selectors
    }

    /// Returns the CSS selectors, with their places. A selector that goes into shadow roots or frames
    /// has several.
    #[must_use]
    pub fn selector_paths(&self) -> Vec<(JsonPath, &str)> {
        let top = |member| JsonPath::root().member(member);
        let mut selectors = Vec::new();
        for (name, condition) in &self.signals {
            condition.selector_paths(&top("signals").member(name), &mut selectors);
        }
        for (index, interrupt) in self.interrupts.iter().enumerate() {
            if let InterruptTarget::Act(action) = &interrupt.then {
                let path = top("interrupts").item(index).member("then").member("act");
                selectors.push((action.selector_path(&path), action.selector()));
            }
        }
        for (name, node) in &self.nodes {
            let path = top("nodes").member(name);
            if let Node::Collect { via: Source::Dom {}, fields, variables, .. } = node {
                for (member, values) in [("fields", fields), ("variables", variables)] {
                    let path = path.member(member);
                    for (name, from) in values {
                        from.selector_paths(&path.member(name), &mut selectors);
                    }
                }
            }
            if let Node::Collect {
                pages: Some(Pages { next: NextPage::Act(action), .. }), ..
            } = node
            {
                let path = path.member("pages").member("next").member("act");
                selectors.push((action.selector_path(&path), action.selector()));
            }
            if let Node::AwaitUser { channel_hint: Some(hint), .. } = node {
                selectors.push((path.member("channelHint").member("selector"), &hint.selector));
            }
            if let Node::Act { action, .. } = node {
                let path = path.member("action");
                selectors.push((action.selector_path(&path), action.selector()));
            }
        }
        for (name, request) in &self.requests {
            if let Some(CsrfHeader { from: CsrfToken::Element { selector, .. }, .. }) =
                &request.csrf
            {
                let path = top("requests").member(name).member("csrf").member("from");
                selectors.push((path.member("element").member("selector"), selector));
            }
        }
        let parts = selectors.iter().flat_map(|(path, selector)| {
            selector.split(FRAME_SEPARATOR).map(|part| (path.clone(), part.trim()))
        });
        parts.collect()
    }

    /// Returns all response patterns that conditions or collect nodes name.
    #[must_use]
    pub fn responses(&self) -> BTreeSet<&str> {
        let mut patterns = self.condition_names(|condition| {
            let Condition::Response { url, .. } = condition else { return None };
            Some(url.as_str())
        });
        patterns.extend(self.nodes.values().filter_map(|node| {
            let Node::Collect { via: Source::Response(pattern), .. } = node else { return None };
            Some(pattern.as_str())
        }));
        patterns
    }

    /// Returns the fields of the output in the order in which applicants read them.
    pub fn ordered_output(&self) -> impl Iterator<Item = (&String, &Field)> {
        in_order(&self.output, &self.output_order)
    }

    /// Returns the text of a key in the given language or in its primary language. `None` if the
    /// definition has no such text.
    #[must_use]
    pub fn translation(&self, language: Option<&str>, key: &str) -> Option<&str> {
        let primary = language.and_then(|tag| tag.split('-').next());
        let mut tags = [language, primary].into_iter().flatten();
        tags.find_map(|tag| self.texts.get(tag)?.get(key)).map(String::as_str)
    }

    /// Returns the text of a key in the given language, else in its primary language, else in
    /// English; the key itself if there is none.
    #[must_use]
    pub fn text<'a>(&'a self, language: Option<&str>, key: &'a str) -> &'a str {
        let translation = self.translation(language, key);
        translation.or_else(|| self.translation(Some("en"), key)).unwrap_or(key)
    }

    fn condition_names<'a>(
        &'a self,
        name: impl Fn(&'a Condition) -> Option<&'a str>,
    ) -> BTreeSet<&'a str> {
        let mut names = BTreeSet::new();
        for condition in self.signals.values() {
            condition.walk(&mut |condition| names.extend(name(condition)));
        }
        names
    }
}
