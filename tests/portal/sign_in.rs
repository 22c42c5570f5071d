//! Refused sign-ins: what is recorded, how they are throttled, and passwords that expire.

use std::time::Duration;

use acceptance::{
    database::Kind,
    eventually,
    portal_user::{Page, PortalUser, base, made_up, user},
    service::Deployment,
};
use serde_json::Value;

const ADA: &str = "ada@lender.example";
const WRONG: &str = "correct horse battery stapler";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_sign_ins_are_logged_and_audited() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let password = user(&deployment, &deployment.team, ADA, "owner");
    let stranger = PortalUser::new(&base(&deployment));
    for email in [ADA, "nobody@lender.example", "no address"] {
        assert_ne!(stranger.sign_in(email, WRONG).await.status, 303, "{email}");
    }
    let ada = PortalUser::new(&base(&deployment));
    assert_eq!(ada.sign_in(ADA, &password).await.status, 303);
    let refused = eventually("the refusal", Duration::from_secs(60), async || {
        let log = ada.get("/portal/audit/entries.jsonl").await.text;
        let entries = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let refused: Vec<_> =
            entries.filter(|entry| entry["action"] == "sign-in.refused").collect();
        (!refused.is_empty()).then_some(refused)
    });
    let refused = refused.await;
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert_eq!(refused[0]["actor"], ADA);
    assert_eq!(refused[0]["subject"], "password");
    assert_eq!(refused[0]["address"], "127.0.0.1");
    let log = std::fs::read_to_string(deployment.log()).unwrap();
    assert_eq!(log.matches("a sign-in was refused").count(), 3, "{log}");
    for secret in [WRONG, password.as_str(), "nobody@lender.example"] {
        assert!(!log.contains(secret), "{secret}");
    }
}

/// Starts a deployment behind a proxy, so that requests come from many networks.
async fn behind_a_proxy() -> Deployment {
    let mut deployment = Deployment::prepare(Kind::Sqlite).await;
    deployment.set("AVOUCH_TRUSTED_PROXIES", "127.0.0.1/32");
    deployment.run().await;
    deployment
}

async fn sign_in_from(person: &PortalUser, address: &str, password: &str) -> Page {
    let from = person.base.clone();
    let headers = [
        ("origin", from.as_str()),
        ("sec-fetch-site", "same-origin"),
        ("x-forwarded-for", address),
    ];
    person.post_from("/portal/sign-in", &[("email", ADA), ("password", password)], &headers).await
}

/// An attacker guesses from one network and from many, while the owner signs in.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attackers_guesses_lock_no_user_out() {
    let deployment = behind_a_proxy().await;
    let password = user(&deployment, &deployment.team, ADA, "owner");
    let ada = PortalUser::new(&base(&deployment));
    assert_eq!(sign_in_from(&ada, "192.0.2.1", &password).await.status, 303);
    ada.drop_cookie();

    // After eleven wrong guesses from one network, requests from it wait for seconds.
    let stranger = PortalUser::new(&base(&deployment));
    let mut statuses = vec![];
    for _ in 0..11 {
        statuses.push(sign_in_from(&stranger, "203.0.113.9", WRONG).await.status);
    }
    assert_eq!(statuses, [&[422; 6][..], &[429; 5]].concat());
    let late = sign_in_from(&stranger, "203.0.113.9", &password).await;
    assert_eq!(late.status, 429, "even with the password");
    let wait: u32 = late.header("retry-after").parse().unwrap();
    assert!((1..=15).contains(&wait), "{wait} s");
    // A browser that is new to the account, from another network.
    let other = PortalUser::new(&base(&deployment));
    assert_eq!(sign_in_from(&other, "192.0.2.2", &password).await.status, 303);
    // The owner's known browser signs in also from the attacker's network.
    for address in ["192.0.2.1", "203.0.113.9"] {
        assert_eq!(sign_in_from(&ada, address, &password).await.status, 303, "{address}");
        ada.drop_cookie();
    }

    // With guesses from ever new networks, unknown browsers have to wait after twenty in all.
    let mut guesses = 6;
    let late = loop {
        let answer = sign_in_from(&stranger, &format!("198.51.100.{guesses}"), WRONG).await;
        if answer.status == 429 {
            break answer;
        }
        assert_eq!(answer.status, 422);
        guesses += 1;
        assert!(guesses < 60, "guesses are bounded");
    };
    println!("{guesses} guesses before the first delay of the account");
    assert!(guesses >= 20, "{guesses}");
    let wait: u32 = late.header("retry-after").parse().unwrap();
    assert!((1..=300).contains(&wait), "{wait} s");
    stranger.set_browser_cookie(&format!("{}.{}", made_up(), made_up()));
    let forged = sign_in_from(&stranger, "198.51.100.250", &password).await;
    assert!(forged.status == 429 || forged.status == 303, "{}", forged.status);
    assert_eq!(sign_in_from(&ada, "192.0.2.1", &password).await.status, 303, "the owner's browser");
    ada.drop_cookie();

    // Guesses in the owner's own browser are throttled in the same way.
    let mut statuses = vec![];
    for _ in 0..8 {
        statuses.push(sign_in_from(&ada, "192.0.2.1", WRONG).await.status);
    }
    assert_eq!(statuses, [&[422; 6][..], &[429; 2]].concat());
    let told = ada.browser_cookie().unwrap();
    assert!(told.len() < 60 && !told.contains(ADA), "{told}");
    let dump = deployment.database.dump().await;
    assert!(!dump.contains(&told), "only a hash of it is kept");
}

/// A password generated by a command works at once, and no longer after its expiry.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_generated_password_expires_after_three_days() {
    let deployment = Deployment::start(Kind::Postgres).await;
    let password = user(&deployment, &deployment.team, ADA, "owner");
    let ada = PortalUser::new(&base(&deployment));
    assert_eq!(ada.sign_in(ADA, &password).await.status, 303);
    assert_eq!(ada.get("/portal/keys").await.status, 200, "every page is available at once");
    let notice = "You are using a temporary password.";
    assert!(ada.get("/portal/account").await.text.contains(notice));

    let hours_pass = async |hours: u32| {
        let sql =
            format!("UPDATE users SET password_until = password_until - interval '{hours} hours'");
        deployment.database.execute(&sql).await;
    };
    hours_pass(71).await;
    assert_eq!(ada.sign_in(ADA, &password).await.status, 303);
    hours_pass(2).await;
    let late = PortalUser::new(&base(&deployment));
    for _ in 0..7 {
        let answer = late.sign_in(ADA, &password).await;
        assert_eq!(answer.status, 422, "an expired password is not throttled");
        assert!(answer.text.contains("temporary password has expired"), "{}", answer.text);
        assert!(late.cookie().is_none());
    }
    let wrong = late.sign_in(ADA, WRONG).await;
    assert!(wrong.text.contains("Incorrect email or password"), "{}", wrong.text);
    ada.drop_cookie();
    assert_eq!(ada.sign_in(ADA, &password).await.status, 422);

    let anew = deployment.admin(&["reset-password", "--email", ADA]);
    let anew = anew["password"].as_str().unwrap().to_owned();
    assert_eq!(late.sign_in(ADA, &password).await.status, 422, "the earlier one");
    assert_eq!(ada.sign_in(ADA, &anew).await.status, 303);
    let own = [("new", "nine teapots under glass")];
    let done = ada.fill("/portal/account", "/portal/account/password", &own).await;
    assert!(done.text.contains("Password changed") && !done.text.contains(notice));
    assert!(!ada.get("/portal/account").await.text.contains(notice));
    hours_pass(1000).await;
    assert_eq!(late.sign_in(ADA, own[0].1).await.status, 303, "a chosen password does not expire");
}
