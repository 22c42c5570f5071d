//! The nodes of a run that open pages and read them.

use std::collections::{BTreeMap, BTreeSet};

use domain::{
    error_code::ErrorCode,
    workflow::{Definition, Method, Node, Request, Source, WorkflowExit},
};

use super::{
    DraftError, FieldSource, KnownValues, MAX_PARTS, MAX_RESPONSE_BYTES, REVIEW, ROUTE, SIGNED_IN,
    capitalized, unused_name,
};

/// Returns the node that reads a source; adds it, and the one that opens its page, if there is none.
pub(super) fn reading_node(
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
            !value.is_empty() && (value.as_str() == part || percent_encoded(value) == part)
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

/// Removes nodes that read nothing, those that open pages for them, and requests that nothing makes.
pub(super) fn remove_empty_steps(definition: &mut Definition) {
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
