//! What the author sees of a studio.

#[cfg(test)]
mod tests;

use domain::{
    error_code::ErrorCode,
    platform::NEUTRAL_ICON,
    webhook::wire_time,
    workflow::{
        Action, Condition, Definition, Extraction, Field, FieldType, NextPage, NoBody, Node,
        PageNode, PageTree, Pages, SeenResponse, Severity, Source,
    },
};
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    addresses::{AddressView, source_name},
    paging::Paging,
    sizes,
    state::{RunState, State},
};
use crate::{
    draft::{PageKind, Reading, alternatives, dismissed},
    explore::is_internal,
    selectors::is_positional,
    signals::{KnownPage, describe},
};

const MAX_TEXT_CHARS: usize = 80;
/// The name and the icon of the sandbox platform.
const SANDBOX: &str = "acme-sandbox";
const SANDBOX_ICON: &str = "/icons/acme-sandbox.svg";

/// The state of a studio.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StudioView {
    /// Greater with each change.
    pub number: u64,
    /// The URL of the page with the browser.
    pub embed_url: Option<String>,
    pub document: String,
    pub document_number: u64,
    findings: Vec<Value>,
    outline: Option<Value>,
    page: Option<Value>,
    events: Vec<Value>,
    responses: Vec<Value>,
    run: Value,
    fixture: Option<Value>,
    saved: Value,
    /// The path of the page that the author comes from.
    home: Option<String>,
    /// The time zone in which scripts of the page show times.
    time_zone: Option<String>,
    can_probe: bool,
}

/// What the studio works with, as the author sees it.
pub(super) struct Surroundings<'a> {
    /// The name under which the document is stored.
    pub(super) file: &'a str,
    /// Why the definition cannot be published.
    pub(super) obstacle: Option<&'static str>,
    pub(super) home: Option<&'a str>,
    pub(super) time_zone: Option<&'a str>,
    pub(super) can_probe: bool,
}

impl StudioView {
    pub(super) fn of(state: &State, number: u64, around: &Surroundings<'_>) -> Self {
        let findings = state.findings.iter().map(|finding| {
            let position = finding.position;
            json!({
                "severity": if finding.severity == Severity::Error { "error" } else { "warning" },
                "path": finding.path.to_string(),
                "line": position.map(|position| position.line),
                "column": position.map(|position| position.column),
                "message": finding.message,
            })
        });
        let events = state.events.iter().map(|event| {
            json!({ "number": event.number, "time": wire_time(event.at), "text": event.text })
        });
        let page = state.page.as_ref();
        let is_saved = state.saved_document.as_ref() == Some(&state.document);
        Self {
            number,
            embed_url: state.embed_url.clone(),
            document: state.document.clone(),
            document_number: state.document_number,
            findings: findings.collect(),
            outline: state.definition.as_ref().map(|definition| outline(definition, state)),
            page: page.map(|(url, settled)| json!({ "url": url, "settled": settled })),
            events: events.collect(),
            responses: state.responses.newest_first().map(response).collect(),
            run: run(state),
            fixture: state.fixture.as_ref().map(|fixture| {
                let (events, pages) = sizes(fixture);
                let differences = state.differences.as_ref();
                json!({
                    "events": events,
                    "pages": pages,
                    "matches": differences.map(Vec::is_empty),
                    "differences": differences.cloned().unwrap_or_default(),
                    "maskedTokens": state.tokens.map_or(0, |tokens| tokens.masked),
                    "keptTokens": state.tokens.map_or(0, |tokens| tokens.kept),
                })
            }),
            saved: json!({
                "definition": is_saved,
                "fixture": state.fixture.is_none() || state.is_fixture_saved,
                "file": around.file,
                "canPublish": around.obstacle.is_none(),
                "obstacle": around.obstacle,
                "published": state.published.as_ref().map(|published| &published.version),
            }),
            home: around.home.map(str::to_owned),
            time_zone: around.time_zone.map(str::to_owned),
            can_probe: around.can_probe,
        }
    }
}

fn response(response: &SeenResponse) -> Value {
    json!({
        "number": response.number,
        "url": response.url,
        "status": response.status,
        "noBody": no_body(response),
    })
}

/// `page_url` is that of the page that was shown when the response was opened.
pub(super) fn response_body(response: &SeenResponse, page_url: Option<&str>) -> Value {
    json!({
        "number": response.number,
        "url": response.url,
        "pageUrl": page_url,
        "status": response.status,
        "body": response.body,
        "noBody": no_body(response),
    })
}

/// Returns why a response has no body; null if it has one.
fn no_body(response: &SeenResponse) -> Value {
    if response.body.is_some() {
        return Value::Null;
    }
    match &response.no_body {
        Some(NoBody::TooLong { max_kib }) => json!({ "reason": "tooLong", "maxKib": max_kib }),
        Some(NoBody::NotJson { content_type }) => {
            json!({ "reason": "notJson", "contentType": content_type })
        }
        Some(NoBody::Empty) => json!({ "reason": "empty" }),
        Some(NoBody::Interrupted) => json!({ "reason": "interrupted" }),
        Some(NoBody::Unavailable) | None => json!({ "reason": "unavailable" }),
    }
}

fn run(state: &State) -> Value {
    let (name, error) = match state.run {
        RunState::Exploring => ("exploring", None),
        RunState::Running => ("running", None),
        RunState::Completed => ("completed", None),
        RunState::Declined => ("declined", None),
        RunState::Failed(code) => ("failed", Some(ErrorCode::as_str(code))),
    };
    let unconfirmed = state.unconfirmed.as_ref();
    json!({
        "state": name,
        "error": error,
        "node": state.run_node,
        "data": state.run_data,
        "missing": state.missing,
        "unrecognized": state.unrecognized,
        "unconfirmed": unconfirmed.map(|one| json!({ "signal": one.signal, "url": one.url })),
    })
}

fn outline(definition: &Definition, state: &State) -> Value {
    let pages = definition.signals.iter().filter(|(name, _)| !is_internal(name));
    let is_known = |condition: &Condition| *condition != Condition::Any(vec![]);
    let pages =
        pages.filter(|(name, condition)| PageKind::of_name(name).is_some() && is_known(condition));
    let pages = pages.map(|(name, condition)| {
        json!({
            "name": name,
            "kind": PageKind::of_name(name),
            "conditions": alternatives(condition).into_iter().map(describe).collect::<Vec<_>>(),
            "holds": state.signals.get(name),
        })
    });
    let fields =
        definition.ordered_output().map(|(name, field)| field_view(definition, state, name, field));
    let variables = definition.nodes.iter().flat_map(|(node, content)| {
        let Node::Collect { via, variables, .. } = content else { return vec![] };
        let address =
            (!variables.is_empty()).then(|| AddressView::of_node(definition, state, node));
        let address = address.flatten();
        let all = variables.iter().map(|(name, extraction)| {
            let value = state.values.get(name);
            json!({
                "name": name,
                "source": source_name(via),
                "place": extraction.at,
                "node": node,
                "address": address,
                "reading": Reading::of_variable(extraction),
                "positional": is_by_position(via, extraction),
                "value": value.and_then(|value| value.as_ref().ok()),
                "problem": value.and_then(|value| value.as_ref().err()),
            })
        });
        all.collect::<Vec<_>>()
    });
    json!({
        "displayName": definition.display_name,
        "description": definition.description,
        "platform": definition.platform,
        "version": definition.version,
        "environment": definition.environment.as_str(),
        "loginUrl": definition.login_url,
        "hasOwnIcon": has_own_icon(definition),
        "hosts": definition.hosts,
        "ssoHosts": definition.sso_hosts,
        "pages": pages.collect::<Vec<_>>(),
        "fields": fields.collect::<Vec<_>>(),
        "variables": variables.collect::<Vec<_>>(),
        "dismissed": dismissed(definition).collect::<Vec<_>>(),
    })
}

/// Returns whether a platform has an icon of its own. Definitions that were begun in an earlier studio have
/// that of the sandbox platform.
fn has_own_icon(definition: &Definition) -> bool {
    let is_of_sandbox = definition.icon == SANDBOX_ICON && definition.platform != SANDBOX;
    definition.icon != NEUTRAL_ICON && !is_of_sandbox
}

fn field_view(definition: &Definition, state: &State, name: &str, field: &Field) -> Value {
    let read = place_of(definition, name);
    let value = state.values.get(name);
    // A list with further pages needs no advice.
    let first_page =
        read.as_ref().filter(|read| field.kind == FieldType::List && read.pages.is_none());
    let paging = first_page
        .and_then(|read| Paging::of_list(definition, state, read.via, &read.extraction.at));
    let further_page = first_page.and_then(|_| state.further_pages.get(name));
    let max = field.row_limit();
    let exceeds = paging.as_ref().is_some_and(|paging| paging.exceeds(max));
    let ends = exceeds || state.limits.get(name) == Some(&max);
    // Another action may find its element.
    let no_next = state.single_pages.get(name);
    let has_no_next = |pages: &Pages| match &pages.next {
        NextPage::Act(action) => no_next == Some(action),
        NextPage::Number { .. } | NextPage::Offset { .. } | NextPage::Cursor { .. } => false,
    };
    let pages = read.as_ref().and_then(|read| read.pages);
    let last_page =
        pages.map(|pages| pages.max).filter(|max| state.last_pages.get(name) == Some(max));
    let members = field.ordered_members().map(|(member, own)| {
        let from = read.as_ref().and_then(|read| read.extraction.members.get(member));
        json!({
            "name": member,
            "label": label(definition, own),
            "required": own.required,
            "pii": own.pii,
            "reading": from.map(|from| Reading::of(own, from)),
            "positional": read.as_ref().zip(from).is_some_and(|(read, from)| is_by_position(read.via, from)),
        })
    });
    json!({
        "name": name,
        "label": label(definition, field),
        "type": field.kind,
        "required": field.required,
        "pii": field.pii,
        "attested": definition.attest.as_ref().is_some_and(|a| a.fields.contains_key(name)),
        "source": read.as_ref().map(|read| source_name(read.via)),
        "place": read.as_ref().map(|read| &read.extraction.at),
        "node": read.as_ref().map(|read| read.node),
        "address": read.as_ref().and_then(|read| AddressView::of_node(definition, state, read.node)),
        "reading": read.as_ref().map(|read| Reading::of(field, read.extraction)),
        "positional": read.as_ref().is_some_and(|read| is_by_position(read.via, read.extraction)),
        "members": members.collect::<Vec<_>>(),
        "nextPage": pages.map(next_page),
        "paging": paging,
        "furtherPage": further_page,
        "endsAfter": ends.then_some(max),
        "hasNoNextPage": pages.is_some_and(has_no_next),
        "endsAfterPages": last_page,
        "value": value.and_then(|value| value.as_ref().ok()),
        "problem": value.and_then(|value| value.as_ref().err()),
    })
}

fn label<'a>(definition: &'a Definition, field: &Field) -> Option<&'a String> {
    definition.texts.get("en").and_then(|texts| texts.get(&field.label_key))
}

/// Returns whether a value is read in the page by the position of its element.
fn is_by_position(via: &Source, from: &Extraction) -> bool {
    matches!(via, Source::Dom {}) && is_positional(&from.at)
}

/// Where a field is read.
struct FieldPlace<'a> {
    node: &'a String,
    via: &'a Source,
    extraction: &'a Extraction,
    /// The further pages of a list.
    pages: Option<&'a Pages>,
}

fn place_of<'a>(definition: &'a Definition, name: &str) -> Option<FieldPlace<'a>> {
    let is_list = definition.output.get(name).is_some_and(|field| field.kind == FieldType::List);
    definition.nodes.iter().find_map(|(node, content)| {
        let Node::Collect { via, fields, pages, .. } = content else { return None };
        let pages = pages.as_ref().filter(|_| is_list);
        Some(FieldPlace { node, via, extraction: fields.get(name)?, pages })
    })
}

/// Returns how a list leads to its next page.
fn next_page(pages: &Pages) -> Value {
    let text = match &pages.next {
        NextPage::Act(Action::Click(selector)) => format!("a click on `{selector}`"),
        NextPage::Act(Action::ScrollTo(selector)) => format!("scrolling to `{selector}`"),
        NextPage::Act(Action::Choose { selector, option }) => {
            format!("choosing `{option}` in `{selector}`")
        }
        NextPage::Number { name, .. } => format!("the number of the page, as `{{{name}}}`"),
        NextPage::Offset { name } => format!("the number of rows before, as `{{{name}}}`"),
        NextPage::Cursor { name, from, .. } => {
            format!("the value at `{}`, as `{{{name}}}`", from.at)
        }
    };
    // The studio changes what is clicked alone.
    let selector = match &pages.next {
        NextPage::Act(Action::Click(selector)) => Some(selector),
        NextPage::Act(Action::ScrollTo(_) | Action::Choose { .. })
        | NextPage::Number { .. }
        | NextPage::Offset { .. }
        | NextPage::Cursor { .. } => None,
    };
    json!({ "text": text, "selector": selector, "max": pages.max })
}

/// A page as it was, for the author to choose elements of it.
#[derive(Debug, Clone, Serialize)]
pub struct InspectionView {
    pub inspection: u64,
    url: String,
    width: u32,
    height: u32,
    /// A JPEG as a data URL.
    image: Option<String>,
    nodes: Vec<Value>,
}

impl InspectionView {
    pub(super) fn of(
        inspection: u64,
        page: &KnownPage,
        (boxes, (width, height)): (&[Option<[f32; 4]>], (u32, u32)),
        image: Option<String>,
    ) -> Self {
        let texts = first_texts(&page.tree);
        let nodes = page.tree.nodes.iter().zip(boxes).enumerate();
        let nodes = nodes.filter_map(|(index, (node, rectangle))| {
            let (tag, rectangle) = (node.tag.as_deref()?, (*rectangle)?);
            let id = node.attributes.get("id").map(|id| format!("#{id}"));
            let label: String =
                format!("{tag}{}", id.unwrap_or_default()).chars().take(MAX_TEXT_CHARS).collect();
            let text = shown_text(node, texts.get(index)?.trim());
            let text: String = text.chars().take(MAX_TEXT_CHARS).collect();
            let [x, y, w, h] = rectangle;
            Some(json!({
                "node": index,
                "parent": element_around(page, index),
                "label": label,
                "text": text,
                "box": [x, y, w, h],
            }))
        });
        Self {
            inspection,
            url: page.url.clone(),
            width,
            height,
            image: image.map(|image| format!("data:image/jpeg;base64,{image}")),
            nodes: nodes.collect(),
        }
    }
}

/// Returns the text by which an author tells an element from others like it. A form field has no text of its
/// own: it is its value, or its name if it is empty.
fn shown_text<'a>(node: &'a PageNode, text: &'a str) -> &'a str {
    let is_empty = |text: &&str| text.trim().is_empty();
    let value = node.value.as_deref().filter(|value| !is_empty(value));
    let named = || {
        let names = ["aria-label", "placeholder", "name"];
        names.iter().find_map(|name| node.attributes.get(*name)).map_or("", String::as_str)
    };
    value.or_else(|| Some(text).filter(|text| !is_empty(text))).unwrap_or_else(|| {
        let is_field = matches!(node.tag.as_deref(), Some("input" | "textarea" | "select"));
        if is_field { named() } else { "" }
    })
}

/// Returns the beginning of the text of each node, in one walk: pages have up to 20,000 nodes.
fn first_texts(page: &PageTree) -> Vec<String> {
    let mut texts = vec![String::new(); page.nodes.len()];
    for (index, node) in page.nodes.iter().enumerate() {
        let Some(text) = &node.text else { continue };
        let words = text.split_whitespace().take(MAX_TEXT_CHARS).collect::<Vec<_>>().join(" ");
        let mut at = Some(index);
        while let Some(text) = at.and_then(|at| texts.get_mut(at)) {
            // What is around a full one is full as well.
            if text.len() > 4 * MAX_TEXT_CHARS || words.is_empty() {
                break;
            }
            text.extend((!text.is_empty()).then_some(' '));
            text.extend(words.chars().take(MAX_TEXT_CHARS));
            at = at.and_then(|at| page.nodes.get(at)).and_then(|node| node.parent);
        }
    }
    texts
}

/// Returns the element that an element is in, also across a frame or a shadow root.
fn element_around(page: &KnownPage, index: usize) -> Option<usize> {
    let mut at = page.tree.nodes.get(index)?.parent?;
    while page.tree.is_root(at) {
        at = page.tree.nodes.get(at)?.parent?;
    }
    Some(at)
}
