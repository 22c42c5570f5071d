//! The sandbox platform `acme-web-shop`: a single-page application whose customers sign in in a window
//! of its own, on another host.

use acceptance::{database::Kind, sandbox_session::SandboxSession, service::Deployment};
use serde_json::{Value, json};

const PLATFORM: &str = "acme-web-shop";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orders_of_three_pages_are_shared_in_their_order() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let session = SandboxSession::start(&deployment, PLATFORM, &sign_in("ok")).await;
    let session = session.share().await;
    assert_eq!((&session["status"], &session["missing"]), (&json!("COMPLETED"), &json!([])));
    let order = |number: &str, placed: &str, items: u8, total: f64, status: &str| {
        json!({
            "number": number, "placedOn": placed, "items": items, "total": total,
            "currency": "EUR", "status": status,
        })
    };
    let data = json!({
        "customerId": "shop-ok-4711",
        "displayName": "Ada Example",
        "memberSince": "2021-06-14",
        "points": 1280,
        "orders": [
            order("S-1007", "2026-10-21", 1, 19.95, "shipped"),
            order("S-1006", "2026-10-12", 2, 32.25, "delivered"),
            order("S-1005", "2026-10-03", 3, 44.55, "delivered"),
            order("S-1004", "2026-09-24", 4, 56.85, "delivered"),
            order("S-1003", "2026-09-15", 1, 69.15, "returned"),
            order("S-1002", "2026-09-06", 2, 81.45, "delivered"),
            order("S-1001", "2026-08-28", 3, 93.75, "delivered"),
        ],
    });
    assert_eq!(session["extractedData"], data, "{session:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_window_asks_for_a_code() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let session = SandboxSession::start(&deployment, PLATFORM, &sign_in("otp")).await;
    let asked = session.asked("Enter the code").await;
    assert_eq!((&asked["kind"], &asked["hint"]), (&json!("otp"), &json!("sms ***56")));
    let code = |code: &str| json!([{ "field": "Code", "write": code, "press": "Enter" }]);
    session.go_on(&code("000000")).await;
    session.asked("That was not the code").await;
    session.go_on(&code("123456")).await;
    let session = session.share().await;
    assert_eq!(session["status"], "COMPLETED", "{session:#}");
    assert_eq!(session["extractedData"]["customerId"], "shop-otp-4711");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_applicant_may_deny_the_permission_or_give_it() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    for (answer, status, code) in
        [("Deny", "ERROR", json!("ACCOUNT_ACTION_REQUIRED")), ("Allow", "COMPLETED", Value::Null)]
    {
        let session = SandboxSession::start(&deployment, PLATFORM, &sign_in("denied")).await;
        let asked = session.asked("Allow Acme Shop").await;
        assert_eq!(asked["kind"], "account_picker");
        session.go_on(&json!([{ "activate": answer }])).await;
        let session = if answer == "Allow" { session.share().await } else { session.end().await };
        assert_eq!((&session["status"], &session["errorCode"]), (&json!(status), &code));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_account_without_orders_has_no_data() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let session = SandboxSession::start(&deployment, PLATFORM, &sign_in("empty")).await;
    let session = session.end().await;
    assert_eq!((&session["status"], &session["errorCode"]), (&json!("ERROR"), &json!("NO_DATA")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_orders_the_newest_hundred_are_shared() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let session = SandboxSession::start(&deployment, PLATFORM, &sign_in("many")).await;
    let session = session.share().await;
    assert_eq!(session["status"], "COMPLETED");
    let orders = session["extractedData"]["orders"].as_array().unwrap();
    let numbers: Vec<_> = orders.iter().map(|order| order["number"].clone()).collect();
    let expected: Vec<_> = (1151..=1250).rev().map(|number| json!(format!("S-{number}"))).collect();
    assert_eq!(numbers, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_third_wrong_password_ends_the_session() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let session = SandboxSession::start(&deployment, PLATFORM, &sign_in("nobody")).await;
    for _ in 0..2 {
        let asked = session.asked("Acme ID did not accept that").await;
        assert_eq!(asked["kind"], "login");
        // The prompt is the same each time.
        session.until_password_sent().await;
        session.go_on(&credentials("nobody")).await;
    }
    let session = session.end().await;
    let ended = (&session["status"], &session["errorCode"]);
    assert_eq!(ended, (&json!("ERROR"), &json!("CREDENTIALS_INVALID")));
}

/// Opens the window of the provider, and signs in there.
fn sign_in(user: &str) -> Value {
    let mut steps = vec![
        json!({ "prompt": "Sign in to Acme Shop" }),
        json!({ "activate": "Continue with Acme ID" }),
    ];
    steps.extend(credentials(user).as_array().cloned().unwrap());
    steps.into()
}

fn credentials(user: &str) -> Value {
    json!([
        { "field": "User name", "write": user },
        { "field": "password", "write": "any", "press": "Enter" },
    ])
}
