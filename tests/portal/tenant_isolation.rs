//! Every page and form of the portal that names a resource, tried with resources of another team.

use std::collections::BTreeMap;

use acceptance::{
    database::Kind,
    portal_routes::routes,
    portal_user::{PortalUser, base, user},
    service::Deployment,
};
use serde_json::{Value, json};
use uuid::Uuid;

const OLGA: &str = "olga@lender.example";
const MAL: &str = "mal@other.example";
/// Values for the fields of all forms.
const FIELDS: &[(&str, &str)] = &[
    ("url", "https://evil.example/"),
    ("timeout", "9"),
    ("retries", "1"),
    ("overlap", "0"),
    ("active", "false"),
    ("from", "2026-01-01T00:00"),
    ("to", "2027-01-01T00:00"),
    ("role", "viewer"),
    ("name", "Mine"),
    ("email", "mine@example.com"),
    ("phone", ""),
    ("locale", ""),
    ("language", "en"),
    ("subject", "Mine"),
    ("body", "{{ link }}"),
    ("revision", "1"),
    ("on", "on"),
    ("reason", "x"),
];

/// Creates one resource of each kind for a team; returns their identifiers by the path segment
/// before them.
async fn create_resources(
    deployment: &Deployment,
    team: &str,
) -> (PortalUser, BTreeMap<&'static str, String>) {
    let password = user(deployment, team, MAL, "owner");
    let person = PortalUser::new(&base(deployment));
    for _ in 0..2 {
        person.sign_in(MAL, &password).await;
    }
    let text = |made: &Value, name: &str| made[name].as_str().unwrap().to_owned();
    let key = deployment.admin(&["create-key", "--team", team, "--environment", "development"]);
    let url = "https://hooks.other.example/";
    let hook =
        text(&deployment.admin(&["create-webhook", "--team", team, "--url", url]), "webhookId");
    let email = "ada@example.com";
    let receiver = deployment.admin(&["create-receiver", "--team", team, "--email", email]);
    let partner = deployment.partner.with_key(key["apiKey"].as_str());
    let session = partner.create(&json!({})).await;
    let sent = person.fill("/portal/keys", &format!("/portal/webhooks/{hook}/test"), &[]).await;
    let template = person.fill("/portal/templates", "/portal/templates", FIELDS).await;
    let last = |location: &str| location.rsplit('/').next().unwrap().to_owned();
    let on = async |page: &str, before: &str| {
        person.get(page).await.after(before).split('/').next().unwrap().to_owned()
    };
    let things = BTreeMap::from([
        ("keys", text(&key, "keyId")),
        ("webhooks", hook.clone()),
        ("deliveries", last(sent.header("location"))),
        ("receivers", receiver["receiverId"].as_str().unwrap().to_owned()),
        ("sessions", text(session.at("/data"), "sessionId")),
        ("templates", last(template.header("location"))),
        ("members", on("/portal/members", "action=\"/portal/members/").await),
        ("sign-ins", on("/portal/account", "action=\"/portal/account/sign-ins/").await),
        // There is no passkey without an authenticator; `passkeys` tries an existing one.
        ("passkeys", Uuid::new_v4().to_string()),
    ]);
    (person, things)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resources_of_another_team_are_not_found() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let password = user(&deployment, &deployment.team, OLGA, "owner");
    let owner = PortalUser::new(&base(&deployment));
    owner.sign_in(OLGA, &password).await;
    let fields = [FIELDS, &[("password", &password)]].concat();
    let team = deployment.admin(&["create-team", "Another"])["teamId"].clone();
    let (mal, resources) = create_resources(&deployment, team.as_str().unwrap()).await;
    let kept = || {
        let list = |command| deployment.admin(&[command, "--team", team.as_str().unwrap()]);
        // Without the state of its endpoint: the test delivery to it may still be running.
        let hook = list("list-webhooks")["webhooks"][0].clone();
        let hook = ["url", "active"].map(|field| hook[field].clone());
        (hook, list("list-receivers"), list("list-templates"))
    };
    let before = kept();
    let named = |pattern: &str| {
        let parts: Vec<_> = pattern.split('/').collect();
        let at = parts.iter().position(|part| part.starts_with('{'))?;
        let id = resources.get(parts[at - 1]).unwrap_or_else(|| panic!("one of {pattern}"));
        Some(pattern.replace(parts[at], id).replace("{step}", "submit"))
    };
    // Owners are no authors; `authoring` tries the drafts of another team. Platforms belong to none.
    let is_of_owners = |path: &String| {
        !path.starts_with("/portal/drafts") && !path.starts_with("/portal/platforms/")
    };
    let pages: Vec<_> = routes("get").into_iter().filter(is_of_owners).collect();
    let pages: Vec<_> = pages.into_iter().filter(|path| !path.contains("/assets/")).collect();
    let pages: Vec<_> = pages.iter().filter_map(|path| named(path)).collect();
    let forms: Vec<_> = routes("post").into_iter().filter(is_of_owners).collect();
    let forms: Vec<_> = forms.iter().filter_map(|path| named(path)).collect();
    println!("{} pages, {} forms", pages.len(), forms.len());
    // There is no attestation without an applicant; `sessions::attestation` tries an existing one.
    let (files, pages): (Vec<_>, Vec<_>) =
        pages.into_iter().partition(|path| path.ends_with("/attestation"));
    for path in &files {
        assert_eq!(owner.get(path).await.status, 404, "{path}");
    }
    for path in &pages {
        assert_eq!(owner.get(path).await.status, 404, "{path}");
        assert_eq!(mal.get(path).await.status, 200, "{path} exists");
    }
    for path in &forms {
        assert_eq!(owner.fill("/portal/keys", path, &fields).await.status, 404, "{path}");
    }
    assert_eq!(kept(), before);
    for path in &pages {
        assert_eq!(mal.get(path).await.status, 200, "{path} still exists");
    }
    let session = format!("/portal/sessions/{}", resources["sessions"]);
    assert!(mal.get(&session).await.text.contains("CREATED"), "unchanged");
}
