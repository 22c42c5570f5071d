//! Looks into frames of other origins, which a script in the page around them cannot reach: into those
//! on the session's hosts only, so that what is collected comes from these hosts.

mod capture;

use std::{
    collections::{BTreeSet, VecDeque},
    time::Duration,
};

use domain::workflow::{Action, ElementRead, ReadContent};
use ports::browser::BrowserError;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

pub(super) use self::capture::{Captured, PageCapture, Wanted};
use super::{
    Snapshot, browser_error,
    pages::Pages,
    scripts::{ACT, OBSERVE, READ_ELEMENTS},
};

/// Frames of other origins that are looked into at once.
const MAX_FRAMES: usize = 16;
/// The time within which a frame must reply. One that is busy for longer is taken for empty.
const FRAME_TIMEOUT: Duration = Duration::from_secs(2);
/// The time for all frames of a page, so that they cannot hold up the page around them.
const ALL_FRAMES_TIMEOUT: Duration = Duration::from_secs(4);
/// The group of our references to elements of frames.
const OBJECT_GROUP: &str = "avouch-frames";
/// What a selector that leads into a frame has.
const INTO_FRAME: &str = ">>>";

/// A frame and the DevTools session of the process that renders it.
#[derive(Debug, Clone)]
pub(super) struct FrameRef {
    pub(super) session: String,
    pub(super) frame: String,
}

/// What a selector leaves for a frame of another origin: the index of the frame, the rest of the
/// selector, and the selector.
pub(super) type ObservedElsewhere = (usize, String, String);

#[derive(Deserialize)]
struct ReadValues {
    values: Vec<Value>,
    elsewhere: Vec<ReadElsewhere>,
}

/// What is to be read in a frame of another origin, and where its value belongs.
#[derive(Deserialize)]
struct ReadElsewhere {
    path: Vec<PathStep>,
    frame: usize,
    read: Value,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum PathStep {
    Index(usize),
    Name(String),
}

#[derive(Deserialize)]
struct Acted {
    done: bool,
    elsewhere: Vec<(usize, String)>,
}

/// The frames that are asked for one answer.
struct Questions {
    deadline: Instant,
    /// How many more frames may be asked.
    left: usize,
    /// The frames that did not reply in time.
    silent: BTreeSet<String>,
}

impl Questions {
    fn new() -> Self {
        let deadline = Instant::now() + ALL_FRAMES_TIMEOUT;
        Self { deadline, left: MAX_FRAMES, silent: BTreeSet::new() }
    }
}

impl Pages {
    /// Returns what of these selectors is visible.
    pub(super) async fn snapshot(
        &self,
        selectors: &[String],
        texts: &[String],
    ) -> Result<Snapshot, BrowserError> {
        let page = self.main_frame()?;
        if !self.is_page_ours() {
            // Such as an empty window that a frame has opened.
            return Ok(Snapshot { ready: "complete".to_owned(), ..Snapshot::default() });
        }
        let looks_inside = selectors.iter().chain(texts).any(|one| one.contains(INTO_FRAME));
        let arguments = vec![json!(selectors), json!(texts)];
        let (value, frames) = self.run_with_frames(&page, OBSERVE, arguments, looks_inside).await?;
        let mut seen: Snapshot = serde_json::from_value(value).unwrap_or_default();
        let mut questions = Questions::new();
        let mut waiting = VecDeque::from(by_frame(&frames, std::mem::take(&mut seen.elsewhere)));
        while let Some((frame, selectors)) = waiting.pop_front() {
            let arguments = observe_arguments(&selectors, texts);
            let reply = self.ask_frame(&mut questions, &frame, OBSERVE, arguments).await;
            let Some((value, frames)) = reply else { continue };
            let inside: Snapshot = serde_json::from_value(value).unwrap_or_default();
            waiting.extend(merge_observed(&mut seen, selectors, &inside, &frames));
        }
        Ok(seen)
    }

    /// Reads elements of the page.
    pub(super) async fn read_elements(
        &self,
        elements: &[ElementRead],
    ) -> Result<Vec<Value>, BrowserError> {
        let page = self.main_frame()?;
        let refused = |why: &str| BrowserError::Refused(why.to_owned());
        if !self.is_page_ours() {
            return Err(refused("the page is not on a host of the session"));
        }
        let reads = json!(elements);
        let looks_inside = reads.to_string().contains(INTO_FRAME);
        let (value, frames) =
            self.run_with_frames(&page, READ_ELEMENTS, vec![reads], looks_inside).await?;
        let read: ReadValues = serde_json::from_value(value)
            .map_err(|_| refused("the values have an unexpected form"))?;
        let mut values = Value::Array(read.values);
        let mut questions = Questions::new();
        let mut waiting = VecDeque::from(reads_by_frame(&frames, read.elsewhere));
        while let Some((frame, reads)) = waiting.pop_front() {
            let asked: Vec<_> = reads.iter().map(|one| &one.read).collect();
            let arguments = vec![json!(asked)];
            let reply = self.ask_frame(&mut questions, &frame, READ_ELEMENTS, arguments).await;
            let Some((value, frames)) = reply else { continue };
            let Ok(inside) = serde_json::from_value::<ReadValues>(value) else { continue };
            waiting.extend(merge_read(&mut values, &reads, inside, &frames));
        }
        serde_json::from_value(values).map_err(|_| refused("the values have an unexpected form"))
    }

    /// Does something in the page, and returns whether there was an element for it. Timed out if a frame
    /// does not tell whether it was done.
    pub(super) async fn do_action(&self, action: &Action) -> Result<bool, BrowserError> {
        let page = self.main_frame()?;
        if !self.is_page_ours() {
            return Ok(false);
        }
        let looks_inside = action.selector().contains(INTO_FRAME);
        let arguments = vec![json!(action)];
        let (value, mut frames) = self.run_with_frames(&page, ACT, arguments, looks_inside).await?;
        let mut acted = serde_json::from_value::<Acted>(value).ok();
        let mut waiting = VecDeque::new();
        let deadline = Instant::now() + ALL_FRAMES_TIMEOUT;
        while Instant::now() < deadline {
            if let Some(Acted { done, elsewhere }) = acted.take() {
                if done {
                    return Ok(true);
                }
                let in_frame = |(at, rest): (usize, String)| Some((frames.get(at)?.clone(), rest));
                waiting.extend(elsewhere.into_iter().filter_map(in_frame));
            }
            let Some((frame, rest)) = waiting.pop_front() else { break };
            let verified = tokio::time::timeout(FRAME_TIMEOUT, self.verified_loader(&frame));
            if !verified.await.is_ok_and(|loader| loader.is_some()) {
                continue;
            }
            let arguments = vec![json!(action.clone().with_selector(rest))];
            let reply = self.run_with_frames(&frame, ACT, arguments, true);
            let reply = tokio::time::timeout(FRAME_TIMEOUT, reply).await;
            // Another frame must not be acted in, too.
            let (value, inner) = reply.unwrap_or(Err(BrowserError::TimedOut))?;
            acted = serde_json::from_value(value).ok();
            frames = inner;
        }
        Ok(false)
    }

    /// Returns the main frame of the active page.
    fn main_frame(&self) -> Result<FrameRef, BrowserError> {
        let (session, frame) = self.active().ok_or(BrowserError::Gone)?;
        Ok(FrameRef { session, frame })
    }

    /// Whether the active page is on a host of the session.
    fn is_page_ours(&self) -> bool {
        let tracker = self.tracker();
        tracker.active().is_some_and(|page| self.is_ours(&page.url))
    }

    /// Runs a function in a frame of another origin; `None` if it fails, does not reply in time, or if the
    /// frame is not on a host of the session, or shows another document meanwhile.
    async fn ask_frame(
        &self,
        questions: &mut Questions,
        frame: &FrameRef,
        function: &str,
        arguments: Vec<Value>,
    ) -> Option<(Value, Vec<FrameRef>)> {
        if questions.left == 0 || questions.silent.contains(&frame.frame) {
            return None;
        }
        questions.left -= 1;
        let deadline = questions.deadline.min(Instant::now() + FRAME_TIMEOUT);
        let reply = async {
            let before = self.verified_loader(frame).await?;
            let reply = self.run_with_frames(frame, function, arguments, true).await.ok()?;
            let after = self.verified_loader(frame).await?;
            (before == after).then_some(reply)
        };
        let Ok(reply) = tokio::time::timeout_at(deadline, reply).await else {
            questions.silent.insert(frame.frame.clone());
            return None;
        };
        reply
    }

    /// Returns the loader of the document of a frame; `None` if the document is not on a host of the
    /// session.
    async fn verified_loader(&self, frame: &FrameRef) -> Option<String> {
        if !self.is_session_ours(&frame.session).await {
            return None;
        }
        let session = Some(frame.session.as_str());
        let tree = self.client.call(session, "Page.getFrameTree", json!({})).await.ok()?;
        let mut waiting: VecDeque<_> = tree.get("frameTree").into_iter().collect();
        while let Some(tree) = waiting.pop_front() {
            let one = tree.get("frame")?;
            if one.get("id")?.as_str()? == frame.frame {
                let url = one.get("url")?.as_str()?;
                let loader = one.get("loaderId")?.as_str()?;
                return self.is_ours(url).then(|| loader.to_owned());
            }
            waiting.extend(tree.get("childFrames").and_then(Value::as_array).into_iter().flatten());
        }
        None
    }

    /// Whether the process of a DevTools session is that of a page, or of a frame on a host of the session.
    /// The browser itself is asked, since the process could lie.
    pub(super) async fn is_session_ours(&self, session: &str) -> bool {
        let root = {
            let mut tracker = self.tracker();
            let Some(page) = tracker.page_around(session) else { return false };
            page.frames.root_of(session).map(str::to_owned)
        };
        let Some(root) = root else { return true };
        let target = json!({ "targetId": root });
        let info = self.client.call(None, "Target.getTargetInfo", target).await;
        let info = info.unwrap_or_default();
        let url = info.pointer("/targetInfo/url").and_then(Value::as_str);
        url.is_some_and(|url| self.is_ours(url))
    }

    /// Runs a function in our isolated world of a frame. If `looks_inside`, its last arguments are the
    /// elements of the frames of other origins in it, which are returned in the same order.
    async fn run_with_frames(
        &self,
        place: &FrameRef,
        function: &str,
        arguments: Vec<Value>,
        looks_inside: bool,
    ) -> Result<(Value, Vec<FrameRef>), BrowserError> {
        let world = self.isolated_world(&place.session, &place.frame).await?;
        let values = arguments.into_iter().map(|value| json!({ "value": value }));
        let mut arguments: Vec<_> = values.collect();
        let mut frames = vec![];
        if looks_inside {
            let elements = self.elements_of_frames(place, world);
            // Without them, the page is read as if it had no such frames.
            let elements = tokio::time::timeout(FRAME_TIMEOUT, elements).await;
            for (frame, element) in elements.unwrap_or_default() {
                arguments.push(json!({ "objectId": element }));
                frames.push(frame);
            }
        }
        let result = self.call_function(&place.session, world, function, arguments).await;
        if looks_inside {
            let group = json!({ "objectGroup": OBJECT_GROUP });
            self.client.send_no_reply(Some(&place.session), "Runtime.releaseObjectGroup", group);
        }
        Ok((result?, frames))
    }

    /// Returns the frames of other origins within a frame that may be on hosts of the session, with
    /// references to their elements.
    async fn elements_of_frames(&self, place: &FrameRef, world: i64) -> Vec<(FrameRef, String)> {
        let frames: Vec<_> = {
            let mut tracker = self.tracker();
            let Some(page) = tracker.page_around(&place.session) else { return vec![] };
            let is_ours = |url: &str| self.is_ours(url);
            let frames = page.frames.of_other_origins(&place.frame, &page.url, is_ours);
            let owned = |(frame, session): (&str, &str)| FrameRef {
                session: session.to_owned(),
                frame: frame.to_owned(),
            };
            frames.into_iter().map(owned).collect()
        };
        let mut found = vec![];
        for frame in frames {
            if found.len() == MAX_FRAMES {
                break;
            }
            if let Some(element) = self.element_of(place, world, &frame).await {
                found.push((frame, element));
            }
        }
        found
    }

    /// Returns a reference to the element of a frame in the document around it.
    async fn element_of(&self, place: &FrameRef, world: i64, frame: &FrameRef) -> Option<String> {
        let session = Some(place.session.as_str());
        let frame = json!({ "frameId": frame.frame });
        let owner = self.client.call(session, "DOM.getFrameOwner", frame).await.ok()?;
        let node = json!({
            "backendNodeId": owner.get("backendNodeId")?,
            "executionContextId": world, "objectGroup": OBJECT_GROUP,
        });
        let resolved = self.client.call(session, "DOM.resolveNode", node).await.ok()?;
        Some(resolved.pointer("/object/objectId")?.as_str()?.to_owned())
    }

    /// Returns the execution context of our isolated world of a frame.
    pub(super) async fn isolated_world(
        &self,
        session: &str,
        frame: &str,
    ) -> Result<i64, BrowserError> {
        let world = json!({ "frameId": frame, "worldName": super::WORLD_NAME });
        let world = self.client.call(Some(session), "Page.createIsolatedWorld", world).await;
        let world = world.map_err(browser_error)?;
        let id = world.get("executionContextId").and_then(Value::as_i64);
        id.ok_or_else(|| BrowserError::Refused("the frame has no execution context".into()))
    }

    /// Calls a function in an execution context, and returns its result.
    pub(super) async fn call_function(
        &self,
        session: &str,
        context: i64,
        function: &str,
        arguments: Vec<Value>,
    ) -> Result<Value, BrowserError> {
        let call = json!({
            "functionDeclaration": function,
            "executionContextId": context,
            "arguments": arguments,
            "awaitPromise": true,
            "returnByValue": true,
        });
        let reply = self.client.call(Some(session), "Runtime.callFunctionOn", call).await;
        let mut reply = reply.map_err(browser_error)?;
        if reply.get("exceptionDetails").is_some() {
            return Err(BrowserError::Refused("a script failed in the page".into()));
        }
        Ok(reply.pointer_mut("/result/value").map(Value::take).unwrap_or_default())
    }
}

/// Returns the arguments of [`OBSERVE`] for the rests of selectors; `texts` are the selectors whose texts are
/// observed.
fn observe_arguments(selectors: &[(String, String)], texts: &[String]) -> Vec<Value> {
    let rests: Vec<_> = selectors.iter().map(|(rest, _)| rest).collect();
    let with_text = selectors.iter().filter(|(_, selector)| texts.contains(selector));
    let with_text: Vec<_> = with_text.map(|(rest, _)| rest).collect();
    vec![json!(rests), json!(with_text)]
}

/// Adds what a frame has of selectors, of which it was asked for the rests, and returns what is left of them
/// for the frames in it.
fn merge_observed(
    seen: &mut Snapshot,
    selectors: Vec<(String, String)>,
    inside: &Snapshot,
    frames: &[FrameRef],
) -> Vec<(FrameRef, Vec<(String, String)>)> {
    let mut deeper = vec![];
    for (rest, selector) in selectors {
        if inside.present.contains(&rest) {
            seen.present.insert(selector.clone());
        }
        if let Some(text) = inside.texts.get(&rest) {
            seen.texts.entry(selector.clone()).or_insert_with(|| text.clone());
        }
        let further = inside.elsewhere.iter().filter(|(_, _, of)| *of == rest);
        let further = further.map(|(at, left, _)| (*at, left.clone(), selector.clone()));
        deeper.extend(further);
    }
    by_frame(frames, deeper)
}

/// Puts what was read in a frame in its places, and returns what is to be read in the frames in it.
fn merge_read(
    values: &mut Value,
    reads: &[ReadElsewhere],
    inside: ReadValues,
    frames: &[FrameRef],
) -> Vec<(FrameRef, Vec<ReadElsewhere>)> {
    for (one, value) in reads.iter().zip(inside.values) {
        fill(values, &one.path, value);
    }
    let deeper = inside.elsewhere.into_iter().filter_map(|inner| {
        // The first step of a path is the index of the element that was asked for.
        let (Some(PathStep::Index(of)), rest) = (inner.path.first(), inner.path.get(1..)?) else {
            return None;
        };
        let outer = &reads.get(*of)?.path;
        let path = outer.iter().chain(rest).cloned().collect();
        Some(ReadElsewhere { path, ..inner })
    });
    reads_by_frame(frames, deeper.collect())
}

/// Returns what is to be looked for in each frame: the rests of the selectors, and the selectors.
fn by_frame(
    frames: &[FrameRef],
    elsewhere: Vec<ObservedElsewhere>,
) -> Vec<(FrameRef, Vec<(String, String)>)> {
    let mut by_frame: Vec<_> = frames.iter().map(|frame| (frame.clone(), vec![])).collect();
    for (at, rest, selector) in elsewhere {
        if let Some((_, selectors)) = by_frame.get_mut(at) {
            let one = (rest, selector);
            if !selectors.contains(&one) {
                selectors.push(one);
            }
        }
    }
    by_frame.retain(|(_, selectors)| !selectors.is_empty());
    by_frame
}

/// Returns what is to be read in each frame.
fn reads_by_frame(
    frames: &[FrameRef],
    elsewhere: Vec<ReadElsewhere>,
) -> Vec<(FrameRef, Vec<ReadElsewhere>)> {
    let mut by_frame: Vec<(usize, Vec<_>)> = vec![];
    // In the order of the first element in each, since the first value counts.
    for one in elsewhere {
        if let Some((_, reads)) = by_frame.iter_mut().find(|(frame, _)| *frame == one.frame) {
            reads.push(one);
        } else {
            by_frame.push((one.frame, vec![one]));
        }
    }
    let with_frame = |(frame, reads): (usize, Vec<_>)| Some((frames.get(frame)?.clone(), reads));
    by_frame.into_iter().filter_map(with_frame).collect()
}

/// Puts a value in its place, unless there is one. Rows take the place of none, and of what stands for a
/// list that is not there.
fn fill(values: &mut Value, path: &[PathStep], value: Value) {
    let mut place = Some(values);
    for step in path {
        place = match step {
            PathStep::Index(at) => place.and_then(|values| values.get_mut(*at)),
            PathStep::Name(name) => place.and_then(|values| values.get_mut(name)),
        };
    }
    let has_no_rows =
        |place: &Value| *place == json!([]) || place.as_str() == Some(ReadContent::NO_LIST);
    if let Some(place) = place
        && !value.is_null()
        && (place.is_null() || (value.is_array() && has_no_rows(place)))
    {
        *place = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_a_frame_takes_only_an_empty_place() {
        let path = |steps: Value| serde_json::from_value::<Vec<PathStep>>(steps).unwrap();
        let mut values = json!([null, "own", { "a": null, "rows": [] }]);
        fill(&mut values, &path(json!([0])), json!("first"));
        fill(&mut values, &path(json!([0])), json!("second"));
        fill(&mut values, &path(json!([1])), json!("other"));
        fill(&mut values, &path(json!([2, "a"])), Value::Null);
        fill(&mut values, &path(json!([2, "rows"])), json!([{ "n": 1 }]));
        fill(&mut values, &path(json!([2, "none"])), json!("lost"));
        fill(&mut values, &path(json!([7, 8])), json!("lost"));
        assert_eq!(values, json!(["first", "own", { "a": null, "rows": [{ "n": 1 }] }]));
        // One frame has the list, and another one what is shown in its place.
        let none = json!(ReadContent::NO_LIST);
        for order in [[&none, &json!([])], [&json!([]), &none]] {
            let mut values = json!([null]);
            for value in order {
                fill(&mut values, &path(json!([0])), value.clone());
            }
            assert_eq!(values, json!([[]]));
        }
    }
}
