//! What the studio proposes for what an author chooses.

use std::collections::BTreeMap;

use domain::workflow::{Condition, ElementContent, PageTree, SeenResponse, Select, element_text};
use serde::Serialize;
use serde_json::Value;

use super::{
    Studio, StudioError,
    addresses::{offered_values, read_values},
    edits::watched_source,
    further_pages::further_page,
    paging::{Paging, later_page},
    responses::Refusal,
    shown::PagedList,
    state::{Inspection, State},
};
use crate::{
    columns::{ColumnProposal, propose_columns},
    draft::{FieldSource, KnownValues, PageKind, lists_at, without_braces},
    lists::{ListProposal, propose_json_list, propose_list},
    naming::{label_of, label_of_name, name_of},
    next_page::propose_next_page,
    parameters::propose_places,
    selectors::{SelectorProposal, has_known_value, mark_own},
    signals::{
        ConditionProposal, KnownPage, OtherScreen, page_language_tag, propose_conditions,
        selector_of, with_refusals,
    },
    values::{ValueProposal, is_unread_date, propose_json_values, propose_values},
};

const MAX_SAMPLE_CHARS: usize = 200;
/// Attributes whose values may be of interest.
const MAX_ATTRIBUTES: usize = 6;
/// Attributes that are about the look or the behaviour of an element.
const IGNORED_ATTRIBUTES: &[&str] =
    &["class", "style", "id", "role", "tabindex", "target", "rel", "type", "width", "height"];

/// What can be made of an element or a member of a response.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ElementView {
    /// Empty for a member of a response.
    pub selectors: Vec<SelectorProposal>,
    /// Whether its place has the index of an item of an array, so that it is another item once the
    /// response has one more before. Of an element, the selectors say so.
    positional: bool,
    /// Whether the place of its list has the index of an item, or its own place in the rows. Such a list
    /// has the rows of one item alone, such as those of the first team.
    positional_column: bool,
    /// Those for what leads to the next page of a list; empty for a member of a response.
    next_selectors: Vec<SelectorProposal>,
    /// The lists whose next page it can lead to, the nearest one first; empty for a member of a response.
    paged: Vec<PagedList>,
    /// What the address of the page says if it is not the first page of a list, such as `page=2`.
    later_page: Option<String>,
    contents: Vec<ContentView>,
    list: Option<ListProposal>,
    /// Whether the place of the list or of its rows has a word that equals a value of the author's account.
    list_may_be_own: bool,
    /// Selectors of the value in the rows of the list; empty for a member of a response.
    columns: Vec<ColumnProposal>,
    /// The names of the lists of the definition that it can be a column of.
    lists: Vec<String>,
    proposed_use: ProposedUse,
    /// What tells that the list of a response goes on after its rows.
    paging: Option<Paging>,
    /// The selector of what seems to lead to the next page of its list in a page.
    further_page: Option<String>,
    name: String,
    label: String,
}

/// What a value is added as unless its author says otherwise.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
enum ProposedUse {
    Field,
    Column,
}

/// Conditions that are proposed for a page.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SuggestedConditions {
    conditions: Vec<ConditionProposal>,
    /// The place of the condition that is chosen unless the author says otherwise; `None` if something warns
    /// of each, or if it was not compared with a page on which it may fail.
    preferred: Option<usize>,
    /// The names of the marked pages of other kinds with which the page was compared: only those that were
    /// marked since the studio was opened. Without one, that a condition holds on no other page says nothing.
    compared_with: Vec<String>,
    /// The other kind of screen on which the page was looked at, `phone` or `desktop`.
    other_screen: Option<&'static str>,
}

#[derive(Debug, Clone, Serialize)]
struct ContentView {
    /// `None` for a member of a response.
    read: Option<ElementContent>,
    sample: String,
    values: Vec<ValueProposal>,
    /// Whether it looks like a date, and none of the values is one.
    #[serde(rename = "unreadDate")]
    unread_date: bool,
}

impl Studio {
    /// Returns what can be made of an element of an inspected page.
    ///
    /// # Errors
    /// The inspection is not kept, or has no such element.
    pub fn element(&self, inspection: u64, node: usize) -> Result<ElementView, StudioError> {
        let page = self.inspection(inspection)?;
        let tree = &page.tree;
        if tree.nodes.get(node).is_none_or(|node| node.tag.is_none()) {
            return Err(StudioError::NoInspection);
        }
        let language = page_language_tag(tree);
        let contents = contents(tree, node).into_iter().filter_map(|read| {
            let sample = element_text(tree, node, &read)?;
            let values = propose_values(&sample, &language);
            let unread_date = is_unread_date(&sample, &language, &values);
            Some(ContentView { read: Some(read), sample: cut(&sample), values, unread_date })
        });
        let contents: Vec<_> = contents.filter(|content| !content.sample.is_empty()).collect();
        let label = label_of(tree, node);
        let known = read_values(&self.shared.state());
        let (selectors, list, columns) = self.select(|select| places(tree, node, &known, select));
        let mut next_selectors = self.select(|select| propose_next_page(tree, node, select));
        mark_own(&mut next_selectors, &known);
        let further_page =
            list.as_ref().map(|list| self.select(|select| further_page(tree, list, select)));
        let name = name_of(&label);
        let url = without_braces(&page.url);
        let source = FieldSource::Page { url, at: String::new(), read: ElementContent::Text };
        Ok(ElementView {
            selectors,
            positional: false,
            positional_column: false,
            next_selectors,
            paged: self.paged_lists(&page, node),
            later_page: later_page(&page.url),
            contents,
            further_page: further_page.flatten(),
            list_may_be_own: list.as_ref().is_some_and(|list| may_be_own(list, &known)),
            list,
            columns,
            lists: vec![],
            proposed_use: ProposedUse::Field,
            paging: None,
            name,
            label,
        }
        .with_lists(&source, &self.shared.state()))
    }

    /// Returns what can be made of a member of a response.
    ///
    /// # Errors
    /// The response is not kept, or has no such member.
    pub fn member(&self, response: u64, pointer: &str) -> Result<ElementView, StudioError> {
        let state = self.shared.state();
        let response = state.response(response).ok_or(StudioError::NoResponse)?;
        let view = of_member(response, pointer).ok_or(StudioError::NoResponse)?;
        let source = watched_source(&state, response, pointer.to_owned());
        Ok(view.with_lists(&source, &state))
    }

    /// Returns conditions by which an inspected page is told from the other known ones. `other_screen` is
    /// the page as it is on another kind of screen, if it was looked at there.
    ///
    /// # Errors
    /// The inspection is not kept.
    pub fn suggest(
        &self,
        kind: PageKind,
        inspection: u64,
        node: Option<usize>,
        other_screen: Option<&OtherScreen>,
    ) -> Result<SuggestedConditions, StudioError> {
        let page = self.inspection(inspection)?;
        let (known, values, refusals) = {
            let state = self.shared.state();
            (state.known.clone(), read_values(&state), state.refusals_of(kind))
        };
        let found = self
            .select(|select| suggested(kind, &page, node, known, &values, other_screen, select));
        Ok(found.with_refusals(kind, &refusals))
    }
}

impl SuggestedConditions {
    /// Adds conditions for the requests by which a sign-in or a code was refused, before those for the
    /// message, which may stay from one attempt to the next.
    pub(super) fn with_refusals(self, kind: PageKind, refusals: &[Refusal]) -> Self {
        if !kind.is_refusal() {
            return self;
        }
        let refused = refusals.iter().map(|refusal| (refusal.url.as_str(), refusal.status));
        let conditions = with_refusals(kind, self.conditions, refused);
        let preferred = first_sure(kind, &conditions, &self.compared_with, self.other_screen);
        Self { conditions, preferred, ..self }
    }
}

impl ElementView {
    /// Adds the lists of the definition that have their rows where this has its own.
    pub(super) fn with_lists(self, source: &FieldSource, state: &State) -> Self {
        let Some((definition, rows)) = state.definition.as_ref().zip(self.list.as_ref()) else {
            return self;
        };
        let lists = lists_at(definition, rows, source, &offered_values(definition, state));
        Self { lists, ..self }
    }
}

/// Returns the place of the first condition of which nothing warns, and that was compared with all on which it may
/// fail: a path with the page before or after sign-in, which many sites have at the same one, and an element with
/// the page on the other kind of screen.
fn first_sure(
    kind: PageKind,
    conditions: &[ConditionProposal],
    compared_with: &[String],
    other_screen: Option<&str>,
) -> Option<usize> {
    let other = if kind == PageKind::SignIn { PageKind::SignedIn } else { PageKind::SignIn };
    let is_path_compared = compared_with.iter().any(|name| name == other.name());
    let is_sure = |one: &ConditionProposal| match (&one.condition, selector_of(&one.condition)) {
        (_, Some(_)) => other_screen.is_some(),
        (condition, None) => !matches!(condition, Condition::Url(_)) || is_path_compared,
    };
    conditions.iter().position(|one| one.is_safe() && is_sure(one))
}

/// Returns conditions by which a page is told from the `known` ones of other kinds. `values` are those of the
/// author's account.
pub(super) fn suggested(
    kind: PageKind,
    page: &KnownPage,
    node: Option<usize>,
    known: BTreeMap<String, Vec<Inspection>>,
    values: &KnownValues,
    other_screen: Option<&OtherScreen>,
    select: Select<'_>,
) -> SuggestedConditions {
    let mut others = known;
    others.remove(kind.name());
    for other in beside(kind) {
        others.remove(other.name());
    }
    let conditions = propose_conditions(kind, page, node, &others, values, other_screen, select);
    let compared_with: Vec<_> = others.into_keys().collect();
    let other_screen = other_screen.map(OtherScreen::name);
    let preferred = first_sure(kind, &conditions, &compared_with, other_screen);
    SuggestedConditions { conditions, preferred, compared_with, other_screen }
}

/// Returns the kinds from whose pages one of this kind need not be told. A message is on the page that it is
/// about, and a run looks for those of a wrong password and of a wrong code on different pages.
const fn beside(kind: PageKind) -> &'static [PageKind] {
    match kind {
        PageKind::WrongPassword => &[PageKind::Locked, PageKind::WrongCode],
        PageKind::WrongCode => &[PageKind::Locked, PageKind::WrongPassword],
        PageKind::SignIn => &[PageKind::WrongPassword],
        PageKind::Code => &[PageKind::WrongCode],
        PageKind::SignedIn
        | PageKind::Push
        | PageKind::SecurityQuestion
        | PageKind::AccountPicker
        | PageKind::Captcha
        | PageKind::Locked
        | PageKind::Down => &[],
    }
}

/// Returns what can be made of a member of a response; `None` if it has no such member.
pub(super) fn of_member(response: &SeenResponse, pointer: &str) -> Option<ElementView> {
    let body = response.body.as_ref()?;
    let value = body.pointer(pointer)?;
    let sample = match value {
        Value::String(text) => cut(text),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            cut(&value.to_string())
        }
    };
    let values = propose_json_values(value, "en");
    let unread_date = value.as_str().is_some_and(|text| is_unread_date(text, "en", &values));
    let name = pointer.rsplit('/').find(|part| part.parse::<usize>().is_err());
    let name = name.unwrap_or_default().replace("~1", "/").replace("~0", "~");
    let list = propose_json_list(body, pointer);
    let paging = list.as_ref().and_then(|list| Paging::of_response(response, &list.at));
    let is_column = list.as_ref().is_some_and(|list| list.rows > 1);
    Some(ElementView {
        selectors: vec![],
        positional: is_in_item(body, pointer),
        positional_column: list.as_ref().is_some_and(|list| is_column_in_item(body, pointer, list)),
        next_selectors: vec![],
        paged: vec![],
        later_page: None,
        contents: vec![ContentView { read: None, sample, values, unread_date }],
        list,
        list_may_be_own: false,
        columns: vec![],
        lists: vec![],
        proposed_use: if is_column { ProposedUse::Column } else { ProposedUse::Field },
        paging,
        further_page: None,
        label: label_of_name(&name),
        name: name_of(&name),
    })
}

/// Returns whether a place is an item of an array, or in one.
fn is_in_item(body: &Value, pointer: &str) -> bool {
    let ends = pointer.match_indices('/').map(|(end, _)| end);
    let mut around = ends.filter_map(|end| body.pointer(pointer.get(..end)?));
    around.any(Value::is_array)
}

/// Returns whether the place of a list in a page, or of its rows, has a value of the author's account.
fn may_be_own(list: &ListProposal, known: &KnownValues) -> bool {
    has_known_value(&list.at, known)
        || list.each.as_ref().is_some_and(|each| has_known_value(each, known))
}

/// Returns whether the place of a list has the index of an item, or that of its column in the rows.
fn is_column_in_item(body: &Value, pointer: &str, list: &ListProposal) -> bool {
    let row = pointer.strip_suffix(list.member.as_str()).and_then(|row| body.pointer(row));
    is_in_item(body, &list.at) || row.is_some_and(|row| is_in_item(row, &list.member))
}

/// Returns the selectors of an element, the list that it is in, and its selectors in the rows.
fn places(
    page: &PageTree,
    node: usize,
    known: &KnownValues,
    select: Select<'_>,
) -> (Vec<SelectorProposal>, Option<ListProposal>, Vec<ColumnProposal>) {
    let selectors = propose_places(page, node, known, select);
    let list = propose_list(page, node, known, select);
    let columns = list.as_ref().map(|list| propose_columns(page, node, list, known, select));
    (selectors, list, columns.unwrap_or_default())
}

/// Returns what can be read of an element.
fn contents(page: &PageTree, node: usize) -> Vec<ElementContent> {
    let Some(element) = page.nodes.get(node) else { return vec![] };
    let mut contents = vec![];
    if element.value.is_some() {
        contents.push(ElementContent::Value);
    }
    contents.push(ElementContent::Text);
    let names = element.attributes.iter().filter(|(name, value)| {
        !value.trim().is_empty()
            && !IGNORED_ATTRIBUTES.contains(&name.as_str())
            && !name.starts_with("on")
    });
    let names = names.take(MAX_ATTRIBUTES).map(|(name, _)| name.clone());
    contents.extend(names.map(ElementContent::Attribute));
    contents
}

pub(super) fn cut(text: &str) -> String {
    text.chars().take(MAX_SAMPLE_CHARS).collect()
}
