//! Sensitive changes in the portal require the user to reauthenticate (step-up authentication).

use acceptance::{
    database::Kind,
    portal_user::{PortalUser, base, code_at, made_up, now, signed_in, user},
    service::Deployment,
};

const ADA: &str = "ada@lender.example";
const PASSPHRASE: &str = "nine teapots under glass";
const CONFIRM: &str = "/portal/confirm";
const KEY: &[(&str, &str)] =
    &[("label", "Night shift"), ("environment", "development"), ("expiry", "never")];

/// Moves all sign-ins and reauthentications an hour into the past.
async fn age_sign_ins_by_an_hour(deployment: &Deployment) {
    for column in ["created_at", "confirmed_at"] {
        let sql = format!("UPDATE sign_ins SET {column} = {column} - interval '1 hour'");
        deployment.database.execute(&sql).await;
    }
}

/// A second factor, a passkey or another password require more than a sign-in.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn credentials_are_changed_only_after_reauthentication() {
    let deployment = Deployment::start(Kind::Postgres).await;
    let ada = signed_in(&deployment, ADA, "owner").await;
    let unknown = format!("/portal/account/passkeys/{}/drop", uuid::Uuid::new_v4());
    for path in [
        "/portal/account/second-factor",
        "/portal/account/second-factor/drop",
        "/portal/account/passkeys/new",
        "/portal/account/password",
        &unknown,
    ] {
        let answer =
            ada.fill_once("/portal/keys", path, &[("new", PASSPHRASE), ("code", "0")]).await;
        assert_eq!((answer.status, answer.header("location")), (303, CONFIRM), "{path}");
    }
    for path in ["/portal/account/second-factor", "/portal/account/passkeys/new"] {
        assert_eq!(ada.get(path).await.header("location"), CONFIRM, "{path}");
    }
    // A wrong password does not reauthenticate, and the held form is not resumed without it.
    let change = ("/portal/account/password", [("new", PASSPHRASE)]);
    ada.fill_once("/portal/account", change.0, &change.1).await;
    assert_eq!(ada.get("/portal/confirm/continue").await.header("location"), CONFIRM);
    let wrong = [("password", "wrong wrong wrong")];
    assert_eq!(ada.fill_once(CONFIRM, CONFIRM, &wrong).await.status, 422);
    assert_eq!(ada.get("/portal/confirm/continue").await.header("location"), CONFIRM);

    // The held form is resumed with its values, and a copy of the earlier cookie is no longer
    // valid.
    let thief = PortalUser::new(&base(&deployment));
    thief.set_cookie(&ada.cookie().unwrap());
    assert_eq!(thief.get("/portal/keys").await.status, 200);
    assert_eq!(ada.confirm(&[]).await.status, 303);
    assert_eq!(thief.get("/portal/keys").await.status, 303, "another token");
    let done = ada.resume_after_confirmation().await;
    assert!(done.status == 200 && done.text.contains("Password changed"), "{}", done.text);
    assert!(!done.text.contains(PASSPHRASE));
    assert_eq!(PortalUser::new(&base(&deployment)).sign_in(ADA, PASSPHRASE).await.status, 303);
    // Reauthentication holds for a moment, and not for an hour.
    assert_eq!(ada.get("/portal/account/second-factor").await.status, 200);
    age_sign_ins_by_an_hour(&deployment).await;
    assert_eq!(ada.get("/portal/account/second-factor").await.header("location"), CONFIRM);
}

/// Keys, members and webhooks are changed with an old sign-in.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_members_and_webhooks_require_a_recent_sign_in_or_reauthentication() {
    let deployment = Deployment::start(Kind::Postgres).await;
    let ada = signed_in(&deployment, ADA, "owner").await;
    signed_in(&deployment, "bob@lender.example", "member").await;
    let first = |page: &acceptance::portal_user::Page, before: &str| {
        page.after(before).split('/').next().unwrap().to_owned()
    };
    let key = first(&ada.get("/portal/keys").await, "action=\"/portal/keys/");
    let bob = first(&ada.get("/portal/members").await, "action=\"/portal/members/");
    let listed = deployment.admin(&["list-webhooks", "--team", &deployment.team]);
    let hook = listed["webhooks"][0]["webhookId"].as_str().unwrap();
    let text = async |path: &str| ada.get(path).await.text.matches("<tr>").count();
    let before = (text("/portal/keys").await, text("/portal/members").await);
    age_sign_ins_by_an_hour(&deployment).await;
    let fields = [
        KEY,
        &[("email", "eve@lender.example"), ("role", "owner"), ("overlap", "0")],
        &[("url", "https://evil.example/"), ("timeout", "9"), ("retries", "1")],
    ]
    .concat();
    for path in [
        "/portal/keys".to_owned(),
        format!("/portal/keys/{key}/rotate"),
        format!("/portal/keys/{key}/revoke"),
        "/portal/members".to_owned(),
        format!("/portal/members/{bob}/invite"),
        format!("/portal/members/{bob}/role"),
        format!("/portal/members/{bob}/remove"),
        "/portal/webhooks".to_owned(),
        format!("/portal/webhooks/{hook}"),
        format!("/portal/webhooks/{hook}/rotate"),
    ] {
        let answer = ada.fill_once("/portal/keys", &path, &fields).await;
        assert_eq!((answer.status, answer.header("location")), (303, CONFIRM), "{path}");
    }
    assert_eq!((text("/portal/keys").await, text("/portal/members").await), before);
    let after = deployment.admin(&["list-webhooks", "--team", &deployment.team]);
    assert_eq!(after, listed, "unchanged");

    // The form held last is resumed once, and only at its own path.
    ada.fill_once("/portal/keys", "/portal/keys", KEY).await;
    assert_eq!(ada.confirm(&[]).await.status, 303);
    let page = ada.get("/portal/confirm/continue?next=//evil.example/").await;
    let resume = page.after("name=\"resume\" value=\"");
    let other = ada.fill("/portal/keys", "/portal/webhooks", &[("resume", &resume)]).await;
    assert_eq!(other.status, 403, "another form");
    ada.fill_once("/portal/keys", "/portal/keys", KEY).await;
    assert_eq!(ada.get("/portal/keys").await.text.matches("Night shift").count(), 3, "one key");
    let made_up = [("resume", made_up())];
    let made_up = [("resume", made_up[0].1.as_str())];
    assert_eq!(ada.fill_once("/portal/keys", "/portal/keys", &made_up).await.status, 403);
}

/// Reauthentication asks for the same factors as a sign-in.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reauthentication_requires_the_second_factor() {
    let deployment = Deployment::start(Kind::Postgres).await;
    let password = user(&deployment, &deployment.team, ADA, "owner");
    let ada = PortalUser::new(&base(&deployment));
    ada.sign_in(ADA, &password).await;
    ada.confirm(&[]).await;
    let path = "/portal/account/second-factor";
    let page = ada.get(path).await;
    let secret = page.text.split_once("<code class=\"secret\">").unwrap().1;
    let secret = secret.split('<').next().unwrap().to_owned();
    let (offer, code) = (page.after("name=\"offer\" value=\""), code_at(&secret, now()));
    let kept = ada.fill(path, path, &[("offer", &offer), ("code", &code)]).await;
    assert_eq!(kept.status, 200);
    let recovery = kept.text.split_once("<ul class=\"codes\">").map_or("", |(_, rest)| rest);
    let recovery = recovery.split("<code>").nth(1).unwrap_or_default();
    let recovery = recovery.split('<').next().unwrap_or_default().to_owned();
    assert_eq!(recovery.len(), 29, "120 bits in six groups of four: {}", kept.text);
    let sql = "UPDATE sign_ins SET confirmed_at = confirmed_at - interval '1 hour'";
    deployment.database.execute(sql).await;
    let drop = "/portal/account/second-factor/drop";
    let held = ada.fill_once("/portal/account", drop, &[]).await;
    assert_eq!(held.header("location"), CONFIRM);
    for more in [&[][..], &[("code", "")], &[("code", "000000")], &[("code", &code)]] {
        assert_eq!(ada.confirm(more).await.status, 422, "{more:?}");
    }
    assert_eq!(ada.confirm(&[("code", &recovery)]).await.status, 303);
    // A recovery code of 80 bits, as earlier versions issued them, in the ways that users type it.
    deployment
        .database
        .execute("INSERT INTO recovery_codes SELECT id, sha256('abcdefghijklmnop') FROM users")
        .await;
    for (typed, status) in [("ABCD efgh-IJKLmnop", 303), ("abcd-efgh-ijkl-mnop", 422)] {
        assert_eq!(ada.confirm(&[("code", typed)]).await.status, status, "{typed}");
    }
    assert_eq!(ada.resume_after_confirmation().await.status, 303);
    let again = PortalUser::new(&base(&deployment));
    assert_eq!(again.sign_in(ADA, &password).await.header("location"), "/portal/overview");
}
