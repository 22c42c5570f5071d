//! The nodes of a run that open pages and read them.

use std::collections::{BTreeMap, BTreeSet};

use domain::{
    error_code::ErrorCode,
    workflow::{Definition, Method, Node, Request, Source, WorkflowExit, matches_url},
};

use super::{
    AddressChoice, DraftError, FieldSource, KnownValues, MAX_PARTS, MIN_RESPONSE_LIMIT,
    RESPONSE_GROWTH, REVIEW, ROUTE, SIGNED_IN,
    address::{can_be, with_proposals},
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
        FieldSource::Request { url, bytes, .. } => {
            let url = with_proposals(url, known)?;
            (None, Source::Fetch(request(definition, &url, *bytes)))
        }
        FieldSource::Response { page_url, pattern, .. } => {
            (Some(page_url), Source::Response(pattern.clone()))
        }
    };
    let page = page.map(|page| with_proposals(page, known)).transpose()?;
    let before = steps(definition);
    let existing = before
        .iter()
        .find(|step| step.via == via && (page.is_none() || step.url() == page.as_deref()));
    if let Some(step) = existing {
        return Ok(step.node.clone());
    }
    // The response that the page before has received would be read once more.
    if let FieldSource::Response { pattern, .. } = source
        && before.iter().any(|step| step.watches(pattern))
    {
        return Err(DraftError::PathTaken);
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

/// A node that reads, and what opened the page that it reads.
struct Step {
    node: String,
    via: Source,
    opened: Option<Opened>,
    /// Whether something is done on the page before, which may lead to another one.
    is_acted_on: bool,
}

/// An address that was opened.
#[derive(Clone)]
struct Opened {
    /// The name of the node.
    by: String,
    url: String,
}

impl Step {
    fn url(&self) -> Option<&str> {
        self.opened.as_ref().map(|opened| opened.url.as_str())
    }

    /// Returns whether it reads a response with this path.
    fn watches(&self, path: &str) -> bool {
        matches!(&self.via, Source::Response(pattern) if matches_url(pattern, path))
    }
}

/// Returns the nodes that read, in the order of a run.
fn steps(definition: &Definition) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut at = signed_in_node(definition);
    let mut opened = None;
    let mut is_acted_on = false;
    let mut seen = BTreeSet::new();
    while let Some(name) = at.filter(|name| seen.insert(name.clone())) {
        at = match definition.nodes.get(&name) {
            Some(Node::Goto { url, next, .. }) => {
                opened = Some(Opened { by: name, url: url.clone() });
                is_acted_on = false;
                Some(next.clone())
            }
            Some(Node::Collect { via, next, .. }) => {
                let (via, opened) = (via.clone(), opened.clone());
                steps.push(Step { node: name, via, opened, is_acted_on });
                Some(next.clone())
            }
            Some(Node::Act { next, .. }) => {
                is_acted_on = true;
                Some(next.clone())
            }
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

/// Returns whether a node reads what a source is of: the same page, or the same response.
pub(super) fn reads_of_source(
    definition: &Definition,
    node: &str,
    source: &FieldSource,
    known: &KnownValues,
) -> bool {
    let Some(Node::Collect { via, .. }) = definition.nodes.get(node) else { return false };
    let is_page =
        |shown: &str| page_address(definition, node).is_none_or(|own| can_be(&own, shown, known));
    match (via, source) {
        (Source::Dom {}, FieldSource::Page { url, .. }) => is_page(url),
        (
            Source::Fetch(name),
            FieldSource::Request { url, .. } | FieldSource::Response { url, .. },
        ) => definition.requests.get(name).is_some_and(|request| can_be(&request.url, url, known)),
        (Source::Response(pattern), FieldSource::Response { page_url, url, .. }) => {
            matches_url(pattern, url) && is_page(page_url)
        }
        (Source::Dom {}, FieldSource::Request { .. } | FieldSource::Response { .. })
        | (Source::Fetch(_), FieldSource::Page { .. })
        | (Source::Response(_), FieldSource::Page { .. } | FieldSource::Request { .. }) => false,
    }
}

/// Returns the address of the page that a node reads, as the definition has it. `None` where the page is not
/// opened by an address, or something is done on it before: the definition does not tell which one it is then.
pub(crate) fn page_address(definition: &Definition, node: &str) -> Option<String> {
    let step = steps(definition).into_iter().find(|step| step.node == node)?;
    let opened = step.opened.filter(|_| !step.is_acted_on)?;
    Some(opened.url)
}

/// What has the address at which a node reads.
#[derive(Debug, Clone, PartialEq, Eq)]
enum AddressOwner {
    /// The node that opens the page.
    Page(String),
    Request(String),
}

impl AddressOwner {
    /// Returns whether a step is one for which the address is opened or requested.
    fn is_needed_by(&self, step: &Step) -> bool {
        match self {
            Self::Page(by) => step.opened.as_ref().is_some_and(|opened| opened.by == *by),
            Self::Request(name) => step.via == Source::Fetch(name.clone()),
        }
    }
}

/// The address at which a node reads, as the definition has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReadAddress {
    owner: AddressOwner,
    pub(crate) method: Method,
    pub(crate) url: String,
    /// The pattern of the path of the response that the page receives there.
    pub(crate) watched: Option<String>,
    /// The names of all fields and values that are read at the address.
    pub(crate) names: Vec<String>,
    /// The fields and values that are read before.
    earlier: BTreeSet<String>,
}

impl ReadAddress {
    /// Returns the values that the address can have: those that a run has read by then.
    pub(crate) fn offered(&self, known: &KnownValues) -> KnownValues {
        let earlier = known.iter().filter(|(name, _)| self.earlier.contains(*name));
        earlier.map(|(name, value)| (name.clone(), value.clone())).collect()
    }
}

/// Returns the address at which a node reads; `None` if the node does not read, or its page is not
/// opened as the studio has it.
pub(crate) fn read_address(definition: &Definition, node: &str) -> Option<ReadAddress> {
    let Node::Collect { via, .. } = definition.nodes.get(node)? else { return None };
    let steps = steps(definition);
    let (owner, method, url) = match via {
        Source::Fetch(name) => {
            let request = definition.requests.get(name)?;
            (AddressOwner::Request(name.clone()), request.method, request.url.clone())
        }
        Source::Dom {} | Source::Response(_) => {
            let step = steps.iter().find(|step| step.node == node)?;
            let opened = step.opened.clone()?;
            (AddressOwner::Page(opened.by), Method::Get, opened.url)
        }
    };
    let watched = if let Source::Response(pattern) = via { Some(pattern.clone()) } else { None };
    // Where the order of the nodes is not known, no value is read before.
    let first = steps.iter().position(|step| owner.is_needed_by(step)).unwrap_or_default();
    let earlier = steps.iter().take(first).flat_map(|step| {
        let (fields, variables) = reads_of(definition, &step.node);
        fields.into_iter().chain(variables)
    });
    let earlier = earlier.collect();
    let here: Vec<&String> = match &owner {
        AddressOwner::Page(_) => {
            let reads = steps.iter().filter(|step| owner.is_needed_by(step));
            let reads = reads.filter(|step| !matches!(step.via, Source::Fetch(_)));
            reads.map(|step| &step.node).collect()
        }
        AddressOwner::Request(_) => {
            let makes = definition.nodes.iter().filter(|(_, node)| match node {
                Node::Collect { via: other, .. } => other == via,
                Node::Goto { .. }
                | Node::Act { .. }
                | Node::Branch { .. }
                | Node::AwaitUser { .. }
                | Node::Review { .. }
                | Node::Done
                | Node::Fail { .. } => false,
            });
            makes.map(|(name, _)| name).collect()
        }
    };
    let names = here.into_iter().flat_map(|node| {
        let (fields, variables) = reads_of(definition, node);
        fields.into_iter().chain(variables)
    });
    let names = names.collect();
    Some(ReadAddress { owner, method, url, watched, names, earlier })
}

/// Returns the names of the fields and of the variables that a node reads.
fn reads_of(definition: &Definition, node: &str) -> (Vec<String>, Vec<String>) {
    let Some(Node::Collect { fields, variables, .. }) = definition.nodes.get(node) else {
        return (vec![], vec![]);
    };
    (fields.keys().cloned().collect(), variables.keys().cloned().collect())
}

/// Changes what stands in the address at which a node reads, for all that is read there. `known` are the
/// values and fields that addresses can have, and `read` are all that were read.
///
/// # Errors
/// The node has no address, or the choice is not one for it.
pub(crate) fn set_address(
    definition: &mut Definition,
    node: &str,
    choice: &AddressChoice,
    known: &KnownValues,
    read: &KnownValues,
) -> Result<(), DraftError> {
    let address = read_address(definition, node).ok_or(DraftError::OtherForm)?;
    let changed = choice.apply(&address.url, &address.offered(known), read)?;
    match &address.owner {
        AddressOwner::Page(by) => {
            if let Some(Node::Goto { url, .. }) = definition.nodes.get_mut(by) {
                *url = changed;
            }
        }
        AddressOwner::Request(name) => {
            if let Some(request) = definition.requests.get_mut(name) {
                request.url = changed;
            }
        }
    }
    Ok(())
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

/// Returns the name of the request of a URL, which is added if there is none. `bytes` is the length of the
/// response that was seen.
fn request(definition: &mut Definition, url: &str, bytes: u32) -> String {
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
        max_bytes: bytes
            .saturating_mul(RESPONSE_GROWTH)
            .clamp(MIN_RESPONSE_LIMIT, Request::MAX_BYTES),
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
