//! Recordings: a session that ends in an error leaves one without secrets, and any other session
//! leaves none.

use std::{collections::BTreeSet, fs, path::Path, time::Duration};

use acceptance::{
    applicant::Applicant,
    database::Kind,
    eventually,
    platform::publish,
    service::Deployment,
    video::{assert_length_and_chapters, assert_no_secret_in_frames, files, find},
};
use serde_json::{Value, json};
use testkit::s3::S3Server;

const PASSWORD: &str = "canary7xq3password";
const WRITTEN_EARLY: &str = "zebrafinch";
/// The code that the sandbox asks for.
const CODE: &str = "123456";
const ANSWER: &str = "blue";
const TIMEOUT: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_session_leaves_a_recording_without_secrets_in_a_folder() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let objects = deployment.data().join("objects");
    let (id, recorded) = play_failing_session(&deployment, &objects).await;
    let recording = deployment.recording(&id).await;
    let link = recording["recordingUrl"].as_str().unwrap();
    let part = fetch(&deployment, link, Some("bytes=4-7")).await;
    assert_eq!(part, (206, b"ftyp".to_vec()));
    assert_eq!(fetch(&deployment, link, None).await, (200, recorded));
    let (address, query) = link.split_once('?').unwrap();
    let (expires, signature) = query.split_once('&').unwrap();
    let other = &signature[..signature.len() - 8];
    for tampered in [
        address.to_owned(),
        format!("{address}?{signature}&expires=99999999999"),
        format!("{address}?{expires}&{other}AAAAAAAA"),
        format!("{}?{query}", address.replace(&id, "00000000-0000-4000-8000-000000000000")),
    ] {
        assert_eq!(fetch(&deployment, &tampered, None).await.0, 404, "{tampered}");
    }
    erased(&deployment, &id, &objects).await;
    assert_eq!(fetch(&deployment, link, None).await.0, 404, "the recording is erased");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_session_leaves_a_recording_without_secrets_in_a_bucket() {
    let server = S3Server::start();
    let mut deployment = Deployment::prepare(Kind::Postgres).await;
    deployment.set("AVOUCH_STORAGE_URL", server.url());
    for (name, value) in server.variables() {
        deployment.set(name, value);
    }
    deployment.run().await;
    let (id, recorded) = play_failing_session(&deployment, &server.bucket()).await;
    let recording = deployment.recording(&id).await;
    let link = recording["recordingUrl"].as_str().unwrap();
    assert_eq!(fetch(&deployment, link, Some("bytes=4-7")).await, (206, b"ftyp".to_vec()));
    assert_eq!(fetch(&deployment, link, None).await, (200, recorded));
    let tampered = link.replace("expires=", "expires=9");
    assert_eq!(fetch(&deployment, &tampered, None).await.0, 404);
    erased(&deployment, &id, &server.bucket()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_outcomes_leave_no_recording() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let objects = deployment.data().join("objects");
    let applicant = Applicant::visit(&deployment.demo).await;
    for ending in ["COMPLETED", "CANCELLED", "TERMINATED"] {
        let session = deployment.create(&json!({})).await;
        let id = session["sessionId"].as_str().unwrap();
        let embed = applicant.show(session["embedUrl"].as_str().unwrap()).await;
        embed.until_prompted("Sign in").await;
        eventually("a segment to be stored while the session runs", TIMEOUT, async || {
            (!files(&objects).is_empty()).then_some(())
        })
        .await;
        match ending {
            "COMPLETED" => {
                embed.sign_in_again("ok", PASSWORD).await;
                embed.click("[data-testid=consent-approve]").await;
            }
            "CANCELLED" => embed.cancel().await,
            _ => drop(deployment.partner.delete(&format!("browser-session/{id}")).await),
        }
        deployment.until(id, ending, TIMEOUT).await;
        let answer = deployment.partner.get(&format!("browser-session/{id}/recording")).await;
        assert_eq!(answer.status, 404, "{ending}");
        eventually("no object to remain", TIMEOUT, async || {
            files(&objects).is_empty().then_some(())
        })
        .await;
    }
    applicant.close().await;
}

/// Plays a session that fails after its applicant has signed in with a code and an answer, and
/// inspects its recording.
async fn play_failing_session(deployment: &Deployment, objects: &Path) -> (String, Vec<u8>) {
    let platform = publish_failing(deployment);
    let session = deployment.create(&json!({ "platformId": platform, "maxAttempts": 1 })).await;
    let id = session["sessionId"].as_str().unwrap().to_owned();
    let applicant = Applicant::visit(&deployment.demo).await;
    let embed = applicant.show(session["embedUrl"].as_str().unwrap()).await;
    deployment.until(&id, "RUNNING", TIMEOUT).await;
    // The first frame may show a page without fields yet: text typed then goes nowhere.
    embed.until("the page's fields", "document.querySelector('canvas').dataset.fields > 0").await;
    embed.focus_first_field().await;
    applicant.write(WRITTEN_EARLY).await;
    wait_for_frames().await;
    assert_eq!(deployment.session(&id).await["status"], "RUNNING", "the platform waits");
    deployment.until(&id, "AWAITING_USER", TIMEOUT).await;
    for _ in WRITTEN_EARLY.chars() {
        applicant.press("Backspace").await;
    }
    applicant.write("otp").await;
    applicant.press("Tab").await;
    applicant.write(PASSWORD).await;
    wait_for_frames().await;
    applicant.press("Enter").await;
    embed.until_prompted("Enter the code").await;
    embed.focus_first_field().await;
    applicant.write(CODE).await;
    wait_for_frames().await;
    let running = files(objects);
    assert!(!running.is_empty(), "segments are stored while the session runs");
    let jpegs =
        running.iter().filter(|(_, content)| find(content, &[0xff, 0xd8, 0xff, 0xdb, 0, 67]));
    assert_eq!(jpegs.count(), 0, "no unencrypted picture is stored");
    applicant.press("Enter").await;
    let ended = deployment.until(&id, "ERROR", TIMEOUT).await;
    assert_eq!(ended["errorCode"], "UNEXPECTED_PAGE");
    applicant.close().await;

    let recorded = inspected(deployment, &id, objects).await;
    (id, recorded)
}

/// Inspects the recording of the failed session and everything that was stored; returns its bytes.
async fn inspected(deployment: &Deployment, id: &str, objects: &Path) -> Vec<u8> {
    let seen = followed(deployment, id).await;
    assert!(seen.contains("completed"), "{seen:?}");
    let link = deployment.recording(id).await["recordingUrl"].as_str().unwrap().to_owned();
    let (code, recorded) = fetch(deployment, &link, None).await;
    assert_eq!(code, 200);
    let path = deployment.folder.path().join("recording.mp4");
    fs::write(&path, &recorded).unwrap();
    assert_length_and_chapters(deployment, id, &path).await;
    let parts = [&PASSWORD[..8], &WRITTEN_EARLY[..5]];
    assert_no_secret_in_frames(
        &path,
        &[&[PASSWORD, WRITTEN_EARLY, CODE, ANSWER], parts.as_slice()].concat(),
    );
    eventually("only the recording to remain", TIMEOUT, async || {
        (files(objects).len() == 1).then_some(())
    })
    .await;
    let (name, object) = files(objects).remove(0);
    for part in [b"ftyp".as_slice(), b"moov", b"mdat", &recorded[recorded.len() / 2..][..32]] {
        assert!(!find(&object, part), "{name} is a readable recording");
    }
    for secret in [PASSWORD, WRITTEN_EARLY, CODE] {
        let log = fs::read(deployment.log()).unwrap();
        assert!(!find(&log, secret.as_bytes()), "{secret} is in the log");
        for (name, content) in files(&deployment.data()).iter().chain(&files(objects)) {
            assert!(!find(content, secret.as_bytes()), "{secret} is in {name}");
        }
    }
    recorded
}

/// Leaves time for the typed text to be in several frames.
async fn wait_for_frames() {
    tokio::time::sleep(Duration::from_millis(1200)).await;
}

/// Publishes a platform that waits on its sign-in page, and fails some time after a sign-in.
fn publish_failing(deployment: &Deployment) -> Value {
    publish(deployment, "acme-failing", |definition| {
        definition["signals"]["never"] = json!({ "selector": "#never" });
        definition["nodes"]["open"]["next"] = json!("linger");
        let wait = |seconds: u8, then: Value| {
            json!({
                "type": "branch",
                "cases": [{ "when": "never", "next": "profile" }],
                "settleSeconds": seconds,
                "default": then,
            })
        };
        definition["nodes"]["linger"] = wait(15, json!({ "next": "route" }));
        definition["nodes"]["stall"] = wait(4, json!({ "fail": "UNEXPECTED_PAGE" }));
        definition["nodes"]["route"]["cases"][0]["next"] = json!("stall");
    })
}

/// Returns every status of a recording that a poller sees until it is completed.
async fn followed(deployment: &Deployment, id: &str) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    eventually("the recording", TIMEOUT, async || {
        let recording = deployment.recording(id).await;
        let status = recording["status"].as_str().unwrap().to_owned();
        assert_eq!(recording["error"], Value::Null, "{recording}");
        assert_eq!(recording["recordingUrl"].is_string(), status == "completed", "{recording}");
        seen.insert(status);
        seen.contains("completed").then_some(())
    })
    .await;
    seen
}

async fn erased(deployment: &Deployment, id: &str, objects: &Path) {
    deployment.partner.delete(&format!("browser-session/{id}/data")).await;
    eventually("the recording to be deleted", TIMEOUT, async || {
        files(objects).is_empty().then_some(())
    })
    .await;
    let recording = deployment.recording(id).await;
    assert_eq!(
        (&recording["status"], &recording["recordingUrl"]),
        (&json!("completed"), &Value::Null)
    );
    assert!(recording["error"].as_str().unwrap().contains("erased"));
}

async fn fetch(deployment: &Deployment, url: &str, range: Option<&str>) -> (u16, Vec<u8>) {
    let (status, body) = deployment.partner.fetch(url, range).await;
    (status, body.to_vec())
}
