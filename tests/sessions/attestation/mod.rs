//! Attested sessions: a real Chromium, the sandbox platform over TLS 1.3, an attestor inside the
//! service or in a process of its own, and `avouch-verify`.

mod canaries;
mod claims;

use std::{fs, path::Path, process::Command, time::Duration};

use acceptance::{
    applicant::Applicant,
    attestor::with_attestor,
    database::Kind,
    eventually, platform,
    portal_user::signed_in,
    service::{Deployment, tool},
};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use self::canaries::{CANARIES, assert_found_nowhere, memory_contains};

/// A proof takes gigabytes of memory and every core.
const TIMEOUT: Duration = Duration::from_secs(180);
/// 16 bytes in base64url.
const CHALLENGE: &str = "4lVqcg3Qd0mYkJ1tq9sPWQ";
/// Under nextest, where each test is a process, `.config/nextest.toml` sees to this.
static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

/// Plays a session with an attestation; returns the session as partners see it at its end.
async fn attested(deployment: &Deployment, user: &str, expect_attestor: bool) -> Value {
    let asked = json!({ "generateAttestation": true, "attestationChallenge": CHALLENGE });
    played(deployment, &asked, user, expect_attestor, Expected { fields: [3, 2], opens_all: false })
        .await
}

/// What the applicant's page must show.
struct Expected {
    /// The numbers of shared fields that are attested and that are not.
    fields: [u8; 2],
    /// Whether the attestor sees the whole exchange, which the page says before the applicant
    /// consents.
    opens_all: bool,
}

async fn played(
    deployment: &Deployment,
    asked: &Value,
    user: &str,
    expect_attestor: bool,
    Expected { fields, opens_all }: Expected,
) -> Value {
    let created = deployment.create(asked).await;
    let applicant = Applicant::visit(&deployment.demo).await;
    let embed = applicant.show(created["embedUrl"].as_str().unwrap()).await;
    embed.until("a frame", "document.querySelector('canvas').dataset.pictures > 0").await;
    embed.sign_in(user, "any").await;
    let told = format!(
        "!document.getElementById('consent').hidden && \
         document.getElementById('consent-witnessed').hidden === {}",
        !opens_all
    );
    embed.until("a consent prompt that says whether the attestor sees everything", &told).await;
    embed.click("[data-testid=consent-approve]").await;
    if expect_attestor {
        let told = "document.getElementById('note').textContent.includes('This may take a moment')";
        embed.until("the note about the running attestation", told).await;
    }
    let id = created["sessionId"].as_str().unwrap();
    let ended = eventually("the end", TIMEOUT, async || {
        let session = deployment.session(id).await;
        let open = ["RUNNING", "AWAITING_USER", "COLLECTING_DATA", "VERIFYING"];
        (!open.contains(&session["status"].as_str()?)).then_some(session)
    })
    .await;
    // The applicant's receipt distinguishes proved fields from others.
    let count =
        |class: &str| format!("document.querySelectorAll('#outcome-shared .{class}').length");
    let (proved, unproved) = (count("attested"), count("unattested"));
    let [attested, others] = if ended["hasAttestation"] == true { fields } else { [0, 0] };
    let told = format!(
        "!document.getElementById('outcome').hidden && {proved} === {attested} && {unproved} === {others}"
    );
    embed.until("the receipt", &told).await;
    applicant.close().await;
    ended
}

/// Runs `avouch-verify` on an exported folder; returns its exit code and report.
fn verify(folder: &Path, more: &[&str]) -> (Option<i32>, Value) {
    let file = |name: &str| folder.join(name).display().to_string();
    let mut command = Command::new(tool("avouch-verify"));
    command.args([file("attestation.cbor"), "--keys".into(), file("issuers.json")]);
    let output = command.args(more).output().unwrap();
    let code = output.status.code();
    if code != Some(0) {
        eprintln!("{}", String::from_utf8_lossy(&output.stderr));
    }
    (code, serde_json::from_slice(&output.stdout).unwrap_or_default())
}

/// Verifies a session's attestation at each level; returns the proof's hash.
async fn proved(deployment: &Deployment, session: &Value) -> String {
    assert_eq!((&session["status"], &session["errorCode"]), (&json!("COMPLETED"), &Value::Null));
    assert_eq!(session["hasAttestation"], true);
    let attested = json!(["accountId", "displayName", "memberSince"]);
    assert_eq!(
        (&session["attestedFields"], &session["attestationType"]),
        (&attested, &json!("zktls-full")),
        "two more fields are shared without a proof"
    );
    let id = session["sessionId"].as_str().unwrap();
    let delivery =
        eventually("a delivery", TIMEOUT, async || deployment.deliveries(id).await.pop());
    let payload = delivery.await["payload"].clone();
    assert_eq!(
        (&payload["attestedFields"], &payload["attestationType"]),
        (&attested, &json!("zktls-full"))
    );
    let timeline = deployment.partner.get(&format!("browser-session/{id}/events")).await;
    let events = timeline.at("/data").as_array().unwrap().iter().map(|line| &line["event"]);
    let steps =
        ["DataCollected", "AttestationAdvanced", "AttestationAdvanced", "AttestationIssued"];
    let last: Vec<_> = events.rev().take(steps.len()).collect();
    assert!(last.into_iter().rev().eq(steps), "{timeline:?}");
    let hash = payload["proofHash"].as_str().unwrap().to_owned();
    let out = deployment.folder.path().join(format!("export-{id}"));
    let file = |name: &str| out.join(name).display().to_string();
    let export = ["export-attestation", id, "--out", &out.display().to_string()];
    let exported = deployment.admin(&export);
    assert_eq!(exported, json!({ "proofHash": hash, "mode": "zktls-full" }));
    let (disclosure, evidence) = (file("disclosure.cbor"), file("evidence.cbor"));
    let (roots, named) = (file("roots.pem"), file("session.json"));
    let all = ["--expect-proof-hash", &hash, "--disclosure", &disclosure, "--session", &named];
    let all = [all.as_slice(), &["--evidence", &evidence, "--roots", &roots, "--max-age", "1h"]];
    let host = ["--host", "sandbox.localhost", "--show-transcript"];
    let (code, report) = verify(&out, &[&all.concat(), host.as_slice()].concat());
    assert_eq!((code, &report["level"]), (Some(0), &json!("evidence")), "{report}");
    assert_eq!(report["proofHash"], hash.as_str());
    assert_eq!(report["server"]["name"], "sandbox.localhost");
    for claim in report["claims"].as_array().unwrap() {
        let field = claim["field"].as_str().unwrap();
        assert_eq!(claim["value"], session["extractedData"][field], "{field}");
    }
    read_by_others(&out, &evidence, &roots, &report);
    claims::all(deployment, session, &hash, &out).await;
    let hidden = report["request"]["hidden"].as_array().unwrap();
    let hidden: Vec<_> = hidden.iter().map(|part| part["header"].as_str().unwrap()).collect();
    assert_eq!(hidden, ["cookie", "user-agent"]);
    // Without the evidence only the attestor's signature is verified, and the report says so.
    let (code, report) = verify(&out, &[]);
    assert_eq!((code, &report["level"]), (Some(0), &json!("signature")), "{report}");
    assert_eq!(verify(&out, &["--level", "evidence"]).0, Some(14));
    assert_eq!(verify(&out, &["--expect-proof-hash", &"0".repeat(64)]).0, Some(5));
    // It is refused with other roots, with other evidence, or for another session.
    let issuers = file("issuers.json");
    assert_eq!(verify(&out, &["--evidence", &evidence, "--roots", &issuers]).0, Some(1));
    fs::write(&evidence, &fs::read(&evidence).unwrap()[1..]).unwrap();
    assert_eq!(verify(&out, &["--evidence", &evidence, "--roots", &roots]).0, Some(7));
    let other = fs::read_to_string(&named).unwrap().replace(id, &uuid::Uuid::nil().to_string());
    fs::write(&named, other).unwrap();
    assert_eq!(verify(&out, &["--session", &named]).0, Some(8));
    assert_eq!(verify(&out, &["--max-age", "0s"]).0, Some(9));
    hash
}

/// Verifies the evidence with an independent Python program, and shows that the program detects a
/// false report.
fn read_by_others(out: &Path, evidence: &str, roots: &str, report: &Value) {
    let python = acceptance::root().join("target/tools/auditor-python/bin/python");
    let script = acceptance::root().join("docs/auditor/check.py");
    let file = out.join("report.json");
    let mut lied = report.clone();
    lied["evidence"]["transcript"] = json!("00".repeat(32));
    for (report, fine) in [(report, true), (&lied, false)] {
        fs::write(&file, report.to_string()).unwrap();
        let mut command = Command::new(&python);
        command.arg(&script).args([evidence, roots]).arg(&file);
        command.args([out.join("attestation.cbor"), out.join("issuers.json")]);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.success(), fine, "{said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_built_in_attestor_attests_a_session() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let deployment = Deployment::start(Kind::Postgres).await;
    let session = attested(&deployment, "ok", true).await;
    proved(&deployment, &session).await;
    assert_found_nowhere(&deployment).await;
    // The attestor and the browser must have got the same data.
    let session = attested(&deployment, "attest_fail", true).await;
    assert_eq!(session["status"], "PARTIAL_COMPLETE");
    assert_eq!(session["errorCode"], "ATTESTATION_FAILED");
    assert_eq!(session["extractedData"]["displayName"], "Ada Example");
    let id = session["sessionId"].as_str().unwrap();
    let export = ["admin", "export-attestation", id, "--out", "/nowhere"];
    let exported = deployment.command().args(export).output().unwrap();
    let complaint = String::from_utf8_lossy(&exported.stderr).into_owned();
    assert!(!exported.status.success() && complaint.contains("no attestation"), "{complaint}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_separate_attestor_attests_and_never_sees_the_cookie() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let mut deployment = Deployment::prepare(Kind::Sqlite).await;
    let mut witness = with_attestor(&mut deployment, &[platform::sandbox()]).await;
    let session = attested(&deployment, "ok", true).await;
    proved(&deployment, &session).await;
    let log = fs::read_to_string(&witness.log).unwrap();
    assert!(log.contains("attested for"), "{log}");
    assert!(
        memory_contains(deployment.process(), CANARIES[0]),
        "the search works: the service has the cookie"
    );
    for canary in CANARIES {
        assert!(
            !memory_contains(witness.process.id(), canary),
            "{canary} in the attestor's memory"
        );
    }
    // This search includes the attestor's folder with its logs, and the exported evidence.
    assert_found_nowhere(&deployment).await;
    let ask = Command::new("kill").arg(witness.process.id().to_string()).status().unwrap();
    assert!(
        ask.success() && witness.process.wait().unwrap().success(),
        "the process ends on SIGTERM"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_an_attestor_the_data_is_shared_and_the_attestation_is_missing() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let mut deployment = Deployment::prepare(Kind::Sqlite).await;
    let witness = with_attestor(&mut deployment, &[platform::sandbox()]).await;
    drop(witness);
    let session = attested(&deployment, "ok", false).await;
    assert_eq!(session["status"], "PARTIAL_COMPLETE");
    assert_eq!(session["errorCode"], "ATTESTATION_FAILED");
    assert_eq!(session["hasAttestation"], false);
    assert_eq!(session["extractedData"]["accountId"], "acme-ok-4711");
}

/// In `full-reveal` the attestor sees the cookies: the applicant is told before consenting, and
/// each place that names the attestation says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn full_reveal_is_announced_to_each_party() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let mut deployment = Deployment::prepare(Kind::Sqlite).await;
    let open = |definition: &mut Value| {
        definition["attest"]["modes"] = json!(["full-reveal"]);
        definition["attest"]["fields"] = json!({ "followers": "/followers" });
        // The account's own data need a cookie, and are refused in this mode.
        definition["requests"]["certified"]["url"] = json!("https://sandbox.localhost/api/stats");
    };
    let definition = platform::write(&deployment, "acme-open", open);
    let _witness = with_attestor(&mut deployment, std::slice::from_ref(&definition)).await;
    let published = deployment.admin(&["publish-platform", &definition.display().to_string()]);
    let asked = json!({ "generateAttestation": true, "platformId": published["platformId"] });
    let expected = Expected { fields: [1, 4], opens_all: true };
    let session = played(&deployment, &asked, "ok", true, expected).await;
    let kind = json!("full-reveal");
    assert_eq!((&session["status"], &session["attestationType"]), (&json!("COMPLETED"), &kind));
    assert_eq!(session["attestedFields"], json!(["followers"]));
    let id = session["sessionId"].as_str().unwrap();
    let delivery =
        eventually("a delivery", TIMEOUT, async || deployment.deliveries(id).await.pop());
    assert_eq!(delivery.await["payload"]["attestationType"], kind);
    let member = signed_in(&deployment, "bob@lender.example", "member").await;
    let page = member.get(&format!("/portal/sessions/{id}")).await.text;
    assert!(page.contains("The attestor saw the whole exchange"), "{page}");
    let out = deployment.folder.path().join("export");
    deployment.admin(&["export-attestation", id, "--out", &out.display().to_string()]);
    assert!(!out.join("evidence.cbor").exists(), "the cookies would be in it");
    assert_eq!(verify(&out, &[]).0, Some(13));
    assert_eq!(verify(&out, &["--mode", "full-reveal"]).0, Some(0));
}
