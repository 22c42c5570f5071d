//! The frames within a page, tracked by the events of Chromium.
//!
//! **Trust:** events about frames come from the processes that render them, and the process of a foreign
//! frame may lie. An event is accepted only from the process of its frame, or from the one around a frame
//! that has no process of its own. Which frame a process was started for is known from the browser.

use std::collections::{BTreeMap, btree_map::Entry};

/// Frames of a page that are tracked, and DevTools sessions of frames.
const MAX_FRAMES: usize = 64;

/// The frames within a page.
#[derive(Debug)]
pub(crate) struct PageFrames {
    /// The DevTools session of the page.
    session: String,
    /// The id of the main frame.
    main: String,
    frames: BTreeMap<String, TrackedFrame>,
    /// The DevTools sessions of frames that have a process of their own, and these frames.
    roots: BTreeMap<String, String>,
}

/// A frame within a page.
#[derive(Debug, PartialEq, Eq)]
struct TrackedFrame {
    /// The id of the DevTools session of its process.
    session: String,
    /// The id of the frame around it.
    parent: String,
    /// Empty if it is not known.
    url: String,
    /// The loader of its document.
    loader: String,
    /// Whether it may show an empty document of an origin that is not the one around it.
    had_document: bool,
}

/// A frame, and the DevTools session of its element.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PageFrame {
    pub(crate) session: String,
    pub(crate) frame: String,
    /// `None` for the main frame.
    pub(crate) around: Option<String>,
}

/// A document that a frame shows now.
#[derive(Debug)]
pub(crate) struct FrameDocument<'a> {
    pub(crate) frame: &'a str,
    pub(crate) parent: Option<&'a str>,
    pub(crate) url: &'a str,
    pub(crate) loader: &'a str,
}

impl PageFrames {
    pub(crate) fn new(session: String, main: String) -> Self {
        Self { session, main, frames: BTreeMap::new(), roots: BTreeMap::new() }
    }

    /// Whether a DevTools session is that of a frame within the page.
    pub(crate) fn has_session(&self, session: &str) -> bool {
        self.roots.contains_key(session)
    }

    /// Whether the page has frames.
    pub(crate) fn has_frames(&self) -> bool {
        !self.frames.is_empty() || !self.roots.is_empty()
    }

    /// Returns the frame that the process of a DevTools session was started for; `None` for the page's.
    pub(crate) fn root_of(&self, session: &str) -> Option<&str> {
        self.roots.get(session).map(String::as_str)
    }

    /// Whether another frame with a process of its own can be tracked.
    pub(crate) fn has_room(&self) -> bool {
        self.roots.len() < MAX_FRAMES
    }

    /// Records the DevTools session of a frame that has a process of its own, as told by the browser.
    pub(crate) fn attach(&mut self, session: &str, frame: &str) {
        if self.has_room() {
            self.roots.insert(session.to_owned(), frame.to_owned());
            if let Some(tracked) = self.frames.get_mut(frame) {
                tracked.change_process(session);
            }
        }
    }

    /// Forgets a DevTools session of a frame, and returns whether there was one.
    pub(crate) fn detach(&mut self, session: &str) -> bool {
        let Some(root) = self.roots.remove(session) else { return false };
        self.frames.retain(|id, frame| *id == root || frame.session != session);
        let around = self.frames.get(&root).and_then(|root| self.session_of(&root.parent));
        let around = around.map(str::to_owned);
        match (self.frames.get_mut(&root), around) {
            // It goes on in the process around it, or is removed next.
            (Some(frame), Some(around)) if frame.session == session => {
                frame.change_process(&around);
            }
            (Some(frame), None) if frame.session == session => self.remove(&root),
            _ => (),
        }
        true
    }

    /// Records a new frame. `is_ours` tells whether a URL is on a host of the session: frames within
    /// foreign ones are never looked into, and not tracked.
    pub(crate) fn add(
        &mut self,
        session: &str,
        frame: &str,
        parent: &str,
        is_ours: impl Fn(&str) -> bool,
        main_url: &str,
    ) {
        let is_from_parent = self.session_of(parent) == Some(session);
        let is_in_ours = self.origin_url(parent, main_url).is_some_and(is_ours);
        if !is_from_parent || !is_in_ours || self.frames.len() >= MAX_FRAMES || frame == self.main {
            return;
        }
        if let Entry::Vacant(place) = self.frames.entry(frame.to_owned()) {
            place.insert(TrackedFrame {
                session: session.to_owned(),
                parent: parent.to_owned(),
                url: String::new(),
                loader: String::new(),
                had_document: false,
            });
        }
    }

    /// Records that a frame shows another document. What was in it is gone.
    pub(crate) fn navigate(
        &mut self,
        session: &str,
        document: &FrameDocument<'_>,
        is_ours: impl Fn(&str) -> bool,
        main_url: &str,
    ) {
        let FrameDocument { frame, parent, url, loader } = *document;
        if frame == self.main {
            if session == self.session {
                self.frames.clear();
            }
            return;
        }
        if !self.frames.contains_key(frame)
            && let Some(parent) = parent
        {
            let around = self.session_of(parent).map(str::to_owned);
            let is_root = self.root_of(session) == Some(frame);
            if let Some(around) = around.filter(|around| is_root || around == session) {
                self.add(&around, frame, parent, is_ours, main_url);
                if is_root && let Some(tracked) = self.frames.get_mut(frame) {
                    tracked.change_process(session);
                }
            }
        }
        if self.session_of(frame) == Some(session) {
            self.remove_inside(frame);
            if let Some(tracked) = self.frames.get_mut(frame) {
                url.clone_into(&mut tracked.url);
                loader.clone_into(&mut tracked.loader);
                tracked.had_document |= !is_blank(url);
            }
        }
    }

    /// Forgets a frame that was removed, and those in it, if that is told by its process or by the one
    /// around it.
    pub(crate) fn remove_if_told(&mut self, session: &str, frame: &str) {
        let Some(tracked) = self.frames.get(frame) else { return };
        if tracked.session == session || self.session_of(&tracked.parent) == Some(session) {
            self.remove(frame);
        }
    }

    fn remove(&mut self, frame: &str) {
        self.remove_inside(frame);
        self.frames.remove(frame);
    }

    fn remove_inside(&mut self, frame: &str) {
        let mut outer = vec![frame.to_owned()];
        while let Some(outer_frame) = outer.pop() {
            let inside = self.frames.iter().filter(|(_, one)| one.parent == outer_frame);
            let inside: Vec<_> = inside.map(|(id, _)| id.clone()).collect();
            for id in inside {
                self.frames.remove(&id);
                outer.push(id);
            }
        }
    }

    /// Returns the DevTools session of the process of a frame; `None` if the frame is not tracked.
    pub(crate) fn session_of(&self, frame: &str) -> Option<&str> {
        if frame == self.main {
            return Some(&self.session);
        }
        self.frames.get(frame).map(|frame| frame.session.as_str())
    }

    /// Returns the loader of the document of a frame within the page.
    pub(crate) fn loader_of(&self, frame: &str) -> Option<&str> {
        self.frames.get(frame).map(|frame| frame.loader.as_str())
    }

    /// Returns the first frames of the page, the main frame first, and each after the one around it.
    pub(crate) fn outermost(&self, max: usize) -> Vec<PageFrame> {
        let main =
            PageFrame { session: self.session.clone(), frame: self.main.clone(), around: None };
        let mut found = vec![main];
        for at in 0..max {
            let Some(PageFrame { session, frame: parent, .. }) = found.get(at) else { break };
            let (around, parent) = (session.clone(), parent.clone());
            let inside = self.frames.iter().filter(|(_, frame)| frame.parent == parent);
            let inside = inside.map(|(id, frame)| PageFrame {
                session: frame.session.clone(),
                frame: id.clone(),
                around: Some(around.clone()),
            });
            found.extend(inside);
        }
        found.truncate(max);
        found
    }

    /// Returns the frames with a process of their own from the one with this DevTools session outwards,
    /// each with the DevTools session of its element.
    pub(crate) fn around(&self, session: &str) -> Vec<(String, String)> {
        let mut session = session;
        let mut around = vec![];
        for _ in 0..MAX_FRAMES {
            let Some(root) = self.root_of(session) else { break };
            let Some(frame) = self.frames.get(root) else { break };
            let Some(outer) = self.session_of(&frame.parent) else { break };
            session = outer;
            around.push((session.to_owned(), root.to_owned()));
        }
        around
    }

    /// Returns the URL whose origin the document of a frame has: its own or, for an empty document, that of
    /// the frame around it. `None` if that is not known, or if the document has an origin of its own, as
    /// those of `data:` URLs have.
    pub(crate) fn origin_url<'a>(&'a self, frame: &str, main_url: &'a str) -> Option<&'a str> {
        let mut frame = frame;
        for _ in 0..MAX_FRAMES {
            if frame == self.main {
                return Some(main_url);
            }
            let tracked = self.frames.get(frame)?;
            if !is_blank(&tracked.url) {
                return Some(tracked.url.as_str()).filter(|url| !origin(url).is_empty());
            }
            if tracked.had_document {
                // An empty document has the origin of whoever navigated the frame to it.
                return None;
            }
            frame = &tracked.parent;
        }
        None
    }

    /// Returns the ids and the DevTools sessions of the frames in a frame that its scripts cannot look into
    /// and that are on a host of the session or perhaps are: those of other origins, in it or in frames of
    /// its own origin.
    pub(crate) fn of_other_origins(
        &self,
        around: &str,
        main_url: &str,
        is_ours: impl Fn(&str) -> bool,
    ) -> Vec<(&str, &str)> {
        let origin_of = |frame: &str| self.origin_url(frame, main_url).map(origin);
        let is_other = |id: &str, frame: &TrackedFrame| {
            let own = origin_of(id);
            own.is_none() || own != origin_of(&frame.parent)
        };
        let is_reached = |frame: &TrackedFrame| {
            let mut parent = &frame.parent;
            for _ in 0..MAX_FRAMES {
                if parent == around {
                    return true;
                }
                match self.frames.get(parent) {
                    Some(between) if !is_other(parent, between) => parent = &between.parent,
                    Some(_) | None => return false,
                }
            }
            false
        };
        let may_be_ours = |id: &str, frame: &TrackedFrame| {
            self.origin_url(id, main_url).map_or(frame.url.is_empty(), &is_ours)
        };
        let frames = self.frames.iter().filter(|(id, frame)| {
            is_other(id, frame) && is_reached(frame) && may_be_ours(id, frame)
        });
        frames.map(|(id, frame)| (id.as_str(), frame.session.as_str())).collect()
    }
}

impl TrackedFrame {
    /// Records that another process renders the frame. Its document is not known.
    fn change_process(&mut self, session: &str) {
        session.clone_into(&mut self.session);
        self.url.clear();
        self.loader.clear();
        self.had_document = true;
    }
}

/// Whether a URL is that of an empty document, which has the origin of another one (HTML Standard, section
/// 7.4.2.1), or is not known.
fn is_blank(url: &str) -> bool {
    url.is_empty() || url.starts_with("about:")
}

/// Returns the origin of a URL; empty if it has no authority.
pub(crate) fn origin(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return String::new() };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if !scheme.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        // Such as `data:text/html,https`, `blob:https` and `blob:null/a`.
        return String::new();
    }
    format!("{scheme}://{}", authority.rsplit('@').next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE_URL: &str = "https://a.test/";

    fn is_ours(url: &str) -> bool {
        ["https://a.test", "https://b.test", "https://sub.a.test"].contains(&origin(url).as_str())
    }

    fn frames() -> PageFrames {
        PageFrames::new("page".into(), "main".into())
    }

    fn add(frames: &mut PageFrames, session: &str, frame: &str, parent: &str) {
        frames.add(session, frame, parent, is_ours, PAGE_URL);
    }

    fn navigate(frames: &mut PageFrames, session: &str, frame: &str, url: &str) {
        let document = FrameDocument { frame, parent: None, url, loader: "loader" };
        frames.navigate(session, &document, is_ours, PAGE_URL);
    }

    fn reached(frames: &PageFrames, around: &str) -> Vec<String> {
        let found = frames.of_other_origins(around, PAGE_URL, is_ours);
        found.into_iter().map(|(id, _)| id.to_owned()).collect()
    }

    #[test]
    fn frames_of_other_origins_are_those_that_a_script_cannot_reach() {
        let mut frames = frames();
        for (frame, parent, url) in [
            ("near", "main", "https://a.test/near"),
            ("blank", "near", "about:blank"),
            ("other", "blank", "https://b.test/"),
            ("sub", "main", "https://sub.a.test/"),
            ("foreign", "main", "https://evil.test/"),
        ] {
            add(&mut frames, "page", frame, parent);
            navigate(&mut frames, "page", frame, url);
        }
        assert_eq!(reached(&frames, "main"), ["other", "sub"]);
        assert_eq!(frames.origin_url("blank", PAGE_URL), Some("https://a.test/near"));
        assert_eq!(frames.origin_url("main", PAGE_URL), Some(PAGE_URL));
        assert_eq!(frames.origin_url("unknown", PAGE_URL), None);
        frames.attach("process", "other");
        assert_eq!(reached(&frames, "main"), ["other", "sub"], "not known yet");
        navigate(&mut frames, "process", "other", "https://b.test/");
        add(&mut frames, "process", "behind", "other");
        navigate(&mut frames, "process", "behind", "https://a.test/behind");
        assert_eq!(reached(&frames, "other"), ["behind"]);
        assert_eq!(frames.around("page"), []);
        assert_eq!(frames.around("process"), [("page".into(), "other".into())]);
        let order: Vec<_> = frames.outermost(4).into_iter().map(|one| one.frame).collect();
        assert_eq!(order, ["main", "foreign", "near", "sub"]);
        frames.remove_if_told("page", "near");
        assert_eq!(reached(&frames, "main"), ["sub"]);
        assert_eq!(frames.frames.len(), 2, "with all that was in it");
        navigate(&mut frames, "page", "main", PAGE_URL);
        assert_eq!(frames.frames.len(), 0, "another document");
    }

    #[test]
    fn documents_without_an_authority_are_not_those_around_them() {
        let mut frames = frames();
        add(&mut frames, "page", "frame", "main");
        assert_eq!(frames.origin_url("frame", PAGE_URL), Some(PAGE_URL), "the first, empty one");
        for url in [
            "data:text/html,<p>x",
            "data:text/html;base64,aHR0cHM6Ly9hLnRlc3Qv",
            "data:text/html,https://a.test/",
            "blob:null/7f3c",
            "blob:https://a.test/7f3c",
            "javascript:0",
        ] {
            navigate(&mut frames, "page", "frame", url);
            assert_eq!(frames.origin_url("frame", PAGE_URL), None, "{url}");
            assert!(reached(&frames, "main").is_empty(), "{url}");
        }
        for blank in ["about:blank", "about:srcdoc", ""] {
            navigate(&mut frames, "page", "frame", blank);
            assert_eq!(frames.origin_url("frame", PAGE_URL), None, "whoever navigated it has it");
        }
    }

    #[test]
    fn a_process_tells_only_of_its_own_frames() {
        let mut frames = frames();
        for frame in ["login", "foreign"] {
            add(&mut frames, "page", frame, "main");
            frames.attach(&format!("{frame}-process"), frame);
        }
        navigate(&mut frames, "login-process", "login", "https://b.test/");
        navigate(&mut frames, "foreign-process", "foreign", "https://evil.test/");
        assert_eq!(reached(&frames, "main"), ["login"]);
        // The foreign process claims the frame, moves it, removes it, and adds to it and to the page.
        navigate(&mut frames, "foreign-process", "login", "https://evil.test/");
        frames.remove_if_told("foreign-process", "login");
        add(&mut frames, "foreign-process", "login", "foreign");
        add(&mut frames, "foreign-process", "fake", "login");
        add(&mut frames, "foreign-process", "fake", "main");
        navigate(&mut frames, "foreign-process", "main", "https://evil.test/");
        add(&mut frames, "foreign-process", "inside", "foreign");
        assert_eq!(reached(&frames, "main"), ["login"]);
        assert_eq!(frames.session_of("login"), Some("login-process"));
        assert_eq!(frames.frames.len(), 2, "nor is tracked what is in a foreign frame");
        assert_eq!(frames.root_of("login-process"), Some("login"));
    }

    #[test]
    fn a_frame_may_return_to_the_process_around_it() {
        let mut frames = frames();
        add(&mut frames, "page", "frame", "main");
        frames.attach("process", "frame");
        navigate(&mut frames, "process", "frame", "https://b.test/");
        add(&mut frames, "process", "inner", "frame");
        assert!(frames.detach("process"));
        assert!(!frames.detach("process"));
        assert_eq!(frames.session_of("frame"), Some("page"));
        assert_eq!(frames.session_of("inner"), None);
        assert_eq!(frames.origin_url("frame", PAGE_URL), None, "until it is told");
        navigate(&mut frames, "page", "frame", "https://sub.a.test/");
        assert_eq!(reached(&frames, "main"), ["frame"]);
    }

    #[test]
    fn a_page_has_a_bounded_number_of_frames() {
        let mut frames = frames();
        for number in 0..200 {
            add(&mut frames, "page", &format!("frame-{number}"), "main");
            frames.attach(&format!("session-{number}"), "frame-1");
        }
        assert_eq!((frames.frames.len(), frames.roots.len()), (MAX_FRAMES, MAX_FRAMES));
        assert!(frames.detach("session-3"));
        assert!(!frames.detach("session-100"), "not tracked");
        assert!(frames.has_session("session-4"));
    }
}
