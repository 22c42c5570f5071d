//! A partner's observers of a running session: what they see and what is hidden from them.

use std::time::Duration;

use acceptance::{
    applicant::{Applicant, Embed},
    database::Kind,
    platform::lingering,
    service::Deployment,
};
use serde_json::{Value, json};

const TIMEOUT: Duration = Duration::from_secs(60);

/// How long the sessions run before their applicant is asked to sign in: a second browser starts meanwhile.
const RUNNING_SECONDS: u16 = 40;
const HIDDEN: &str = "document.querySelector('canvas').hidden";
/// Keeps the current picture, and returns the number of its pixels that have the grey of redacted
/// areas.
const KEEP: &str = "(() => { const c = document.querySelector('canvas'); \
    window.pixels = () => c.getContext('2d').getImageData(0, 0, c.width, c.height).data; \
    const kept = window.kept = pixels(); let grey = 0; \
    for (let i = 0; i < kept.length; i += 4) grey += [0, 1, 2].every((at) => Math.abs(kept[i + at] - 128) < 3); \
    return grey; })()";
/// The largest difference of a pixel to the kept picture. The edge of a tile differs a little from
/// the same pixels inside a tile.
const DIFFERENCE: &str =
    "pixels().reduce((most, value, at) => Math.max(most, Math.abs(value - kept[at])), 0)";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_observer_sees_the_page_without_the_typed_text() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let platform = lingering(&deployment, "acme-lingering", RUNNING_SECONDS);
    let session = deployment.create(&json!({ "platformId": platform })).await;
    let id = session["sessionId"].as_str().unwrap();
    assert_eq!(deployment.session(id).await["streamUrl"], Value::Null, "nothing runs yet");
    let applicant = Applicant::visit(&deployment.demo).await;
    let embed = applicant.show(session["embedUrl"].as_str().unwrap()).await;
    let running = deployment.until(id, "RUNNING", TIMEOUT).await;
    let stream = running["streamUrl"].as_str().expect("a stream").to_owned();
    assert!(!stream.contains(session["embedUrl"].as_str().unwrap().rsplit('=').next().unwrap()));

    let observer = Applicant::visit(&stream).await;
    let watch = observer.top_level();
    watch.until("a frame", "document.querySelector('canvas').dataset.pictures > 0").await;
    watch.until("the frame to be shown", &format!("!{HIDDEN}")).await;
    let covered = watch.evaluate(KEEP).await.as_u64().unwrap();
    assert!(covered > 10_000, "both fields are covered: {covered} pixels");
    embed.until("a frame", "document.querySelector('canvas').dataset.pictures > 0").await;
    type_first_field(&embed, "visible").await;
    // The applicant has seen the typed text; observers see frames later than the applicant.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!(deployment.session(id).await["status"], "RUNNING", "the platform still waits");
    let difference = watch.evaluate(DIFFERENCE).await.as_u64().unwrap();
    assert!(difference < 32, "typed text is visible: {difference}");

    deployment.until(id, "AWAITING_USER", TIMEOUT).await;
    watch.until("the frame to be hidden", HIDDEN).await;
    let status = watch.evaluate("document.querySelector('canvas').dataset.status").await;
    assert_eq!(status, "AWAITING_USER");
    assert_input_is_refused(&watch).await;
    assert_eq!(deployment.session(id).await["status"], "AWAITING_USER", "no input took effect");

    deployment.partner.delete(&format!("browser-session/{id}")).await;
    watch.until("the end", "document.body.textContent.includes('has ended')").await;
    assert_eq!(deployment.session(id).await["streamUrl"], Value::Null, "the session has ended");
    refuses(&deployment, &stream).await;
    observer.close().await;
    applicant.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_acknowledges_no_frame_still_receives_state() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let platform = lingering(&deployment, "acme-lingering", RUNNING_SECONDS);
    let session = deployment.create(&json!({ "platformId": platform })).await;
    let id = session["sessionId"].as_str().unwrap();
    let applicant = page_without_acknowledgements(session["embedUrl"].as_str().unwrap()).await;
    let view = applicant.top_level();
    view.click("[data-testid=start]").await;
    let running = deployment.until(id, "RUNNING", TIMEOUT).await;
    let observer =
        page_without_acknowledgements(running["streamUrl"].as_str().expect("a stream")).await;
    let watch = observer.top_level();
    let full = "document.querySelector('canvas').dataset.pictures >= 2";
    view.until("as many frames as are sent without acknowledgement", full).await;
    watch.until("a frame", "document.querySelector('canvas').dataset.pictures > 0").await;
    deployment.until(id, "AWAITING_USER", TIMEOUT).await;
    view.until_prompted("Sign in").await;
    watch.until("the frame to be hidden", HIDDEN).await;
    deployment.partner.delete(&format!("browser-session/{id}")).await;
    view.until_outcome().await;
    watch.until("the end", "document.body.textContent.includes('has ended')").await;
    observer.close().await;
    applicant.close().await;
}

/// Opens a page that acknowledges no frame.
async fn page_without_acknowledgements(url: &str) -> Applicant {
    let applicant = Applicant::visit("about:blank").await;
    let silence = "window.WebSocket = class extends WebSocket { send(message) { \
        if (!String(message).includes('\"ack\"')) super.send(message); } };";
    applicant.devtools("Page.addScriptToEvaluateOnNewDocument", json!({ "source": silence })).await;
    applicant.navigate(url).await;
    applicant
}

/// Types into the first field of the sign-in page, and waits until frames show it.
async fn type_first_field(embed: &Embed<'_>, text: &str) {
    let before = embed.evaluate("document.querySelector('canvas').dataset.pictures").await;
    embed.focus_first_field().await;
    embed.applicant.write(text).await;
    let more = format!(
        "document.querySelector('canvas').dataset.pictures > {} + 5",
        before.as_str().unwrap()
    );
    embed.until("the typed text", &more).await;
}

/// Sends every message of an applicant over the observer's stream, which closes at each.
async fn assert_input_is_refused(watch: &Embed<'_>) {
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

/// A stream token is valid for one session until its expiry.
async fn refuses(deployment: &Deployment, stream: &str) {
    let (address, pass) = stream.split_once("?pass=").unwrap();
    let (until, mark) = pass.split_once('.').unwrap();
    let until: i64 = until.parse().unwrap();
    let other_mark = if mark.starts_with('a') { "b" } else { "a" };
    let other = deployment.create(&json!({})).await;
    let elsewhere =
        address.replace(address.rsplit('/').next().unwrap(), other["sessionId"].as_str().unwrap());
    let observer = Applicant::visit("about:blank").await;
    for (address, pass) in [
        (address, format!("{}.{mark}", until + 60)),
        (address, format!("{until}.{other_mark}{}", &mark[1..])),
        (address, String::new()),
        (elsewhere.as_str(), pass.to_owned()),
    ] {
        observer.navigate(&format!("{address}?pass={pass}")).await;
        let watch = observer.top_level();
        let what = format!("{address}?pass={pass} to be refused");
        watch.until(&what, "document.body?.textContent.includes('has run out')").await;
    }
    observer.close().await;
}
