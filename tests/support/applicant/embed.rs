//! The embed page, as a top-level page or in an iframe of a partner's page.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Applicant, TIMEOUT, evaluate, middle, number, until_drawn};
use crate::{eventually, root};

/// Holds when the remote page has the size of its stage, within its bounds.
pub const SIZED: &str = "(() => { const c = document.querySelector('canvas'), m = document.querySelector('main'); \
    return Number(c.dataset.width) === Math.max(320, m.clientWidth) && \
    Math.abs(Number(c.dataset.height) - Math.max(320, m.clientHeight)) < 80; })()";

/// Holds while a field of the remote page has the focus that is for text, and for no password: the local
/// field lies over it then.
pub const IN_TEXT_FIELD: &str = "(() => { const w = document.getElementById('writer'); \
    return parseFloat(w.style.width) > 1 && w.type !== 'password'; })()";
/// Holds while a password field of the remote page has the focus.
pub const IN_PASSWORD_FIELD: &str = "document.getElementById('writer').type === 'password'";
/// Holds while no password field of the remote page has the focus, as after a sign-in was sent.
pub const IN_NO_PASSWORD_FIELD: &str = "document.getElementById('writer').type !== 'password'";
/// Holds while no field of the remote page has the focus, as after a form was sent.
pub const IN_NO_FIELD: &str = "!(parseFloat(document.getElementById('writer').style.width) > 1)";
/// How long the remote page may take to report that a field has the focus, before input counts as dropped.
const FOCUS_TIMEOUT: Duration = Duration::from_secs(10);

/// The positions of the fields of the sandbox's pages, in CSS pixels of a phone's page: user name,
/// password, and the field of the step after these.
pub const SANDBOX_FIELDS: [(f64, f64); 3] = [(195.0, 272.0), (195.0, 351.0), (195.0, 325.0)];

/// The embed page as the applicant uses it.
pub struct Embed<'a> {
    pub applicant: &'a Applicant,
    pub(super) frame: String,
    /// The address of its iframe in a partner's page; `None` for a top-level page.
    pub(super) framed: Option<Value>,
}

impl Embed<'_> {
    pub async fn evaluate(&self, expression: &str) -> Value {
        evaluate(&self.applicant.client, &self.frame, expression).await
    }

    /// Waits until a condition holds in the embed page.
    pub async fn until(&self, what: &str, condition: &str) {
        let ends = tokio::time::Instant::now() + TIMEOUT;
        while self.evaluate(condition).await != true {
            if tokio::time::Instant::now() > ends {
                let shot = std::env::temp_dir().join(format!("seen-{}.png", std::process::id()));
                std::fs::write(&shot, self.applicant.screenshot().await).expect("a frame");
                panic!("waited {TIMEOUT:?} for {what}; the screenshot is {}", shot.display());
            }
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
    }

    /// Waits until the page was drawn, since Chromium drops its input before.
    pub async fn until_drawn(&self) {
        until_drawn(&self.applicant.client, &self.frame).await;
    }

    /// Returns the violations of WCAG 2.2, levels A and AA, that axe-core finds.
    pub async fn accessibility_violations(&self) -> Value {
        if self.evaluate("typeof axe").await != "object" {
            let axe = root().join("crates/embed/node_modules/axe-core/axe.min.js");
            let axe = std::fs::read_to_string(axe).expect("`cargo xtask test` fetches axe-core");
            self.evaluate(&axe).await;
        }
        let run = "axe.run({ runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }) \
            .then((found) => found.violations.map((v) => `${v.impact}: ${v.id}: ${v.nodes.map((n) => n.html).join(' ')}`))";
        self.evaluate(run).await
    }

    /// Returns what is cut off, covered, outside of the window, too small to hit, or not a text for
    /// people, as a list of texts.
    pub async fn layout_faults(&self) -> Value {
        self.evaluate(include_str!("layout.js")).await
    }

    /// Presses the button of the introduction, unless the session shows something else.
    pub async fn pass_introduction(&self) {
        let offered = "document.getElementById('start')?.getClientRects().length > 0";
        let shown = "(document.querySelector('canvas')?.dataset.status ?? '') !== ''";
        self.until("the introduction", &format!("{offered} || {shown}")).await;
        if self.evaluate(offered).await == true {
            self.click("[data-testid=start]").await;
        }
    }

    /// Cancels the session, and confirms it.
    pub async fn cancel(&self) {
        self.click("[data-testid=cancel]").await;
        self.click("[data-testid=cancel-confirm]").await;
    }

    pub async fn until_prompted(&self, text: &str) {
        let condition = format!("document.getElementById('prompt').textContent.includes({text:?})");
        self.until(&format!("the prompt {text:?}"), &condition).await;
    }

    /// Waits for the end of the session, and returns its status. Another attempt is declined, which the test
    /// must not have done already: the offer would go away while this clicks on it.
    pub async fn until_outcome(&self) -> String {
        let shown = "!document.querySelector('[data-testid=outcome]').hidden";
        let offered = "!document.querySelector('[data-testid=failure]').hidden";
        self.until("the outcome", &format!("{shown} || {offered}")).await;
        if self.evaluate(offered).await == true {
            self.click("[data-testid=retry-decline]").await;
            self.until("the outcome", shown).await;
        }
        let status = self.evaluate("document.querySelector('canvas').dataset.status").await;
        status.as_str().unwrap_or_default().to_owned()
    }

    /// Clicks in the middle of a visible element, and scrolls to it first. The document may be
    /// replaced meanwhile, and the new one then has to show the element.
    pub async fn click(&self, selector: &str) {
        let shown = format!("document.querySelector({selector:?})?.getClientRects().length > 0");
        self.until(&format!("{selector} to be shown"), &shown).await;
        self.until_drawn().await;
        let place = format!(
            "(() => {{ const e = document.querySelector({selector:?}); \
             if (!e?.getClientRects().length) return null; e.scrollIntoView({{ block: 'nearest' }}); \
             return {}; }})()",
            middle(selector)
        );
        let what = format!("{selector} to stay");
        let inner = eventually(&what, TIMEOUT, async || {
            Some(self.evaluate(&place).await).filter(Value::is_object)
        })
        .await;
        let (x, y) = self.outside(number(&inner["x"]), number(&inner["y"])).await;
        self.applicant.click_at(x, y).await;
    }

    /// Returns the position of a point of the remote page in the applicant's window.
    pub async fn on_screen(&self, x: f64, y: f64) -> (f64, f64) {
        let place = format!(
            "(() => {{ const c = document.querySelector('canvas'), r = c.getBoundingClientRect(); \
             return {{ x: r.left + {x} * r.width / c.dataset.width, y: r.top + {y} * r.height / c.dataset.height }}; }})()"
        );
        let inner = self.evaluate(&place).await;
        self.outside(number(&inner["x"]), number(&inner["y"])).await
    }

    /// Returns the position of a point of the embed page in the applicant's window.
    async fn outside(&self, x: f64, y: f64) -> (f64, f64) {
        let Some(source) = &self.framed else { return (x, y) };
        let outer = format!(
            "(() => {{ const f = [...document.querySelectorAll('iframe')].find((f) => f.src === {source}); \
             const r = f.getBoundingClientRect(); \
             return {{ x: r.left + f.clientLeft, y: r.top + f.clientTop }}; }})()"
        );
        let outer = self.applicant.evaluate(&outer).await;
        (x + number(&outer["x"]), y + number(&outer["y"]))
    }

    /// Signs in on the remote page by keyboard.
    pub async fn sign_in(&self, user: &str, password: &str) {
        // The prompt is in the language of the applicant's mail.
        let asked = "/Sign in|anmelden/.test(document.getElementById('prompt').textContent)";
        self.until("the sign-in to be asked for", asked).await;
        self.sign_in_again(user, password).await;
    }

    /// Taps a field of the remote page until it has the focus, and types as a phone's keyboard does, without
    /// key events.
    pub async fn tap_and_write(&self, place: (f64, f64), text: &str) {
        // The local field has the focus at once, and lies over the remote one when that has it, too.
        let focused = format!(
            "(() => {{ const c = document.querySelector('canvas'), r = c.getBoundingClientRect(); \
             const w = document.getElementById('writer'), o = w.getBoundingClientRect(); \
             const x = r.left + {} * r.width / c.dataset.width, y = r.top + {} * r.height / c.dataset.height; \
             return document.activeElement === w && o.width > 1 && x >= o.left && x <= o.right \
             && y >= o.top && y <= o.bottom; }})()",
            place.0, place.1
        );
        eventually("the tapped field to have the focus", TIMEOUT, async || {
            let (x, y) = self.on_screen(place.0, place.1).await;
            self.applicant.tap((x, y)).await;
            self.holds_soon(&focused).await.then_some(())
        })
        .await;
        self.applicant.devtools("Input.insertText", json!({ "text": text })).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
    }

    /// Returns whether a condition holds within the time that the remote page may take for its answer to input.
    async fn holds_soon(&self, condition: &str) -> bool {
        let ends = tokio::time::Instant::now() + FOCUS_TIMEOUT;
        while tokio::time::Instant::now() < ends {
            if self.evaluate(condition).await == true {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
        println!("the remote page has not reacted to input: {condition}");
        false
    }

    /// Clicks on the remote page until it has the keyboard focus: on a busy machine a frame may be
    /// shown a moment before a click reaches it.
    pub async fn focus_remote_page(&self) {
        eventually("the remote page to have the keyboard focus", TIMEOUT, async || {
            self.click("[data-testid=screen]").await;
            let ours = "document.hasFocus() && document.activeElement?.id === 'writer'";
            (self.evaluate(ours).await == true).then_some(())
        })
        .await;
    }

    /// Clicks on the remote page and presses Tab until the first field there has the focus: Chromium drops
    /// the input of a page that it has not drawn yet.
    pub async fn focus_first_field(&self) {
        let ends = tokio::time::Instant::now() + TIMEOUT;
        loop {
            self.focus_remote_page().await;
            self.applicant.press("Tab").await;
            if self.holds_soon(IN_TEXT_FIELD).await {
                return;
            }
            assert!(tokio::time::Instant::now() < ends, "the first field has not got the focus");
        }
    }

    /// Types into the first field of a page that asks for one text, and sends it.
    pub async fn answer(&self, text: &str) {
        self.focus_first_field().await;
        self.applicant.write(text).await;
        self.applicant.press("Enter").await;
    }

    /// Signs in on a sign-in page that is shown already.
    pub async fn sign_in_again(&self, user: &str, password: &str) {
        self.focus_first_field().await;
        self.applicant.write(user).await;
        // From here on the page takes all input, and in its order. Where both fields are in a shadow root, the
        // focus of the second one is not reported.
        self.applicant.press("Tab").await;
        self.applicant.write(password).await;
        self.applicant.press("Enter").await;
    }
}
