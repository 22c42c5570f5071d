//! What an applicant feels: the time to the first picture, the time from a key to its picture, and
//! the memory of a session, each beside a bare Chromium in the same run.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use acceptance::{
    applicant::{Applicant, Embed},
    database::Kind,
    processes::process_ids_with,
    root,
    service::Deployment,
};
use cdp::{Chromium, Client, Event, LaunchOptions, Launched};
use serde_json::{Value, json};
use tokio::sync::mpsc;

const ROUNDS: usize = 5;
const KEYS: usize = 100;

#[tokio::main]
async fn main() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let (mut bare_first, mut bare_keys, mut bare_memory) = (vec![], vec![], vec![]);
    for _ in 0..ROUNDS {
        let bare = Bare::start().await;
        bare_first.push(bare.first);
        bare_memory.push(memory(bare.folder.path()));
        bare_keys.extend(bare.keys(KEYS / ROUNDS).await);
    }
    let (mut first, mut keys, mut memories) = (vec![], vec![], vec![]);
    let applicant = Applicant::visit(&deployment.demo).await;
    for _ in 0..ROUNDS {
        let began = Instant::now();
        let embed = applicant.begin().await;
        first.push(began.elapsed().as_secs_f64() * 1e3);
        embed.until_prompted("Sign in").await;
        memories.push(memory(&deployment.browsers()));
        keys.extend(keys_of(&embed, KEYS / ROUNDS).await);
        embed.click("[data-testid=cancel]").await;
        embed.until_outcome().await;
    }
    applicant.leave().await;
    let base = "bare Chromium over DevTools";
    report(&[
        figure(
            "click to first picture, cold, median",
            "ms",
            at(&mut first, 50),
            base,
            at(&mut bare_first, 50),
        ),
        figure("key to picture, p50", "ms", at(&mut keys, 50), base, at(&mut bare_keys, 50)),
        figure("key to picture, p95", "ms", at(&mut keys, 95), base, at(&mut bare_keys, 95)),
        figure(
            "memory of a session's Chromium, median",
            "MiB",
            at(&mut memories, 50),
            base,
            at(&mut bare_memory, 50),
        ),
    ]);
}

/// Presses keys on the screen, one after another, and takes the time until each is to be seen.
async fn keys_of(embed: &Embed<'_>, count: usize) -> Vec<f64> {
    embed.click("[data-testid=screen]").await;
    embed.applicant.press("Tab").await;
    let measure = format!(
        "(async () => {{ const c = document.querySelector('canvas'); const out = []; \
         const key = (t) => c.dispatchEvent(new KeyboardEvent(t, {{ key: 'a', code: 'KeyA', keyCode: 65, \
         bubbles: true, cancelable: true }})); \
         for (let i = 0; i < {count}; i++) {{ await new Promise((r) => setTimeout(r, 150)); \
         const seen = new Promise((r) => {{ const o = new MutationObserver(() => {{ o.disconnect(); \
         r(performance.now()); }}); o.observe(c, {{ attributeFilter: ['data-pictures'] }}); }}); \
         const began = performance.now(); key('keydown'); key('keyup'); out.push(await seen - began); }} \
         return out; }})()"
    );
    numbers(&embed.evaluate(&measure).await)
}

/// A Chromium without a service: started, sent to a page with a field, and cast.
struct Bare {
    client: Client,
    session: String,
    events: tokio::sync::Mutex<mpsc::Receiver<Event>>,
    /// Milliseconds from the start to the first picture.
    first: f64,
    folder: tempfile::TempDir,
    _chromium: Chromium,
}

impl Bare {
    async fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let began = Instant::now();
        let options = LaunchOptions {
            executable: "chromium".into(),
            folder: folder.path().join("b"),
            flags: vec![],
            jail: None,
            seat: 0,
        };
        let Launched { chromium, mut events, .. } =
            Chromium::launch(&options).await.expect("a Chromium");
        let client = chromium.client.clone();
        let targets = client.call(None, "Target.getTargets", json!({})).await.expect("targets");
        let page = targets["targetInfos"]
            .as_array()
            .and_then(|all| all.iter().find(|t| t["type"] == "page"));
        let attach = json!({ "targetId": page.expect("a page")["targetId"], "flatten": true });
        let attached = client.call(None, "Target.attachToTarget", attach).await.expect("a session");
        let session = attached["sessionId"].as_str().expect("its name").to_owned();
        let tell = async |method, params| {
            client.call(Some(&session), method, params).await.expect("obeyed")
        };
        let size = json!({ "width": 840, "height": 661, "deviceScaleFactor": 1, "mobile": false });
        tell("Emulation.setDeviceMetricsOverride", size).await;
        tell("Emulation.setFocusEmulationEnabled", json!({ "enabled": true })).await;
        tell("Runtime.evaluate", json!({ "expression": "0" })).await;
        tell("Page.startScreencast", json!({ "format": "jpeg", "quality": 70 })).await;
        tell("Page.navigate", json!({ "url": "data:text/html,<input autofocus>" })).await;
        picture(&client, &session, &mut events).await;
        let first = began.elapsed().as_secs_f64() * 1e3;
        Self { client, session, events: events.into(), first, folder, _chromium: chromium }
    }

    async fn keys(&self, count: usize) -> Vec<f64> {
        let mut events = self.events.lock().await;
        let mut times = Vec::new();
        for _ in 0..count {
            // Pictures of the key before are let go.
            let quiet = Duration::from_millis(150);
            while tokio::time::timeout(quiet, picture(&self.client, &self.session, &mut events))
                .await
                .is_ok()
            {}
            let began = Instant::now();
            let key = json!({ "type": "keyDown", "key": "a", "code": "KeyA", "text": "a", "windowsVirtualKeyCode": 65 });
            self.client.fire(Some(&self.session), "Input.dispatchKeyEvent", key);
            picture(&self.client, &self.session, &mut events).await;
            times.push(began.elapsed().as_secs_f64() * 1e3);
        }
        times
    }
}

/// Waits for the next picture, and acknowledges it.
async fn picture(client: &Client, session: &str, events: &mut mpsc::Receiver<Event>) {
    while let Some(event) = events.recv().await {
        if event.method == "Page.screencastFrame" {
            let frame = json!({ "sessionId": event.params()["sessionId"] });
            client.fire(Some(session), "Page.screencastFrameAck", frame);
            return;
        }
    }
}

/// The memory of all processes of a Chromium, shared pages counted by share (PSS), in MiB.
fn memory(folder: &Path) -> f64 {
    let of = |pid: u32| {
        let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with("Pss:")).unwrap_or_default();
        line.split_whitespace().nth(1).and_then(|kib| kib.parse::<f64>().ok()).unwrap_or(0.0)
    };
    process_ids_with(folder).into_iter().map(of).sum::<f64>() / 1024.0
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().into_iter().flatten().filter_map(Value::as_f64).collect()
}

/// The value at a percentile.
fn at(values: &mut [f64], percentile: usize) -> f64 {
    values.sort_by(f64::total_cmp);
    values[(values.len() - 1) * percentile / 100]
}

fn figure(name: &str, unit: &str, value: f64, base: &str, base_value: f64) -> Value {
    println!(
        "{name}: {value:.1} {unit}; {base}: {base_value:.1} {unit}; ratio {:.2}",
        value / base_value
    );
    json!({ "name": name, "unit": unit, "value": value, "base": base, "baseValue": base_value, "ratio": value / base_value })
}

fn report(figures: &[Value]) {
    let folder = root().join("target/bench");
    fs::create_dir_all(&folder).expect("a folder");
    let report = serde_json::to_string_pretty(&json!({ "figures": figures })).expect("a report");
    fs::write(folder.join("journey.json"), report).expect("a file");
}
