//! Log lines about refused requests, and the cost of a flood of messages from one viewer.

use std::{
    fs,
    time::{Duration, Instant},
};

use acceptance::{
    database::Kind,
    eventually,
    portal_user::{PortalUser, base, signed_in},
    service::Deployment,
    viewer::{Viewer, secret},
};
use hyper::Method;
use serde_json::json;

const ADA: &str = "ada@lender.example";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_requests_are_logged_and_a_flood_is_summarised() {
    let mut deployment = Deployment::prepare(Kind::Sqlite).await;
    deployment.set("AVOUCH_RATE_LIMIT", "40/60");
    deployment.run().await;
    let log = || fs::read_to_string(deployment.log()).unwrap();
    let lines = |class: &str| {
        let class = format!("class=\"{class}\"");
        let all: Vec<_> = log().lines().map(str::to_owned).collect();
        all.into_iter().filter(|line| line.contains(&class)).collect::<Vec<_>>()
    };

    // A revoked key is logged with the id of its record and without the key itself.
    let order = ["create-key", "--team", &deployment.team, "--environment", "development"];
    let key = deployment.admin(&order);
    let (id, text) = (key["keyId"].as_str().unwrap(), key["apiKey"].as_str().unwrap());
    deployment.admin(&["revoke-key", id]);
    let stranger = deployment.partner.with_key(Some(text));
    assert_eq!(stranger.get("browser-sessions").await.status, 401);
    let told = lines("key").remove(0);
    for part in
        [id, "key.prefix=\"avk_dev_\"", "client.network=127.0.0.1", "status=401", "request.id="]
    {
        assert!(told.contains(part), "{part}: {told}");
    }

    let (token, anonymous) = foreign_requests(&deployment).await;
    for class in ["form", "forbidden", "origin"] {
        assert_eq!(lines(class).len(), 1, "{class}: {}", log());
    }

    // A flood of requests without a key is first refused and then rate-limited.
    let mut statuses = vec![];
    for _ in 0..100 {
        statuses.push(deployment.partner.with_key(None).get("browser-sessions").await.status);
    }
    let refused = statuses.iter().filter(|status| **status == 401).count();
    assert!((30..40).contains(&refused), "{refused}");
    assert_eq!((lines("key").len(), lines("limit").len()), (20, 20));
    let summed = eventually("the counts", Duration::from_secs(120), async || {
        let summed = |class| lines(class).into_iter().find(|line| line.contains("more refusals"));
        summed("key").zip(summed("limit"))
    });
    let (keys, limits) = summed.await;
    let count = |count: usize| format!("count={count}");
    assert!(keys.contains(&count(refused + 1 - 20)), "{keys}");
    assert!(limits.contains(&count(100 - refused - 20)), "{limits}");
    for secret in [text, token.as_str(), "sesame"] {
        assert!(!log().contains(secret), "{secret}");
    }
    let metrics = anonymous.get("/metrics").await.text;
    assert!(metrics.contains("avouch_refused_total{class=\"form\"} 1"), "{metrics}");
}

/// Sends a form from another site, requests a page that the user's role does not permit, and opens
/// a stream with another site's origin. Returns the secrets that the log must not contain.
async fn foreign_requests(deployment: &Deployment) -> (String, PortalUser) {
    let ada = signed_in(deployment, ADA, "viewer").await;
    let foreign = [("origin", "https://evil.example"), ("sec-fetch-site", "cross-site")];
    let token = ada.get("/portal/keys").await.token();
    let fields = [("form_token", token.as_str())];
    assert_eq!(ada.post_from("/portal/sign-out", &fields, &foreign).await.status, 403);
    assert_eq!(ada.get("/portal/audit").await.status, 403);
    let upgrade = [
        ("connection", "upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ("origin", "https://evil.example"),
    ];
    let anonymous = PortalUser::new(&base(deployment));
    let stream = anonymous.send(Method::GET, "/embed/any/stream?token=sesame", "", &upgrade).await;
    assert_eq!(stream.status, 403);
    (token, anonymous)
}

/// Each reply to `handover` is a QR code, which takes time to generate.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_viewer_that_requests_thousands_of_codes_gets_one_per_second() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let created = deployment.create(&json!({})).await;
    let link = created["embedUrl"].as_str().unwrap();
    let mut viewer = Viewer::open(link, &secret('a')).await;
    viewer.until("state", |state| state["status"] == "AWAITING_USER").await;
    let began = Instant::now();
    for _ in 0..3000 {
        viewer.send(&json!({ "t": "handover" })).await;
    }
    let ends = Instant::now() + Duration::from_secs(3);
    let mut codes = 0_u64;
    while let Some(told) = viewer.next_message(ends.saturating_duration_since(Instant::now())).await
    {
        codes += u64::from(told["t"] == "code");
    }
    let seconds = began.elapsed().as_secs();
    assert!((1..=seconds + 1).contains(&codes), "{codes} in {seconds} s");
    // The stream still processes other messages.
    viewer.send(&json!({ "t": "cancel" })).await;
    let id = created["sessionId"].as_str().unwrap();
    deployment.until(id, "CANCELLED", Duration::from_secs(60)).await;
}
