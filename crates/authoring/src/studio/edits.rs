//! The changes that an author makes.

use std::sync::Arc;

use domain::workflow::{
    Condition, Converter, Definition, ElementContent, FieldFormat, FieldType, PageFetch, Request,
    SeenResponse, Severity,
};
use ports::driving::Finding;
use serde::Deserialize;

use super::{
    Shared, Studio, StudioError,
    addresses::{known_values, offered_values, read_values},
    responses::Answer,
    shown::ShownPage,
    state::State,
};
use crate::{
    draft::{
        self, AddressChoice, DraftError, FieldChange, FieldSource, KnownValues, Marking, NewField,
        NewList, NewMember, PageKind, VariableChange, add_field, add_member, add_variable,
        edit_field, edit_variable, mark_page, move_field, move_member, remove_dismissed,
        remove_field, remove_member, remove_next_page, remove_page, remove_variable, set_address,
        set_next_page, without_braces,
    },
    lists::ListProposal,
};

const MAX_HOSTS: usize = 50;
const MAX_TEXT_CHARS: usize = 500;

/// A change of the definition.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "op", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Edit {
    /// Says how a page is recognized.
    MarkPage {
        kind: PageKind,
        condition: Condition,
        /// What becomes of the pages of this kind that were marked before; if it is left out, those
        /// after sign-in are kept, and others are replaced.
        #[serde(default)]
        marking: Option<Marking>,
        /// The page for which the condition was chosen; the one that was inspected last if it is left
        /// out.
        #[serde(default)]
        inspection: Option<u64>,
    },
    RemovePage {
        name: String,
    },
    AddField {
        name: String,
        label: String,
        #[serde(rename = "type")]
        kind: FieldType,
        #[serde(default)]
        format: Option<FieldFormat>,
        #[serde(default)]
        currency: Option<String>,
        required: bool,
        pii: bool,
        from: ChosenSource,
        convert: Vec<Converter>,
        #[serde(default)]
        list: Option<ChosenList>,
        /// What stands in the address of the source; as proposed if it is left out.
        #[serde(default)]
        address: Option<AddressChoice>,
    },
    /// Adds a value for the addresses of later pages, which is not shared.
    AddVariable {
        name: String,
        from: ChosenSource,
        convert: Vec<Converter>,
        #[serde(default)]
        address: Option<AddressChoice>,
    },
    RemoveVariable {
        name: String,
    },
    EditField(FieldChange),
    /// Changes the name of a value for addresses, and how it is read.
    EditVariable(VariableChange),
    /// Changes what stands in the address at which a node reads, for all that is read there.
    SetAddress {
        node: String,
        address: AddressChoice,
    },
    /// Adds a column to a list, or a member to an object.
    AddMember(NewMember),
    RemoveField {
        /// The list or the object that has the field.
        #[serde(default)]
        within: Option<String>,
        name: String,
    },
    MoveField {
        #[serde(default)]
        within: Option<String>,
        name: String,
        by: i8,
    },
    /// Has a click on an element lead to the next page of a list.
    SetNextPage {
        list: String,
        selector: String,
        /// The pages that are read at most.
        max: u8,
        /// The page on which the element was chosen; the address of the list is not compared with it if it is
        /// left out.
        #[serde(default)]
        inspection: Option<u64>,
    },
    RemoveNextPage {
        list: String,
    },
    /// Has runs click an element whenever it is visible.
    Dismiss {
        selector: String,
    },
    RemoveDismissed {
        selector: String,
    },
    SetDetails {
        display_name: String,
        #[serde(default)]
        description: String,
        platform: String,
        version: String,
        hosts: Vec<String>,
        #[serde(default)]
        sso_hosts: Vec<String>,
    },
    /// The whole text, which may be no definition.
    Replace {
        document: String,
    },
}

/// Where the author chose a value.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ChosenSource {
    Page { inspection: u64, at: String, read: ElementContent },
    Response { number: u64, pointer: String },
}

/// The list that a field is added to.
#[derive(Debug, Clone, Deserialize)]
pub struct ChosenList {
    #[serde(flatten)]
    pub(super) rows: ListProposal,
    pub(super) name: String,
    label: String,
}

impl Studio {
    /// Returns where a new field of an edit is read; `None` for other edits.
    pub(super) async fn source_of(&self, edit: &Edit) -> Result<Option<FieldSource>, StudioError> {
        let (from, list) = match edit {
            Edit::AddField { from, list, .. } => (from, list.as_ref()),
            Edit::AddVariable { from, .. } => (from, None),
            Edit::MarkPage { .. }
            | Edit::RemovePage { .. }
            | Edit::RemoveVariable { .. }
            | Edit::EditField(_)
            | Edit::EditVariable(_)
            | Edit::SetAddress { .. }
            | Edit::AddMember(_)
            | Edit::RemoveField { .. }
            | Edit::MoveField { .. }
            | Edit::SetNextPage { .. }
            | Edit::RemoveNextPage { .. }
            | Edit::Dismiss { .. }
            | Edit::RemoveDismissed { .. }
            | Edit::SetDetails { .. }
            | Edit::Replace { .. } => return Ok(None),
        };
        if let (Some(list), ChosenSource::Response { number, .. }) = (list, from)
            && self.definition()?.output.contains_key(&list.name)
        {
            // A column is read with its list, so that nothing is asked of the page.
            let state = self.shared.state();
            let response = state.response(*number).ok_or(StudioError::NoResponse)?;
            return Ok(Some(watched_source(&state, response, list.rows.at.clone())));
        }
        self.field_source(from, list).await.map(Some)
    }

    /// Returns where a value is read that the author has chosen.
    pub(super) async fn field_source(
        &self,
        from: &ChosenSource,
        list: Option<&ChosenList>,
    ) -> Result<FieldSource, StudioError> {
        match from {
            ChosenSource::Page { inspection, at, read } => {
                let url = without_braces(&self.inspection(*inspection)?.url);
                Ok(FieldSource::Page { url, at: at.clone(), read: read.clone() })
            }
            ChosenSource::Response { number, pointer } => {
                let place = list.map_or(pointer, |list| &list.rows.at).clone();
                self.response_source(*number, pointer, place).await
            }
        }
    }

    /// Returns a request of the definition's own if the page gets the same member by it, and else the
    /// page's response.
    async fn response_source(
        &self,
        number: u64,
        pointer: &str,
        place: String,
    ) -> Result<FieldSource, StudioError> {
        let (response, expected, watched) = {
            let state = self.shared.state();
            let response = state.response(number).ok_or(StudioError::NoResponse)?;
            let expected = response.body.as_ref().and_then(|body| body.pointer(pointer)).cloned();
            let watched = watched_source(&state, response, place.clone());
            let SeenResponse { number, url, status, .. } = response;
            ((*number, url.clone(), *status), expected, watched)
        };
        let (number, url, status) = response;
        // Requests of a definition are answered with this status.
        let Some(expected) = expected.filter(|_| status == 200) else { return Ok(watched) };
        let answer = self.answer_to_request(number, &url).await?;
        if answer.usable_body().and_then(|body| body.pointer(pointer)) == Some(&expected) {
            let (url, bytes) = (without_braces(&url), answer.bytes());
            return Ok(FieldSource::Request { url, pointer: place, bytes });
        }
        Ok(watched)
    }

    /// Returns what the page gets by a request for the address of a response. It is made once for each
    /// response: the author may choose many of its members, and the site counts each request.
    async fn answer_to_request(
        &self,
        response: u64,
        url: &str,
    ) -> Result<Arc<Answer>, StudioError> {
        let browser = self.parts.runs.browser().ok_or(StudioError::NoBrowser)?;
        let trial = {
            let mut state = self.shared.state();
            if let Some(answer) = state.responses.answer(response) {
                return Ok(answer);
            }
            state.responses.begin_trial(response, url)
        };
        let fetched = browser.fetch(&PageFetch::get(url, Request::MAX_BYTES)).await;
        let answer = Arc::new(Answer::of(fetched.as_ref().ok()));
        Ok(self.shared.state().responses.end_trial(trial, answer))
    }
}

/// Returns the source of what is read at a place of a response that the page receives by itself. The page is
/// the one that was shown when the author has opened the response: it may go elsewhere by itself.
pub(super) fn watched_source(state: &State, response: &SeenResponse, place: String) -> FieldSource {
    let shown = || state.page.as_ref().map(|(url, _)| url.as_str());
    let page_url = state.responses.page_of(response).or_else(shown);
    let page_url = page_url.map(without_braces).unwrap_or_default();
    let path = url::Url::parse(&response.url).map(|url| url.path().to_owned());
    FieldSource::Response {
        page_url,
        url: without_braces(&response.url),
        pattern: path.unwrap_or_default(),
        pointer: place,
    }
}

impl Edit {
    /// Returns whether the change is refused if it leads to an error of the definition: what the author
    /// has entered by hand may be wrong.
    pub(super) const fn is_checked(&self) -> bool {
        match self {
            Self::EditField(_)
            | Self::EditVariable(_)
            | Self::SetAddress { .. }
            | Self::AddMember(_)
            | Self::SetNextPage { .. } => true,
            Self::MarkPage { .. }
            | Self::RemovePage { .. }
            | Self::AddField { .. }
            | Self::AddVariable { .. }
            | Self::RemoveVariable { .. }
            | Self::RemoveField { .. }
            | Self::MoveField { .. }
            | Self::RemoveNextPage { .. }
            | Self::Dismiss { .. }
            | Self::RemoveDismissed { .. }
            | Self::SetDetails { .. }
            | Self::Replace { .. } => false,
        }
    }

    /// Returns the names of a field or a value for addresses before and after the change, if it gets another
    /// one.
    pub(super) fn renaming(&self) -> Option<(String, String)> {
        let (Self::EditField(FieldChange { within: None, name, new_name, .. })
        | Self::EditVariable(VariableChange { name, new_name, .. })) = self
        else {
            return None;
        };
        (name != new_name).then(|| (name.clone(), new_name.clone()))
    }
}

/// Returns an error that a definition has not had before. A field may have another name since, and its
/// errors another path.
pub(super) fn new_error<'a>(before: &[Finding], after: &'a [Finding]) -> Option<&'a Finding> {
    let count = |findings: &[Finding], error: &Finding| {
        let same = |finding: &&Finding| {
            finding.severity == Severity::Error && finding.message == error.message
        };
        findings.iter().filter(same).count()
    };
    after.iter().find(|finding| count(after, finding) > count(before, finding))
}

/// Makes a change. `source` is that of its new field.
pub(super) fn apply(
    definition: &mut Definition,
    edit: Edit,
    source: Option<FieldSource>,
    shared: &Shared,
) -> Result<(), StudioError> {
    match edit {
        Edit::MarkPage { kind, condition, marking, inspection } => {
            let marking = marking.unwrap_or(Marking::usual(kind));
            mark_page(definition, kind, condition, marking)?;
            shared.state().marked(kind, marking, inspection);
        }
        Edit::RemovePage { name } => {
            remove_page(definition, &name)?;
            let mut state = shared.state();
            state.known.remove(&name);
            // A message may have gone with its page.
            state.known.retain(|name, _| definition.signals.contains_key(name));
        }
        Edit::AddField {
            name,
            label,
            kind,
            format,
            currency,
            required,
            pii,
            convert,
            list,
            address,
            ..
        } => {
            let list = list.map(|ChosenList { rows, name, label }| NewList { name, label, rows });
            let field =
                NewField { name, label, kind, format, currency, required, pii, convert, list };
            let (source, known) = addressed(source, address.as_ref(), definition, shared)?;
            add_field(definition, field, &source, &known)?;
        }
        Edit::AddVariable { name, convert, address, .. } => {
            let (source, known) = addressed(source, address.as_ref(), definition, shared)?;
            add_variable(definition, &name, convert, &source, &known)?;
        }
        Edit::EditField(change) => edit_field(definition, change)?,
        Edit::EditVariable(change) => edit_variable(definition, change)?,
        Edit::SetAddress { node, address } => {
            let (known, read) = {
                let state = shared.state();
                (offered_values(definition, &state), read_values(&state))
            };
            set_address(definition, &node, &address, &known, &read)?;
        }
        Edit::AddMember(new) => add_member(definition, new)?,
        Edit::RemoveField { within: None, name } => remove_field(definition, &name)?,
        Edit::RemoveField { within: Some(group), name } => {
            remove_member(definition, &group, &name)?;
        }
        Edit::RemoveVariable { name } => remove_variable(definition, &name)?,
        Edit::MoveField { within: None, name, by } => move_field(definition, &name, by > 0)?,
        Edit::MoveField { within: Some(group), name, by } => {
            move_member(definition, &group, &name, by > 0)?;
        }
        Edit::SetNextPage { list, selector, max, inspection } => {
            check_page(definition, &list, inspection, shared)?;
            set_next_page(definition, &list, &selector, max)?;
        }
        Edit::RemoveNextPage { list } => remove_next_page(definition, &list)?,
        Edit::Dismiss { selector } => draft::dismiss(definition, &selector)?,
        Edit::RemoveDismissed { selector } => remove_dismissed(definition, &selector),
        Edit::SetDetails { display_name, description, platform, version, hosts, sso_hosts } => {
            let lists = hosts.len().saturating_add(sso_hosts.len());
            let texts = [&display_name, &description, &platform, &version];
            if lists > MAX_HOSTS || texts.iter().any(|text| text.chars().count() > MAX_TEXT_CHARS) {
                return Err(StudioError::TooLong);
            }
            definition.display_name = display_name;
            definition.description = description;
            definition.platform = platform;
            definition.version = version;
            (definition.hosts, definition.sso_hosts) = (hosts, sso_hosts);
        }
        Edit::Replace { .. } => (),
    }
    Ok(())
}

/// Checks that an inspected page is the one of a list, or another part of it.
fn check_page(
    definition: &Definition,
    list: &str,
    inspection: Option<u64>,
    shared: &Shared,
) -> Result<(), StudioError> {
    let Some(inspection) = inspection else { return Ok(()) };
    let state = shared.state();
    let page = state.inspection(inspection).ok_or(StudioError::NoInspection)?;
    let known = offered_values(definition, &state);
    match ShownPage::of_list(definition, list, &page.url, &known) {
        Some(ShownPage::Other) => Err(DraftError::OtherPage(list.to_owned()).into()),
        Some(ShownPage::Same | ShownPage::OtherPart) | None => Ok(()),
    }
}

/// Returns the source of a new field with what the author has chosen for its address, and the values
/// that may take the place of further parts of it: none if the author has chosen.
fn addressed(
    source: Option<FieldSource>,
    address: Option<&AddressChoice>,
    definition: &Definition,
    shared: &Shared,
) -> Result<(FieldSource, KnownValues), StudioError> {
    let source = source.ok_or(StudioError::NoInspection)?;
    let state = shared.state();
    match address {
        Some(address) => {
            let offered = offered_values(definition, &state);
            Ok((source.with_choice(address, &offered)?, KnownValues::new()))
        }
        None => Ok((source, known_values(definition, &state))),
    }
}
