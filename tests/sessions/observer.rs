//! What a partner's people see who watch a session, and what they do not.

use std::time::Duration;

use acceptance::{
    applicant::{Applicant, Embed},
    database::Kind,
    platform::lingering,
    service::Deployment,
};
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(30);

const HIDDEN: &str = "document.querySelector('canvas').hidden";
/// Keeps what is seen, and answers how many of its pixels are as grey as what is covered.
const KEEP: &str = "(() => { const c = document.querySelector('canvas'); \
    window.pixels = () => c.getContext('2d').getImageData(0, 0, c.width, c.height).data; \
    const kept = window.kept = pixels(); let grey = 0; \
    for (let i = 0; i < kept.length; i += 4) grey += [0, 1, 2].every((at) => Math.abs(kept[i + at] - 128) < 3); \
    return grey; })()";
/// By how much a pixel differs from what was kept, at most. A tile's edge differs a little from
/// the same place inside of a tile.
const DIFFERENCE: &str =
    "pixels().reduce((most, value, at) => Math.max(most, Math.abs(value - kept[at])), 0)";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_observer_sees_the_page_without_the_typed_text() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let platform = lingering(&deployment, "acme-lingering", 12);
    let session = deployment.create(&json!({ "platformId": platform })).await;
    let id = session["sessionId"].as_str().unwrap();
    assert_eq!(deployment.session(id).await["streamUrl"], Value::Null, "nothing runs yet");
    let applicant = Applicant::visit(&deployment.demo).await;
    let embed = applicant.show(session["embedUrl"].as_str().unwrap()).await;
    let running = deployment.until(id, "RUNNING", SOON).await;
    let stream = running["streamUrl"].as_str().expect("a stream").to_owned();
    assert!(!stream.contains(session["embedUrl"].as_str().unwrap().rsplit('=').next().unwrap()));

    let onlooker = Applicant::visit(&stream).await;
    let watch = onlooker.top_level();
    watch.until("a picture", "document.querySelector('canvas').dataset.pictures > 0").await;
    watch.until("the picture to be shown", &format!("!{HIDDEN}")).await;
    let covered = watch.evaluate(KEEP).await.as_u64().unwrap();
    assert!(covered > 10_000, "both fields are covered: {covered} pixels");
    embed.until("a picture", "document.querySelector('canvas').dataset.pictures > 0").await;
    writes(&embed, "visible").await;
    // What was written has been seen by the applicant; the onlooker sees later than that.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!(deployment.session(id).await["status"], "RUNNING", "it still lingers");
    let difference = watch.evaluate(DIFFERENCE).await.as_u64().unwrap();
    assert!(difference < 32, "something of it is seen: {difference}");

    deployment.until(id, "AWAITING_USER", SOON).await;
    watch.until("the picture to be withheld", HIDDEN).await;
    let status = watch.evaluate("document.querySelector('canvas').dataset.status").await;
    assert_eq!(status, "AWAITING_USER");
    only_watches(&watch).await;
    assert_eq!(deployment.session(id).await["status"], "AWAITING_USER", "nothing was done");

    deployment.partner.delete(&format!("browser-session/{id}")).await;
    watch.until("the end", "document.body.textContent.includes('has ended')").await;
    assert_eq!(deployment.session(id).await["streamUrl"], Value::Null, "it is over");
    refuses(&deployment, &stream).await;
    onlooker.close().await;
    applicant.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_acknowledges_no_frame_still_receives_state() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let platform = lingering(&deployment, "acme-lingering", 12);
    let session = deployment.create(&json!({ "platformId": platform })).await;
    let id = session["sessionId"].as_str().unwrap();
    let applicant = one_who_draws_nothing(session["embedUrl"].as_str().unwrap()).await;
    let view = applicant.top_level();
    view.click("[data-testid=start]").await;
    let running = deployment.until(id, "RUNNING", SOON).await;
    let onlooker = one_who_draws_nothing(running["streamUrl"].as_str().expect("a stream")).await;
    let watch = onlooker.top_level();
    let full = "document.querySelector('canvas').dataset.pictures >= 2";
    view.until("as many pictures as are sent ahead", full).await;
    watch.until("a picture", "document.querySelector('canvas').dataset.pictures > 0").await;
    deployment.until(id, "AWAITING_USER", SOON).await;
    view.until_prompted("Sign in").await;
    watch.until("the picture to be withheld", HIDDEN).await;
    deployment.partner.delete(&format!("browser-session/{id}")).await;
    view.until_outcome().await;
    watch.until("the end", "document.body.textContent.includes('has ended')").await;
    onlooker.close().await;
    applicant.close().await;
}

/// Somebody whose page acknowledges no picture.
async fn one_who_draws_nothing(url: &str) -> Applicant {
    let applicant = Applicant::visit("about:blank").await;
    let silence = "window.WebSocket = class extends WebSocket { send(message) { \
        if (!String(message).includes('\"ack\"')) super.send(message); } };";
    applicant.devtools("Page.addScriptToEvaluateOnNewDocument", json!({ "source": silence })).await;
    applicant.devtools("Page.navigate", json!({ "url": url })).await;
    applicant
}

/// Writes into the first field of the sign-in page, and waits until that is in the picture.
async fn writes(embed: &Embed<'_>, text: &str) {
    let before = embed.evaluate("document.querySelector('canvas').dataset.pictures").await;
    embed.focus_remote_page().await;
    embed.applicant.press("Tab").await;
    embed.applicant.write(text).await;
    let more = format!(
        "document.querySelector('canvas').dataset.pictures > {} + 5",
        before.as_str().unwrap()
    );
    embed.until("what was written", &more).await;
}

/// Says everything over the onlooker's own way in that an applicant could; the way is closed.
async fn only_watches(watch: &Embed<'_>) {
    for said in [
        json!({ "t": "cancel" }),
        json!({ "t": "share", "share": true }),
        json!({ "t": "text", "text": "no" }),
        json!({ "t": "key", "down": true, "key": "Enter", "code": "Enter", "keyCode": 13, "repeat": false, "modifiers": 0 }),
    ] {
        let script = format!(
            "new Promise((done) => {{ const s = new WebSocket(location.href.replace(/^http/, 'ws').replace(/\\?.*/, '/stream')); \
             s.onopen = () => {{ s.send(JSON.stringify({{ pass: new URLSearchParams(location.search).get('pass') }})); \
             s.send({:?}); }}; s.onclose = (event) => done(event.code); }})",
            said.to_string()
        );
        assert_eq!(watch.evaluate(&script).await, 1003, "{said}");
    }
}

/// A pass is for one session and one moment.
async fn refuses(deployment: &Deployment, stream: &str) {
    let (address, pass) = stream.split_once("?pass=").unwrap();
    let (until, mark) = pass.split_once('.').unwrap();
    let until: i64 = until.parse().unwrap();
    let other_mark = if mark.starts_with('a') { "b" } else { "a" };
    let other = deployment.create(&json!({})).await;
    let elsewhere =
        address.replace(address.rsplit('/').next().unwrap(), other["sessionId"].as_str().unwrap());
    let onlooker = Applicant::visit("about:blank").await;
    for (address, pass) in [
        (address, format!("{}.{mark}", until + 60)),
        (address, format!("{until}.{other_mark}{}", &mark[1..])),
        (address, String::new()),
        (elsewhere.as_str(), pass.to_owned()),
    ] {
        onlooker
            .devtools("Page.navigate", json!({ "url": format!("{address}?pass={pass}") }))
            .await;
        let watch = onlooker.top_level();
        let what = format!("{address}?pass={pass} to be refused");
        watch.until(&what, "document.body?.textContent.includes('has run out')").await;
    }
    onlooker.close().await;
}
