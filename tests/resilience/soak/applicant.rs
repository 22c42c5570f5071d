//! The page of an applicant who goes on whatever happens: looks at it, and does one thing at a time. Nothing
//! here waits for long or fails if the page changes meanwhile.

use std::time::{Duration, Instant};

use acceptance::applicant::Applicant;
use serde_json::{Value, json};

/// The remote page moves its focus to a clicked field a moment later.
const STILL: Duration = Duration::from_millis(500);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(8);
/// More than any of the texts that are typed.
const ERASED: usize = 20;

/// Keeps what the page is told, and when it had no connection.
const KEEP: &str = "(() => { const Socket = WebSocket; window.gaps = []; let lost = null; \
    window.WebSocket = class extends Socket { constructor(...all) { super(...all); \
    this.addEventListener('close', () => { lost ??= Date.now(); window.scene = undefined; window.state = undefined; }); \
    this.addEventListener('message', ({ data }) => { \
    if (typeof data !== 'string') { if (lost !== null) window.gaps.push([lost, Date.now()]); lost = null; return; } \
    const told = JSON.parse(data); if (told.t === 'scene') window.scene = told; \
    if (told.t === 'state') { window.state = told; window.begun = true; } }); } }; })()";

const LOOK: &str = "(() => { const shown = (s) => (document.querySelector(s)?.getClientRects().length ?? 0) > 0; \
    const all = { introduction: '[data-testid=start]', outcome: '[data-testid=outcome]', attempt: '[data-testid=failure]' }; \
    const first = Object.keys(all).find((name) => shown(all[name])); \
    return { shown: first ?? (window.begun ? 'session' : 'nothing'), state: window.state ?? null, gaps: window.gaps ?? [] }; })()";

pub(crate) struct Page(Applicant);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    Introduction,
    /// The offer of another attempt.
    Attempt,
    Outcome,
    /// The session, also while the page says that it has lost its connection.
    Session,
    /// Nothing that an applicant could do or wait for.
    Nothing,
}

/// What the page shows at a moment.
pub(crate) struct View {
    pub(crate) shown: Shown,
    /// The kind of what the applicant is asked for.
    pub(crate) prompt: Option<String>,
    /// What distinguishes the prompt from another one of the same kind.
    number: u64,
    pub(crate) gaps: Vec<(u64, u64)>,
}

impl Page {
    pub(crate) async fn open(url: &str) -> Self {
        let applicant = Applicant::visit("about:blank").await;
        let script = json!({ "source": KEEP });
        applicant.devtools("Page.addScriptToEvaluateOnNewDocument", script).await;
        applicant.devtools("Page.navigate", json!({ "url": url })).await;
        Self(applicant)
    }

    pub(crate) async fn reload(&self) {
        self.0.devtools("Page.reload", json!({})).await;
    }

    pub(crate) async fn close(self) {
        self.0.close().await;
    }

    pub(crate) async fn look(&self) -> View {
        let seen = self.0.evaluate(LOOK).await;
        let gap = |gap: &Value| Some((gap[0].as_u64()?, gap[1].as_u64()?));
        let gaps = seen["gaps"].as_array().into_iter().flatten().filter_map(gap);
        let prompt = &seen["state"]["prompt"];
        View {
            shown: match seen["shown"].as_str() {
                Some("introduction") => Shown::Introduction,
                Some("attempt") => Shown::Attempt,
                Some("outcome") => Shown::Outcome,
                Some("session") => Shown::Session,
                _ => Shown::Nothing,
            },
            prompt: prompt["kind"].as_str().map(str::to_owned),
            number: prompt["number"].as_u64().unwrap_or_default(),
            gaps: gaps.collect(),
        }
    }

    /// Clicks in the middle of an element, if it is shown.
    pub(crate) async fn click(&self, selector: &str) {
        let place = format!(
            "(() => {{ const e = document.querySelector({selector:?}); \
             if (!e?.getClientRects().length) return null; e.scrollIntoView({{ block: 'nearest' }}); \
             const r = e.getBoundingClientRect(); \
             return {{ x: r.left + r.width / 2, y: r.top + r.height / 2 }}; }})()"
        );
        self.click_at_result_of(&place).await;
    }

    async fn click_at_result_of(&self, expression: &str) -> bool {
        let place = self.0.evaluate(expression).await;
        let (Some(x), Some(y)) = (place["x"].as_f64(), place["y"].as_f64()) else { return false };
        self.0.click_at(x, y).await;
        true
    }

    /// Types user name and password, and waits for a moment until something else is shown.
    pub(crate) async fn sign_in(&self, before: &View, user: &str) {
        if self.fill("text", user).await && self.fill("password", "any").await {
            self.submit(before).await;
        }
    }

    pub(crate) async fn type_code(&self, before: &View, code: &str) {
        if self.fill("text", code).await {
            self.submit(before).await;
        }
    }

    async fn submit(&self, before: &View) {
        let now = self.look().await;
        // What was typed while the connection was lost may be missing.
        if now.gaps.len() != before.gaps.len() || now.prompt != before.prompt {
            return;
        }
        self.0.press("Enter").await;
        let ends = Instant::now() + ANSWER_TIMEOUT;
        while Instant::now() < ends {
            let now = self.look().await;
            if now.prompt != before.prompt || now.number != before.number {
                return;
            }
            tokio::time::sleep(STILL).await;
        }
    }

    /// Replaces the content of the first field of a kind, and returns whether there is one.
    pub(crate) async fn fill(&self, kind: &str, text: &str) -> bool {
        let is_password = kind == "password";
        let fits = format!("((f) => f[0]?.[2] > 0 && (f[1] === 'password') === {is_password})");
        let place = format!(
            "(() => {{ const c = document.querySelector('canvas'), r = c?.getBoundingClientRect(); \
             const f = (window.scene?.fields ?? []).find{fits}; \
             if (!f || !r?.width || !c.dataset.width) return null; const [x, y, w, h] = f[0]; \
             return {{ x: r.left + (x + w / 2) * r.width / c.dataset.width, \
             y: r.top + (y + h / 2) * r.height / c.dataset.height }}; }})()"
        );
        if !self.click_at_result_of(&place).await {
            return false;
        }
        tokio::time::sleep(STILL).await;
        let focused = format!(
            "document.activeElement?.id === 'writer' && [window.scene?.fields?.[window.scene.focused] ?? []].some{fits}"
        );
        if self.0.evaluate(&focused).await != true {
            return false;
        }
        self.0.press_key("End", "End", 35, None).await;
        for _ in 0..ERASED {
            self.0.press("Backspace").await;
        }
        self.0.write(text).await;
        tokio::time::sleep(STILL).await;
        true
    }

    /// What is known of a page that came to no end.
    pub(crate) async fn evidence(&self) -> String {
        let seen = self.0.evaluate(LOOK).await;
        let shot = std::env::temp_dir().join(format!("stuck-{}.png", uuid::Uuid::new_v4()));
        let written = std::fs::write(&shot, self.0.screenshot().await);
        let shot = written.map_or_else(|error| error.to_string(), |()| shot.display().to_string());
        let fields = self.0.evaluate("JSON.stringify(window.scene ?? null)").await;
        format!("the page shows {seen}, {fields}; the screenshot is {shot}")
    }
}
