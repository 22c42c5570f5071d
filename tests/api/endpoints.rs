//! The endpoints of the partner API over HTTP, served by one process and by two that share only
//! their database and Redis.

use acceptance::{database::Kind, partner::Partner, root, service::Deployment};
use hyper::Method;
use serde_json::{Value, json};
use testkit::redis::RedisServer;
use uuid::Uuid;

use super::fields;

/// Enough requests that each worker of each process gets one.
const REQUESTS: usize = 16;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_endpoint_answers_on_sqlite() {
    every_endpoint(&Deployment::start(Kind::Sqlite).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_endpoint_answers_on_postgres() {
    every_endpoint(&Deployment::start(Kind::Postgres).await).await;
}

/// Consecutive requests go to different processes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_endpoint_answers_on_two_processes_with_postgres_and_redis() {
    let redis = RedisServer::start();
    let mut deployment = Deployment::prepare(Kind::Postgres).await;
    deployment.set("AVOUCH_REDIS_URL", redis.url());
    deployment.run().await;
    let another = deployment.second_process().await;
    deployment.partner = deployment.partner.round_robin_with(&another.partner);
    every_endpoint(&deployment).await;
}

async fn every_endpoint(deployment: &Deployment) {
    lookups(&deployment.partner).await;
    let id = sessions(deployment).await;
    fields::all(deployment).await;
    refusals(&deployment.partner).await;
    other_keys(deployment, &id).await;
    keys(deployment, &id).await;
    published(deployment).await;
}

async fn lookups(partner: &Partner) {
    let platforms = partner.get("browser-platforms").await;
    assert_eq!(platforms.status, 200);
    // Partners' tests take the first platform whose name contains `sandbox`.
    let all = platforms.at("/data").as_array().unwrap().iter();
    let names: Vec<_> = all.map(|platform| platform["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["acme-sandbox", "acme-web-shop", "acme-town-library"]);
    assert_eq!(platforms.at("/data/0/isActive"), true);
    let config = platforms.at("/data/0/config");
    let schema = &config["dataSchema"];
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert_eq!(schema["properties"]["displayName"]["x-pii"], true, "{schema}");
    assert_eq!(schema["properties"]["accountId"]["x-attested"], true, "{schema}");
    assert!(config["actions"].as_array().unwrap().contains(&json!("otp")), "{config}");
    assert_eq!(config["attestation"]["mode"], "zktls-full");
    assert!(config["attestation"]["fields"].as_array().unwrap().contains(&json!("accountId")));
    assert!(config["languages"].as_array().unwrap().contains(&json!("de")), "{config}");
    let templates = partner.get("email-templates").await;
    assert_eq!((templates.status, templates.at("/data")), (200, &json!([])));
    let channels = partner.get("notification-platforms").await;
    let email = channels.at("/data/0");
    assert_eq!(
        (&email["id"], &email["name"], &email["isActive"]),
        (&json!(1), &json!("email"), &json!(true))
    );
    for text in ["displayName", "description", "icon"] {
        assert!(email[text].as_str().is_some_and(|text| !text.is_empty()), "{email}");
    }
    let icons = platforms.at("/data").as_array().unwrap().iter().map(|one| &one["icon"]);
    for icon in icons.chain([&email["icon"]]) {
        let (status, image) = partner.fetch(icon.as_str().unwrap(), None).await;
        assert!(status == 200 && image.starts_with(b"<svg"), "{icon}: {status}");
    }
    // The limits of this deployment are off: the headers say what would hold.
    for path in ["/v1/partner/error-codes", "/v1/openapi.json", "/v1/nothing"] {
        let answer = partner.send(Method::GET, path, String::new()).await;
        let shown = ["limit", "remaining", "reset"].map(|name| {
            let header = answer.headers.get(format!("x-ratelimit-{name}"));
            header.and_then(|value| value.to_str().ok()?.parse::<i64>().ok())
        });
        assert!(matches!(shown, [Some(120), Some(120), Some(_)]), "{path}: {shown:?}");
    }
    let countries = partner.get("supported-countries").await;
    let all = countries.at("/data").as_array().unwrap();
    assert!(all.len() > 240 && all.iter().any(|c| c["country_code"] == "DE"), "{}", all.len());
    let regions = partner.get("supported-countries?country=US").await;
    let california = json!({ "region_code": "US-CA", "region_name": "California" });
    assert!(regions.at("/data").as_array().unwrap().contains(&california), "{}", regions.body);
    assert_eq!(partner.get("supported-countries?region=CA").await.status, 400);
    let cities = partner.get("supported-countries?country=us&region=california").await;
    let city = json!({ "city_name": "Los Angeles", "region_code": "US-CA" });
    assert!(cities.at("/data").as_array().unwrap().contains(&city));
    for unknown in ["country=XX", "country=US&region=Atlantis", "country=&region="] {
        let answer = partner.get(&format!("supported-countries?{unknown}")).await;
        assert_eq!((answer.status, answer.at("/data")), (200, &json!([])), "{unknown}");
    }
    let codes = partner.get("error-codes").await;
    assert!(codes.at("/data").as_array().unwrap().iter().any(|c| c["code"] == "NO_DATA"));
}

async fn sessions(deployment: &Deployment) -> String {
    let partner = &deployment.partner;
    let first = deployment.create(&json!({ "externalReferenceId": "application-1" })).await;
    assert_eq!(first["status"], "CREATED");
    assert_eq!(first["externalReferenceId"], "application-1");
    let second = deployment.create(&json!({ "expiresInHours": 1 })).await;
    let id = first["sessionId"].as_str().unwrap().to_owned();
    let read = deployment.session(&id).await;
    assert_eq!((&read["status"], &read["progress"]), (&json!("CREATED"), &json!(0)));
    assert_eq!(read["embedUrl"], first["embedUrl"], "the link is the same each time");

    let list = partner.get("browser-sessions?limit=1").await;
    assert_eq!((list.at("/data/total"), list.at("/data/limit")), (&json!(2), &json!(1)));
    assert_eq!(list.at("/data/sessions/0/sessionId"), &second["sessionId"], "newest first");
    assert_eq!(partner.get(&format!("browser-session/{id}/recording")).await.status, 404);

    for _ in 0..2 {
        let ended = partner.delete(&format!("browser-session/{id}")).await;
        assert_eq!((ended.status, ended.at("/data/status")), (200, &json!("TERMINATED")));
    }
    let list = partner.get("browser-sessions?status=TERMINATED").await;
    assert_eq!(list.at("/data/total"), 1);
    id
}

async fn refusals(partner: &Partner) {
    let create = async |body: Value| partner.post("browser-session", &body).await;
    for (body, field) in [
        (json!({}), "platformId"),
        (json!({ "platformId": 99, "location": { "country": "US" } }), "platformId"),
        (json!({ "platformId": 1, "location": { "country": "XX" } }), "location.country"),
        (
            json!({ "platformId": 1, "location": { "country": "US", "state": "Bavaria" } }),
            "location.state",
        ),
        (
            json!({ "platformId": 1, "location": { "country": "US", "city": "Nowhereville" } }),
            "location.city",
        ),
        (
            json!({
                "platformId": 1,
                "location": { "country": "US", "state": "Texas", "city": "Los Angeles" },
            }),
            "location.city",
        ),
        (
            json!({ "platformId": 1, "location": { "country": "US" }, "expiresInHours": 0 }),
            "expiresInHours",
        ),
        (
            json!({ "platformId": 1, "location": { "country": "US" }, "emailTemplateId": 1 }),
            "emailTemplateId",
        ),
        (
            json!({ "platformId": 1, "location": { "country": "US" }, "receiverId": "r" }),
            "receiverId",
        ),
        (
            json!({
                "platformId": 1, "location": { "country": "US" },
                "customUrl": "https://acme.example",
            }),
            "customUrl",
        ),
        (
            json!({ "platformId": 1, "location": { "country": "US" }, "purpose": "ask@evil.example" }),
            "purpose",
        ),
        (
            json!({
                "platformId": 1, "location": { "country": "US" },
                "returnUrl": "https://not-listed.example/",
            }),
            "returnUrl",
        ),
        (json!([]), "object"),
    ] {
        let answer = create(body.clone()).await;
        let message = answer.body["message"].as_str().unwrap_or_default();
        assert!(answer.status == 400 && message.contains(field), "{body}: {}", answer.body);
    }
    let broken = partner.send(Method::POST, "/v1/partner/browser-session", "{".into()).await;
    assert_eq!((broken.status, &broken.body["statusCode"]), (400, &json!(400)));
}

/// A platform is in the next lookup of every process after it was published.
async fn published(deployment: &Deployment) {
    let sandbox = root().join("crates/domain/platforms/sandbox.json");
    let mut definition: Value = serde_json::from_slice(&std::fs::read(sandbox).unwrap()).unwrap();
    let file = deployment.folder.path().join("platform.json");
    for version in ["9.0.0", "9.0.1"] {
        // Each process and worker has answered and may have cached its answer.
        for _ in 0..REQUESTS {
            assert_eq!(deployment.partner.get("browser-platforms").await.status, 200);
        }
        definition["platform"] = json!("another-sandbox");
        definition["version"] = json!(version);
        std::fs::write(&file, definition.to_string()).unwrap();
        deployment.admin(&["publish-platform", file.to_str().unwrap()]);
        for _ in 0..REQUESTS {
            let list = deployment.partner.get("browser-platforms").await;
            let mut listed = list.at("/data").as_array().unwrap().iter();
            let shown = listed.find(|one| one["name"] == "another-sandbox");
            let shown = shown.map(|one| &one["config"]["workflowVersion"]);
            assert_eq!(shown, Some(&json!(version)), "{}", list.body);
        }
    }
}

/// A session is visible neither to another key of the same team, nor to a key of another team, nor
/// without a key.
async fn other_keys(deployment: &Deployment, id: &str) {
    let other_team = deployment.admin(&["create-team", "Other"])["teamId"].clone();
    for team in [deployment.team.as_str(), other_team.as_str().unwrap()] {
        let key = ["create-key", "--team", team, "--environment", "development"];
        let key = deployment.admin(&key)["apiKey"].clone();
        let stranger = deployment.partner.with_key(key.as_str());
        let unknown = stranger.get(&format!("browser-session/{}", Uuid::new_v4())).await;
        let theirs = stranger.get(&format!("browser-session/{id}")).await;
        assert_eq!((theirs.status, &theirs.body), (404, &unknown.body));
        assert_eq!(stranger.get("browser-sessions").await.at("/data/total"), 0);
    }
    let key = ["create-key", "--team", &deployment.team, "--environment", "production"];
    let key = deployment.admin(&key)["apiKey"].clone();
    let real = deployment.partner.with_key(key.as_str());
    assert_eq!(real.get("browser-platforms").await.at("/data"), &json!([]));
    assert_eq!(deployment.partner.with_key(None).get("browser-sessions").await.status, 401);
}

/// Rotation and revocation take effect with the next request.
async fn keys(deployment: &Deployment, id: &str) {
    let key = ["create-key", "--team", &deployment.team, "--environment", "development"];
    let made = deployment.admin(&key);
    let (record, old) = (made["keyId"].as_str().unwrap(), made["apiKey"].as_str().unwrap());
    let old = deployment.partner.with_key(Some(old));
    assert_eq!(old.get("browser-sessions").await.status, 200);
    let new = deployment.admin(&["rotate-key", record])["apiKey"].clone();
    let new = deployment.partner.with_key(new.as_str());
    assert_eq!(old.get("browser-sessions").await.status, 401);
    assert_eq!(new.get("browser-sessions").await.status, 200);
    deployment.admin(&["revoke-key", record]);
    assert_eq!(new.get("browser-sessions").await.status, 401);
    assert_eq!(deployment.session(id).await["status"], "TERMINATED", "other keys keep working");
}
