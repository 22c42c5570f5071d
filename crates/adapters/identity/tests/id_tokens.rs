//! A provider whose ID tokens are valid except for one claim, header or key.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests panic to fail")]

use std::sync::{Arc, Mutex};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD as B64};
use domain::secret::Secret;
use http_client::HttpClient;
use identity::{ClientRegistration, OidcProvider};
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

const REDIRECT_URL: &str = "https://avouch.example/portal/sign-in/back";

/// The content of the next ID token.
struct NextToken {
    head: Value,
    claims: Value,
    info: Value,
    /// Whether the signing key is the published one.
    published_key: bool,
}

struct TestProvider {
    issuer: String,
    next: Arc<Mutex<NextToken>>,
}

fn key() -> EcdsaKeyPair {
    let random = SystemRandom::new();
    let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
    EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, made.as_ref(), &random).unwrap()
}

fn token(next: &NextToken, key: &EcdsaKeyPair) -> String {
    let part = |value: &Value| B64.encode(value.to_string());
    let signed = format!("{}.{}", part(&next.head), part(&next.claims));
    if next.head["alg"] == "none" {
        return format!("{signed}.");
    }
    let signature = key.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
    format!("{signed}.{}", B64.encode(signature))
}

async fn start_provider() -> TestProvider {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let issuer = format!("http://{}", listener.local_addr().unwrap());
    let (own, other) = (key(), key());
    let point = own.public_key().as_ref().to_vec();
    let next =
        NextToken { head: json!({}), claims: json!({}), info: json!({}), published_key: true };
    let next = Arc::new(Mutex::new(next));
    let server = TestProvider { issuer: issuer.clone(), next: next.clone() };
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
                    let next = next.lock().unwrap();
                    let key = if next.published_key { &own } else { &other };
                    json!({ "access_token": "x", "token_type": "Bearer",
                            "id_token": token(&next, key) })
                }
                _ => next.lock().unwrap().info.clone(),
            };
            let body = body.to_string();
            let response = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\
                 content-length: {}\r\n\r\n{body}",
                body.len()
            );
            let _ = stream.write_all(response.as_bytes()).await;
        }
    });
    server
}

impl TestProvider {
    /// Signs in once, with a token that `change` may invalidate.
    async fn sign_in(
        &self,
        change: impl FnOnce(&mut NextToken),
    ) -> Result<Identity, IdentityError> {
        let account = ClientRegistration::new(&self.issuer, "avouch", "hush", "Test").unwrap();
        let provider =
            OidcProvider::new(account, REDIRECT_URL, HttpClient::new().unwrap()).unwrap();
        let departure = provider.authorization_request(AuthorizationPrompt::Any).await.unwrap();
        let url = url::Url::parse(&departure.url).unwrap();
        let parameter = |name: &str| {
            let mut pairs = url.query_pairs();
            pairs.find(|(own, _)| own == name).map(|(_, value)| value.into_owned()).unwrap()
        };
        assert_eq!(
            (parameter("code_challenge_method"), parameter("redirect_uri")),
            ("S256".into(), REDIRECT_URL.into())
        );
        let now = chrono::DateTime::<chrono::Utc>::from(std::time::SystemTime::now()).timestamp();
        let mut next = NextToken {
            head: json!({ "alg": "ES256", "kid": "1" }),
            claims: json!({
                "iss": self.issuer, "aud": "avouch", "sub": "ada", "nonce": parameter("nonce"),
                "iat": now, "exp": now + 300,
                "email": "Ada@Lender.example", "email_verified": true,
            }),
            info: json!({ "sub": "ada", "email": "ada@lender.example", "email_verified": true }),
            published_key: true,
        };
        change(&mut next);
        *self.next.lock().unwrap() = next;
        let arrival =
            AuthorizationCallback { state: parameter("state"), code: Secret::new("code".into()) };
        provider.exchange_code(&departure.kept, &arrival).await
    }
}

#[tokio::test]
async fn a_token_with_one_invalid_part_is_refused() {
    let server = start_provider().await;
    let identity = server.sign_in(|_| ()).await.unwrap();
    let email = "ada@lender.example".parse().unwrap();
    let subject = format!("{} ada", server.issuer);
    assert_eq!(identity, Identity { subject, email, authenticated_at: None });
    for (what, name, value) in [
        ("another issuer", "iss", json!("https://evil.example")),
        ("for another client", "aud", json!("another")),
        ("for another request", "nonce", json!("another")),
        ("without a nonce", "nonce", json!(null)),
        ("expired", "exp", json!(1_000_000)),
    ] {
        let result = server.sign_in(|next| next.claims[name] = value).await;
        assert!(matches!(result, Err(IdentityError::Refused(_))), "{what}: {result:?}");
    }
    let result = server.sign_in(|next| next.published_key = false).await;
    assert!(matches!(result, Err(IdentityError::Refused(_))), "another's key: {result:?}");
    for alg in ["none", "HS256"] {
        let result = server.sign_in(|next| next.head["alg"] = json!(alg)).await;
        assert!(matches!(result, Err(IdentityError::Refused(_))), "{alg}: {result:?}");
    }
    for verified in [json!(false), json!(null)] {
        let result = server.sign_in(|next| next.claims["email_verified"] = verified).await;
        assert!(matches!(result, Err(IdentityError::NoAddress)), "{result:?}");
    }
}

/// A provider that must authenticate the user again reports the time of it.
#[tokio::test]
async fn re_authentication_is_requested_from_the_provider() {
    let server = start_provider().await;
    let account = ClientRegistration::new(&server.issuer, "avouch", "hush", "Test").unwrap();
    let provider = OidcProvider::new(account, REDIRECT_URL, HttpClient::new().unwrap()).unwrap();
    let url_for = async |prompt| provider.authorization_request(prompt).await.unwrap().url;
    let (any, login) =
        (url_for(AuthorizationPrompt::Any).await, url_for(AuthorizationPrompt::Login).await);
    for part in ["prompt=login", "max_age=0"] {
        assert!(login.contains(part) && !any.contains(part), "{login}");
    }
    let identity = server.sign_in(|next| next.claims["auth_time"] = json!(1_800_000_000));
    let at = identity.await.unwrap().authenticated_at.unwrap();
    assert_eq!(at.timestamp(), 1_800_000_000);
}

#[tokio::test]
async fn an_address_may_come_from_the_user_info_endpoint() {
    let server = start_provider().await;
    let without = |next: &mut NextToken| {
        next.claims["email"] = json!(null);
        next.claims["email_verified"] = json!(null);
    };
    assert!(server.sign_in(without).await.is_ok());
    let result = server.sign_in(|next| {
        without(next);
        next.info["sub"] = json!("another");
    });
    let result = result.await;
    assert!(matches!(result, Err(IdentityError::Refused(_))), "another's: {result:?}");
}

#[tokio::test]
async fn a_response_must_match_the_pending_sign_in() {
    let server = start_provider().await;
    let account = ClientRegistration::new(&server.issuer, "avouch", "hush", "Test").unwrap();
    let provider = OidcProvider::new(account, REDIRECT_URL, HttpClient::new().unwrap()).unwrap();
    let departure = provider.authorization_request(AuthorizationPrompt::Any).await.unwrap();
    for (kept, state) in [(departure.kept, "another"), (Secret::new(String::new()), "")] {
        let arrival =
            AuthorizationCallback { state: state.into(), code: Secret::new("code".into()) };
        let result = provider.exchange_code(&kept, &arrival).await;
        assert!(matches!(result, Err(IdentityError::Refused(_))), "{result:?}");
    }
    let unreachable =
        ClientRegistration::new("http://127.0.0.1:1", "avouch", "hush", "Test").unwrap();
    let unreachable =
        OidcProvider::new(unreachable, REDIRECT_URL, HttpClient::new().unwrap()).unwrap();
    assert!(matches!(
        unreachable.authorization_request(AuthorizationPrompt::Any).await.err(),
        Some(IdentityError::Unreachable(_))
    ));
}
