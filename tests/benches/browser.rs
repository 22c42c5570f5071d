//! The remote browser compared with a baseline that relays a screencast unchanged (`relay/`), in
//! one run: the applicant's waiting times, the bytes sent, and the cost of a session.

mod common {
    pub(super) mod figures;
    pub(super) mod pages;
    pub(super) mod peer;
    pub(super) mod raw;
    pub(super) mod wire;
}

use std::time::Duration;

use acceptance::{
    applicant::{Applicant, Embed},
    cluster::Cluster,
    database::Kind,
    platform::publish,
    service::Deployment,
};
use serde_json::{Value, json};

use self::common::{
    figures::{Cost, Sheet, TICKS, at, cost_of, numbers, ticks},
    pages::{Pages, page},
    peer::{DRAWN, Peer, first, go, viewer},
    raw::Raw,
    wire::Wire,
};

const ROUNDS: usize = 5;
const KEYS: usize = 40;
const STARTS: usize = 7;
const SECONDS: u64 = 5;

#[tokio::main]
async fn main() {
    let pages = Pages::serve().await;
    let mut ours = Ours::start(&pages).await;
    let peer = Peer::start();
    let mut sheet = Sheet::new("browser", "screencast relay (Node, ws)");
    // Runs one named part alone: `cargo bench … -- latency`.
    let named = std::env::args().nth(1).filter(|name| !name.starts_with('-'));
    let wanted = |part: &str| named.as_ref().is_none_or(|name| name == part);
    let size = size_of(&ours).await;
    if wanted("latency") {
        latency(&mut sheet, &ours, &peer, &pages, size).await;
    }
    if wanted("relay") {
        relay(&mut sheet, &ours, size).await;
    }
    if wanted("instances") {
        instances(&mut sheet, &pages, size).await;
    }
    if wanted("starts") {
        starts(&mut sheet, &mut ours, &peer, &pages, size).await;
    }
    if wanted("lines") {
        lines(&mut sheet, &ours, &peer, &pages, size).await;
    }
    for count in [1, 4, 8].into_iter().filter(|_| wanted("costs")) {
        let (mine, theirs) = (ours.load(count).await, peer.load(&pages, count, size).await);
        sheet.costs(count, mine, theirs);
    }
    if named.is_none() {
        sheet.write();
    }
}

/// The service under test.
struct Ours {
    deployment: Deployment,
    /// The platform that leads to each page, by the page's name.
    platforms: Vec<(&'static str, Value)>,
}

impl Ours {
    async fn start(pages: &Pages) -> Self {
        let mut deployment = prepare(pages).await;
        deployment.run().await;
        let platforms = ["type", "spin", "feed"];
        let platforms = platforms.map(|page| (page, publish_page(&deployment, pages, page)));
        Self { deployment, platforms: platforms.to_vec() }
    }

    async fn url(&self, page: &str) -> String {
        let platform = &self.platforms.iter().find(|(name, _)| *name == page).expect("a page").1;
        let session = self.deployment.create(&json!({ "platformId": platform })).await;
        session["embedUrl"].as_str().expect("a link").to_owned()
    }

    /// Opens a viewer that shows a page.
    async fn open(&self, page: &str) -> Applicant {
        let viewer = viewer().await;
        go(&viewer, &self.url(page).await).await;
        viewer.top_level().click("[data-testid=start]").await;
        viewer.top_level().until("a frame", DRAWN).await;
        viewer.top_level().until_prompted("Sign in").await;
        viewer
    }

    async fn load(&self, count: usize) -> Cost {
        let mut viewers = vec![];
        for _ in 0..count {
            viewers.push(self.open("type").await);
        }
        let cost = cost_of(&viewers, &self.deployment.browsers(), self.deployment.process()).await;
        for viewer in viewers {
            end(viewer).await;
        }
        cost
    }
}

async fn prepare(pages: &Pages) -> Deployment {
    let mut deployment = Deployment::prepare(Kind::Sqlite).await;
    let allowed = deployment.setting("AVOUCH_EGRESS_ALLOW").unwrap_or_default();
    deployment.set("AVOUCH_EGRESS_ALLOW", format!("{allowed},{}", pages.authority()));
    deployment.set("AVOUCH_LOG", "warn");
    deployment
}

/// Publishes a platform that leads to a page; returns its id.
fn publish_page(deployment: &Deployment, pages: &Pages, page: &str) -> Value {
    publish(deployment, &format!("bench-{page}"), |definition| {
        definition["loginUrl"] = pages.url(page).into();
        definition["hosts"] = json!([common::pages::HOST]);
        definition["nodes"]["open"]["url"] = pages.url(page).into();
        definition["requests"]["me"]["url"] = pages.url("me").into();
        // The sandbox's attestation plan names the sandbox's own host, which is not among the hosts
        // here.
        let whole = definition.as_object_mut().expect("a definition is an object");
        whole.remove("attest");
        definition["requests"].as_object_mut().expect("requests").remove("certified");
        definition["signals"]["loginForm"] = json!({ "selector": "#name" });
    })
}

/// Returns the size of the remote page in our viewers.
async fn size_of(ours: &Ours) -> (u32, u32) {
    let mine = ours.open("type").await;
    let shape = "(() => { const { width, height } = document.querySelector('canvas').dataset; \
                 return [Number(width), Number(height)]; })()";
    let shape = numbers(&mine.evaluate(shape).await);
    end(mine).await;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "pixels")]
    let size = (shape[0] as u32, shape[1] as u32);
    size
}

/// Measures the time from a key press to the frame at the viewer, and to the first byte of that
/// frame.
async fn latency(sheet: &mut Sheet, ours: &Ours, peer: &Peer, pages: &Pages, size: (u32, u32)) {
    let mine = ours.open("type").await;
    let theirs = peer.open(pages, "type", size).await;
    let raw = Raw::start(&page("/type"), size, false).await;
    let (mut drawn, mut arrived) = (vec![], vec![]);
    let (mut base_drawn, mut base_arrived, mut bare) = (vec![], vec![], vec![]);
    for _ in 0..ROUNDS {
        let (d, a) = keys(&mine.top_level(), KEYS).await;
        drawn.extend(d);
        arrived.extend(a);
        let (d, a) = keys(&theirs.top_level(), KEYS).await;
        base_drawn.extend(d);
        base_arrived.extend(a);
        bare.extend(raw.keys(KEYS).await);
    }
    sheet.add("key to picture, p50", "ms", at(&mut drawn, 50), at(&mut base_drawn, 50));
    sheet.add("key to picture, p95", "ms", at(&mut drawn, 95), at(&mut base_drawn, 95));
    sheet.add("key to its first byte, p50", "ms", at(&mut arrived, 50), at(&mut base_arrived, 50));
    let bare = at(&mut bare, 50);
    sheet.beside("key to its first byte over raw DevTools, p50", "ms", at(&mut arrived, 50), bare);
    end(mine).await;
    theirs.close().await;
}

/// Measures the service's own share: the same browser in the same sandbox, with keys from the same
/// process, once through the service and once directly.
async fn relay(sheet: &mut Sheet, ours: &Ours, size: (u32, u32)) {
    let mut wire = Wire::open(&ours.url("type").await, size).await;
    let raw = Raw::start(&page("/type"), size, true).await;
    let (mut through, mut bare) = (vec![], vec![]);
    for _ in 0..ROUNDS {
        through.extend(wire.keys(KEYS).await);
        bare.extend(raw.keys(KEYS).await);
    }
    for percent in [50, 95] {
        let name = format!("key to its first byte through the service alone, p{percent}");
        sheet.beside(&name, "ms", at(&mut through, percent), at(&mut bare, percent));
    }
    wire.end().await;
}

/// Measures what the relay by another instance costs: two sessions of the same instance at the same time,
/// one reached directly and one through an instance without browsers.
async fn instances(sheet: &mut Sheet, pages: &Pages, size: (u32, u32)) {
    let cluster = Cluster::start(prepare(pages).await, &[2, 0], true).await;
    let deployment = &cluster.deployment;
    let platform = publish_page(deployment, pages, "type");
    let mut wires = Vec::new();
    for reached in [0, 1] {
        let session = deployment.create(&json!({ "platformId": platform })).await;
        let link = session["embedUrl"].as_str().expect("a link");
        wires.push(Wire::open(&cluster.link_at(link, reached), size).await);
    }
    let [mut direct, mut relayed] = <[Wire; 2]>::try_from(wires).ok().expect("two");
    let processes = cluster.processes();
    let (mut through, mut bare, mut cpu) = (vec![], vec![], [0.0; 2]);
    for _ in 0..ROUNDS {
        bare.extend(direct.keys(KEYS).await);
        let before = [ticks(processes[0]), ticks(processes[1])];
        through.extend(relayed.keys(KEYS).await);
        for ((cpu, process), before) in cpu.iter_mut().zip(&processes).zip(before) {
            *cpu += ticks(*process) - before;
        }
    }
    for percent in [50, 95] {
        let name = format!("key to its first byte through another instance, p{percent}");
        sheet.beside_named(
            &name,
            "ms",
            at(&mut through, percent),
            "the instance itself",
            at(&mut bare, percent),
        );
    }
    let [holder, relay] = cpu.map(|ticks| ticks / TICKS * 1e3);
    sheet.beside_named(
        "processor time of the relay for all keys",
        "ms",
        relay,
        "the instance itself",
        holder,
    );
    direct.end().await;
    relayed.end().await;
}

/// Ends a viewer's session: a session whose viewer merely disconnects keeps its browser for a
/// while.
async fn end(viewer: Applicant) {
    viewer.top_level().cancel().await;
    viewer.top_level().until_outcome().await;
    viewer.close().await;
}

/// Measures the time from the click, which opens the socket, to the first frame.
async fn starts(sheet: &mut Sheet, ours: &mut Ours, peer: &Peer, pages: &Pages, size: (u32, u32)) {
    let mut theirs = vec![];
    for _ in 0..STARTS {
        let viewer = viewer().await;
        go(&viewer, &peer.url(pages, "type", size)).await;
        theirs.push(first(&viewer).await);
        viewer.close().await;
    }
    let base = at(&mut theirs, 50);
    for (name, warm) in [("cold", "0"), ("warm", "1")] {
        ours.deployment.kill();
        ours.deployment.set("AVOUCH_BROWSERS_WARM", warm);
        ours.deployment.run().await;
        let mut mine = vec![];
        for _ in 0..STARTS {
            // Leaves time for a warm browser to start where there is one.
            tokio::time::sleep(Duration::from_secs(3)).await;
            let (viewer, url) = (viewer().await, ours.url("type").await);
            go(&viewer, &url).await;
            viewer
                .top_level()
                .until("the start", "document.getElementById('start')?.hidden === false")
                .await;
            viewer.evaluate("document.getElementById('start').click()").await;
            mine.push(first(&viewer).await);
            end(viewer).await;
        }
        sheet.add(
            &format!("click to first picture, {name}, median"),
            "ms",
            at(&mut mine, 50),
            base,
        );
    }
    ours.deployment.kill();
    ours.deployment.set("AVOUCH_BROWSERS_WARM", "0");
    ours.deployment.run().await;
}

/// Measures the bytes sent to the viewer and the number of frames in them.
async fn lines(sheet: &mut Sheet, ours: &Ours, peer: &Peer, pages: &Pages, size: (u32, u32)) {
    for (name, page, wheel) in
        [("idle", "type", false), ("animated", "spin", false), ("scrolling", "feed", true)]
    {
        let (mine, theirs) = (ours.open(page).await, peer.open(pages, page, size).await);
        let (bytes, pictures) = line(&mine.top_level(), wheel).await;
        let (base_bytes, base_pictures) = line(&theirs.top_level(), wheel).await;
        sheet.add(&format!("bytes over the line, {name}"), "kB/s", bytes, base_bytes);
        if name != "idle" {
            sheet.add(&format!("pictures, {name}"), "/s", pictures, base_pictures);
            let (one, other) = (bytes / pictures, base_bytes / base_pictures);
            sheet.add(&format!("bytes a picture, {name}"), "kB", one, other);
        }
        end(mine).await;
        theirs.close().await;
    }
}

/// Returns kilobytes and frames per second.
async fn line(embed: &Embed<'_>, wheel: bool) -> (f64, f64) {
    let turn = if wheel {
        "const c = document.querySelector('canvas'); let down = 0; const wheel = setInterval(() => { down += 1; \
         c.dispatchEvent(new WheelEvent('wheel', { deltaY: down % 80 < 40 ? 60 : -60, clientX: 300, clientY: 300, \
         bubbles: true, cancelable: true })); }, 50);"
    } else {
        "const wheel = 0;"
    };
    let script = format!(
        "(async () => {{ {turn} const count = () => Number(document.querySelector('canvas').dataset.pictures); \
         const [bytes, pictures] = [received, count()]; await new Promise((r) => setTimeout(r, {SECONDS}000)); \
         clearInterval(wheel); return [(received - bytes) / 1000 / {SECONDS}, (count() - pictures) / {SECONDS}]; }})()"
    );
    let both = numbers(&embed.evaluate(&script).await);
    (both[0], both[1])
}

/// Presses keys one after another and measures the time until each is drawn, and until the first
/// byte of its frame arrives.
async fn keys(embed: &Embed<'_>, count: usize) -> (Vec<f64>, Vec<f64>) {
    let script = format!(
        "(async () => {{ const c = document.querySelector('canvas'), drawn = [], first = []; \
         const key = (t) => c.dispatchEvent(new KeyboardEvent(t, {{ key: 'a', code: 'KeyA', keyCode: 65, \
         bubbles: true, cancelable: true }})); \
         for (let i = 0; i < {count}; i++) {{ await new Promise((r) => setTimeout(r, 130 + 40 * Math.random())); \
         const seen = new Promise((r) => {{ const o = new MutationObserver(() => {{ o.disconnect(); \
         r(performance.now()); }}); o.observe(c, {{ attributeFilter: ['data-pictures'] }}); setTimeout(() => r(0), 2000); }}); \
         arrived.length = 0; const began = performance.now(); key('keydown'); key('keyup'); \
         const at = await seen; if (at) {{ drawn.push(at - began); first.push(arrived[0] - began); }} }} \
         return [drawn, first]; }})()"
    );
    let both = embed.evaluate(&script).await;
    (numbers(&both[0]), numbers(&both[1]))
}
