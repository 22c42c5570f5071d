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
    let fields =
        "[...document.querySelectorAll('#consent-fields > dd')].map((e) => e.innerText).join('|')";
    embed
        .until(
            "the request to share",
            "document.querySelectorAll('#consent-fields > dd').length > 9",
        )
        .await;
    let fields = embed.evaluate(fields).await;
    let fields = fields.as_str().unwrap();
    assert!(fields.contains("Entries: 6"), "{fields}");
    assert!(fields.contains("Am Markt 1") && fields.contains("Entries: 2"), "{fields}");
    assert!(fields.contains("November 2, 2026"), "{fields}");
    embed.click("[data-testid=consent-approve]").await;
    assert_eq!(embed.until_outcome().await, "PARTIAL_COMPLETE");
    let session = deployment.session(id).await;
    // The password is never read; the phone is not provided.
    let orders: Vec<_> = [11, 12, 21, 22, 31, 32].map(order).into();
    let data = json!({
        "id": "ada l", "since": "2019-03-01", "balance": 1234.5, "edits": 7, "entries": 3,
        "shown": "Alle", "mail": "ada@shop.localhost", "active": true,
        "orders": orders,
        "address": { "city": "Bonn", "street": "Am Markt 1" },
        "visits": [{ "at": "2026-11-01T08:00:00Z" }, { "at": "2026-11-02T09:30:00Z" }],
    });
    assert_eq!(session["extractedData"], data, "{session}");
    let mut missing: Vec<_> = session["missing"].as_array().unwrap().clone();
    missing.sort_by_key(Value::to_string);
    assert_eq!(missing, ["password", "passwordAttribute", "phone"]);
    applicant.close().await;
}

/// What is collected of an order.
fn order(number: i32) -> Value {
    let total = f64::from(number) * 1000.0 + 0.5;
    json!({ "number": format!("A-{number}"), "total": total, "kind": "paid" })
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

/// A mistake: what an author wrote in place of what, and what the message says.
type Mistake = (&'static str, &'static str, &'static str);

const MISTAKES: [Mistake; 23] = [
    ("\"until\": [\"in\"]", "\"until\": [\"inn\"]", "there is no signal `inn`; did you mean `in`?"),
    ("\"next\": \"login\"", "\"next\": \"logn\"", "there is no node `logn`; did you mean `login`?"),
    (
        "\"fetch\": \"user\"",
        "\"fetch\": \"usr\"",
        "there is no request `usr`; did you mean `user`?",
    ),
    (
        "\"textKey\": \"share\"",
        "\"textKey\": \"shared\"",
        "there is no English text `shared`; did you mean `share`?",
    ),
    ("\"onFail\"", "\"onfail\"", "is no member that is known here; did you mean `onFail`?"),
    ("\"type\": \"act\"", "\"type\": \"click\"", "must be one of \"act\""),
    (
        "\"timeoutSeconds\": 300",
        "\"timeoutSeconds\": \"300\"",
        "is a string, must be of type integer",
    ),
    ("\"timeoutSeconds\": 300", "\"timeoutSeconds\": 3", "must be 5 to 3600"),
    ("\"NO_DATA\"", "\"NODATA\"", "did you mean `NO_DATA`? It must be one of \"ACCOUNT_"),
    ("\"NO_DATA\"", "\"no-data\"", "did you mean `NO_DATA`? It must be one of \"ACCOUNT_"),
    ("tr td:last-child", "dl.account [[", "an attribute is not written as [name]"),
    ("tr td:last-child", "td:contains('x')", "`:contains()` is no pseudo-class of CSS"),
    ("tr td:last-child", "//td[2]", "is no CSS selector"),
    (
        "\"url\": \"/orders\"",
        "\"url\": \"https://shop.localhost/orders\"",
        "it is compared with the path alone",
    ),
    (
        "\"url\": \"/orders\"",
        "\"url\": \"/users?tab=1\"",
        "the query and the fragment are not compared",
    ),
    ("\"fragment\": \"/home*\"", "\"fragment\": \"#/home\"", "is compared without `#`"),
    (
        "\"hosts\": [\"shop.localhost\"]",
        "\"hosts\": [\"shop.localhost:8443\"]",
        "must be a DNS name in lower case",
    ),
    (
        "\"hosts\": [\"shop.localhost\"]",
        "\"hosts\": [\"shop.localhost\", \"https://a.test\"]",
        "without scheme",
    ),
    ("\"/data/user/id\"", "\"data.user.id\"", "is no JSON pointer, as /user/id"),
    (
        "\"d. MMMM y\"",
        "\"DD. MMMM YYYY\"",
        "`DD` is no field of dates that is read: days of the month are `d` in small letters",
    ),
    ("\"d. MMMM y\"", "\"yyyy-mm-dd\"", "months are `MM`: `mm` in small letters are minutes"),
    ("\"seit (.+)\"", "\"seit (.+\"", "is no regular expression"),
    (
        "\"next\": \"review\"",
        "\"next\": \"end\"",
        "can be reached with data the applicant has not reviewed",
    ),
];

#[tokio::test]
async fn the_messages_for_typical_mistakes_say_what_to_do() {
    let deployment = Deployment::prepare(Kind::Sqlite).await;
    let site = ShopPlatform::start().await;
    let file = deployment.folder.path().join("shop.json");
    site.write(&file);
    let right = std::fs::read_to_string(&file).unwrap();
    for (written, mistake, message) in MISTAKES {
        let wrong = right.replacen(written, mistake, 1);
        assert_ne!(wrong, right, "{written} is not in the definition");
        std::fs::write(&file, wrong).unwrap();
        let output = check(&deployment, &file, &["--format", "text"]);
        assert_eq!(output.status.code(), Some(1), "{mistake}");
        let text = String::from_utf8(output.stdout).unwrap();
        let found = text.lines().find(|line| line.contains(": error: ") && line.contains(message));
        let line = found.unwrap_or_else(|| panic!("{mistake}: {text}"));
        println!("{mistake:<45} {}", line.rsplit_once(": error: ").map_or(line, |(_, said)| said));
    }
    // A member that is there twice, a comma too many, a file that is no JSON, and a blocked port.
    let twice =
        right.replacen("\"start\": \"open\",", "\"start\": \"open\", \"start\": \"login\",", 1);
    let comma = right.replacen("\"start\": \"open\",", "\"start\": \"open\",,", 1);
    let port = right.replacen("shop.localhost:", "shop.localhost:6000/", 1);
    for (text, message) in [
        (twice, "is there twice"),
        (comma, "is no JSON"),
        ("x".into(), "is no JSON"),
        (port, "6000 is that of another protocol; serve the site on another port, as 8080"),
    ] {
        std::fs::write(&file, text).unwrap();
        let output = check(&deployment, &file, &["--format", "text"]);
        assert_eq!(output.status.code(), Some(1));
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains(message), "{text}");
        println!("{text}");
    }
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
