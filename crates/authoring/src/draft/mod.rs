//! Changes of a definition that its author makes without writing it: each leaves the definition with
//! the nodes and texts that the change needs.

mod address;
mod changes;
mod fields;
mod pages;
mod steps;

use std::collections::BTreeMap;

use domain::{
    api_key::Environment,
    error_code::ErrorCode,
    platform::NEUTRAL_ICON,
    workflow::{
        Budgets, Case, Condition, Confirmation, Converter, Definition, ElementContent, FieldFormat,
        FieldType, Node, PromptKind, WorkflowExit,
    },
};
use serde::{Deserialize, Serialize};
use url::Url;

use self::pages::prompt_node;
pub use self::{
    address::{AddressChoice, PartChoice},
    changes::{
        FieldChange, NewMember, Reading, VariableChange, add_member, edit_field, edit_variable,
        move_member, remove_member, remove_next_page, set_next_page,
    },
    fields::{add_field, add_variable, move_field, remove_field, remove_variable},
    pages::{dismiss, dismissed, mark_page, remove_dismissed, remove_page},
};
pub(crate) use self::{
    address::{
        AddressPart, address_parts, can_be, is_page_name, proposed_with_fields, without_braces,
    },
    fields::lists_at,
    pages::alternatives,
    steps::{page_address, read_address, set_address},
};
use crate::lists::ListProposal;

/// The node that tells the known pages apart.
const ROUTE: &str = "route";
const REVIEW: &str = "review";
const SIGN_IN: &str = "signIn";
const SIGNED_IN: &str = "signedIn";
/// Fields, pages and other parts of a definition that is changed here.
const MAX_PARTS: usize = 100;
const MAX_NAME_CHARS: usize = 64;
const MAX_LABEL_CHARS: usize = 200;
const MAX_PLACE_CHARS: usize = 2000;
/// The conditions by which the pages of one kind are recognized at most.
pub(crate) const MAX_CONDITIONS: usize = 8;
/// The least limit for the response to a request, and how many times as long as the one that was seen a
/// response may be: that of another account may have more rows.
const MIN_RESPONSE_LIMIT: u32 = 262_144;
const RESPONSE_GROWTH: u32 = 4;
/// The attempts with a wrong password, and those with a wrong code, after which a session fails.
const MAX_REFUSED: u8 = 3;

/// The kinds of pages that an author marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PageKind {
    SignIn,
    SignedIn,
    /// Asks for a one-time code.
    Code,
    /// Waits for an approval on another device.
    Push,
    SecurityQuestion,
    AccountPicker,
    Captcha,
    /// A message on the sign-in page.
    WrongPassword,
    /// A message on the page that asks for a one-time code.
    WrongCode,
    /// The account is locked.
    Locked,
    /// The platform is not available.
    Down,
}

impl PageKind {
    const ALL: [Self; 11] = [
        Self::SignIn,
        Self::SignedIn,
        Self::Code,
        Self::Push,
        Self::SecurityQuestion,
        Self::AccountPicker,
        Self::Captcha,
        Self::WrongPassword,
        Self::WrongCode,
        Self::Locked,
        Self::Down,
    ];

    /// The name of the signal of such a page, and of the node that waits on it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SignIn => SIGN_IN,
            Self::SignedIn => SIGNED_IN,
            Self::Code => "code",
            Self::Push => "push",
            Self::SecurityQuestion => "securityQuestion",
            Self::AccountPicker => "accountPicker",
            Self::Captcha => "captcha",
            Self::WrongPassword => "wrongPassword",
            Self::WrongCode => "wrongCode",
            Self::Locked => "locked",
            Self::Down => "down",
        }
    }

    /// Returns the kind of page that a signal with this name is for.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns whether the page is told by a message rather than by what can be done on it.
    pub(crate) const fn is_message(self) -> bool {
        matches!(self, Self::WrongPassword | Self::WrongCode | Self::Locked | Self::Down)
    }

    /// Returns whether a page of this kind shows what an account has, such as its orders.
    pub(crate) const fn has_data(self) -> bool {
        matches!(self, Self::SignedIn | Self::AccountPicker)
    }

    /// Returns whether the message tells that what the applicant has entered was refused, so that a run
    /// counts it.
    pub(crate) const fn is_refusal(self) -> bool {
        matches!(self, Self::WrongPassword | Self::WrongCode)
    }

    /// Returns what the applicant is asked for on the page, the text, and the error if it takes too
    /// long; `None` for pages on which nothing is asked.
    const fn prompt(self) -> Option<(PromptKind, &'static str, ErrorCode)> {
        match self {
            Self::SignIn => {
                Some((PromptKind::Login, "Sign in to your account", ErrorCode::UserInputTimeout))
            }
            Self::Code => {
                Some((PromptKind::Otp, "Enter the code to sign in", ErrorCode::MfaTimeout))
            }
            Self::Push => Some((
                PromptKind::Push,
                "Approve the sign-in on your device",
                ErrorCode::MfaTimeout,
            )),
            Self::SecurityQuestion => Some((
                PromptKind::SecurityQuestion,
                "Answer the security question",
                ErrorCode::MfaTimeout,
            )),
            Self::AccountPicker => Some((
                PromptKind::AccountPicker,
                "Choose the account to share",
                ErrorCode::UserInputTimeout,
            )),
            Self::Captcha => Some((
                PromptKind::Captcha,
                "Confirm that you are not a robot",
                ErrorCode::CaptchaTimeout,
            )),
            Self::SignedIn | Self::WrongPassword | Self::WrongCode | Self::Locked | Self::Down => {
                None
            }
        }
    }
}

/// What becomes of the pages of a kind that were marked before, when another one is marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Marking {
    /// They are recognized as well as the new one.
    Also,
    /// Only the new one is recognized.
    Instead,
}

impl Marking {
    /// Returns what is meant where an author does not say it: a site has many pages after sign-in, and one
    /// page of every other kind.
    pub(crate) const fn usual(kind: PageKind) -> Self {
        match kind {
            PageKind::SignedIn => Self::Also,
            PageKind::SignIn
            | PageKind::Code
            | PageKind::Push
            | PageKind::SecurityQuestion
            | PageKind::AccountPicker
            | PageKind::Captcha
            | PageKind::WrongPassword
            | PageKind::WrongCode
            | PageKind::Locked
            | PageKind::Down => Self::Instead,
        }
    }
}

/// Why a definition cannot be changed in this way.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DraftError {
    #[error("the address must be https and have a host")]
    Address,
    #[error("a name must be 1 to 64 letters and digits, and begin with a letter")]
    Name,
    #[error("the label must be 1 to 200 characters")]
    Label,
    #[error("there is a field or variable `{0}` already")]
    NameTaken(String),
    #[error("`{0}` is in the address of a page or in a request: remove what is read there first")]
    ValueUsed(String),
    #[error(
        "`{0}` is in the address of a page or in a request, which an account without it could not \
         have: it stays required"
    )]
    ValueNeeded(String),
    #[error("there is no field `{0}`")]
    NoField(String),
    #[error("there is no known page `{0}`")]
    NoPage(String),
    #[error("`{0}` is no list")]
    NoList(String),
    #[error("the list `{0}` is read at another place: choose a new list")]
    OtherPlace(String),
    #[error("a list or an object keeps its type: remove it, and add another field")]
    HasMembers,
    #[error("it is the only column: remove the list instead")]
    LastMember,
    #[error(
        "`{0}` is read in responses: their pages are told by a number, an offset or a cursor, which \
         is added in the text"
    )]
    NotInPage(String),
    #[error(
        "the list `{0}` seems to be read on another page than the one with this element: choose the \
         element on its page, or enter its selector where you edit the list"
    )]
    OtherPage(String),
    #[error("mark the page after signing in first")]
    NotSignedIn,
    #[error("mark the page that asks for the one-time code first")]
    NoCodePage,
    #[error("the definition was written in another form than the studio's: change it as text")]
    OtherForm,
    #[error("the definition has too many fields or pages")]
    TooMany,
    #[error(
        "such pages are recognized by 8 conditions already: choose a condition that holds on several of \
         them, and mark the page instead of those marked before"
    )]
    TooManyConditions,
    #[error("the place is too long")]
    PlaceTooLong,
    #[error("choose what stands in the address at `{0}`: more than one choice is possible")]
    PartUndecided(String),
    /// `text` is the part or the word, of which at most 36 characters are shown.
    #[error("`{name}` does not equal `{text}` at `{place}` in the address, or is read later")]
    OtherValue { name: String, text: String, place: String },
    #[error("the value at `{0}` in the address was not read yet: run the definition first")]
    PartUnread(String),
    #[error("the address has changed since it was shown: choose what stands in it again")]
    AddressChanged,
    #[error("the address has more than 64 parts: change it as text")]
    TooManyParts,
    #[error("the address has more than 2048 characters, which no definition can have")]
    AddressTooLong,
    #[error(
        "another page's response has this path: read the value from the page, or from a response \
         with another path"
    )]
    PathTaken,
}

/// Where a new field is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldSource {
    /// An element of the page at this address.
    Page { url: String, at: String, read: ElementContent },
    /// A member of the response to a request that the definition makes. The one that was seen has this
    /// number of bytes.
    Request { url: String, pointer: String, bytes: u32 },
    /// A member of a response that the page at this address receives by itself, from `url`.
    Response { page_url: String, url: String, pattern: String, pointer: String },
}

/// A field to be added.
#[derive(Debug, Clone, PartialEq)]
pub struct NewField {
    pub name: String,
    /// What the applicant reads beside the value.
    pub label: String,
    pub kind: FieldType,
    pub format: Option<FieldFormat>,
    pub currency: Option<String>,
    pub required: bool,
    pub pii: bool,
    pub convert: Vec<Converter>,
    /// The list that it becomes a member of.
    pub list: Option<NewList>,
}

/// A list that a field is added to, which is created if there is none with its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewList {
    pub name: String,
    pub label: String,
    pub rows: ListProposal,
}

/// A value that was read before, for addresses that have it in them.
pub type KnownValues = BTreeMap<String, String>;

/// Returns a definition that opens an address and knows no page yet.
///
/// # Errors
/// The address is no `https` URL, or `http` under `.localhost`, with a host.
pub fn new_definition(
    login_url: &str,
    display_name: &str,
    environment: Environment,
) -> Result<Definition, DraftError> {
    let url = Url::parse(login_url).map_err(|_| DraftError::Address)?;
    let host = url.host_str().ok_or(DraftError::Address)?.to_owned();
    let is_local = host == "localhost" || host.ends_with(".localhost");
    if url.scheme() != "https" && !(url.scheme() == "http" && is_local) {
        return Err(DraftError::Address);
    }
    let exit = |code| WorkflowExit::Fail(code);
    let unknown = || Condition::Any(vec![]);
    let nodes = [
        (
            "open",
            Node::Goto {
                url: url.to_string(),
                next: ROUTE.into(),
                on_fail: exit(ErrorCode::PlatformUnavailable),
            },
        ),
        (
            ROUTE,
            Node::Branch {
                cases: vec![
                    Case { when: SIGNED_IN.into(), next: REVIEW.into() },
                    Case { when: SIGN_IN.into(), next: SIGN_IN.into() },
                ],
                settle_seconds: 20,
                default: exit(ErrorCode::UnexpectedPage),
            },
        ),
        (SIGN_IN, prompt_node(PageKind::SignIn).ok_or(DraftError::OtherForm)?),
        (
            REVIEW,
            Node::Review {
                text_key: REVIEW.into(),
                timeout_seconds: 600,
                confirm: Some(Confirmation {
                    when: SIGNED_IN.into(),
                    otherwise: WorkflowExit::Next("open".into()),
                }),
                next: "end".into(),
            },
        ),
        ("end", Node::Done),
    ];
    let prompt = PageKind::SignIn.prompt().map_or("", |(_, text, _)| text);
    let texts = [(SIGN_IN, prompt), (REVIEW, "Check what is shared")];
    let owned = |(key, text): (&str, &str)| (key.to_owned(), text.to_owned());
    Ok(Definition {
        json_schema: None,
        schema: "avouch-workflow/1".into(),
        platform: platform_name(display_name),
        version: "1.0.0".into(),
        environment,
        display_name: display_name.to_owned(),
        description: String::new(),
        icon: NEUTRAL_ICON.into(),
        login_url: url.to_string(),
        hosts: vec![host],
        sso_hosts: vec![],
        custom_url: None,
        budgets: Budgets { total_seconds: 3600, steps: 100 },
        signals: [(SIGN_IN.to_owned(), unknown()), (SIGNED_IN.to_owned(), unknown())].into(),
        interrupts: vec![],
        start: "open".into(),
        nodes: nodes.map(|(name, node)| (name.to_owned(), node)).into(),
        requests: BTreeMap::new(),
        output: BTreeMap::new(),
        output_order: vec![],
        attest: None,
        texts: [("en".to_owned(), texts.map(owned).into())].into(),
    })
}

fn platform_name(display_name: &str) -> String {
    let dashes = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = display_name.chars().map(dashes).collect();
    let words: Vec<_> = name.split('-').filter(|word| !word.is_empty()).collect();
    let name: String = words.join("-").chars().take(MAX_NAME_CHARS).collect();
    if name.is_empty() { "platform".to_owned() } else { name }
}

fn unused_name(base: &str, is_used: impl Fn(&str) -> bool) -> String {
    if !is_used(base) {
        return base.to_owned();
    }
    let numbered = (2..=MAX_PARTS.saturating_mul(10)).map(|number| format!("{base}{number}"));
    numbered.into_iter().find(|name| !is_used(name)).unwrap_or_else(|| base.to_owned())
}

fn add_text(definition: &mut Definition, key: &str, text: &str) {
    let english = definition.texts.entry("en".to_owned()).or_default();
    english.entry(key.to_owned()).or_insert_with(|| text.to_owned());
}

fn remove_text(definition: &mut Definition, key: &str) {
    for texts in definition.texts.values_mut() {
        texts.remove(key);
    }
}

fn is_name(name: &str) -> bool {
    name.len() <= MAX_NAME_CHARS
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric())
}

fn is_label(label: &str) -> bool {
    !label.trim().is_empty() && label.chars().count() <= MAX_LABEL_CHARS
}

fn capitalized(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
