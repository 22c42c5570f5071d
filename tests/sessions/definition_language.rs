//! A site that needs most of the language of definitions: frames, shadow roots, converters, actions,
//! requests with a body and a token, and values in later requests.

use std::{path::Path, process::Output};

use acceptance::{
    applicant::Applicant, database::Kind, service::Deployment, shop_platform::ShopPlatform,
};
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn data_is_collected_from_a_site_that_needs_most_of_the_language() {
    let mut deployment = Deployment::prepare(Kind::Sqlite).await;
    let site = ShopPlatform::start().await;
    site.allow(&mut deployment);
    deployment.run().await;
    let platform = site.publish(&deployment);
    let session = deployment.create(&json!({ "platformId": platform })).await;
    let id = session["sessionId"].as_str().unwrap();
    let applicant = Applicant::visit(session["embedUrl"].as_str().unwrap()).await;
    let embed = applicant.top_level();
    embed.click("[data-testid=start]").await;
    embed.sign_in("ada", "wrong").await;
    embed.until_prompted("Shop did not accept that").await;
    embed.sign_in_again("", "right").await;
    embed.click("[data-testid=consent-approve]").await;
    assert_eq!(embed.until_outcome().await, "PARTIAL_COMPLETE");
    let session = deployment.session(id).await;
    // The password is never read; the phone is not provided.
    let data = json!({
        "id": "ada l", "since": "2019-03-01", "balance": 1234.5, "edits": 7, "entries": 3,
        "shown": "Alle", "mail": "ada@shop.localhost", "active": true,
    });
    assert_eq!(session["extractedData"], data, "{session}");
    let mut missing: Vec<_> = session["missing"].as_array().unwrap().clone();
    missing.sort_by_key(Value::to_string);
    assert_eq!(missing, ["password", "phone"]);
    applicant.close().await;
}

#[tokio::test]
async fn the_check_prints_all_findings_with_their_places() {
    let deployment = Deployment::prepare(Kind::Sqlite).await;
    let site = ShopPlatform::start().await;
    let file = deployment.folder.path().join("shop.json");
    site.write(&file);
    let output = check(&deployment, &file, &[]);
    let report = json!({ "platform": "shop", "version": "1.0.0", "flaws": [] });
    assert_eq!((output.status.code(), printed(&output)), (Some(0), report));

    let text = std::fs::read_to_string(&file).unwrap();
    let text = text.replace("\"until\": [\"in\"]", "\"until\": [\"inn\"]");
    let text = text.replace("tr td:last-child", "tr td:contains('x')");
    std::fs::write(
        &file,
        text.replace("\"phone\": \"Phone\"", "\"phone\": \"Phone\", \"fax\": \"Fax\""),
    )
    .unwrap();
    let output = check(&deployment, &file, &[]);
    assert_eq!(output.status.code(), Some(1));
    let flaws = printed(&output)["flaws"].clone();
    let paths: Vec<_> =
        flaws.as_array().unwrap().iter().map(|flaw| (&flaw["path"], &flaw["severity"])).collect();
    let expected = [
        (&json!("$.signals.in"), &json!("warning")),
        (&json!("$.nodes.login.until[0]"), &json!("error")),
        (&json!("$.nodes.profile.fields.balance.at"), &json!("error")),
        (&json!("$.texts.en.fax"), &json!("warning")),
    ];
    assert_eq!(paths, expected, "{flaws}");
    assert_eq!((&flaws[1]["line"], &flaws[1]["column"]), (&json!(33), &json!(17)));
    let output = check(&deployment, &file, &["--format", "text"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let line = format!(
        "{}:33:17: error: $.nodes.login.until[0]: there is no signal `inn`; did you mean `in`?\n",
        file.display()
    );
    assert!(text.contains(&line), "{text}");
    assert!(text.ends_with("2 errors, 2 warnings in shop 1.0.0\n"), "{text}");

    site.write(&file);
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(
        &file,
        text.replace("\"phone\": \"Phone\"", "\"phone\": \"Phone\", \"fax\": \"Fax\""),
    )
    .unwrap();
    assert_eq!(check(&deployment, &file, &[]).status.code(), Some(0));
    assert_eq!(check(&deployment, &file, &["--strict"]).status.code(), Some(1));
}

#[tokio::test]
async fn the_schema_of_definitions_is_printed() {
    let deployment = Deployment::prepare(Kind::Sqlite).await;
    let output = deployment.command().args(["workflow", "schema"]).output().unwrap();
    let schema = printed(&output);
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert!(schema["properties"]["nodes"].is_object(), "{schema}");
}

fn check(deployment: &Deployment, file: &Path, options: &[&str]) -> Output {
    let mut command = deployment.command();
    command.args(["workflow", "check"]).arg(file).args(options).output().unwrap()
}

fn printed(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}
