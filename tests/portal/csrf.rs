//! Cross-site request forgery: forms that no page of the portal sent are refused.

use acceptance::{
    database::Kind,
    portal_routes::{fits, routes},
    portal_user::{base, made_up, signed_in},
    service::Deployment,
};
use serde_json::{Value, json};

const ADA: &str = "ada@lender.example";

/// Returns every form that changes something for a signed-in user.
fn forms(session: &str, hook: &str, delivery: &str, person: &str, key: &str) -> Vec<String> {
    let plain = [
        "/portal/webhooks",
        "/portal/members",
        "/portal/receivers",
        "/portal/templates",
        "/portal/embedding",
        "/portal/branding",
        "/portal/branding/logo",
        "/portal/branding/logo/remove",
        "/portal/audit/verify",
        "/portal/keys",
        "/portal/drafts",
        "/portal/platforms/1/draft",
        "/portal/platforms/1/versions",
        "/portal/account/password",
        "/portal/account/second-factor",
        "/portal/account/second-factor/drop",
        "/portal/account/passkeys/new",
        "/portal/confirm",
        "/portal/sign-out",
    ];
    let named = [
        format!("/portal/webhooks/{hook}"),
        format!("/portal/webhooks/{hook}/switch"),
        format!("/portal/webhooks/{hook}/rotate"),
        format!("/portal/webhooks/{hook}/test"),
        format!("/portal/webhooks/{hook}/again"),
        format!("{delivery}/again"),
        format!("/portal/members/{person}/invite"),
        format!("/portal/members/{person}/role"),
        format!("/portal/members/{person}/remove"),
        format!("/portal/members/{person}/sign-out"),
        "/portal/members/second-factor".to_owned(),
        "/portal/members/regions".to_owned(),
        format!("/portal/receivers/{key}"),
        format!("/portal/receivers/{key}/remove"),
        "/portal/templates/1".to_owned(),
        "/portal/templates/1/submit".to_owned(),
        "/portal/templates/1/withdraw".to_owned(),
        "/portal/templates/1/approve".to_owned(),
        "/portal/templates/1/reject".to_owned(),
        "/portal/templates/1/default".to_owned(),
        "/portal/templates/1/remove".to_owned(),
        format!("/portal/drafts/{key}/open"),
        format!("/portal/drafts/{key}/delete"),
        format!("/portal/keys/{key}/rotate"),
        format!("/portal/keys/{key}/revoke"),
        format!("/portal/account/sign-ins/{key}/end"),
        format!("/portal/account/passkeys/{key}/drop"),
        format!("/portal/sessions/{session}/end"),
    ];
    plain.into_iter().map(str::to_owned).chain(named).collect()
}

/// The forms that are sent before a user is signed in.
const OUTSIDE: [&str; 6] = [
    "/portal/language",
    "/portal/sign-in",
    "/portal/sign-in/code",
    "/portal/sign-in/passkey",
    "/portal/forgot",
    "/portal/password",
];

/// Forms from other sites, and forms without a valid sign-in and token, change nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forms_are_accepted_from_the_portals_own_pages_only() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let person = signed_in(&deployment, ADA, "owner").await;
    let page = person.get("/portal/keys").await;
    let (token, id) = (page.token(), page.after("action=\"/portal/keys/"));
    let id = id.split('/').next().unwrap();
    let other = signed_in(&deployment, "bob@lender.example", "owner").await;
    let others = other.get("/portal/keys").await.token();
    let sign_in = person.get("/portal/account").await;
    assert_eq!(sign_in.status, 200);
    let ours = base(&deployment);
    let listed = deployment.admin(&["list-webhooks", "--team", &deployment.team]);
    let hook = listed["webhooks"][0]["webhookId"].as_str().unwrap();
    let owed = person.fill("/portal/keys", &format!("/portal/webhooks/{hook}/test"), &[]).await;
    let delivery = owed.header("location").to_owned();
    assert!(delivery.starts_with("/portal/deliveries/"), "{delivery}");
    let bob = person.get("/portal/members").await;
    let bob = bob.after("action=\"/portal/members/");
    let bob = bob.split('/').next().unwrap();
    let session = deployment.create(&json!({})).await;
    let session = session["sessionId"].as_str().unwrap();
    let all = forms(session, hook, &delivery, bob, id);
    let known = || all.iter().map(String::as_str).chain(OUTSIDE);
    for pattern in routes("post") {
        assert!(known().any(|path| fits(&pattern, path)), "no case tries {pattern}");
    }
    for path in known() {
        assert!(routes("post").iter().any(|pattern| fits(pattern, path)), "{path} is no form's");
    }
    for path in &all {
        let good = [("origin", ours.as_str()), ("sec-fetch-site", "same-origin")];
        for (why, token, headers) in [
            ("no token", None, &good[..]),
            ("an empty token", Some(""), &good[..]),
            ("an invented token", Some(made_up().as_str()), &good[..]),
            ("another user's token", Some(others.as_str()), &good[..]),
            ("another site", Some(token.as_str()), &[("sec-fetch-site", "cross-site")][..]),
            ("a sibling site", Some(token.as_str()), &[("sec-fetch-site", "same-site")][..]),
            ("another origin", Some(token.as_str()), &[("origin", "https://evil.example")][..]),
            ("no origin", Some(token.as_str()), &[("origin", "null")][..]),
            ("no origin header at all", Some(token.as_str()), &[][..]),
        ] {
            let mut fields =
                vec![("label", "x"), ("environment", "development"), ("expiry", "never")];
            fields.extend(token.map(|token| ("form_token", token)));
            let answer = person.post_from(path, &fields, headers).await;
            assert_eq!(answer.status, 403, "{path}: {why}");
        }
    }
    assert_eq!(person.get("/portal/keys").await.text.matches("<tr>").count(), 2, "unchanged");
    let after = deployment.admin(&["list-webhooks", "--team", &deployment.team]);
    assert_eq!(after, listed, "unchanged");
    let elsewhere = [("origin", "https://evil.example")];
    let fields = [("email", ADA), ("password", "x"), ("link", "x"), ("new", "x")];
    assert_eq!(deployment.session(session).await["status"], "CREATED", "unchanged");
    for path in OUTSIDE {
        assert_eq!(person.post_from(path, &fields, &elsewhere).await.status, 403, "{path}");
    }
}

/// A user who may change a webhook cannot read its header's value, and cannot have it sent to a
/// host of theirs either.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_header_is_not_sent_to_another_host() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let member = signed_in(&deployment, ADA, "member").await;
    let (team, url) = (deployment.team.as_str(), "https://hooks.lender.example/one?token=sesame");
    let order = ["create-webhook", "--team", team, "--url", url, "--header", "x-lender: sesame"];
    let id = deployment.admin(&order)["webhookId"].as_str().unwrap().to_owned();
    let path = format!("/portal/webhooks/{id}");
    let change = async |url: &str, name: &str, value: &str| {
        let fields = [
            ("url", url),
            ("header-name", name),
            ("header-value", value),
            ("timeout", "9"),
            ("retries", "1"),
        ];
        member.fill(&path, &path, &fields).await.status
    };
    let listed = || {
        let all = deployment.admin(&["list-webhooks", "--team", team]);
        let all = all["webhooks"].as_array().unwrap().clone();
        all.into_iter().find(|one| one["webhookId"] == id.as_str()).unwrap()
    };
    for elsewhere in [
        "https://evil.example/one",
        "https://hooks.lender.example:8443/one",
        "https://hooks.lender.example.evil.example/",
    ] {
        assert_eq!(change(elsewhere, "x-lender", "").await, 422, "{elsewhere}");
    }
    assert_eq!(listed()["url"], url);
    assert_eq!(change("https://hooks.lender.example/two", "x-lender", "").await, 200);
    assert_eq!(change("https://other.example/", "X-Lender", "anew").await, 200);
    assert_eq!(listed()["header"], "x-lender");
    assert_eq!(change("https://third.example/", "", "").await, 200);
    assert_eq!(listed()["header"], Value::Null);
    assert!(!member.get(&path).await.text.contains("sesame"));
    // The audit log contains no part of a URL or header that may be a secret.
    let fields = [("url", url), ("timeout", "9"), ("retries", "1")];
    assert_eq!(member.fill(&path, "/portal/webhooks", &fields).await.status, 200);
    let owner = signed_in(&deployment, "olga@lender.example", "owner").await;
    let log = owner.get("/portal/audit/entries.jsonl").await.text;
    assert!(log.contains("webhook.make") && !log.contains("sesame"), "{log}");
}
