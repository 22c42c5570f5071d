//! Expiry of sign-ins, a team's requirement of a second factor, and mails about changes of an
//! account.

use acceptance::{
    database::Kind,
    portal_user::{PortalUser, base, code_at, mail_with, now, signed_in, user},
    service::Deployment,
};

const ADA: &str = "ada@lender.example";
const BOB: &str = "bob@lender.example";
const PASSPHRASE: &str = "nine teapots under glass";
const SECOND_FACTOR: &str = "/portal/account/second-factor";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sign_ins_expire_when_idle_and_at_their_maximum_age() {
    let mut deployment = Deployment::prepare(Kind::Postgres).await;
    deployment.set("AVOUCH_PORTAL_IDLE_MINUTES", "5");
    deployment.set("AVOUCH_PORTAL_SIGN_IN_HOURS", "1");
    deployment.run().await;
    let password = user(&deployment, &deployment.team, ADA, "member");
    let ada = PortalUser::new(&base(&deployment));
    let passes = async |minutes: u32| {
        for column in ["created_at", "seen_at", "expires_at"] {
            let later = format!("{column} = {column} - interval '{minutes} minutes'");
            deployment.database.execute(&format!("UPDATE sign_ins SET {later}")).await;
        }
    };
    ada.sign_in(ADA, &password).await;
    for _ in 0..3 {
        passes(4).await;
        assert_eq!(ada.get("/portal/keys").await.status, 200, "seen 4 minutes ago");
    }
    passes(6).await;
    assert_eq!(ada.get("/portal/keys").await.status, 303, "idle for 6 minutes");

    ada.sign_in(ADA, &password).await;
    for _ in 0..14 {
        passes(4).await;
        assert_eq!(ada.get("/portal/keys").await.status, 200);
    }
    passes(4).await;
    assert_eq!(ada.get("/portal/keys").await.status, 303, "an hour old");
    let mut odd = deployment.command();
    odd.env("AVOUCH_PORTAL_IDLE_MINUTES", "0").env("AVOUCH_PORTAL_SIGN_IN_HOURS", "25");
    let refused = odd.args(["serve"]).output().unwrap();
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    for part in ["portal_idle_minutes must be 5 to 1440", "portal_sign_in_hours must be 1 to 24"] {
        assert!(told.contains(part), "{told}");
    }
}

/// Sets up one-time codes, with the reauthentication that this requires.
async fn set_up_codes(person: &PortalUser) {
    assert_eq!(person.get(SECOND_FACTOR).await.header("location"), "/portal/confirm");
    assert_eq!(person.confirm(&[]).await.status, 303);
    let page = person.get(SECOND_FACTOR).await;
    assert_eq!(page.status, 200);
    let secret = page.text.split_once("<code class=\"secret\">").unwrap().1;
    let code = code_at(secret.split('<').next().unwrap(), now());
    let fields = [("offer", page.after("name=\"offer\" value=\"")), ("code", code)];
    let fields = fields.each_ref().map(|(name, value)| (*name, value.as_str()));
    assert_eq!(person.fill(SECOND_FACTOR, SECOND_FACTOR, &fields).await.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_team_requires_a_second_factor_and_ends_sign_ins() {
    let mut deployment = Deployment::prepare(Kind::Sqlite).await;
    deployment.set("AVOUCH_OPERATOR_SECOND_FACTOR", "required");
    deployment.run().await;
    let ada = signed_in(&deployment, ADA, "owner").await;
    let bob = signed_in(&deployment, BOB, "member").await;
    let members = "/portal/members";
    let require = "/portal/members/second-factor";
    assert_eq!(bob.fill("/portal/keys", require, &[("required", "on")]).await.status, 403);
    assert_eq!(bob.get("/portal/keys").await.status, 200);
    assert_eq!(ada.fill(members, require, &[("required", "on")]).await.status, 303);
    let token = bob.get("/portal/confirm").await.token();
    for path in ["/portal/overview", "/portal/keys", "/portal/account", members] {
        assert_eq!(bob.get(path).await.header("location"), SECOND_FACTOR, "{path}");
    }
    let fields = [
        ("label", "x"),
        ("environment", "development"),
        ("expiry", "never"),
        ("form_token", token.as_str()),
    ];
    assert_eq!(bob.post("/portal/keys", &fields).await.header("location"), SECOND_FACTOR);
    assert_eq!(
        ada.get(members).await.header("location"),
        SECOND_FACTOR,
        "the requirement applies to its author, too"
    );
    for person in [&ada, &bob] {
        set_up_codes(person).await;
        assert_eq!(person.get("/portal/keys").await.status, 200);
    }
    let page = ada.get(members).await.text;
    assert!(page.contains("Make optional"), "{page}");
    let bobs = page.split("/portal/members/").find(|part| part.contains(&format!("Remove {BOB}")));
    let bobs = bobs.unwrap().split('/').next().unwrap();
    let sign_out = format!("{members}/{bobs}/sign-out");
    assert_eq!(bob.fill("/portal/keys", &sign_out, &[]).await.status, 403);
    assert_eq!(ada.fill(members, &sign_out, &[]).await.status, 303);
    assert_eq!(
        bob.get("/portal/keys").await.header("location").split('?').next(),
        Some("/portal/sign-in")
    );
    let log = ada.get("/portal/audit/entries.jsonl").await.text;
    for action in ["team.second-factor", "person.sign-out", "sign-in.confirm"] {
        assert!(log.contains(action), "{action}: {log}");
    }
    // Operators need a second factor whatever their team requires.
    assert_eq!(ada.fill(members, require, &[]).await.status, 303);
    let operator = signed_in(&deployment, "op@avouch.example", "operator").await;
    assert_eq!(operator.get("/portal/approvals").await.header("location"), SECOND_FACTOR);
    let viewer = signed_in(&deployment, "eve@lender.example", "viewer").await;
    assert_eq!(viewer.get("/portal/keys").await.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn account_changes_are_announced_by_mail() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let password = user(&deployment, &deployment.team, ADA, "owner");
    let ada = PortalUser::new(&base(&deployment));
    for _ in 0..2 {
        assert_eq!(ada.sign_in(ADA, &password).await.status, 303);
    }
    set_up_codes(&ada).await;
    let told = mail_with(&deployment, ADA, "Two-factor authentication was turned on").await;
    assert!(told.contains("127.0.0.1") && told.contains("/portal/account"), "{told}");
    let fields = [("new", PASSPHRASE)];
    assert_eq!(ada.fill("/portal/account", "/portal/account/password", &fields).await.status, 200);
    mail_with(&deployment, ADA, "Your password was changed").await;
    let drop = "/portal/account/second-factor/drop";
    assert_eq!(ada.fill("/portal/account", drop, &[]).await.status, 303);
    mail_with(&deployment, ADA, "Authenticator app removed").await;
    let outbox = deployment.data().join("outbox");
    let mails = || std::fs::read_dir(&outbox).unwrap().count();
    assert_eq!(mails(), 3, "no mail for the first browser, nor for the same one again");
    assert_eq!(PortalUser::new(&base(&deployment)).sign_in(ADA, PASSPHRASE).await.status, 303);
    mail_with(&deployment, ADA, "New sign-in to your account").await;
    let entries = ada.get("/portal/audit").await.text;
    for part in ["sign-in.confirm", "new browser", "second-factor.drop", "password.change"] {
        assert!(entries.contains(part), "{part}: {entries}");
    }
}
