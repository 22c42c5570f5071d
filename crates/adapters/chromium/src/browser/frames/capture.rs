//! Captures a page: its nodes, and what is observed and read of it. Of each document all of it is from one
//! evaluation, so that no script of the page changes something in between; the documents of frames of other
//! origins are evaluated one after another.

use std::collections::{HashMap, VecDeque};

use domain::workflow::{ElementRead, PageTree};
use ports::browser::{BrowserError, InspectedPage};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    FrameRef, Questions, ReadElsewhere, ReadValues, Snapshot, by_frame, merge_observed, merge_read,
    observe_arguments, reads_by_frame,
};
use crate::browser::{pages::Pages, scripts::CAPTURE};

/// What is to be captured.
#[derive(Default)]
pub(in crate::browser) struct Wanted<'a> {
    /// The selectors whose elements are observed.
    pub(in crate::browser) selectors: &'a [String],
    /// The selectors whose texts are observed.
    pub(in crate::browser) texts: &'a [String],
    pub(in crate::browser) reads: &'a [ElementRead],
    /// Whether the applicant is asked to type.
    pub(in crate::browser) is_typing: bool,
    /// Whether the places of elements are wanted.
    pub(in crate::browser) has_boxes: bool,
}

/// What was captured. A part that failed takes no other part with it.
pub(in crate::browser) struct Captured {
    /// What was read of each element.
    pub(in crate::browser) values: Result<Vec<Value>, BrowserError>,
    pub(in crate::browser) page: Result<InspectedPage, BrowserError>,
}

impl Captured {
    /// Returns the capture of a page that could not be evaluated.
    pub(in crate::browser) fn refused(why: &str) -> Self {
        Self { values: Err(refused(why)), page: Err(refused(why)) }
    }
}

/// The nodes of a document, and the frames of other origins in it: their index, the index of their
/// element, and the corner of their content.
#[derive(Deserialize)]
struct CapturedTree {
    tree: PageTree,
    boxes: Vec<Option<[f32; 4]>>,
    width: u32,
    height: u32,
    elsewhere: Vec<(usize, usize, [f32; 2])>,
}

/// The tree of a document, and the frames that its indices of frames stand for.
type TreeWithFrames = (CapturedTree, Vec<FrameRef>);

/// What [`CAPTURE`] returns: the results of its functions.
#[derive(Default, Deserialize)]
struct CaptureReply {
    observed: Value,
    read: Value,
    tree: Value,
}

/// A frame that is to be asked, and what is looked for in it.
struct FrameQuestion {
    frame: FrameRef,
    /// The rests of selectors, and the selectors.
    selectors: Vec<(String, String)>,
    reads: Vec<ReadElsewhere>,
}

/// What the documents have replied so far.
pub(in crate::browser) struct PageCapture<'a> {
    wanted: &'a Wanted<'a>,
    questions: Questions,
    seen: Snapshot,
    values: Result<Value, BrowserError>,
    /// The tree of the page itself; `None` if it cannot be captured, nor can its frames then.
    page: Option<TreeWithFrames>,
    /// The trees of frames by the frame.
    trees: HashMap<String, TreeWithFrames>,
    /// The number of nodes of all trees.
    nodes: usize,
    /// The frames that something is looked for in: they are asked before the others.
    sought: VecDeque<FrameQuestion>,
    others: VecDeque<FrameQuestion>,
}

impl Pages {
    /// Captures the active page.
    pub(in crate::browser) async fn capture(
        &self,
        wanted: &Wanted<'_>,
    ) -> Result<Captured, BrowserError> {
        let capture = self.begin_capture(wanted).await?;
        Ok(self.finish_capture(capture).await)
    }

    /// Begins to capture the active page: with all that is observed and read of it, also in its frames, and
    /// without the trees of those in which nothing is looked for.
    pub(in crate::browser) async fn begin_capture<'a>(
        &self,
        wanted: &'a Wanted<'a>,
    ) -> Result<PageCapture<'a>, BrowserError> {
        let page = self.main_frame()?;
        let is_ours = self.is_page_ours();
        let arguments = if is_ours {
            let observed = vec![json!(wanted.selectors), json!(wanted.texts)];
            capture_arguments(observed, json!(wanted.reads), tree_arguments(wanted, 0))
        } else {
            // Such as an empty window that a frame has opened.
            capture_arguments(vec![json!([]), json!([])], json!([]), tree_arguments(wanted, 0))
        };
        let (value, frames) = self.run_with_frames(&page, &CAPTURE, arguments, true).await?;
        let mut capture = PageCapture::begin(wanted, is_ours, value, frames);
        while let Some(question) = capture.sought.pop_front() {
            self.ask(&mut capture, question).await;
        }
        Ok(capture)
    }

    /// Captures the frames in which nothing is looked for.
    pub(in crate::browser) async fn finish_capture(
        &self,
        mut capture: PageCapture<'_>,
    ) -> Captured {
        while let Some(question) = capture.next_question() {
            self.ask(&mut capture, question).await;
        }
        capture.finish()
    }

    /// Asks a frame, and adds what it replies.
    async fn ask(&self, capture: &mut PageCapture<'_>, question: FrameQuestion) {
        let arguments = capture.arguments(&question);
        let questions = &mut capture.questions;
        let reply = self.ask_frame(questions, &question.frame, &CAPTURE, arguments).await;
        if let Some((value, frames)) = reply {
            capture.add(question, value, frames);
        }
    }
}

impl<'a> PageCapture<'a> {
    /// Begins with what the page itself has replied.
    fn begin(wanted: &'a Wanted<'a>, is_ours: bool, value: Value, frames: Vec<FrameRef>) -> Self {
        let CaptureReply { observed, read, tree } =
            serde_json::from_value(value).unwrap_or_default();
        let mut seen: Snapshot = serde_json::from_value(observed).unwrap_or_default();
        let selectors = by_frame(&frames, std::mem::take(&mut seen.elsewhere));
        let (values, reads) = match serde_json::from_value::<ReadValues>(read) {
            Ok(read) if is_ours => {
                (Ok(Value::Array(read.values)), reads_by_frame(&frames, read.elsewhere))
            }
            Ok(_) => (Err(refused("the page is not on a host of the session")), vec![]),
            Err(_) => (Err(refused("the elements of the page cannot be read")), vec![]),
        };
        if !is_ours {
            seen = Snapshot { ready: "complete".to_owned(), ..Snapshot::default() };
        }
        let tree = CapturedTree::parse(tree, wanted.has_boxes);
        let nodes = tree.as_ref().map_or(0, CapturedTree::len);
        let inside = tree.as_ref().map(|tree| tree.frames(&frames)).unwrap_or_default();
        let mut capture = Self {
            wanted,
            questions: Questions::new(),
            seen,
            values,
            page: tree.map(|tree| (tree, frames)),
            trees: HashMap::new(),
            nodes,
            sought: VecDeque::new(),
            others: VecDeque::new(),
        };
        capture.enqueue(selectors, reads, inside);
        capture
    }

    /// Returns what was observed so far, once.
    pub(in crate::browser) fn take_snapshot(&mut self) -> Snapshot {
        std::mem::take(&mut self.seen)
    }

    fn next_question(&mut self) -> Option<FrameQuestion> {
        self.sought.pop_front().or_else(|| self.others.pop_front())
    }

    fn arguments(&self, question: &FrameQuestion) -> Vec<Value> {
        let observed = observe_arguments(&question.selectors, self.wanted.texts);
        let reads: Vec<_> = question.reads.iter().map(|one| &one.read).collect();
        let tree = self.page.as_ref().map(|_| tree_arguments(self.wanted, self.nodes));
        capture_arguments(observed, json!(reads), tree.unwrap_or_default())
    }

    /// Adds what a frame has replied.
    fn add(&mut self, question: FrameQuestion, value: Value, frames: Vec<FrameRef>) {
        let FrameQuestion { frame, selectors, reads } = question;
        let CaptureReply { observed, read, tree } =
            serde_json::from_value(value).unwrap_or_default();
        let observed: Snapshot = serde_json::from_value(observed).unwrap_or_default();
        let selectors = merge_observed(&mut self.seen, selectors, &observed, &frames);
        let mut deeper = vec![];
        if let (Ok(values), Ok(inside)) =
            (&mut self.values, serde_json::from_value::<ReadValues>(read))
        {
            deeper = merge_read(values, &reads, inside, &frames);
        }
        let mut inside = vec![];
        if let Some(tree) = CapturedTree::parse(tree, self.wanted.has_boxes) {
            self.nodes = self.nodes.saturating_add(tree.len());
            inside = tree.frames(&frames);
            self.trees.insert(frame.frame, (tree, frames));
        }
        self.enqueue(selectors, deeper, inside);
    }

    /// Has the frames in a document asked, each once.
    fn enqueue(
        &mut self,
        selectors: Vec<(FrameRef, Vec<(String, String)>)>,
        reads: Vec<(FrameRef, Vec<ReadElsewhere>)>,
        others: Vec<FrameRef>,
    ) {
        // The order of reads counts: the first value is taken.
        let read = |(frame, reads)| FrameQuestion { frame, selectors: vec![], reads };
        let mut sought: Vec<_> = reads.into_iter().map(read).collect();
        for (frame, selectors) in selectors {
            if let Some(same) = sought.iter_mut().find(|one| one.frame.frame == frame.frame) {
                same.selectors = selectors;
            } else {
                sought.push(FrameQuestion { frame, selectors, reads: vec![] });
            }
        }
        let is_other = |frame: &FrameRef| sought.iter().all(|one| one.frame.frame != frame.frame);
        let others = others.into_iter().filter(is_other);
        let unsought = |frame| FrameQuestion { frame, selectors: vec![], reads: vec![] };
        self.others.extend(others.map(unsought));
        self.sought.extend(sought);
    }

    fn finish(self) -> Captured {
        let values = self.values.and_then(|values| {
            let values = serde_json::from_value(values);
            values.map_err(|_| refused("the values have an unexpected form"))
        });
        let page = self.page.map(|page| assembled(page, self.trees));
        let page = page.filter(|page| page.tree.is_valid()).map(|page| InspectedPage {
            tree: page.tree,
            boxes: page.boxes,
            size: (page.width, page.height),
        });
        let page = page.ok_or_else(|| refused("the page is too large or has an unexpected form"));
        Captured { values, page }
    }
}

impl CapturedTree {
    fn parse(value: Value, has_boxes: bool) -> Option<Self> {
        let captured: Self = serde_json::from_value(value).ok()?;
        let boxes = if has_boxes { captured.tree.nodes.len() } else { 0 };
        (captured.tree.is_valid() && captured.boxes.len() == boxes).then_some(captured)
    }

    /// Appends the tree of a frame, whose element has this index and whose content begins at this corner.
    /// Returns the frames in it.
    fn append(
        &mut self,
        inner: Self,
        owner: usize,
        [left, top]: [f32; 2],
    ) -> Vec<(usize, usize, [f32; 2])> {
        let base = self.tree.nodes.len();
        if owner >= base || base + inner.tree.nodes.len() > PageTree::MAX_NODES {
            return vec![];
        }
        let nodes = inner.tree.nodes.into_iter().map(|mut node| {
            node.parent = Some(node.parent.map_or(owner, |parent| base + parent));
            node
        });
        self.tree.nodes.extend(nodes);
        let moved = |[x, y, width, height]: [f32; 4]| [x + left, y + top, width, height];
        self.boxes.extend(inner.boxes.into_iter().map(|place| place.map(moved)));
        let deeper = inner.elsewhere.into_iter();
        deeper.map(|(frame, at, [x, y])| (frame, base + at, [x + left, y + top])).collect()
    }

    fn len(&self) -> usize {
        self.tree.nodes.len()
    }

    /// Returns the frames of other origins in the document.
    fn frames(&self, frames: &[FrameRef]) -> Vec<FrameRef> {
        let frame = |(frame, _, _): &(usize, usize, [f32; 2])| frames.get(*frame).cloned();
        self.elsewhere.iter().filter_map(frame).collect()
    }
}

/// Returns the arguments of [`CAPTURE`]: those of its functions.
fn capture_arguments(observed: Vec<Value>, reads: Value, tree: Value) -> Vec<Value> {
    vec![Value::Array(observed), Value::Array(vec![reads]), tree]
}

/// Returns the arguments of the script that captures a tree, when there are so many nodes already.
fn tree_arguments(wanted: &Wanted<'_>, nodes: usize) -> Value {
    let left = PageTree::MAX_NODES.saturating_sub(nodes);
    json!([wanted.is_typing, left, wanted.has_boxes])
}

/// Returns the tree of a page with those of its frames, in the order of their elements.
fn assembled(
    (mut page, frames): TreeWithFrames,
    mut trees: HashMap<String, TreeWithFrames>,
) -> CapturedTree {
    let placed = |frames: &[FrameRef], elsewhere: Vec<(usize, usize, [f32; 2])>| {
        let in_frame = |(frame, at, corner): (usize, usize, [f32; 2])| {
            Some((frames.get(frame)?.frame.clone(), at, corner))
        };
        elsewhere.into_iter().filter_map(in_frame).collect::<VecDeque<_>>()
    };
    let mut waiting = placed(&frames, std::mem::take(&mut page.elsewhere));
    while let Some((frame, at, corner)) = waiting.pop_front() {
        let Some((inner, frames)) = trees.remove(&frame) else { continue };
        waiting.extend(placed(&frames, page.append(inner, at, corner)));
    }
    page
}

fn refused(why: &str) -> BrowserError {
    BrowserError::Refused(why.to_owned())
}

#[cfg(test)]
mod tests {
    use domain::workflow::PageNode;

    use super::*;

    fn captured(parents: &[Option<usize>], elsewhere: &[(usize, usize, [f32; 2])]) -> CapturedTree {
        let node = |parent: &Option<usize>| PageNode { parent: *parent, ..PageNode::default() };
        CapturedTree {
            tree: PageTree { nodes: parents.iter().map(node).collect() },
            boxes: vec![Some([1.0, 2.0, 3.0, 4.0]); parents.len()],
            width: 100,
            height: 100,
            elsewhere: elsewhere.to_vec(),
        }
    }

    #[test]
    fn the_tree_of_a_frame_is_below_its_element() {
        let mut page = captured(&[None, Some(0)], &[]);
        let frame = captured(&[None, Some(0), Some(1)], &[(0, 2, [5.0, 6.0])]);
        let deeper = page.append(frame, 1, [10.0, 20.0]);
        assert_eq!(deeper, [(0, 4, [15.0, 26.0])]);
        let parents: Vec<_> = page.tree.nodes.iter().map(|node| node.parent).collect();
        assert_eq!(parents, [None, Some(0), Some(1), Some(2), Some(3)]);
        assert_eq!(page.boxes.get(2), Some(&Some([11.0, 22.0, 3.0, 4.0])));
        assert!(page.tree.is_valid());
        assert_eq!(page.append(captured(&[None], &[]), 5, [0.0, 0.0]), []);
        assert_eq!(page.tree.nodes.len(), 5, "an element that is not there");
    }

    #[test]
    fn a_tree_that_is_too_large_is_left_out() {
        let mut page = captured(&[None], &[]);
        let large: Vec<_> = (0..PageTree::MAX_NODES).map(|at| at.checked_sub(1)).collect();
        page.append(captured(&large, &[]), 0, [0.0, 0.0]);
        assert_eq!(page.tree.nodes.len(), 1);
    }

    #[test]
    fn frames_that_something_is_looked_for_in_are_asked_first_and_once() {
        let frame = |name: &str| FrameRef { session: "s".to_owned(), frame: name.to_owned() };
        let frames: Vec<_> = ["0", "1", "2"].map(frame).to_vec();
        let wanted = Wanted::default();
        let tree = json!({
            "tree": { "nodes": [{}, { "in": 0 }] }, "boxes": [], "width": 1, "height": 1,
            "elsewhere": [[0, 1, [0, 0]], [1, 1, [0, 0]], [2, 1, [0, 0]]],
        });
        let observed = json!({ "ready": "complete", "present": [], "texts": {}, "elsewhere": [[1, "b", "a >>> b"]] });
        let read = json!({ "values": [null, null], "elsewhere": [
            { "path": [0], "frame": 2, "read": "x" }, { "path": [1], "frame": 1, "read": "y" },
        ] });
        let reply = json!({ "observed": observed, "read": read, "tree": tree });
        let mut capture = PageCapture::begin(&wanted, true, reply, frames);
        let mut asked = vec![];
        while let Some(question) = capture.next_question() {
            asked.push((
                question.frame.frame.clone(),
                question.selectors.len(),
                question.reads.len(),
            ));
            // Of the last one there is no tree.
            let tree = if asked.len() == 3 { json!(null) } else { inner_tree() };
            let values: Vec<_> = question.reads.iter().map(|one| one.read.clone()).collect();
            let read = json!({ "values": values, "elsewhere": [] });
            let present: Vec<_> = question.selectors.iter().map(|(rest, _)| rest.clone()).collect();
            let observed = json!({ "ready": "", "present": present, "texts": {}, "elsewhere": [] });
            let reply = json!({ "observed": observed, "read": read, "tree": tree });
            capture.add(question, reply, vec![]);
        }
        let expected = [("2", 0, 1), ("1", 1, 1), ("0", 0, 0)];
        assert_eq!(asked, expected.map(|(frame, one, other)| (frame.to_owned(), one, other)));
        assert!(capture.take_snapshot().present.contains("a >>> b"));
        let captured = capture.finish();
        assert_eq!(captured.values.unwrap(), [json!("x"), json!("y")]);
        assert_eq!(captured.page.unwrap().tree.nodes.len(), 6);
    }

    #[test]
    fn a_page_without_a_tree_is_read_all_the_same() {
        let wanted = Wanted::default();
        let read = json!({ "values": ["x"], "elsewhere": [] });
        let reply = |read: Value| json!({ "observed": null, "read": read, "tree": null });
        let captured = PageCapture::begin(&wanted, true, reply(read.clone()), vec![]).finish();
        assert_eq!(captured.values.unwrap(), [json!("x")]);
        assert!(captured.page.is_err());
        for (is_ours, read) in [(false, read), (true, json!(null))] {
            let captured = PageCapture::begin(&wanted, is_ours, reply(read), vec![]).finish();
            assert!(captured.values.is_err());
        }
    }

    fn inner_tree() -> Value {
        json!({
            "tree": { "nodes": [{}, { "in": 0 }] }, "boxes": [], "width": 1, "height": 1,
            "elsewhere": [],
        })
    }
}
