//! Selects elements of recorded pages by CSS selectors.

use std::fmt;

use cssparser::Parser as CssParser;
use domain::workflow::{PageNode, PageTree};
use selectors::{
    Element, OpaqueElement,
    attr::{AttrSelectorOperation, CaseSensitivity, NamespaceConstraint},
    bloom::BloomFilter,
    context::{
        MatchingContext, MatchingForInvalidation, MatchingMode, NeedsSelectorFlags, QuirksMode,
        SelectorCaches,
    },
    matching::{ElementSelectorFlags, matches_selector_list},
    parser::{ParseRelative, SelectorList},
};

use crate::selector::{Grammar, Name, Names, NoElement, PseudoClass};

/// Returns the elements in a node of a page that a selector matches, in document order; none if it is no
/// selector. States that a fixture does not have, such as `:hover`, match nothing.
pub(crate) fn select(page: &PageTree, scope: usize, selector: &str) -> Vec<usize> {
    let mut input = CssParser::new(selector);
    let Ok(list) = SelectorList::parse(&Grammar::default(), &mut input, ParseRelative::No) else {
        return vec![];
    };
    let links = Links::new(page);
    let mut caches = SelectorCaches::default();
    let mut context = MatchingContext::new(
        MatchingMode::Normal,
        None,
        &mut caches,
        QuirksMode::NoQuirks,
        NeedsSelectorFlags::No,
        MatchingForInvalidation::No,
    );
    // In a document, `:scope` is the root element.
    context.scope_element = links.element(scope).map(|element| element.opaque());
    let elements = page.descendants(scope).filter(|(_, node)| node.tag.is_some());
    let matching = elements.filter(|(index, _)| {
        let element = links.element(*index);
        element.is_some_and(|element| matches_selector_list(&list, element, &mut context))
    });
    matching.map(|(index, _)| index).collect()
}

/// The relations of the elements of a page.
struct Links<'a> {
    page: &'a PageTree,
    /// By the index of an element.
    relations: Vec<Relations>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Relations {
    previous: Option<usize>,
    next: Option<usize>,
    first_child: Option<usize>,
    last_child: Option<usize>,
    has_text: bool,
}

impl<'a> Links<'a> {
    fn new(page: &'a PageTree) -> Self {
        let mut relations = vec![Relations::default(); page.nodes.len()];
        for (index, node) in page.nodes.iter().enumerate() {
            let Some(parent) = node.parent.filter(|_| !page.is_root(index)) else { continue };
            if node.text.as_ref().is_some_and(|text| !text.is_empty())
                && let Some(parent) = relations.get_mut(parent)
            {
                parent.has_text = true;
            }
            if node.tag.is_none() {
                continue;
            }
            let Some(parent) = relations.get_mut(parent) else { continue };
            let previous = parent.last_child.replace(index);
            parent.first_child.get_or_insert(index);
            if let Some(relation) = previous.and_then(|previous| relations.get_mut(previous)) {
                relation.next = Some(index);
            }
            if let Some(relation) = relations.get_mut(index) {
                relation.previous = previous;
            }
        }
        Self { page, relations }
    }

    fn element(&self, index: usize) -> Option<PageElement<'_>> {
        let node = self.page.nodes.get(index).filter(|node| node.tag.is_some())?;
        Some(PageElement { links: self, index, node })
    }
}

/// An element of a page.
#[derive(Clone, Copy)]
struct PageElement<'a> {
    links: &'a Links<'a>,
    index: usize,
    node: &'a PageNode,
}

impl fmt::Debug for PageElement<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PageElement").field(&self.index).finish()
    }
}

impl PageElement<'_> {
    fn relations(&self) -> Relations {
        self.links.relations.get(self.index).copied().unwrap_or_default()
    }

    fn at(&self, index: Option<usize>) -> Option<Self> {
        let node = self.links.page.nodes.get(index?).filter(|node| node.tag.is_some())?;
        Some(Self { links: self.links, index: index?, node })
    }

    fn attribute(&self, name: &str) -> Option<&str> {
        self.node.attributes.get(name).map(String::as_str)
    }

    fn is_one_of(&self, tags: &[&str]) -> bool {
        self.node.tag.as_deref().is_some_and(|tag| tags.contains(&tag))
    }
}

impl Element for PageElement<'_> {
    type Impl = Names;

    fn opaque(&self) -> OpaqueElement {
        OpaqueElement::new(self.node)
    }

    fn parent_element(&self) -> Option<Self> {
        self.at(self.node.parent)
    }

    fn parent_node_is_shadow_root(&self) -> bool {
        false
    }

    fn containing_shadow_host(&self) -> Option<Self> {
        None
    }

    fn is_pseudo_element(&self) -> bool {
        false
    }

    fn prev_sibling_element(&self) -> Option<Self> {
        self.at(self.relations().previous)
    }

    fn next_sibling_element(&self) -> Option<Self> {
        self.at(self.relations().next)
    }

    fn first_element_child(&self) -> Option<Self> {
        self.at(self.relations().first_child)
    }

    fn is_html_element_in_html_document(&self) -> bool {
        true
    }

    fn has_local_name(&self, name: &Name) -> bool {
        self.node.tag.as_deref() == Some(name.as_str())
    }

    fn has_namespace(&self, _: &Name) -> bool {
        true
    }

    fn is_same_type(&self, other: &Self) -> bool {
        self.node.tag == other.node.tag
    }

    fn attr_matches(
        &self,
        _: &NamespaceConstraint<&Name>,
        name: &Name,
        operation: &AttrSelectorOperation<&Name>,
    ) -> bool {
        self.attribute(name.as_str()).is_some_and(|value| operation.eval_str(value))
    }

    fn match_non_ts_pseudo_class(
        &self,
        class: &PseudoClass,
        _: &mut MatchingContext<'_, Names>,
    ) -> bool {
        const CONTROLS: &[&str] =
            &["button", "fieldset", "input", "optgroup", "option", "select", "textarea"];
        let is_control = self.is_one_of(CONTROLS);
        let is_field = self.is_one_of(&["input", "select", "textarea"]);
        match class.name() {
            "any-link" | "link" => self.is_link(),
            "checked" => self.node.checked,
            "defined" => true,
            "disabled" => is_control && self.attribute("disabled").is_some(),
            "enabled" => is_control && self.attribute("disabled").is_none(),
            "open" => self.attribute("open").is_some(),
            "optional" => is_field && self.attribute("required").is_none(),
            "required" => is_field && self.attribute("required").is_some(),
            _ => false,
        }
    }

    fn match_pseudo_element(&self, name: &NoElement, _: &mut MatchingContext<'_, Names>) -> bool {
        match *name {}
    }

    fn apply_selector_flags(&self, _: ElementSelectorFlags) {}

    fn is_link(&self) -> bool {
        self.is_one_of(&["a", "area"]) && self.attribute("href").is_some()
    }

    fn is_html_slot_element(&self) -> bool {
        false
    }

    fn has_id(&self, id: &Name, case: CaseSensitivity) -> bool {
        let own = self.attribute("id");
        own.is_some_and(|own| case.eq(own.as_bytes(), id.as_str().as_bytes()))
    }

    fn has_class(&self, name: &Name, case: CaseSensitivity) -> bool {
        let classes = self.attribute("class").unwrap_or_default().split_ascii_whitespace();
        classes.into_iter().any(|class| case.eq(class.as_bytes(), name.as_str().as_bytes()))
    }

    fn has_custom_state(&self, _: &Name) -> bool {
        false
    }

    fn imported_part(&self, _: &Name) -> Option<Name> {
        None
    }

    fn is_part(&self, _: &Name) -> bool {
        false
    }

    fn is_empty(&self) -> bool {
        let relations = self.relations();
        relations.first_child.is_none() && !relations.has_text
    }

    fn is_root(&self) -> bool {
        self.node.parent.is_none_or(|parent| self.links.page.is_root(parent))
    }

    fn add_element_unique_hashes(&self, _: &mut BloomFilter) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn element(parent: usize, tag: &str, attributes: &[(&str, &str)]) -> PageNode {
        let attributes = attributes.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        PageNode {
            parent: Some(parent),
            tag: Some(tag.into()),
            attributes: attributes.collect(),
            ..PageNode::default()
        }
    }

    fn text(parent: usize, text: &str) -> PageNode {
        PageNode { parent: Some(parent), text: Some(text.into()), ..PageNode::default() }
    }

    /// A document with a form, a table, and a shadow root in element 9.
    fn page() -> PageTree {
        let root = |host: usize| PageNode { parent: Some(host), ..PageNode::default() };
        PageTree {
            nodes: vec![
                PageNode::default(),
                element(0, "html", &[("lang", "de")]),
                element(1, "form", &[("id", "login"), ("class", "wide card")]),
                element(2, "input", &[("type", "PASSWORD"), ("required", "")]),
                PageNode { checked: true, ..element(2, "input", &[("type", "checkbox")]) },
                element(1, "table", &[]),
                element(5, "tr", &[]),
                element(6, "td", &[]),
                text(7, "1"),
                element(6, "td", &[("data-kind", "sum total")]),
                root(9),
                element(10, "b", &[("id", "inner")]),
            ],
        }
    }

    #[test]
    fn elements_are_matched_as_by_a_browser() {
        let page = page();
        assert!(page.is_valid());
        for (selector, expected) in [
            ("form#login.card > input[type=password]", &[3][..]),
            ("input", &[3, 4]),
            ("input:checked", &[4]),
            (":required", &[3]),
            ("input:not(:required)", &[4]),
            ("td:first-child", &[7]),
            ("tr > td:last-of-type", &[9]),
            ("td + td", &[9]),
            ("td:nth-child(2)", &[9]),
            ("[data-kind~=total]", &[9]),
            ("td:empty", &[9]),
            ("form:has(> input)", &[2]),
            ("form, table", &[2, 5]),
            (":root", &[1]),
            ("html:root > table", &[5]),
            ("#inner", &[]),
            ("input:hover", &[]),
            ("td[[", &[]),
        ] {
            assert_eq!(select(&page, 0, selector), expected, "{selector}");
        }
        // What is in a shadow root is found from there alone.
        assert_eq!(select(&page, 10, "#inner"), [11]);
        // An element is no part of its own scope, but selectors see what is around it.
        assert_eq!(select(&page, 5, "html td"), [7, 9]);
        assert_eq!(select(&page, 6, ":scope > td"), [7, 9]);
        assert!(select(&page, 6, "tr").is_empty());
    }
}
