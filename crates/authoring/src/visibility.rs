//! What people can see of a page. A run takes each element with a box for visible, also if there is nothing
//! in the box.

use domain::workflow::{PageNode, PageTree};

use crate::ancestors::mark_around;

/// Elements that show something without a text in them.
const CONTROLS: &[&str] = &[
    "a", "button", "canvas", "iframe", "img", "input", "object", "picture", "select", "svg",
    "textarea", "video",
];
/// Declarations of an element's own style by which it and what is in it cannot be seen.
const CONCEALING: &[&str] = &["display:none", "opacity:0", "visibility:hidden"];
/// Classes of texts for screen readers alone.
const FOR_SCREEN_READERS: &[&str] =
    &["screen-reader-text", "sr-only", "visually-hidden", "visuallyhidden"];

/// What can be seen of the elements of a page.
pub(crate) struct Visibility {
    /// Of each node, whether it or what is around it is concealed.
    concealed: Vec<bool>,
    /// Of each node, whether there is a text or a control in it that can be seen.
    filled: Vec<bool>,
}

impl Visibility {
    /// Looks at each node of a page once: pages have up to 20,000 of them.
    pub(crate) fn of(page: &PageTree) -> Self {
        let mut concealed: Vec<bool> = Vec::with_capacity(page.nodes.len());
        for node in &page.nodes {
            let around = node.parent.and_then(|parent| concealed.get(parent).copied());
            concealed.push(around.unwrap_or_default() || is_concealing(node));
        }
        let mut seen = Self { concealed, filled: vec![false; page.nodes.len()] };
        for (index, node) in page.nodes.iter().enumerate() {
            let is_control = node.tag.as_deref().is_some_and(|tag| CONTROLS.contains(&tag));
            let has_text = node.text.as_ref().is_some_and(|text| !text.trim().is_empty());
            // A text is seen with the element that has it.
            let at = if has_text { node.parent } else { Some(index).filter(|_| is_control) };
            if let Some(at) = at.filter(|at| seen.is_seen(page, *at)) {
                mark_around(page, &mut seen.filled, at);
            }
        }
        seen
    }

    /// Returns whether an element has a box that is not concealed.
    pub(crate) fn is_seen(&self, page: &PageTree, index: usize) -> bool {
        page.nodes.get(index).is_some_and(|node| node.visible)
            && self.concealed.get(index) == Some(&false)
    }

    /// Returns whether there is a text or a control in an element, or it is a control itself.
    pub(crate) fn is_filled(&self, index: usize) -> bool {
        self.filled.get(index) == Some(&true)
    }
}

fn is_concealing(node: &PageNode) -> bool {
    let attribute = |name: &str| node.attributes.get(name).map(String::as_str).unwrap_or_default();
    let is_hidden_field =
        node.tag.as_deref() == Some("input") && attribute("type").eq_ignore_ascii_case("hidden");
    let mut classes = attribute("class").split_ascii_whitespace();
    is_hidden_field
        || classes.any(|class| FOR_SCREEN_READERS.contains(&class))
        || attribute("style").split(';').any(|declaration| {
            let declaration: String = declaration.split_whitespace().collect();
            let declaration = declaration.to_ascii_lowercase();
            CONCEALING.contains(&declaration.trim_end_matches("!important"))
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::page;

    #[test]
    fn what_nobody_sees_is_no_content() {
        let page = page(
            "html\n body\n  div id=text\n   p\n    \"Code\"\n  div id=empty\n   p\n    \"  \"\n  \
             div id=closed hidden\n   p hidden\n    \"Code\"\n  div id=styled style=opacity:+0;color:red\n   \
             input name=otp\n  div id=faint style=opacity:0.5\n   input name=pin\n  div id=token\n   \
             input type=hidden name=token\n  div id=spoken class=box+sr-only\n   \"Code\"\n  nav id=icon\n   \
             a href=/out",
        );
        let seen = Visibility::of(&page);
        let found = |id: &str| {
            let is_it = |node: &PageNode| node.attributes.get("id").is_some_and(|own| own == id);
            let index = page.nodes.iter().position(is_it).unwrap();
            (seen.is_seen(&page, index), seen.is_filled(index))
        };
        assert_eq!(found("text"), (true, true));
        assert_eq!(found("empty"), (true, false));
        assert_eq!(found("closed"), (false, false));
        assert_eq!(found("styled"), (false, false));
        assert_eq!(found("faint"), (true, true));
        assert_eq!(found("token"), (true, false));
        assert_eq!(found("spoken"), (false, false));
        assert_eq!(found("icon"), (true, true));
    }
}
