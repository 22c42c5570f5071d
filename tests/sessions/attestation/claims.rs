//! Responses about an attestation and its export: they contain nothing that is not proved.

use std::{fs, path::Path, process::Command};

use acceptance::{
    eventually,
    partner::Partner,
    portal_user::{PortalUser, base, signed_in, user},
    service::Deployment,
};
use serde_json::{Value, json};

use super::{CHALLENGE, TIMEOUT, tool};

pub(super) async fn all(deployment: &Deployment, session: &Value, hash: &str, out: &Path) {
    compared(deployment, session, hash).await;
    carried(deployment, session, hash, out).await;
    shown_in_the_portal(deployment, session, hash).await;
    erased(deployment, session, hash).await;
}

/// The service compares data with the attestation.
async fn compared(deployment: &Deployment, session: &Value, hash: &str) {
    let ask = async |partner: &Partner, hash: &str, data: &Value| {
        let body = json!({ "proofHash": hash, "extractedData": data });
        let answer = partner.post("attestations/verify", &body).await;
        (answer.status, answer.at("/data").clone())
    };
    let ours = &deployment.partner;
    let mut data = session["extractedData"].clone();
    let (status, same) = ask(ours, hash, &data).await;
    assert_eq!((status, &same["matches"]), (200, &json!(true)), "{same}");
    assert_eq!(same["sessionId"], session["sessionId"]);
    // Two of the five fields are read from the page: the response must not present them as proved.
    assert_eq!(same["coverage"], "attested_fields_only");
    for field in ["tier", "followers"] {
        assert_eq!(same["fields"][field], "not_attested", "{field}");
    }
    data["tier"] = json!("platinum");
    let (_, altered) = ask(ours, hash, &data).await;
    assert_eq!(altered, same, "the response says that this field is not attested");
    let attested = session["attestedFields"].as_array().unwrap();
    let attested = attested.iter().map(|field| field.as_str().unwrap());
    let only: Value = attested.map(|field| (field.to_owned(), data[field].clone())).collect();
    let (_, covered) = ask(ours, hash, &only).await;
    assert_eq!(
        (&covered["matches"], &covered["coverage"]),
        (&json!(true), &json!("all_given_fields"))
    );
    data["accountId"] = json!("acme-ok-4712");
    data.as_object_mut().unwrap().remove("memberSince");
    let (_, other) = ask(ours, hash, &data).await;
    assert_eq!(other["matches"], false);
    let fields = ["accountId", "displayName", "memberSince"].map(|field| &other["fields"][field]);
    assert_eq!(fields, ["differs", "matches", "missing"]);
    assert_eq!(ask(ours, &"0".repeat(64), &data).await.0, 404);
    assert_eq!(ask(ours, "0", &data).await.0, 400);
    let team = ["create-key", "--team", &deployment.team, "--environment", "development"];
    let other = deployment.admin(&team)["apiKey"].as_str().unwrap().to_owned();
    assert_eq!(ask(&ours.with_key(Some(&other)), hash, &data).await.0, 404, "of another key");
}

/// Verifies the file that the partner downloads, with nothing from the service but keys and roots.
async fn carried(deployment: &Deployment, session: &Value, hash: &str, out: &Path) {
    let id = session["sessionId"].as_str().unwrap();
    let ours = &deployment.partner;
    let path = format!("browser-session/{id}/attestation");
    let answer = ours.get(&path).await;
    let header = |name: &str| answer.headers[name].to_str().unwrap();
    assert_eq!((answer.status, header("content-type")), (200, "application/cbor"));
    assert_eq!(header("content-length"), answer.bytes.len().to_string());
    assert_eq!(ours.get(&path).await.headers["etag"], header("etag"), "the same each time");
    let (file, roots) = (out.join("portable.cbor"), out.join("roots.pem"));
    fs::write(&file, &answer.bytes).unwrap();
    let verify = |file: &Path, more: &[&str]| {
        let keys = out.join("issuers.json");
        let mut command = Command::new(tool("avouch-verify"));
        let output = command.arg(file).arg("--keys").arg(keys).args(more).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (
            output.status.code(),
            serde_json::from_slice::<Value>(&output.stdout).unwrap_or_default(),
            said,
        )
    };
    let roots = roots.display().to_string();
    let all = ["--roots", &roots, "--expect-proof-hash", hash, "--max-age", "1h"];
    let expected = ["--host", "sandbox.localhost", "--mode", "zktls-full"];
    let expected = [expected, ["--challenge", CHALLENGE, "--partner", &deployment.team]];
    let (code, report, said) = verify(&file, &[all.as_slice(), &expected.concat()].concat());
    assert_eq!((code, &report["level"]), (Some(0), &json!("evidence")), "{said}");
    let subject = json!({ "sessionId": id, "teamId": deployment.team });
    assert_eq!((&report["subject"], &report["challenge"]), (&subject, &json!(CHALLENGE)));
    let disclosed = ["--level", "disclosure"];
    for (option, value, refused) in [
        ("--challenge", "Zm9v", 15),
        ("--partner", "00000000-0000-0000-0000-000000000000", 16),
        ("--require-field", "tier", 17),
    ] {
        let (code, ..) = verify(&file, &[disclosed.as_slice(), &[option, value]].concat());
        assert_eq!(code, Some(refused), "{option} {value}");
    }
    assert_eq!(
        verify(&file, &[&disclosed[..], &["--require-field", "accountId"]].concat()).0,
        Some(0)
    );
    let claims = report["claims"].as_array().unwrap();
    let claimed = claims.iter().map(|claim| (claim["field"].clone(), claim["value"].clone()));
    let attested = session["attestedFields"].as_array().unwrap().iter();
    let shared = attested
        .map(|field| (field.clone(), session["extractedData"][field.as_str().unwrap()].clone()));
    assert!(claimed.eq(shared), "{claims:?}");
    // A changed bit of the salt makes it another session's attestation; a missing byte makes it
    // invalid.
    let salt = 2 + "avouch/portable-attestation/v1".len() + 2 + 2 * 17 + 2;
    let mut other = answer.bytes.to_vec();
    other[salt + 1] ^= 1;
    fs::write(&file, &other).unwrap();
    assert_eq!(verify(&file, &[]).0, Some(8));
    fs::write(&file, &answer.bytes[..answer.bytes.len() - 1]).unwrap();
    assert_eq!(verify(&file, &[]).0, Some(2));
    let team = ["create-key", "--team", &deployment.team, "--environment", "development"];
    let other = deployment.admin(&team)["apiKey"].as_str().unwrap().to_owned();
    assert_eq!(ours.with_key(Some(&other)).get(&path).await.status, 404, "of another key");
}

/// The portal shows an attestation to the team, and gives its file to members.
async fn shown_in_the_portal(deployment: &Deployment, session: &Value, hash: &str) {
    let id = session["sessionId"].as_str().unwrap();
    let (page, file) =
        (format!("/portal/sessions/{id}"), format!("/portal/sessions/{id}/attestation"));
    let member = signed_in(deployment, "bob@lender.example", "member").await;
    let viewer = signed_in(deployment, "vera@lender.example", "viewer").await;
    for (person, may) in [(&member, true), (&viewer, false)] {
        let text = person.get(&page).await.text;
        for said in [hash, "accountId, displayName, memberSince", "zktls-full"] {
            assert!(text.contains(said), "{said}");
        }
        assert_eq!(text.contains(&file), may, "a link to the file");
    }
    let api = deployment.partner.get(&format!("browser-session/{id}/attestation")).await;
    let given = member.get(&file).await;
    assert_eq!((given.status, given.header("content-type")), (200, "application/cbor"));
    assert_eq!(given.text, String::from_utf8_lossy(&api.bytes));
    assert_eq!(viewer.get(&file).await.status, 403, "the file contains the applicant's data");
    let team = deployment.admin(&["create-team", "Another"])["teamId"].clone();
    let password = user(deployment, team.as_str().unwrap(), "mal@other.example", "owner");
    let stranger = PortalUser::new(&base(deployment));
    stranger.sign_in("mal@other.example", &password).await;
    assert_eq!(stranger.get("/portal/overview").await.status, 200);
    assert_eq!(stranger.get(&file).await.status, 404, "of another team");
}

/// The attestation is erased with the applicant's data.
async fn erased(deployment: &Deployment, session: &Value, hash: &str) {
    let id = session["sessionId"].as_str().unwrap();
    let ours = &deployment.partner;
    assert_eq!(ours.delete(&format!("browser-session/{id}/data")).await.status, 200);
    let gone = eventually("the attestation to be erased", TIMEOUT, async || {
        let answer = ours.get(&format!("browser-session/{id}/attestation")).await;
        (answer.status == 404).then_some(answer)
    });
    assert_eq!(gone.await.body["message"], "Attestation not found");
    let body = json!({ "proofHash": hash, "extractedData": {} });
    assert_eq!(ours.post("attestations/verify", &body).await.status, 404);
    let page = signed_in(deployment, "ina@lender.example", "member").await;
    let page = page.get(&format!("/portal/sessions/{id}")).await.text;
    assert!(
        page.contains(hash) && !page.contains("/attestation\""),
        "the hash is shown without a link"
    );
}
