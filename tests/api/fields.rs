//! Responses of the partner API, field by field.

use acceptance::service::Deployment;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};
use uuid::Uuid;

pub(super) async fn all(deployment: &Deployment) {
    fields(deployment).await;
    defaults(deployment).await;
    pages(deployment).await;
    past(deployment).await;
}

fn keys_of(value: &Value) -> Vec<&str> {
    let mut keys: Vec<_> = value.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

fn moment(value: &Value) -> DateTime<Utc> {
    let text = value.as_str().unwrap();
    // RFC 3339 in UTC, with milliseconds.
    assert!(text.len() == 24 && text.ends_with('Z'), "{text}");
    text.parse().unwrap()
}

/// Fields of a request are returned in their normalised form.
async fn fields(deployment: &Deployment) {
    let asked = json!({
        "location": {
            "country": "us", "state": "California", "region": "us-ca", "city": "los ángeles",
        },
        "expiresInHours": 2, "preferredRegion": "europe-west", "generateAttestation": true,
        "attestationChallenge": "Zm9vYg", "maxAttempts": 5,
        "receiverData": { "name": "Ada", "email": "ada@example.com", "phone": "+14155550100",
            "locale": "en-US", "metadata": { "k": "v" }, "shoeSize": 39 },
        "senderName": "Lender", "purpose": "To check your income", "externalReferenceId": "ref-1", "unknown": [1],
    });
    let made = deployment.create(&asked).await;
    let whole = [
        "createdAt",
        "embedUrl",
        "expiresAt",
        "externalReferenceId",
        "location",
        "platformId",
        "preferredRegion",
        "sessionId",
        "status",
    ];
    assert_eq!(keys_of(&made), whole);
    let place = json!({
        "country": "US", "state": "California", "region": "California", "city": "Los Angeles",
    });
    assert_eq!((&made["location"], &made["preferredRegion"]), (&place, &json!("europe-west")));
    let span = moment(&made["expiresAt"]) - moment(&made["createdAt"]);
    assert_eq!(span, TimeDelta::hours(2));
    let read = deployment.session(made["sessionId"].as_str().unwrap()).await;
    assert_eq!(read["attestationChallenge"], "Zm9vYg");
    assert_eq!(read["maxAttempts"], 5);
    let link = made["embedUrl"].as_str().unwrap();
    assert!(link.contains("/embed/") && link.contains("?token="), "{link}");
}

/// Fields that were not requested are absent in the response to a creation and null in a read
/// session.
async fn defaults(deployment: &Deployment) {
    let bare = deployment.create(&json!({})).await;
    assert_eq!(bare.get("externalReferenceId"), None, "absent, not null");
    assert_eq!(bare["preferredRegion"], "us-central", "the nearest region");
    let span = moment(&bare["expiresAt"]) - moment(&bare["createdAt"]);
    assert_eq!(span, TimeDelta::hours(168));

    let read = deployment.session(bare["sessionId"].as_str().unwrap()).await;
    let every = [
        "attempts",
        "attestationChallenge",
        "attestationType",
        "attestedFields",
        "completedAt",
        "createdAt",
        "dataErasedAt",
        "embedUrl",
        "errorCode",
        "errorMessage",
        "expiresAt",
        "externalReferenceId",
        "extractedData",
        "hasAttestation",
        "location",
        "maxAttempts",
        "missing",
        "nextAction",
        "platform",
        "platformId",
        "preferredRegion",
        "progress",
        "sessionId",
        "status",
        "streamUrl",
    ];
    assert_eq!(keys_of(&read), every);
    for (name, value) in read.as_object().unwrap() {
        let open = ["completedAt", "dataErasedAt", "errorCode", "errorMessage", "extractedData"];
        let open = open.contains(&name.as_str());
        let none = open
            || [
                "attestationChallenge",
                "attestationType",
                "externalReferenceId",
                "nextAction",
                "streamUrl",
            ]
            .contains(&&**name);
        assert_eq!(value.is_null(), none, "{name}: {value}");
    }
    let card = ["displayName", "icon", "id", "loginUrl", "name"];
    assert_eq!(keys_of(&read["platform"]), card);
    assert_eq!(read["platform"]["id"], read["platformId"]);
    assert_eq!((&read["hasAttestation"], &read["attestedFields"]), (&json!(false), &json!([])));
    assert_eq!(read["missing"], json!([]));
    assert_eq!((&read["attempts"], &read["maxAttempts"]), (&json!(0), &json!(3)));
}

/// Lists are ordered from the newest, counted after the filter, and limits are not clamped.
async fn pages(deployment: &Deployment) {
    let partner = &deployment.partner;
    let list = partner.get("browser-sessions").await;
    let (total, all) = (list.at("/data/total"), list.at("/data/sessions").as_array().unwrap());
    assert_eq!((total.as_u64().unwrap(), list.at("/data/limit")), (all.len() as u64, &json!(20)));
    assert_eq!(keys_of(list.at("/data")), ["limit", "offset", "sessions", "total"]);
    let item = ["completedAt", "createdAt", "platformId", "sessionId", "status"];
    let moments: Vec<_> = all.iter().map(|session| moment(&session["createdAt"])).collect();
    assert!(moments.is_sorted_by(|a, b| a >= b));
    for (offset, session) in all.iter().enumerate() {
        assert_eq!(keys_of(session), item);
        let page = partner.get(&format!("browser-sessions?limit=1&offset={offset}")).await;
        assert_eq!(page.at("/data/sessions"), &json!([session]));
        assert_eq!(page.at("/data/total"), total);
    }
    let beyond = partner.get("browser-sessions?offset=1000").await;
    assert_eq!((beyond.at("/data/sessions"), beyond.at("/data/total")), (&json!([]), total));
    let none = partner.get("browser-sessions?status=COMPLETED").await;
    assert_eq!((none.at("/data/sessions"), none.at("/data/total")), (&json!([]), &json!(0)));
    for (query, field) in [
        ("limit=0", "limit"),
        ("limit=101", "limit"),
        ("limit=1&limit=2", "limit"),
        ("offset=-1", "offset"),
        ("offset=1.5", "offset"),
        ("status=created", "status"),
    ] {
        let answer = partner.get(&format!("browser-sessions?{query}")).await;
        let message = answer.body["message"].as_str().unwrap_or_default();
        assert!(answer.status == 400 && message.contains(field), "{query}: {}", answer.body);
    }
}

/// The timeline of a session, and what remains of it after erasure.
async fn past(deployment: &Deployment) {
    let partner = &deployment.partner;
    let made = deployment.create(&json!({ "externalReferenceId": "kept" })).await;
    let id = made["sessionId"].as_str().unwrap();
    let erased = partner.delete(&format!("browser-session/{id}/data")).await;
    assert_eq!((erased.status, erased.at("/data/status")), (200, &json!("TERMINATED")));
    let at = moment(erased.at("/data/dataErasedAt"));
    let again = partner.delete(&format!("browser-session/{id}/data")).await;
    assert_eq!(moment(again.at("/data/dataErasedAt")), at, "once");
    let read = deployment.session(id).await;
    assert_eq!(
        (&read["status"], &read["dataErasedAt"]),
        (&json!("TERMINATED"), &json!(again.at("/data/dataErasedAt")))
    );
    assert!(moment(&read["completedAt"]) >= moment(&read["createdAt"]));
    let lines = partner.get(&format!("browser-session/{id}/events")).await;
    let lines = lines.at("/data").as_array().unwrap();
    let seen: Vec<_> = lines.iter().map(|line| line["status"].as_str().unwrap()).collect();
    assert_eq!(seen, ["CREATED", "TERMINATED", "TERMINATED"]);
    for line in lines {
        assert_eq!(keys_of(line), ["at", "detail", "errorCode", "event", "status"]);
        moment(&line["at"]);
    }
    assert_eq!(
        partner.get(&format!("browser-session/{}/events", Uuid::new_v4())).await.status,
        404
    );
}
