//! The accessibility tree of a frame, as Chromium describes it (DevTools, `Accessibility.AXNode`).
//!
//! **Invariant:** no `Debug`, since it has the content of fields.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;

/// The tree of one frame.
pub(super) struct FrameTree {
    /// The number of the process that renders it. Backend node identifiers are those of a process.
    pub(super) process: usize,
    /// The frame's element in the page around it: its process and its backend node identifier. `None`
    /// for the main frame.
    pub(super) owner: Option<(usize, i64)>,
    root: String,
    nodes: HashMap<String, TreeNode>,
}

/// A node of a tree.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TreeNode {
    pub(super) node_id: String,
    /// Whether assistive technology is not told about the node.
    #[serde(default)]
    pub(super) ignored: bool,
    role: Option<TreeValue>,
    name: Option<TreeValue>,
    value: Option<TreeValue>,
    #[serde(default)]
    properties: Vec<TreeProperty>,
    #[serde(default)]
    child_ids: Vec<String>,
    parent_id: Option<String>,
    #[serde(rename = "backendDOMNodeId")]
    pub(super) backend_node: Option<i64>,
}

#[derive(Deserialize)]
struct TreeValue {
    #[serde(default)]
    value: Value,
}

#[derive(Deserialize)]
struct TreeProperty {
    name: String,
    value: TreeValue,
}

#[derive(Deserialize)]
struct TreeReply {
    nodes: Vec<TreeNode>,
}

impl FrameTree {
    /// Parses the reply to `Accessibility.getFullAXTree`. `None` if it is not one.
    pub(super) fn parse(process: usize, owner: Option<(usize, i64)>, reply: Value) -> Option<Self> {
        let TreeReply { nodes } = serde_json::from_value(reply).ok()?;
        let root = nodes.iter().find(|node| node.parent_id.is_none())?.node_id.clone();
        let nodes = nodes.into_iter().map(|node| (node.node_id.clone(), node)).collect();
        Some(Self { process, owner, root, nodes })
    }

    pub(super) fn root(&self) -> Option<&TreeNode> {
        self.nodes.get(&self.root)
    }

    /// Returns the children of a node. A node that is not in the tree is left out.
    pub(super) fn children<'a>(
        &'a self,
        node: &'a TreeNode,
    ) -> impl DoubleEndedIterator<Item = &'a TreeNode> {
        node.child_ids.iter().filter_map(|id| self.nodes.get(id))
    }

    pub(super) fn nodes(&self) -> impl Iterator<Item = &TreeNode> {
        self.nodes.values()
    }
}

impl TreeNode {
    /// Returns the role; empty if there is none.
    pub(super) fn role(&self) -> &str {
        text(self.role.as_ref())
    }

    pub(super) fn name(&self) -> &str {
        text(self.name.as_ref())
    }

    pub(super) fn value(&self) -> &str {
        text(self.value.as_ref())
    }

    /// Returns whether text can be entered here.
    pub(super) fn is_editable(&self) -> bool {
        self.property("editable").is_some()
    }

    /// Returns a property; `None` if the node does not have it.
    pub(super) fn property(&self, name: &str) -> Option<&Value> {
        let property = self.properties.iter().find(|property| property.name == name)?;
        Some(&property.value.value)
    }

    /// Returns whether a property is true, also one that Chromium writes as a word.
    pub(super) fn is(&self, property: &str) -> bool {
        match self.property(property) {
            Some(Value::Bool(value)) => *value,
            Some(Value::String(word)) => word != "false",
            _ => false,
        }
    }
}

fn text(value: Option<&TreeValue>) -> &str {
    value.and_then(|value| value.value.as_str()).unwrap_or_default()
}
