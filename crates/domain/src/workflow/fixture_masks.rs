//! Masks in place of access tokens that the pages and responses of a fixture show.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{
    Fixture, FixtureEvent, PageNode, PageTree, Replayed,
    token::{FoundToken, Label, Place, find_tokens, is_digest, is_list_of_codes, mask_of},
};

/// The replays by which tokens that the definition needs are told from others. Most fixtures take one.
const MAX_REPLAYS: usize = 40;
/// The replays of a fixture with very many states of large pages.
const MIN_REPLAYS: usize = 4;
/// The nodes of pages in all these replays, each as often as a state of the page has it.
const MAX_REPLAYED_NODES: usize = 20_000_000;
/// Attributes whose values are no texts of the account: they have names, styles, paths and hashes.
const STRUCTURAL_ATTRIBUTES: &[&str] = &[
    "aria-activedescendant",
    "aria-controls",
    "aria-describedby",
    "aria-details",
    "aria-errormessage",
    "aria-flowto",
    "aria-labelledby",
    "aria-owns",
    "class",
    "d",
    "data-automation-id",
    "data-cy",
    "data-qa",
    "for",
    "form",
    "headers",
    "id",
    "integrity",
    "itemprop",
    "itemtype",
    "list",
    "name",
    "nonce",
    "pattern",
    "points",
    "rel",
    "role",
    "style",
    "transform",
    "type",
    "viewBox",
];
/// How the names of further such attributes begin.
const STRUCTURAL_PREFIXES: &[&str] = &["data-react", "data-test", "data-v-", "xmlns"];
/// Attributes with the address of a page or a request.
const ADDRESS_ATTRIBUTES: &[&str] =
    &["action", "cite", "data-href", "data-url", "formaction", "href", "ping"];
/// Attributes with the address of an asset.
const ASSET_ATTRIBUTES: &[&str] =
    &["background", "data-src", "data-srcset", "poster", "src", "srcset", "xlink:href"];
/// Elements whose addresses are those of assets, except for links to pages.
const ASSET_ELEMENTS: &[&str] = &["image", "link", "use"];
/// Elements with pages in them.
const FRAME_ELEMENTS: &[&str] = &["embed", "frame", "iframe"];
/// Relations of a link to a page, such as a feed of the account.
const PAGE_RELATIONS: &[&str] = &["alternate", "canonical", "next", "prev", "search"];
/// Attributes that name a form field.
const NAMING_ATTRIBUTES: &[&str] = &["aria-label", "id", "name", "placeholder", "title"];

/// A fixture in which texts that look like access tokens are masked.
#[derive(Debug, Clone, PartialEq)]
pub struct MaskedFixture {
    pub fixture: Fixture,
    /// The number of different texts that were masked.
    pub masked: usize,
    /// The number of those that were kept, since the definition needs them: it shares them, or its
    /// replay would lead to another result. Where more than the bounded number of replays is needed to
    /// tell these from others, it has others, too.
    pub kept: usize,
}

/// Returns the fixture with masks in place of texts that look like access tokens, the same one for the
/// same token. What `replayed` returns for it, a replay of the definition with which it was recorded, is
/// the same as before: tokens that the definition needs are kept. There are at most 41 replays, fewer of
/// very large fixtures, and none without a token.
#[must_use]
pub fn mask_tokens(mut fixture: Fixture, replayed: &dyn Fn(&Fixture) -> Replayed) -> MaskedFixture {
    let tokens = Tokens::of(&mut fixture);
    if tokens.numbers.is_empty() {
        return MaskedFixture { fixture, masked: 0, kept: 0 };
    }
    let before = replayed(&fixture);
    let is_same = |fixture: &Fixture| {
        let after = replayed(fixture);
        after.result == before.result && after.unrecorded.len() == before.unrecorded.len()
    };
    // What was shared stays in the fixture, also where its replay does not lead to it.
    let shared = before.result.data.values().chain(fixture.expected.data.values());
    let shared = tokens.in_values(shared);
    let open = tokens.numbers.keys().map(String::as_str);
    let open: Vec<_> = open.filter(|token| !shared.contains(*token)).collect();
    let mut masked = BTreeSet::new();
    let mut groups = vec![open.as_slice()];
    let mut best = None;
    for _ in 0..max_replays(&fixture) {
        let Some(group) = groups.pop() else { break };
        if group.is_empty() {
            continue;
        }
        let candidates: BTreeSet<&str> = masked.iter().chain(group).copied().collect();
        let mut candidate = fixture.clone();
        tokens.mask(&mut candidate, &candidates);
        if is_same(&candidate) {
            (masked, best) = (candidates, Some(candidate));
        } else if let Some((first, second)) =
            group.split_at_checked(group.len().div_ceil(2)).filter(|_| group.len() > 1)
        {
            groups.extend([second, first]);
        }
    }
    let count = masked.len();
    MaskedFixture {
        masked: count,
        kept: tokens.numbers.len().saturating_sub(count),
        fixture: best.unwrap_or(fixture),
    }
}

/// Returns the number of replays after the first one. The time of each depends on the states of the page.
fn max_replays(fixture: &Fixture) -> usize {
    let nodes = fixture.events.iter().filter_map(|event| {
        let FixtureEvent::Page { page, .. } = event else { return None };
        Some(fixture.pages.get(*page)?.nodes.len())
    });
    let nodes: usize = nodes.sum();
    let replays = MAX_REPLAYED_NODES.checked_div(nodes).unwrap_or(MAX_REPLAYS);
    replays.clamp(MIN_REPLAYS, MAX_REPLAYS)
}

/// The tokens of a fixture, each with its number.
struct Tokens {
    numbers: BTreeMap<String, usize>,
}

impl Tokens {
    /// Finds the tokens of a fixture, and changes nothing.
    fn of(fixture: &mut Fixture) -> Self {
        let mut numbers = BTreeMap::new();
        each_text(fixture, &mut |text, place, label| {
            for FoundToken { token, .. } in find_tokens(text, place, label, &|_| false) {
                let next = numbers.len().saturating_add(1);
                numbers.entry(token).or_insert(next);
            }
        });
        Self { numbers }
    }

    /// Replaces tokens wherever they are.
    fn mask(&self, fixture: &mut Fixture, masked: &BTreeSet<&str>) {
        let is_known = |text: &str| self.numbers.contains_key(text);
        each_text(fixture, &mut |text, place, label| {
            let found = find_tokens(text, place, label, &is_known);
            if let Some(changed) = self.masked_text(text, found, masked) {
                *text = changed;
            }
        });
    }

    /// Returns a text with masks in place of those of its tokens that are masked; `None` if there are none.
    fn masked_text(
        &self,
        text: &str,
        found: Vec<FoundToken>,
        masked: &BTreeSet<&str>,
    ) -> Option<String> {
        if found.is_empty() {
            return None;
        }
        let (mut changed, mut end) = (String::new(), 0_usize);
        for FoundToken { range, token } in found {
            let number = self.numbers.get(&token).filter(|_| masked.contains(token.as_str()));
            if let Some(number) = number
                && let Some(before) = text.get(end..range.start)
            {
                changed.push_str(before);
                changed.push_str(&mask_of(*number, &token));
                end = range.end;
            }
        }
        changed.push_str(text.get(end..)?);
        (end > 0).then_some(changed)
    }

    /// Returns the tokens that values have in them.
    fn in_values<'a>(&self, values: impl Iterator<Item = &'a Value>) -> BTreeSet<String> {
        let is_known = |text: &str| self.numbers.contains_key(text);
        let mut found = BTreeSet::new();
        for value in values {
            each_in_json(&mut value.clone(), Label::Other, &mut |text, place, label| {
                let tokens = find_tokens(text, place, label, &is_known);
                found.extend(tokens.into_iter().map(|found| found.token));
            });
        }
        found
    }
}

/// Visits the texts of a fixture that may have tokens.
fn each_text(fixture: &mut Fixture, edit: &mut impl FnMut(&mut String, Place, Label)) {
    for event in &mut fixture.events {
        each_in_event(event, edit);
    }
    for page in &mut fixture.pages {
        each_in_page(page, edit);
    }
}

fn each_in_event(event: &mut FixtureEvent, edit: &mut impl FnMut(&mut String, Place, Label)) {
    match event {
        FixtureEvent::Page { url, .. }
        | FixtureEvent::Visit { url, .. }
        | FixtureEvent::CustomUrl { url } => edit(url, Place::Address, Label::Other),
        FixtureEvent::Response { url, body, .. } => {
            edit(url, Place::Address, Label::Other);
            if let Some(body) = body {
                each_in_json(body, Label::Other, edit);
            }
        }
        FixtureEvent::Fetch { url, body, response, .. } => {
            edit(url, Place::Address, Label::Other);
            if let Some(text) = body
                && let Ok(mut value) = serde_json::from_str::<Value>(text)
            {
                let before = value.clone();
                each_in_json(&mut value, Label::Other, edit);
                // A number may be written in another way than it was sent.
                if value != before {
                    *text = value.to_string();
                }
            }
            if let Some(response) = response {
                each_in_json(response, Label::Other, edit);
            }
        }
        FixtureEvent::Act | FixtureEvent::Answer { .. } => (),
    }
}

/// Visits the texts in JSON, each with what the names of the members around it tell.
fn each_in_json(value: &mut Value, label: Label, edit: &mut impl FnMut(&mut String, Place, Label)) {
    match value {
        Value::String(text) => edit(text, Place::Text, label),
        Value::Array(items) => {
            for item in items {
                each_in_json(item, label, edit);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                if !(is_digest(name) && has_texts_only(member)) {
                    each_in_json(member, label.max(Label::of(name)), edit);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => (),
    }
}

/// Returns whether JSON has no members of its own, so that a hash may be all that it has.
fn has_texts_only(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().all(Value::is_string),
        Value::Object(_) => false,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

fn each_in_page(page: &mut PageTree, edit: &mut impl FnMut(&mut String, Place, Label)) {
    let labels = labels_of(page);
    for (node, label) in page.nodes.iter_mut().zip(labels) {
        let PageNode { tag, text, attributes, value, .. } = node;
        for content in [text, value].into_iter().flatten() {
            edit(content, Place::Text, label);
        }
        let tag = tag.as_deref().unwrap_or_default();
        let is_page = is_of_page(tag, attributes);
        for (name, value) in attributes {
            let Some(place) = place_of(tag, is_page, name) else { continue };
            let label = if name == "value" { label } else { Label::of(name) };
            edit(value, place, label);
        }
    }
}

/// Returns whether the `href` of an element is that of a page, and not of an asset.
fn is_of_page(tag: &str, attributes: &BTreeMap<String, String>) -> bool {
    let relations = attributes.get("rel").map(|rel| rel.to_ascii_lowercase()).unwrap_or_default();
    let has = |relation: &str| relations.split_whitespace().any(|one| one == relation);
    let is_link = PAGE_RELATIONS.iter().any(|one| has(one)) && !has("stylesheet");
    !ASSET_ELEMENTS.contains(&tag) || (tag == "link" && is_link)
}

/// Returns what kind of text an attribute has; `None` if it is not looked at. `is_page` says whether the
/// address of its element is that of a page.
fn place_of(tag: &str, is_page: bool, name: &str) -> Option<Place> {
    if STRUCTURAL_ATTRIBUTES.contains(&name)
        || STRUCTURAL_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
    {
        None
    } else if ASSET_ATTRIBUTES.contains(&name) {
        Some(if FRAME_ELEMENTS.contains(&tag) { Place::Address } else { Place::Asset })
    } else if ADDRESS_ATTRIBUTES.contains(&name) {
        Some(if is_page { Place::Address } else { Place::Asset })
    } else {
        Some(Place::Text)
    }
}

/// Returns what the label of each node tells of its text or its value. The label is the text before it in
/// the document, such as that of a cell, a term or a heading, or the name of the element.
fn labels_of(page: &PageTree) -> Vec<Label> {
    let mut labels = Vec::with_capacity(page.nodes.len());
    let mut before = Label::Other;
    for node in &page.nodes {
        let label = match (&node.tag, &node.text) {
            (_, Some(text)) => {
                let parent = node.parent.and_then(|parent| page.nodes.get(parent));
                let name = parent.and_then(|parent| parent.attributes.get("aria-label"));
                let label = before.max(name.map_or(Label::Other, |name| Label::of(name)));
                if !text.trim().is_empty() {
                    let goes_on = before != Label::Other && is_list_of_codes(text);
                    before = if goes_on { before } else { Label::of(text.trim()) };
                }
                label
            }
            (Some(_), None) => {
                let names = NAMING_ATTRIBUTES.iter().filter_map(|name| node.attributes.get(*name));
                names.map(|name| Label::of(name)).fold(before, Label::max)
            }
            // Another document or shadow tree begins.
            (None, None) => {
                before = Label::Other;
                before
            }
        };
        labels.push(label);
    }
    labels
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::workflow::RunResult;

    const HEX: &str = "9a7b3c5d1e2f4a6b8c0d9e1f3a5b7c9d1e2f3a4b5c6d7e8f9a0b1c2d3e4f5a6b";
    const BASE64: &str = "q8Zt3vLw9XcR2mKp7YbN5sHd1GfJ4aTe+U6o/Ei0";

    fn fixture(nodes: Vec<Value>, events: &Value) -> Fixture {
        let nodes: Vec<_> = std::iter::once(json!({})).chain(nodes).collect();
        serde_json::from_value(json!({
            "schema": Fixture::SCHEMA, "platform": "shop", "version": "1.0.0",
            "expected": { "path": [] }, "events": events, "pages": [{ "nodes": nodes }],
        }))
        .unwrap()
    }

    fn same(_: &Fixture) -> Replayed {
        Replayed { result: RunResult::default(), trace: vec![], unrecorded: vec![] }
    }

    fn mask(fixture: Fixture) -> MaskedFixture {
        mask_tokens(fixture, &same)
    }

    /// Elements with their texts.
    fn elements(texts: &[(&str, &str)]) -> Vec<Value> {
        let nodes = (1_usize..).step_by(2).zip(texts).flat_map(|(index, (tag, text))| {
            [json!({ "in": 0, "tag": tag, "visible": true }), json!({ "in": index, "text": text })]
        });
        nodes.collect()
    }

    #[test]
    fn what_stands_behind_the_label_of_a_secret_is_masked() {
        for (label, text, is_masked) in [
            ("Staff access token", "ab12cd34ef", true),
            ("API key:", " ab12cd34ef\n", true),
            ("Secret key", "ab12.cd34.ef", true),
            ("Password", "hunter2hunter", true),
            ("Private key", "ab12cd34", true),
            ("Access key ID", "ABIA1234CDEF", true),
            ("Recovery codes", "4839-2017", true),
            ("Recovery codes", "abcd-1234 efgh-5678", true),
            ("Name", "ab12cd34ef", false),
            ("Order number", "4839-2017", false),
            ("Password", "Change", false),
            ("Password", "Last changed on 2026-12-01", false),
            ("Tokens", "12 of 1200000", false),
            ("Secret key", "••••••••1234", false),
            ("API key", "2026-12-01T10:00:00Z", false),
            ("A long text that mentions a token and goes on for some time", "ab12cd34ef", true),
            (
                "A long text that mentions a token and goes on for some time yet",
                "ab12cd34ef",
                false,
            ),
        ] {
            let before = fixture(elements(&[("th", label), ("td", text)]), &json!([]));
            let after = mask(before.clone());
            assert_eq!(after.masked > 0, is_masked, "{label}: {text}");
            assert_eq!(after.fixture != before, is_masked, "{label}: {text}");
            assert_eq!(after.kept, 0);
        }
        let codes = [("h2", "Recovery codes"), ("li", "abcd-1234"), ("li", "efgh-5678")];
        let codes =
            [&codes[..], &[("li", "ijkl-9012"), ("p", "Order"), ("b", "mnop-3456")]].concat();
        let after = mask(fixture(elements(&codes), &json!([])));
        assert_eq!(after.masked, 3, "{:?}", after.fixture.pages);
        let codes = [("h2", "Recovery codes"), ("b", "1."), ("i", "abcd-efgh"), ("b", "2.")];
        let after = mask(fixture(
            elements(&[&codes[..], &[("i", "ab12-cd34"), ("p", "ab12 cd35")]].concat()),
            &json!([]),
        ));
        assert_eq!(after.masked, 3, "{:?}", after.fixture.pages);
    }

    #[test]
    fn structure_and_assets_stay_as_they_are() {
        let masked_in = |tag: &str, name: &str, value: &str| {
            let node = json!({ "in": 0, "tag": tag, "attributes": { name: value } });
            mask(fixture(vec![node], &json!([]))).masked
        };
        let path = format!("/static/{HEX}/app.js?v={HEX}");
        let structural: [(&str, &str, &str); 16] = [
            ("div", "class", HEX),
            ("div", "id", HEX),
            ("div", "data-testid", HEX),
            ("input", "name", HEX),
            ("label", "for", HEX),
            ("script", "integrity", BASE64),
            ("script", "src", &path),
            ("img", "srcset", &path),
            ("link", "href", &path),
            ("a", "href", &format!("/orders/{HEX}")),
            ("use", "href", &path),
            ("path", "d", BASE64),
            ("div", "style", BASE64),
            ("div", "aria-labelledby", HEX),
            ("img", "alt", "data:image/png;base64,q8Zt3vLw9XcR2mKp7YbN5sHd1GfJ4aTe"),
            ("div", "data-order", "0b9ab1a6-2c5c-4a86-9e0a-7d3f0c1b2a3d"),
        ];
        for (tag, name, value) in structural {
            assert_eq!(masked_in(tag, name, value), 0, "{tag} {name} {value}");
        }
        let others: [(&str, &str, &str); 9] = [
            ("iframe", "src", &format!("/pay?s={HEX}")),
            ("input", "value", HEX),
            ("button", "data-clipboard-text", HEX),
            ("button", "title", BASE64),
            ("div", "data-api-key", "ab12cd34ef"),
            ("a", "href", &format!("/reset?t={HEX}")),
            ("a", "href", "/reset?token=ab12cd34ef"),
            ("img", "src", "/picture.png?token=ab12cd34ef"),
            ("form", "action", &format!("https://shop.test/?k={HEX}")),
        ];
        for (tag, name, value) in others {
            assert_eq!(masked_in(tag, name, value), 1, "{tag} {name} {value}");
        }
    }

    #[test]
    fn the_address_of_a_feed_has_no_token() {
        let link = |rel: &str| {
            let attributes = json!({ "rel": rel, "href": format!("/feed.atom?key={HEX}") });
            json!({ "in": 0, "tag": "link", "attributes": attributes })
        };
        let masked = |nodes| mask(fixture(nodes, &json!([])));
        assert_eq!(masked(vec![link("alternate")]).masked, 1);
        assert_eq!(masked(vec![link("alternate stylesheet")]).masked, 0);
        assert_eq!(masked(vec![link("icon")]).masked, 0);
        // A token that is shown elsewhere is masked in the addresses of assets, too.
        let shown = json!({ "in": 0, "text": HEX });
        let after = masked(vec![link("icon"), shown]);
        assert!(!serde_json::to_string(&after.fixture).unwrap().contains(HEX));
    }

    #[test]
    fn members_within_a_hash_are_judged_by_their_names() {
        let events = |body: &Value| json!([{ "type": "response", "number": 1, "url": "https://a.test/", "status": 200, "body": body }]);
        let masked = |body: Value| mask(fixture(vec![], &events(&body))).masked;
        assert_eq!(masked(json!({ "commits": [{ "apiKey": "ab12cd34ef", "of": HEX }] })), 2);
        assert_eq!(masked(json!({ "digest": { "of": HEX } })), 1);
        assert_eq!(masked(json!({ "commits": [HEX], "sha": HEX })), 0);
    }

    #[test]
    fn what_was_shared_is_kept_also_if_its_replay_does_not_lead_to_it() {
        let mut before = fixture(elements(&[("p", HEX), ("p", BASE64)]), &json!([]));
        before.expected.data = [("key".to_owned(), json!(HEX))].into();
        let after = mask(before);
        assert_eq!((after.masked, after.kept), (1, 1));
        assert!(after.fixture.pages[0].text_content(0).contains(HEX));
    }

    #[test]
    fn a_token_has_the_same_mask_wherever_it_is() {
        let encoded = BASE64.replace('+', "%2B").replace('/', "%2F");
        let nodes = vec![
            json!({ "in": 0, "tag": "label" }),
            json!({ "in": 1, "text": "API key" }),
            json!({ "in": 0, "tag": "input", "value": "ab12cd34ef" }),
            json!({ "in": 0, "tag": "p" }),
            json!({ "in": 4, "text": format!("{BASE64} and {HEX}") }),
        ];
        let events = json!([
            { "type": "response", "number": 1, "url": format!("https://shop.test/keys/ab12cd34ef?k={encoded}"),
              "status": 200, "body": { "recoveryCodes": [{ "is": "zz11yy22" }], "sha": HEX, "of": HEX, "n": 7 } },
            { "type": "fetch", "method": "POST", "url": "https://shop.test/x", "response": null,
              "body": format!("{{ \"k\":\"{BASE64}\" }}") },
        ]);
        let after = mask(fixture(nodes, &events));
        assert_eq!((after.masked, after.kept), (4, 0));
        let [FixtureEvent::Response { url, body: Some(body), .. }, fetch] =
            &after.fixture.events[..]
        else {
            panic!("{:?}", after.fixture.events)
        };
        let nodes = &after.fixture.pages[0].nodes;
        let named = nodes[3].value.clone().unwrap();
        let text = nodes[5].text.clone().unwrap();
        let (base64, hex) = text.split_once(" and ").unwrap();
        assert_eq!((named.len(), base64.len(), hex.len()), (10, BASE64.len(), HEX.len()));
        assert!(named != base64 && base64 != hex, "{text}");
        assert_eq!(*url, format!("https://shop.test/keys/{named}?k={base64}"));
        assert_eq!((&body["of"], &body["sha"], &body["n"]), (&json!(hex), &json!(HEX), &json!(7)));
        assert_ne!(body["recoveryCodes"][0]["is"], "zz11yy22");
        let FixtureEvent::Fetch { body: Some(body), .. } = fetch else { panic!("{fetch:?}") };
        assert_eq!(*body, json!({ "k": base64 }).to_string());
    }

    #[test]
    fn a_token_without_which_the_replay_differs_is_kept() {
        let token = |number: usize| format!("{number:04}{HEX}");
        let texts: Vec<_> = (0..100).map(token).collect();
        let texts: Vec<_> = texts.iter().map(|text| ("p", text.as_str())).collect();
        let replays = Cell::new(0);
        let needs = |fixture: &Fixture, needed: &[usize]| {
            replays.set(replays.get() + 1);
            let has = |number: &usize| fixture.pages[0].text_content(0).contains(&token(*number));
            let path = needed.iter().map(|number| has(number).to_string()).collect();
            Replayed { result: RunResult { path, ..RunResult::default() }, ..same(fixture) }
        };
        let before = fixture(elements(&texts), &json!([]));
        let after = mask_tokens(before.clone(), &|fixture| needs(fixture, &[37, 60]));
        assert_eq!((after.masked, after.kept), (98, 2));
        let left = after.fixture.pages[0].text_content(0);
        assert!(
            left.contains(&token(37)) && left.contains(&token(60)) && !left.contains(&token(1))
        );
        assert!(replays.take() <= 41);
        // There is nothing that could be masked.
        let every: Vec<usize> = (0..100).collect();
        let after = mask_tokens(before.clone(), &|fixture| needs(fixture, &every));
        assert_eq!(after, MaskedFixture { fixture: before.clone(), masked: 0, kept: 100 });
        assert_eq!(replays.take(), 41);
        // A replay of many states of a large page takes long.
        let node = PageNode { parent: Some(0), tag: Some("i".to_owned()), ..PageNode::default() };
        let mut large = before;
        large.pages[0].nodes.extend(std::iter::repeat_n(node, 4000));
        let page = json!({ "type": "page", "at": 1, "page": 0, "url": "https://a.test/", "document": 1, "settled": true });
        let page: FixtureEvent = serde_json::from_value(page).unwrap();
        large.events = vec![page; 2000];
        let after = mask_tokens(large, &|fixture| needs(fixture, &every));
        assert_eq!((after.masked, after.kept, replays.take()), (0, 100, 5));
        // Without a token, nothing is replayed.
        let plain = fixture(elements(&[("p", "Ada")]), &json!([]));
        let after = mask_tokens(plain, &|fixture| needs(fixture, &[]));
        assert_eq!((after.masked, replays.take()), (0, 0));
    }

    fn any_text() -> impl Strategy<Value = String> {
        prop_oneof![
            "\\PC{0,40}",
            "(API key|Recovery codes|Token: |token=)?[a-zA-Z0-9%/:._ -]{0,40}",
            Just(HEX.to_owned()),
            Just(format!("?k={}", BASE64.replace('+', "%2B").replace('/', "%2F"))),
            Just(format!("token {BASE64}")),
        ]
    }

    proptest! {
        /// What was masked has nothing that would be masked, so that a fixture that is recorded once stays
        /// as it is.
        #[test]
        fn masking_is_idempotent(texts in prop::collection::vec((any_text(), any_text()), 0..12)) {
            let nodes = (1_usize..).step_by(2).zip(&texts).flat_map(|(index, (text, value))| {
                let attributes = json!({ "href": text, "title": value, "data-token": text });
                let tag = json!({ "in": 0, "tag": "a", "value": value, "attributes": attributes });
                [tag, json!({ "in": index, "text": text })]
            });
            let bodies: Vec<_> = texts.iter().map(|(name, value)| json!({ name: value })).collect();
            let events = json!([
                { "type": "response", "number": 1, "url": "https://a.test/", "status": 200, "body": bodies },
            ]);
            let once = mask(fixture(nodes.collect(), &events));
            let twice = mask(once.fixture.clone());
            prop_assert_eq!(twice.masked, 0);
            prop_assert_eq!(twice.fixture, once.fixture);
        }
    }
}
