//! Tests on pages that are built from text.

pub(crate) mod changes;
mod codes;
mod columns;
mod dates;
pub(crate) mod drafts;
mod headings;
mod numbers;
mod pages;
mod parameters;
mod proposals;

use std::{collections::BTreeMap, sync::Arc};

use definition_syntax::Syntax;
use domain::workflow::{PageNode, PageTree};
use ports::definition_syntax::DefinitionSyntax as _;

use crate::{
    draft::{KnownValues, PageKind},
    signals::{ConditionProposal, KnownPage, propose_conditions},
};

pub(crate) fn select(page: &PageTree, scope: usize, selector: &str) -> Vec<usize> {
    Syntax.select(page, scope, selector)
}

/// Returns a page from lines that are indented by their depth: `tag a=1 b="x y"`, or `"text"`.
pub(crate) fn page(lines: &str) -> PageTree {
    let mut nodes = vec![PageNode { visible: true, ..PageNode::default() }];
    let mut open: Vec<(usize, usize)> = vec![];
    for line in lines.lines().filter(|line| !line.trim().is_empty()) {
        let depth = line.len() - line.trim_start().len();
        open.retain(|(other, _)| *other < depth);
        let parent = open.last().map_or(0, |(_, index)| *index);
        let line = line.trim();
        let mut node = PageNode { parent: Some(parent), visible: true, ..PageNode::default() };
        if let Some(text) = line.strip_prefix('"') {
            node.text = Some(text.trim_end_matches('"').to_owned());
        } else if line == "#shadow" {
            node.visible = false;
        } else {
            let (tag, rest) = line.split_once(' ').unwrap_or((line, ""));
            node.tag = Some(tag.to_owned());
            for attribute in rest.split(' ').filter(|part| !part.is_empty()) {
                let (name, value) = attribute.split_once('=').unwrap_or((attribute, ""));
                if name == "hidden" {
                    node.visible = false;
                }
                node.attributes.insert(name.to_owned(), value.replace('+', " "));
            }
        }
        open.push((depth, nodes.len()));
        nodes.push(node);
    }
    PageTree { nodes }
}

/// Returns the conditions that are proposed for a page if nothing is known of the author's account.
pub(crate) fn conditions(
    kind: PageKind,
    page: &KnownPage,
    node: Option<usize>,
    others: &BTreeMap<String, Vec<Arc<KnownPage>>>,
) -> Vec<ConditionProposal> {
    propose_conditions(kind, page, node, others, &KnownValues::new(), None, &select)
}

/// Returns the node of the element with this text.
pub(crate) fn with_text(page: &PageTree, text: &str) -> usize {
    let at = page.nodes.iter().position(|node| node.text.as_deref() == Some(text)).unwrap();
    page.nodes.get(at).unwrap().parent.unwrap()
}
