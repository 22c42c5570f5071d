//! The accessibility tree of the applicant's page: what a screen reader is told.

use serde_json::{Value, json};

use super::Embed;

/// A node of the tree that is not hidden from assistive technology.
#[derive(Debug, Clone)]
pub struct AccessibleNode {
    pub role: String,
    /// Without the characters that isolate parts of another direction.
    pub name: String,
    pub is_focused: bool,
    pub is_invalid: bool,
    /// The texts within a live region, whose changes are announced; `None` for other nodes.
    pub announced: Option<String>,
    backend: Value,
}

impl Embed<'_> {
    /// Returns the nodes of the page in its order.
    pub async fn accessible_nodes(&self) -> Vec<AccessibleNode> {
        let client = &self.applicant.client;
        let tree = client.call(Some(&self.frame), "Accessibility.getFullAXTree", json!({})).await;
        let tree = tree.expect("the accessibility tree");
        let nodes = tree["nodes"].as_array().cloned().unwrap_or_default();
        let shown = nodes.iter().filter(|node| node["ignored"] != true);
        shown.map(|node| accessible(node, &nodes)).collect()
    }

    /// Focuses an element as assistive technology does. Returns `false` if it is gone.
    pub async fn focus_node(&self, node: &AccessibleNode) -> bool {
        let params = json!({ "backendNodeId": node.backend });
        let client = &self.applicant.client;
        client.call(Some(&self.frame), "DOM.focus", params).await.is_ok()
    }
}

fn accessible(node: &Value, nodes: &[Value]) -> AccessibleNode {
    let property = |name: &str| {
        let all = node["properties"].as_array().into_iter().flatten();
        all.filter(|property| property["name"] == name).map(|p| p["value"]["value"].clone()).next()
    };
    let is_live = property("live").is_some_and(|live| live != "off");
    AccessibleNode {
        role: text(&node["role"]),
        name: text(&node["name"]),
        is_focused: property("focused") == Some(true.into()),
        is_invalid: property("invalid").is_some_and(|invalid| invalid != "false"),
        announced: is_live.then(|| texts(node, nodes)),
        backend: node["backendDOMNodeId"].clone(),
    }
}

/// Returns the texts within a node.
fn texts(node: &Value, nodes: &[Value]) -> String {
    if node["role"]["value"] == "StaticText" {
        return text(&node["name"]);
    }
    let children = node["childIds"].as_array().into_iter().flatten();
    let children = children.filter_map(|id| nodes.iter().find(|node| node["nodeId"] == *id));
    children.map(|child| texts(child, nodes)).collect()
}

fn text(value: &Value) -> String {
    let text = value["value"].as_str().unwrap_or_default();
    text.replace(['\u{2066}', '\u{2068}', '\u{2069}'], "")
}
