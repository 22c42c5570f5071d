//! A provider whose ID tokens are right but for one thing.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests panic to fail")]

use std::sync::{Arc, Mutex};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD as B64};
use calls::Caller;
use domain::secret::Secret;
use identity::{Account, Provider};
use ports::identity::{
    AuthorizationCallback, AuthorizationPrompt, Identity, IdentityError, IdentityProvider as _,
};
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

const BACK: &str = "https://avouch.example/portal/sign-in/back";

/// What the next ID token is like.
struct Script {
    head: Value,
    claims: Value,
    info: Value,
    /// Whether the key is the one that is published.
    own_key: bool,
}

struct World {
    issuer: String,
    script: Arc<Mutex<Script>>,
}

fn key() -> EcdsaKeyPair {
    let random = SystemRandom::new();
    let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
    EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, made.as_ref(), &random).unwrap()
}

fn token(script: &Script, key: &EcdsaKeyPair) -> String {
    let part = |value: &Value| B64.encode(value.to_string());
    let signed = format!("{}.{}", part(&script.head), part(&script.claims));
    if script.head["alg"] == "none" {
        return format!("{signed}.");
    }
    let signature = key.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
    format!("{signed}.{}", B64.encode(signature))
}

async fn provider() -> World {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let issuer = format!("http://{}", listener.local_addr().unwrap());
    let (own, other) = (key(), key());
    let point = own.public_key().as_ref().to_vec();
    let script = Script { head: json!({}), claims: json!({}), info: json!({}), own_key: true };
    let script = Arc::new(Mutex::new(script));
    let world = World { issuer: issuer.clone(), script: script.clone() };
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = vec![0; 8192];
            let read = stream.read(&mut head).await.unwrap();
            let head = String::from_utf8_lossy(&head[..read]).into_owned();
            let path = head.split(' ').nth(1).unwrap_or_default();
            let body = match path {
                "/.well-known/openid-configuration" => json!({
                    "issuer": issuer,
                    "authorization_endpoint": format!("{issuer}/auth"),
                    "token_endpoint": format!("{issuer}/token"),
                    "userinfo_endpoint": format!("{issuer}/me"),
                    "jwks_uri": format!("{issuer}/jwks"),
                    "response_types_supported": ["code"],
                    "subject_types_supported": ["public"],
                    "id_token_signing_alg_values_supported": ["ES256"],
                }),
                "/jwks" => json!({ "keys": [{
                    "kty": "EC", "crv": "P-256", "use": "sig", "kid": "1",
                    "x": B64.encode(&point[1..33]), "y": B64.encode(&point[33..]),
                }]}),
                "/token" => {
                    let script = script.lock().unwrap();
                    let key = if script.own_key { &own } else { &other };
                    json!({ "access_token": "x", "token_type": "Bearer",
                            "id_token": token(&script, key) })
                }
                _ => script.lock().unwrap().info.clone(),
            };
            let body = body.to_string();
            let answer = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\
                 content-length: {}\r\n\r\n{body}",
                body.len()
            );
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    world
}

impl World {
    /// Signs in once; `change` makes the one thing wrong.
    async fn sign_in(&self, change: impl FnOnce(&mut Script)) -> Result<Identity, IdentityError> {
        let account = Account::new(&self.issuer, "avouch", "hush", "Test").unwrap();
        let provider = Provider::new(account, BACK, Caller::new().unwrap()).unwrap();
        let departure = provider.authorization_request(AuthorizationPrompt::Any).await.unwrap();
        let url = url::Url::parse(&departure.url).unwrap();
        let asked = |name: &str| {
            let mut pairs = url.query_pairs();
            pairs.find(|(own, _)| own == name).map(|(_, value)| value.into_owned()).unwrap()
        };
        assert_eq!(
            (asked("code_challenge_method"), asked("redirect_uri")),
            ("S256".into(), BACK.into())
        );
        let now = chrono::DateTime::<chrono::Utc>::from(std::time::SystemTime::now()).timestamp();
        let mut script = Script {
            head: json!({ "alg": "ES256", "kid": "1" }),
            claims: json!({
                "iss": self.issuer, "aud": "avouch", "sub": "ada", "nonce": asked("nonce"),
                "iat": now, "exp": now + 300,
                "email": "Ada@Lender.example", "email_verified": true,
            }),
            info: json!({ "sub": "ada", "email": "ada@lender.example", "email_verified": true }),
            own_key: true,
        };
        change(&mut script);
        *self.script.lock().unwrap() = script;
        let arrival =
            AuthorizationCallback { state: asked("state"), code: Secret::new("code".into()) };
        provider.exchange_code(&departure.kept, &arrival).await
    }
}

#[tokio::test]
async fn one_wrong_thing_is_enough() {
    let world = provider().await;
    let right = world.sign_in(|_| ()).await.unwrap();
    let email = "ada@lender.example".parse().unwrap();
    let subject = format!("{} ada", world.issuer);
    assert_eq!(right, Identity { subject, email, authenticated_at: None });
    for (what, name, value) in [
        ("another issuer", "iss", json!("https://evil.example")),
        ("for another client", "aud", json!("another")),
        ("for another question", "nonce", json!("another")),
        ("without a nonce", "nonce", json!(null)),
        ("it ran out", "exp", json!(1_000_000)),
    ] {
        let answer = world.sign_in(|script| script.claims[name] = value).await;
        assert!(matches!(answer, Err(IdentityError::Refused(_))), "{what}: {answer:?}");
    }
    let answer = world.sign_in(|script| script.own_key = false).await;
    assert!(matches!(answer, Err(IdentityError::Refused(_))), "another's key: {answer:?}");
    for alg in ["none", "HS256"] {
        let answer = world.sign_in(|script| script.head["alg"] = json!(alg)).await;
        assert!(matches!(answer, Err(IdentityError::Refused(_))), "{alg}: {answer:?}");
    }
    for verified in [json!(false), json!(null)] {
        let answer = world.sign_in(|script| script.claims["email_verified"] = verified).await;
        assert!(matches!(answer, Err(IdentityError::NoAddress)), "{answer:?}");
    }
}

/// A provider that is to ask anew says when it did.
#[tokio::test]
async fn a_provider_is_told_to_ask_anew() {
    let world = provider().await;
    let account = Account::new(&world.issuer, "avouch", "hush", "Test").unwrap();
    let provider = Provider::new(account, BACK, Caller::new().unwrap()).unwrap();
    let asked = async |prompt| provider.authorization_request(prompt).await.unwrap().url;
    let (any, login) =
        (asked(AuthorizationPrompt::Any).await, asked(AuthorizationPrompt::Login).await);
    for part in ["prompt=login", "max_age=0"] {
        assert!(login.contains(part) && !any.contains(part), "{login}");
    }
    let identity = world.sign_in(|script| script.claims["auth_time"] = json!(1_800_000_000));
    let at = identity.await.unwrap().authenticated_at.unwrap();
    assert_eq!(at.timestamp(), 1_800_000_000);
}

#[tokio::test]
async fn an_address_may_be_told_to_who_asks_once_more() {
    let world = provider().await;
    let without = |script: &mut Script| {
        script.claims["email"] = json!(null);
        script.claims["email_verified"] = json!(null);
    };
    assert!(world.sign_in(without).await.is_ok());
    let answer = world.sign_in(|script| {
        without(script);
        script.info["sub"] = json!("another");
    });
    let answer = answer.await;
    assert!(matches!(answer, Err(IdentityError::Refused(_))), "another's: {answer:?}");
}

#[tokio::test]
async fn an_answer_is_to_its_own_question() {
    let world = provider().await;
    let account = Account::new(&world.issuer, "avouch", "hush", "Test").unwrap();
    let provider = Provider::new(account, BACK, Caller::new().unwrap()).unwrap();
    let departure = provider.authorization_request(AuthorizationPrompt::Any).await.unwrap();
    for (kept, state) in [(departure.kept, "another"), (Secret::new(String::new()), "")] {
        let arrival =
            AuthorizationCallback { state: state.into(), code: Secret::new("code".into()) };
        let answer = provider.exchange_code(&kept, &arrival).await;
        assert!(matches!(answer, Err(IdentityError::Refused(_))), "{answer:?}");
    }
    let gone = Account::new("http://127.0.0.1:1", "avouch", "hush", "Test").unwrap();
    let gone = Provider::new(gone, BACK, Caller::new().unwrap()).unwrap();
    assert!(matches!(
        gone.authorization_request(AuthorizationPrompt::Any).await.err(),
        Some(IdentityError::Unreachable(_))
    ));
}
