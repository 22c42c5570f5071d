//! Changes of a definition that its author makes without writing it: each leaves the definition with
//! the nodes and texts that the change needs.

use std::collections::{BTreeMap, BTreeSet};

use domain::{
    api_key::Environment,
    error_code::ErrorCode,
    workflow::{
        Action, Budgets, Case, Condition, Confirmation, Converter, Definition, ElementContent,
        Extraction, Field, FieldFormat, FieldType, Hint, Interrupt, InterruptTarget, Method, Node,
        PromptKind, Request, Source, WorkflowExit,
    },
};
use serde::{Deserialize, Serialize};
use url::Url;

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
const MAX_RESPONSE_BYTES: u32 = 262_144;
/// The attempts with a wrong password after which a session fails.
const MAX_WRONG_PASSWORDS: u8 = 3;

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
    /// The account is locked.
    Locked,
    /// The platform is not available.
    Down,
}

impl PageKind {
    const ALL: [Self; 10] = [
        Self::SignIn,
        Self::SignedIn,
        Self::Code,
        Self::Push,
        Self::SecurityQuestion,
        Self::AccountPicker,
        Self::Captcha,
        Self::WrongPassword,
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
        matches!(self, Self::WrongPassword | Self::Locked | Self::Down)
    }

    /// Returns what the applicant is asked for on the page, the text, and the error if it takes too
    /// long; `None` for pages on which nothing is asked.
    const fn prompt(self) -> Option<(PromptKind, &'static str, ErrorCode)> {
        match self {
            Self::SignIn => {
                Some((PromptKind::Login, "Sign in to your account", ErrorCode::UserInputTimeout))
            }
            Self::Code => {
                Some((PromptKind::Otp, "Enter the code that you received", ErrorCode::MfaTimeout))
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
            Self::SignedIn | Self::WrongPassword | Self::Locked | Self::Down => None,
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
    #[error("there is no field `{0}`")]
    NoField(String),
    #[error("there is no known page `{0}`")]
    NoPage(String),
    #[error("`{0}` is no list")]
    NoList(String),
    #[error("mark the page after signing in first")]
    NotSignedIn,
    #[error("the definition was written in another form than the studio's: change it as text")]
    OtherForm,
    #[error("the definition has too many fields or pages")]
    TooMany,
    #[error("the place is too long")]
    PlaceTooLong,
}

/// Where a new field is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldSource {
    /// An element of the page at this address.
    Page { url: String, at: String, read: ElementContent },
    /// A member of the response to a request that the definition makes.
    Request { url: String, pointer: String },
    /// A member of a response that the page at this address receives by itself.
    Response { page_url: String, pattern: String, pointer: String },
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
    let texts = [(SIGN_IN, "Sign in to your account"), (REVIEW, "Check what is shared")];
    let owned = |(key, text): (&str, &str)| (key.to_owned(), text.to_owned());
    Ok(Definition {
        json_schema: None,
        schema: "avouch-workflow/1".into(),
        platform: platform_name(display_name),
        version: "1.0.0".into(),
        environment,
        display_name: display_name.to_owned(),
        description: String::new(),
        icon: "/icons/acme-sandbox.svg".into(),
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

fn prompt_node(page: PageKind) -> Option<Node> {
    let (kind, _, timeout) = page.prompt()?;
    Some(Node::AwaitUser {
        kind,
        text_key: page.name().into(),
        timeout_seconds: 600,
        until: vec![SIGNED_IN.into()],
        hints: vec![],
        channel_hint: None,
        next: ROUTE.into(),
        on_timeout: WorkflowExit::Fail(timeout),
    })
}

/// Records how a page is recognized, and what a run does on it.
///
/// # Errors
/// The definition has another form than that of [`new_definition`], or too many signals.
pub fn mark_page(
    definition: &mut Definition,
    kind: PageKind,
    condition: Condition,
) -> Result<(), DraftError> {
    let name = kind.name();
    if definition.signals.len() >= MAX_PARTS {
        return Err(DraftError::TooMany);
    }
    definition.signals.insert(name.to_owned(), condition);
    match kind {
        PageKind::SignedIn => Ok(()),
        PageKind::WrongPassword => {
            let Some(Node::AwaitUser { hints, .. }) = definition.nodes.get_mut(SIGN_IN) else {
                return Err(DraftError::OtherForm);
            };
            hints.retain(|hint| hint.when != name);
            hints.push(Hint {
                when: name.to_owned(),
                text_key: name.to_owned(),
                count: MAX_WRONG_PASSWORDS,
                then: WorkflowExit::Fail(ErrorCode::CredentialsInvalid),
            });
            add_text(definition, name, "The user name or password is incorrect. Try again.");
            Ok(())
        }
        PageKind::Locked | PageKind::Down => {
            let code = if kind == PageKind::Locked {
                ErrorCode::AccountLocked
            } else {
                ErrorCode::PlatformUnavailable
            };
            definition.interrupts.retain(|interrupt| interrupt.when != name);
            let then = InterruptTarget::Fail(code);
            definition.interrupts.push(Interrupt { when: name.to_owned(), then });
            Ok(())
        }
        PageKind::SignIn
        | PageKind::Code
        | PageKind::Push
        | PageKind::SecurityQuestion
        | PageKind::AccountPicker
        | PageKind::Captcha => prompt_page(definition, kind),
    }
}

/// Has a run wait on a page for the applicant.
fn prompt_page(definition: &mut Definition, kind: PageKind) -> Result<(), DraftError> {
    let name = kind.name();
    let Some(Node::Branch { cases, .. }) = definition.nodes.get_mut(ROUTE) else {
        return Err(DraftError::OtherForm);
    };
    if cases.iter().all(|case| case.when != name) {
        // Before the sign-in page, which may still be behind.
        let at = cases.iter().position(|case| case.when == SIGN_IN).unwrap_or(cases.len());
        cases.insert(at, Case { when: name.to_owned(), next: name.to_owned() });
    }
    if !definition.nodes.contains_key(name)
        && let Some(node) = prompt_node(kind)
    {
        definition.nodes.insert(name.to_owned(), node);
    }
    if let Some((_, text, _)) = kind.prompt() {
        add_text(definition, name, text);
    }
    end_waits(definition);
    Ok(())
}

/// Has each wait for the applicant end on every other page on which one waits.
fn end_waits(definition: &mut Definition) {
    let Some(Node::Branch { cases, .. }) = definition.nodes.get(ROUTE) else { return };
    let signals: Vec<_> = cases.iter().map(|case| case.when.clone()).collect();
    for (name, node) in &mut definition.nodes {
        let is_ours = PageKind::of_name(name).is_some();
        if let (true, Node::AwaitUser { until, .. }) = (is_ours, node) {
            *until = signals.iter().filter(|signal| *signal != name).cloned().collect();
        }
    }
}

/// Forgets how a page is recognized.
///
/// # Errors
/// There is no such page.
pub fn remove_page(definition: &mut Definition, name: &str) -> Result<(), DraftError> {
    let kind = PageKind::of_name(name).filter(|_| definition.signals.contains_key(name));
    let kind = kind.ok_or_else(|| DraftError::NoPage(name.to_owned()))?;
    if matches!(kind, PageKind::SignIn | PageKind::SignedIn) {
        definition.signals.insert(name.to_owned(), Condition::Any(vec![]));
        return Ok(());
    }
    definition.signals.remove(name);
    definition.interrupts.retain(|interrupt| interrupt.when != name);
    definition.nodes.remove(name);
    if let Some(Node::Branch { cases, .. }) = definition.nodes.get_mut(ROUTE) {
        cases.retain(|case| case.when != name);
    }
    if let Some(Node::AwaitUser { hints, .. }) = definition.nodes.get_mut(SIGN_IN) {
        hints.retain(|hint| hint.when != name);
    }
    remove_text(definition, name);
    end_waits(definition);
    Ok(())
}

/// Has runs click an element whenever it is visible, such as the button of a banner.
///
/// # Errors
/// The selector is too long, or there are too many such elements.
pub fn dismiss(definition: &mut Definition, selector: &str) -> Result<(), DraftError> {
    if selector.chars().count() > MAX_PLACE_CHARS {
        return Err(DraftError::PlaceTooLong);
    }
    if definition.signals.len() >= MAX_PARTS {
        return Err(DraftError::TooMany);
    }
    if dismissed(definition).any(|known| known == selector) {
        return Ok(());
    }
    let name = unused_name("banner", |name| definition.signals.contains_key(name));
    definition.signals.insert(name.clone(), Condition::Selector(selector.to_owned()));
    let then = InterruptTarget::Act(Action::Click(selector.to_owned()));
    definition.interrupts.push(Interrupt { when: name, then });
    Ok(())
}

/// Returns the selectors of the elements that runs click whenever they are visible.
pub fn dismissed(definition: &Definition) -> impl Iterator<Item = &str> {
    definition.interrupts.iter().filter_map(|interrupt| match &interrupt.then {
        InterruptTarget::Act(Action::Click(selector)) => Some(selector.as_str()),
        InterruptTarget::Act(_) | InterruptTarget::Next(_) | InterruptTarget::Fail(_) => None,
    })
}

/// Leaves an element alone again.
pub fn remove_dismissed(definition: &mut Definition, selector: &str) {
    let is_it = |interrupt: &Interrupt| {
        interrupt.then == InterruptTarget::Act(Action::Click(selector.to_owned()))
    };
    let signals: Vec<_> =
        definition.interrupts.iter().filter(|one| is_it(one)).map(|one| one.when.clone()).collect();
    definition.interrupts.retain(|interrupt| !is_it(interrupt));
    for signal in signals {
        definition.signals.remove(&signal);
    }
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

/// Returns the names of all fields and variables that nodes read.
fn read_names(definition: &Definition) -> BTreeSet<&str> {
    let names = definition.nodes.values().flat_map(|node| match node {
        Node::Collect { fields, variables, .. } => {
            fields.keys().chain(variables.keys()).map(String::as_str).collect()
        }
        Node::Goto { .. }
        | Node::Act { .. }
        | Node::Branch { .. }
        | Node::AwaitUser { .. }
        | Node::Review { .. }
        | Node::Done
        | Node::Fail { .. } => vec![],
    });
    names.collect()
}

/// Adds a field that is shared. Values that were read before take the place of their text in the address
/// of its page.
///
/// # Errors
/// A name or label is not allowed or taken, or the definition has another form than that of
/// [`new_definition`].
pub fn add_field(
    definition: &mut Definition,
    field: NewField,
    source: &FieldSource,
    known: &KnownValues,
) -> Result<(), DraftError> {
    let NewField { name, label, kind, format, currency, required, pii, convert, list } = field;
    let names_given = list.iter().map(|list| (&list.name, &list.label)).chain([(&name, &label)]);
    for (name, label) in names_given {
        if !is_name(name) {
            return Err(DraftError::Name);
        }
        if !is_label(label) {
            return Err(DraftError::Label);
        }
    }
    if definition.output.len() >= MAX_PARTS {
        return Err(DraftError::TooMany);
    }
    let own = Field {
        kind,
        required,
        label_key: String::new(),
        format,
        currency,
        pii,
        ..empty_field(kind)
    };
    let Some(list) = list else {
        if read_names(definition).contains(name.as_str()) {
            return Err(DraftError::NameTaken(name));
        }
        let (at, read) = place(source);
        let extraction = Extraction { at, read, convert, ..Extraction::default() };
        let node = reading_node(definition, source, known)?;
        insert_read(definition, &node, &name, extraction, false)?;
        let label_key = text_for(definition, &name, &label);
        definition.output.insert(name.clone(), Field { label_key, ..own });
        definition.output_order.push(name);
        return Ok(());
    };
    let key = format!("{}{}", list.name, capitalized(&name));
    let label_key = text_for(definition, &key, &label);
    let member = Field { label_key, ..own };
    let (_, read) = place(source);
    let extraction =
        Extraction { at: list.rows.member.clone(), read, convert, ..Extraction::default() };
    if let Some(existing) = definition.output.get_mut(&list.name) {
        if existing.kind != FieldType::List {
            return Err(DraftError::NoList(list.name));
        }
        if existing.members.contains_key(&name) {
            return Err(DraftError::NameTaken(name));
        }
        existing.members.insert(name.clone(), member);
        existing.member_order.push(name.clone());
        let reads = definition.nodes.values_mut().find_map(|node| {
            let Node::Collect { fields, .. } = node else { return None };
            fields.get_mut(&list.name)
        });
        reads.ok_or(DraftError::OtherForm)?.members.insert(name, extraction);
        return Ok(());
    }
    if read_names(definition).contains(list.name.as_str()) {
        return Err(DraftError::NameTaken(list.name));
    }
    let node = reading_node(definition, source, known)?;
    let rows = Extraction {
        at: list.rows.at,
        each: list.rows.each,
        members: [(name.clone(), extraction)].into(),
        ..Extraction::default()
    };
    insert_read(definition, &node, &list.name, rows, false)?;
    let label_key = text_for(definition, &list.name, &list.label);
    let whole = Field {
        label_key,
        members: [(name.clone(), member)].into(),
        member_order: vec![name],
        ..empty_field(FieldType::List)
    };
    definition.output.insert(list.name.clone(), whole);
    definition.output_order.push(list.name);
    Ok(())
}

/// Adds a value that later addresses use and that is not shared.
///
/// # Errors
/// As [`add_field`].
pub fn add_variable(
    definition: &mut Definition,
    name: &str,
    convert: Vec<Converter>,
    source: &FieldSource,
    known: &KnownValues,
) -> Result<(), DraftError> {
    if !is_name(name) {
        return Err(DraftError::Name);
    }
    if read_names(definition).contains(name) {
        return Err(DraftError::NameTaken(name.to_owned()));
    }
    let (at, read) = place(source);
    let extraction = Extraction { at, read, convert, ..Extraction::default() };
    let node = reading_node(definition, source, known)?;
    insert_read(definition, &node, name, extraction, true)
}

fn empty_field(kind: FieldType) -> Field {
    Field {
        kind,
        required: false,
        label_key: String::new(),
        format: None,
        currency: None,
        pii: false,
        value_keys: BTreeMap::new(),
        members: BTreeMap::new(),
        member_order: vec![],
        max_rows: None,
    }
}

fn capitalized(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Stores the text of a label, and returns its key.
fn text_for(definition: &mut Definition, name: &str, label: &str) -> String {
    let english = definition.texts.entry("en".to_owned()).or_default();
    let key = unused_name(&format!("label{}", capitalized(name)), |key| english.contains_key(key));
    english.insert(key.clone(), label.trim().to_owned());
    key
}

fn place(source: &FieldSource) -> (String, ElementContent) {
    match source {
        FieldSource::Page { at, read, .. } => (at.clone(), read.clone()),
        FieldSource::Request { pointer, .. } | FieldSource::Response { pointer, .. } => {
            (pointer.clone(), ElementContent::default())
        }
    }
}

fn insert_read(
    definition: &mut Definition,
    node: &str,
    name: &str,
    extraction: Extraction,
    is_variable: bool,
) -> Result<(), DraftError> {
    let places = extraction.members.values().chain([&extraction]).map(|one| one.at.chars().count());
    if places.max().unwrap_or_default() > MAX_PLACE_CHARS {
        return Err(DraftError::PlaceTooLong);
    }
    let Some(Node::Collect { fields, variables, .. }) = definition.nodes.get_mut(node) else {
        return Err(DraftError::OtherForm);
    };
    let reads = if is_variable { variables } else { fields };
    reads.insert(name.to_owned(), extraction);
    Ok(())
}

/// Returns the node that reads a source; adds it, and the one that opens its page, if there is none.
fn reading_node(
    definition: &mut Definition,
    source: &FieldSource,
    known: &KnownValues,
) -> Result<String, DraftError> {
    if definition.nodes.len().saturating_add(2) > MAX_PARTS {
        return Err(DraftError::TooMany);
    }
    let (page, via) = match source {
        FieldSource::Page { url, .. } => (Some(url), Source::Dom {}),
        FieldSource::Request { url, .. } => {
            let url = with_values(url, known);
            (None, Source::Fetch(request(definition, &url)))
        }
        FieldSource::Response { page_url, pattern, .. } => {
            (Some(page_url), Source::Response(pattern.clone()))
        }
    };
    let page = page.map(|page| with_values(page, known));
    let existing = steps(definition)
        .into_iter()
        .find(|step| step.via == via && (page.is_none() || step.url == page));
    if let Some(step) = existing {
        return Ok(step.node);
    }
    let words = match (&page, source) {
        (Some(page), _) => words(page),
        (None, FieldSource::Request { url, .. }) => words(url),
        (None, FieldSource::Page { .. } | FieldSource::Response { .. }) => String::new(),
    };
    let unused = |base: &str| {
        unused_name(&format!("{base}{words}"), |name| definition.nodes.contains_key(name))
    };
    let (open, read) = (unused("open"), unused("read"));
    let first = if page.is_some() { open.clone() } else { read.clone() };
    let next = replace_end(definition, &first)?;
    if let Some(url) = page {
        let on_fail = WorkflowExit::Fail(ErrorCode::PlatformUnavailable);
        definition.nodes.insert(open, Node::Goto { url, next: read.clone(), on_fail });
    }
    let collect = Node::Collect {
        via,
        fields: BTreeMap::new(),
        variables: BTreeMap::new(),
        pages: None,
        retries: 3,
        on_missing: WorkflowExit::Fail(ErrorCode::ExtractionFailed),
        next,
    };
    definition.nodes.insert(read.clone(), collect);
    Ok(read)
}

/// A node that reads, and the address that was opened last before it.
struct Step {
    node: String,
    via: Source,
    url: Option<String>,
}

/// Returns the nodes that read, in the order of a run.
fn steps(definition: &Definition) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut at = signed_in_node(definition);
    let mut opened = None;
    let mut seen = BTreeSet::new();
    while let Some(name) = at.filter(|name| seen.insert(name.clone())) {
        at = match definition.nodes.get(&name) {
            Some(Node::Goto { url, next, .. }) => {
                opened = Some(url.clone());
                Some(next.clone())
            }
            Some(Node::Collect { via, next, .. }) => {
                steps.push(Step { node: name, via: via.clone(), url: opened.clone() });
                Some(next.clone())
            }
            Some(Node::Act { next, .. }) => Some(next.clone()),
            Some(
                Node::Branch { .. }
                | Node::AwaitUser { .. }
                | Node::Review { .. }
                | Node::Done
                | Node::Fail { .. },
            )
            | None => None,
        };
    }
    steps
}

/// Returns the node that follows when the applicant is signed in.
fn signed_in_node(definition: &Definition) -> Option<String> {
    let Some(Node::Branch { cases, .. }) = definition.nodes.get(ROUTE) else { return None };
    cases.iter().find(|case| case.when == SIGNED_IN).map(|case| case.next.clone())
}

/// Has the last node before the review lead to another one, and returns the review's name.
fn replace_end(definition: &mut Definition, node: &str) -> Result<String, DraftError> {
    if !matches!(definition.nodes.get(REVIEW), Some(Node::Review { .. })) {
        return Err(DraftError::OtherForm);
    }
    let last = steps(definition).pop().map(|step| step.node);
    let end = match last {
        Some(last) => match definition.nodes.get_mut(&last) {
            Some(Node::Collect { next, .. }) if next == REVIEW => next,
            Some(_) | None => return Err(DraftError::OtherForm),
        },
        None => match definition.nodes.get_mut(ROUTE) {
            Some(Node::Branch { cases, .. }) => {
                let case = cases.iter_mut().find(|case| case.when == SIGNED_IN);
                let next = &mut case.ok_or(DraftError::NotSignedIn)?.next;
                if next != REVIEW {
                    return Err(DraftError::OtherForm);
                }
                next
            }
            Some(_) | None => return Err(DraftError::OtherForm),
        },
    };
    Ok(std::mem::replace(end, node.to_owned()))
}

/// Returns the name of the request of a URL, which is added if there is none.
fn request(definition: &mut Definition, url: &str) -> String {
    let existing = definition.requests.iter().find(|(_, request)| {
        request.url == url && request.method == Method::Get && request.body.is_none()
    });
    if let Some((name, _)) = existing {
        return name.clone();
    }
    let name = words(url);
    let name = if name.is_empty() { "Data".to_owned() } else { name };
    let mut letters = name.chars();
    let first = letters.next().map(|first| first.to_lowercase().collect::<String>());
    let base = format!("{}{}", first.unwrap_or_default(), letters.as_str());
    let name = unused_name(&base, |name| definition.requests.contains_key(name));
    let request = Request {
        url: url.to_owned(),
        expect_status: 200,
        max_bytes: MAX_RESPONSE_BYTES,
        method: Method::Get,
        headers: BTreeMap::new(),
        csrf: None,
        body: None,
    };
    definition.requests.insert(name.clone(), request);
    name
}

/// Returns the words of a URL's path as a name in camel case, such as `AccountOrders`.
fn words(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = rest.find('/').and_then(|at| rest.get(at..)).unwrap_or_default();
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let words = path.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| word.len() > 1);
    let last: Vec<_> = words.map(capitalized).collect();
    let start = last.len().saturating_sub(2);
    let name = last.get(start..).unwrap_or_default().concat();
    let name: String = name.chars().take(30).collect();
    if name.is_empty() { "Home".to_owned() } else { name }
}

/// Returns a URL with the names of values in place of whole parts of its path and values of its query
/// that equal them.
fn with_values(url: &str, known: &KnownValues) -> String {
    let named = |part: &str| {
        let found = known.iter().find(|(_, value)| {
            value.len() > 1 && (value.as_str() == part || percent_encoded(value) == part)
        });
        found.map(|(name, _)| format!("{{{name}}}"))
    };
    // The scheme and the host are never replaced.
    let start = url.find("://").map_or(0, |at| at.saturating_add(3));
    let start = url
        .get(start..)
        .and_then(|rest| rest.find('/'))
        .map_or(url.len(), |at| at.saturating_add(start));
    let (origin, rest) = url.split_at_checked(start).unwrap_or((url, ""));
    let (rest, fragment) = rest.split_once('#').map_or((rest, None), |(rest, f)| (rest, Some(f)));
    let mut text = origin.to_owned();
    for part in rest.split_inclusive(['/', '?', '&', '=']) {
        let end = part.len().saturating_sub(usize::from(part.ends_with(['/', '?', '&', '='])));
        let (value, separator) = part.split_at_checked(end).unwrap_or((part, ""));
        text.push_str(&named(value).unwrap_or_else(|| value.to_owned()));
        text.push_str(separator);
    }
    if let Some(fragment) = fragment {
        text.push('#');
        text.push_str(fragment);
    }
    text
}

fn percent_encoded(value: &str) -> String {
    url::form_urlencoded::byte_serialize(value.as_bytes()).collect()
}

/// What an author changes of a field.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FieldChange {
    pub name: String,
    pub new_name: String,
    pub label: String,
    pub required: bool,
    pub pii: bool,
}

/// Changes the name, the label and the marks of a field.
///
/// # Errors
/// There is no such field, or the new name or label is not allowed or taken.
pub fn edit_field(definition: &mut Definition, change: FieldChange) -> Result<(), DraftError> {
    let FieldChange { name, new_name, label, required, pii } = change;
    if !is_name(&new_name) {
        return Err(DraftError::Name);
    }
    if !is_label(&label) {
        return Err(DraftError::Label);
    }
    let is_renamed = name != new_name;
    if is_renamed && read_names(definition).contains(new_name.as_str()) {
        return Err(DraftError::NameTaken(new_name));
    }
    let mut field =
        definition.output.remove(&name).ok_or_else(|| DraftError::NoField(name.clone()))?;
    (field.required, field.pii) = (required, pii);
    let english = definition.texts.entry("en".to_owned()).or_default();
    english.insert(field.label_key.clone(), label.trim().to_owned());
    definition.output.insert(new_name.clone(), field);
    for listed in definition.output_order.iter_mut().filter(|listed| **listed == name) {
        new_name.clone_into(listed);
    }
    for node in definition.nodes.values_mut() {
        if let Node::Collect { fields, .. } = node
            && let Some(extraction) = fields.remove(&name)
        {
            fields.insert(new_name.clone(), extraction);
        }
    }
    if is_renamed {
        rename_in_urls(definition, &name, &new_name);
        if let Some(attest) = &mut definition.attest
            && let Some(pointer) = attest.fields.remove(&name)
        {
            attest.fields.insert(new_name, pointer);
        }
    }
    Ok(())
}

fn rename_in_urls(definition: &mut Definition, name: &str, new_name: &str) {
    let (old, new) = (format!("{{{name}}}"), format!("{{{new_name}}}"));
    for node in definition.nodes.values_mut() {
        if let Node::Goto { url, .. } = node {
            *url = url.replace(&old, &new);
        }
    }
    for request in definition.requests.values_mut() {
        request.url = request.url.replace(&old, &new);
    }
}

/// Removes a field, and the nodes that read nothing any more.
///
/// # Errors
/// There is no such field.
pub fn remove_field(definition: &mut Definition, name: &str) -> Result<(), DraftError> {
    let field = definition.output.remove(name);
    let field = field.ok_or_else(|| DraftError::NoField(name.to_owned()))?;
    let members = field.members.values().map(|member| member.label_key.clone());
    for key in members.chain([field.label_key.clone()]).collect::<Vec<_>>() {
        remove_text(definition, &key);
    }
    definition.output_order.retain(|listed| listed != name);
    if let Some(attest) = &mut definition.attest {
        attest.fields.remove(name);
    }
    for node in definition.nodes.values_mut() {
        if let Node::Collect { fields, .. } = node {
            fields.remove(name);
        }
    }
    remove_empty_steps(definition);
    Ok(())
}

/// Removes nodes that read nothing, those that open pages for them, and requests that nothing makes.
fn remove_empty_steps(definition: &mut Definition) {
    let is_empty = |node: &Node| matches!(node, Node::Collect { fields, variables, .. } if fields.is_empty() && variables.is_empty());
    loop {
        let empty = definition.nodes.iter().find_map(|(name, node)| {
            if let Node::Collect { next, .. } = node
                && is_empty(node)
            {
                return Some((name.clone(), next.clone()));
            }
            // What opens a page has nothing left to open it for if no node reads the page.
            let Node::Goto { next, .. } = node else { return None };
            let is_read = matches!(definition.nodes.get(next), Some(Node::Collect { .. }));
            (!is_read && name != &definition.start).then(|| (name.clone(), next.clone()))
        });
        let Some((name, next)) = empty else { break };
        definition.nodes.remove(&name);
        for node in definition.nodes.values_mut() {
            lead_to(node, &name, &next);
        }
    }
    let used = definition.nodes.values().filter_map(|node| {
        let Node::Collect { via: Source::Fetch(request), .. } = node else { return None };
        Some(request.clone())
    });
    let used: BTreeSet<_> = used.collect();
    let attested = definition.attest.as_ref().map(|attest| attest.request.clone());
    definition.requests.retain(|name, _| used.contains(name) || attested.as_ref() == Some(name));
}

/// Has a node that led to `from` lead to `to`.
fn lead_to(node: &mut Node, from: &str, to: &str) {
    match node {
        Node::Goto { next, .. } | Node::Collect { next, .. } | Node::Act { next, .. } => {
            if next == from {
                to.clone_into(next);
            }
        }
        Node::Branch { cases, .. } => {
            for case in cases.iter_mut().filter(|case| case.next == from) {
                to.clone_into(&mut case.next);
            }
        }
        Node::AwaitUser { .. } | Node::Review { .. } | Node::Done | Node::Fail { .. } => (),
    }
}

/// Moves a field one place up or down in the order in which applicants read the fields.
///
/// # Errors
/// There is no such field.
pub fn move_field(definition: &mut Definition, name: &str, down: bool) -> Result<(), DraftError> {
    let mut order: Vec<_> = definition.ordered_output().map(|(name, _)| name.clone()).collect();
    let at = order.iter().position(|listed| listed == name);
    let at = at.ok_or_else(|| DraftError::NoField(name.to_owned()))?;
    let to = if down { at.checked_add(1) } else { at.checked_sub(1) };
    if let Some(to) = to.filter(|to| *to < order.len()) {
        order.swap(at, to);
    }
    definition.output_order = order;
    Ok(())
}
