//! The sandbox platform `acme-town-library`: pages of HTML alone, in Arabic, from right to left.

use acceptance::{database::Kind, sandbox_session::SandboxSession, service::Deployment};
use serde_json::{Value, json};

const PLATFORM: &str = "acme-town-library";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dates_and_amounts_in_arabic_are_converted() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let session = SandboxSession::start(&deployment, PLATFORM, &sign_in("ok")).await;
    let session = session.share().await;
    assert_eq!((&session["status"], &session["missing"]), (&json!("COMPLETED"), &json!([])));
    assert_eq!(session["extractedData"], account(&loans()), "{session:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_code_is_asked_for() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let session = SandboxSession::start(&deployment, PLATFORM, &sign_in("otp")).await;
    let asked = session.asked("Enter the code").await;
    assert_eq!(asked["kind"], "otp");
    assert!(asked["hint"].as_str().unwrap().starts_with("sms"), "{asked}");
    session.go_on(&json!([{ "field": "الرمز", "write": "123456", "press": "Enter" }])).await;
    assert_eq!(session.share().await["extractedData"], account(&loans()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_may_have_one_page_or_no_rows() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    for (user, count) in [("one_page", 2), ("no_loans", 0)] {
        let session = SandboxSession::start(&deployment, PLATFORM, &sign_in(user)).await;
        let session = session.share().await;
        assert_eq!(session["status"], "COMPLETED", "{user}");
        assert_eq!(session["extractedData"], account(&loans()[..count]), "{user}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_locked_account_and_maintenance_have_their_codes() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    for (user, code) in [("locked", "ACCOUNT_LOCKED"), ("maintenance", "PLATFORM_UNAVAILABLE")] {
        let session = SandboxSession::start(&deployment, PLATFORM, &sign_in(user)).await;
        let session = session.end().await;
        assert_eq!((&session["status"], &session["errorCode"]), (&json!("ERROR"), &json!(code)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_times_out_between_two_pages_is_begun_anew() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let session = SandboxSession::start(&deployment, PLATFORM, &sign_in("logout_midway")).await;
    // The site refuses the second page, after which the form is shown once more.
    session.until_event("CollectionStarted").await;
    session.until("AWAITING_USER").await;
    session.go_on(&sign_in("ok")).await;
    let session = session.share().await;
    assert_eq!(session["status"], "COMPLETED");
    assert_eq!(session["extractedData"], account(&loans()), "nothing is left of the first account");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_third_wrong_password_ends_the_session() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let session = SandboxSession::start(&deployment, PLATFORM, &sign_in("nobody")).await;
    for _ in 0..2 {
        let asked = session.asked("The library did not accept that").await;
        assert_eq!(asked["kind"], "login");
        // The prompt is the same each time.
        session.until_password_sent().await;
        session.go_on(&credentials("nobody")).await;
    }
    let session = session.end().await;
    let ended = (&session["status"], &session["errorCode"]);
    assert_eq!(ended, (&json!("ERROR"), &json!("CREDENTIALS_INVALID")));
}

fn sign_in(user: &str) -> Value {
    let mut steps = vec![json!({ "prompt": "Sign in to the library" })];
    steps.extend(credentials(user).as_array().cloned().unwrap());
    steps.into()
}

fn credentials(user: &str) -> Value {
    json!([
        { "field": "اسم المستخدم", "write": user },
        { "field": "password", "write": "any", "press": "Enter" },
    ])
}

fn account(loans: &[Value]) -> Value {
    json!({
        "cardNumber": "LIB-4711",
        "displayName": "ليلى مثال",
        "memberSince": "2019-04-01",
        "deposit": 1000,
        "loans": loans,
    })
}

fn loans() -> [Value; 7] {
    let free = |title: &str, due: &str, renewals: u8| json!({ "title": title, "due": due, "renewals": renewals });
    let charged = |title: &str, due: &str, renewals: u8, fee: f64| json!({ "title": title, "due": due, "renewals": renewals, "fee": fee });
    [
        free("كليلة ودمنة", "2026-10-05", 0),
        free("حي بن يقظان", "2026-10-12", 1),
        charged("رحلة ابن بطوطة", "2026-11-23", 2, 7.25),
        charged("البخلاء", "2026-12-01", 0, 1234.5),
        free("المقدمة", "2026-12-31", 12),
        free("ديوان المتنبي", "2027-01-09", 0),
        charged("طوق الحمامة", "2027-02-28", 3, 0.5),
    ]
}
