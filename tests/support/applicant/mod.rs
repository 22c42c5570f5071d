//! An applicant: a separate Chromium that shows a partner's page with the embed page in an iframe
//! of another origin, driven by mouse and keyboard.

mod accessibility;
mod embed;

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use chromium::{Chromium, DevToolsClient, LaunchOptions, Launched};
use serde_json::{Value, json};
use tempfile::TempDir;

pub use self::{
    accessibility::AccessibleNode,
    embed::{
        Embed, IN_NO_FIELD, IN_NO_PASSWORD_FIELD, IN_PASSWORD_FIELD, IN_TEXT_FIELD, SANDBOX_FIELDS,
        SIZED,
    },
};
use crate::eventually;

const TIMEOUT: Duration = Duration::from_secs(60);
const DRAW_TIMEOUT: Duration = Duration::from_secs(5);

/// One applicant with one browser.
pub struct Applicant {
    chromium: Chromium,
    client: DevToolsClient,
    page: String,
    /// The target of the page.
    target: Value,
    _folder: TempDir,
}

impl Applicant {
    /// Opens a partner's page.
    pub async fn visit(url: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let options = LaunchOptions {
            executable: "chromium".into(),
            folder: folder.path().join("applicant"),
            flags: vec!["--window-size=1280,1000".into()],
            sandbox: None,
            slot: 0,
        };
        let Launched { chromium, mut events, .. } =
            Chromium::launch(&options).await.expect("a Chromium");
        // The events are not used, but the channel must be drained.
        tokio::spawn(async move { while events.recv().await.is_some() {} });
        let client = chromium.client.clone();
        let target = targets(&client).await.into_iter().find(|target| target["type"] == "page");
        let target = target.expect("a page");
        let page = attach(&client, &target).await;
        let target = target["targetId"].clone();
        let applicant = Self { chromium, client, page, target, _folder: folder };
        let metrics =
            json!({ "width": 1280, "height": 1000, "deviceScaleFactor": 1, "mobile": false });
        applicant.devtools("Emulation.setDeviceMetricsOverride", metrics).await;
        applicant.devtools("Page.enable", json!({})).await;
        applicant.begin_at(url).await;
        applicant
    }

    /// Opens a page with a phone's emulation: touch, and a small screen with a device pixel ratio
    /// of three.
    pub async fn visit_with_a_phone(url: &str) -> Self {
        let applicant = Self::visit("about:blank").await;
        let metrics =
            json!({ "width": 390, "height": 844, "deviceScaleFactor": 3, "mobile": true });
        applicant.devtools("Emulation.setDeviceMetricsOverride", metrics).await;
        let fingers = json!({ "enabled": true, "maxTouchPoints": 5 });
        applicant.devtools("Emulation.setTouchEmulationEnabled", fingers).await;
        applicant.begin_at(url).await;
        applicant
    }

    /// Opens the first page. Chromium starts with an empty one.
    async fn begin_at(&self, url: &str) {
        if url != "about:blank" {
            self.navigate(url).await;
        }
    }

    /// Opens another page, and waits until its document has taken the place of the one before: what is
    /// evaluated next is evaluated there.
    ///
    /// Chromium cancels a navigation if it opens its own first page, or if a network interface of the
    /// machine changes, which tests beside this one do: such a navigation is begun anew.
    pub async fn navigate(&self, url: &str) {
        let ends = tokio::time::Instant::now() + TIMEOUT;
        loop {
            let reply = self.replace_document("Page.navigate", json!({ "url": url })).await;
            let shown = self.evaluate("location.href").await;
            let stayed = shown == "about:blank" && url != "about:blank";
            if reply["errorText"].is_null() && !stayed {
                return;
            }
            let error = reply["errorText"].as_str().unwrap_or("nothing");
            println!("the navigation to {url} has led to {shown}, with {error}");
            assert!(tokio::time::Instant::now() < ends, "{url} is not shown: {error}");
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    }

    /// Reloads the page, and waits until the new document has taken the place of the one before.
    pub async fn reload(&self) {
        self.replace_document("Page.reload", json!({})).await;
    }

    /// Chromium replies to both commands before the new document is there. Returns the reply; after an
    /// error, no other document is waited for.
    async fn replace_document(&self, method: &str, params: Value) -> Value {
        self.evaluate("window.before = 1").await;
        let reply = self.devtools(method, params).await;
        let ends = tokio::time::Instant::now() + TIMEOUT;
        while reply["errorText"].is_null()
            && self.evaluate("window.before === undefined").await != true
        {
            assert!(tokio::time::Instant::now() < ends, "the new document has not come");
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
        reply
    }

    /// The embed page as a top-level page.
    pub fn top_level(&self) -> Embed<'_> {
        Embed { applicant: self, frame: self.page.clone(), framed: None }
    }

    /// Moves a touch point from one position to another, and lifts it there.
    pub async fn drag(&self, from: (f64, f64), to: (f64, f64)) {
        const STEPS: u8 = 12;
        let touch = async |kind: &str, points: Value| {
            self.devtools(
                "Input.dispatchTouchEvent",
                json!({ "type": kind, "touchPoints": points }),
            )
            .await;
        };
        touch("touchStart", json!([{ "x": from.0, "y": from.1 }])).await;
        if from != to {
            for step in 1..=STEPS {
                let part = f64::from(step) / f64::from(STEPS);
                let (x, y) = (from.0 + (to.0 - from.0) * part, from.1 + (to.1 - from.1) * part);
                touch("touchMove", json!([{ "x": x, "y": y }])).await;
                tokio::time::sleep(Duration::from_millis(16)).await;
            }
        }
        touch("touchEnd", json!([])).await;
    }

    pub async fn tap(&self, at: (f64, f64)) {
        self.drag(at, at).await;
    }

    pub async fn close(self) {
        self.chromium.end().await;
    }

    /// Presses the partner's button, and waits until the embed page shows a frame.
    pub async fn start_session(&self) -> Embed<'_> {
        self.until_loaded("!!document.getElementById('begin')").await;
        let before = self.evaluate("document.querySelector('iframe')?.src ?? ''").await;
        self.click_in_page("#begin").await;
        let another = format!("(document.querySelector('iframe')?.src ?? {before}) !== {before}");
        eventually("the iframe", TIMEOUT, async || {
            (self.evaluate(&another).await == true).then_some(())
        })
        .await;
        let embed = self.embed().await;
        embed.pass_introduction().await;
        embed.until("a frame", "document.querySelector('canvas').dataset.pictures > 0").await;
        embed
    }

    /// Shows a session in an iframe of a page that has none yet, and passes its introduction.
    pub async fn show(&self, embed_url: &str) -> Embed<'_> {
        let embed = self.show_introduction(embed_url).await;
        embed.pass_introduction().await;
        embed
    }

    /// Shows a session in an iframe of a page that has none yet.
    pub async fn show_introduction(&self, embed_url: &str) -> Embed<'_> {
        self.until_loaded("location.port > 0").await;
        let frame = format!(
            "(() => {{ const f = document.createElement('iframe'); f.src = {embed_url:?}; \
             f.style.cssText = 'width:900px;height:760px'; document.body.replaceChildren(f); }})()"
        );
        self.evaluate(&frame).await;
        self.embed().await
    }

    /// Waits until the partner's page has loaded and meets a condition.
    async fn until_loaded(&self, condition: &str) {
        let ready = format!("document.readyState === 'complete' && {condition}");
        let ends = tokio::time::Instant::now() + TIMEOUT;
        while self.evaluate(&ready).await != true {
            if tokio::time::Instant::now() > ends {
                let shown =
                    "[location.href, document.readyState, document.body?.innerText.slice(0, 200)]";
                panic!("the partner's page has not loaded: {}", self.evaluate(shown).await);
            }
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
    }

    /// The embed page in the partner's page.
    pub async fn embed(&self) -> Embed<'_> {
        let source = self.evaluate("document.querySelector('iframe').src").await;
        self.embed_at(&source).await
    }

    /// The embed page of this address in the partner's page.
    pub async fn embed_at(&self, source: &Value) -> Embed<'_> {
        let target = eventually("the iframe", TIMEOUT, async || {
            targets(&self.client)
                .await
                .into_iter()
                .find(|target| target["type"] == "iframe" && target["url"] == *source)
        })
        .await;
        let frame = attach(&self.client, &target).await;
        Embed { applicant: self, frame, framed: Some(source.clone()) }
    }

    pub async fn evaluate(&self, expression: &str) -> Value {
        evaluate(&self.client, &self.page, expression).await
    }

    /// Evaluates an expression with the user activation that a click gives.
    pub async fn evaluate_as_person(&self, expression: &str) -> Value {
        let params =
            json!({ "expression": expression, "returnByValue": true, "userGesture": true });
        let reply = self.devtools("Runtime.evaluate", params).await;
        reply.pointer("/result/value").cloned().unwrap_or_default()
    }

    /// Takes a screenshot of the applicant's page, as PNG.
    pub async fn screenshot(&self) -> Vec<u8> {
        let shot = self.devtools("Page.captureScreenshot", json!({ "format": "png" })).await;
        STANDARD.decode(shot["data"].as_str().unwrap_or_default()).expect("base64")
    }

    /// Changes to another application: the page is hidden and runs no more.
    pub async fn leave(&self) {
        let other = json!({ "url": "about:blank" });
        self.client.call(None, "Target.createTarget", other).await.expect("another page");
        self.devtools("Page.setWebLifecycleState", json!({ "state": "frozen" })).await;
    }

    /// Returns to the page after [`Self::leave`].
    pub async fn come_back(&self) {
        self.devtools("Page.setWebLifecycleState", json!({ "state": "active" })).await;
        let page = json!({ "targetId": self.target });
        self.client.call(None, "Target.activateTarget", page).await.expect("the page");
    }

    /// Types a text one key after another.
    pub async fn write(&self, text: &str) {
        for letter in text.chars() {
            let upper = letter.to_ascii_uppercase();
            let code = if upper.is_ascii_digit() {
                format!("Digit{upper}")
            } else {
                format!("Key{upper}")
            };
            // The key code of a full stop is that of the Delete key.
            let number = if upper.is_ascii_alphanumeric() { u32::from(upper) } else { 0 };
            self.press_key(&letter.to_string(), &code, number, Some(letter)).await;
        }
    }

    /// Presses a key that inserts no character, or a line break.
    pub async fn press(&self, key: &str) {
        let (code, text) = match key {
            "Tab" => (9, None),
            "Enter" => (13, Some('\r')),
            "Backspace" => (8, None),
            "ArrowDown" => (40, None),
            "ArrowLeft" => (37, None),
            "Escape" => (27, None),
            "F5" => (116, None),
            "F6" => (117, None),
            "Space" => return self.press_key(" ", key, 32, Some(' ')).await,
            other => panic!("no such key here: {other}"),
        };
        self.press_key(key, key, code, text).await;
    }

    /// Presses Tab with Shift, which moves the focus backwards.
    pub async fn press_back_tab(&self) {
        for kind in ["rawKeyDown", "keyUp"] {
            let event = json!({ "type": kind, "key": "Tab", "code": "Tab",
                "windowsVirtualKeyCode": 9, "modifiers": 8 });
            self.devtools("Input.dispatchKeyEvent", event).await;
        }
    }

    pub async fn press_key(&self, key: &str, code: &str, number: u32, text: Option<char>) {
        let mut down = json!({
            "type": if text.is_some() { "keyDown" } else { "rawKeyDown" },
            "key": key, "code": code, "windowsVirtualKeyCode": number,
        });
        if let Some(text) = text {
            down["text"] = text.to_string().into();
        }
        self.devtools("Input.dispatchKeyEvent", down).await;
        let up =
            json!({ "type": "keyUp", "key": key, "code": code, "windowsVirtualKeyCode": number });
        self.devtools("Input.dispatchKeyEvent", up).await;
    }

    pub async fn click_in_page(&self, selector: &str) {
        until_drawn(&self.client, &self.page).await;
        let place = evaluate(&self.client, &self.page, &middle(selector)).await;
        self.click_at(number(&place["x"]), number(&place["y"])).await;
    }

    pub async fn click_at(&self, x: f64, y: f64) {
        for kind in ["mouseMoved", "mousePressed", "mouseReleased"] {
            let button = if kind == "mouseMoved" { "none" } else { "left" };
            let event = json!({ "type": kind, "x": x, "y": y, "button": button, "clickCount": 1 });
            self.devtools("Input.dispatchMouseEvent", event).await;
        }
    }

    pub async fn devtools(&self, method: &str, params: Value) -> Value {
        self.client
            .call(Some(&self.page), method, params)
            .await
            .expect("Chromium executes the command")
    }
}

fn middle(selector: &str) -> String {
    format!(
        "(() => {{ const r = document.querySelector({selector:?}).getBoundingClientRect(); \
         return {{ x: r.left + r.width / 2, y: r.top + r.height / 2 }}; }})()"
    )
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

async fn targets(client: &DevToolsClient) -> Vec<Value> {
    let targets = client.call(None, "Target.getTargets", json!({})).await.expect("targets");
    targets["targetInfos"].as_array().cloned().unwrap_or_default()
}

async fn attach(client: &DevToolsClient, target: &Value) -> String {
    let params = json!({ "targetId": target["targetId"], "flatten": true });
    let attached = client.call(None, "Target.attachToTarget", params).await.expect("a session");
    attached["sessionId"].as_str().expect("its name").to_owned()
}

/// Waits until a page was drawn. A page that reports no drawing counts as drawn after a while.
async fn until_drawn(client: &DevToolsClient, session: &str) {
    let drawn = "performance.getEntriesByType('paint').length > 0";
    let ends = tokio::time::Instant::now() + DRAW_TIMEOUT;
    while tokio::time::Instant::now() < ends {
        if evaluate(client, session, drawn).await == true {
            return;
        }
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    println!("a page has reported no drawing");
}

/// Evaluates an expression in a page; null while the page is not ready for it.
async fn evaluate(client: &DevToolsClient, session: &str, expression: &str) -> Value {
    let params = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
    let reply = client.call(Some(session), "Runtime.evaluate", params).await.unwrap_or_default();
    reply.pointer("/result/value").cloned().unwrap_or_default()
}
