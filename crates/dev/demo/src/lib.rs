//! A demo partner: its server creates sessions with its API key and receives webhooks, and its page
//! embeds the session. Deliberately small, as an example of an integration.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use actix_web::{
    App, HttpRequest, HttpResponse, HttpServer,
    dev::Server,
    web::{self, Bytes, Data},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use clap::Parser;
use hmac::{Hmac, KeyInit as _, Mac as _};
use http_body_util::{BodyExt as _, Full};
use hyper::{Method, Request};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use serde_json::{Value, json};
use sha2::Sha256;

const PAGE: &str = include_str!("page.html");
const SCRIPT: &str = include_str!("page.js");
/// Deliveries kept for the page; the oldest one is dropped first.
const MAX_DELIVERIES: usize = 200;

/// The address of the partner, and its access to the service.
#[derive(Debug, Clone, Parser)]
pub struct Options {
    #[arg(long, env = "DEMO_LISTEN", default_value = "127.0.0.1:8090")]
    pub listen: SocketAddr,
    /// The address of the service, without `/v1`
    #[arg(long, env = "DEMO_SERVICE", default_value = "http://127.0.0.1:8080")]
    pub service: String,
    #[arg(long, env = "DEMO_API_KEY", hide_env_values = true)]
    pub api_key: String,
    /// The webhook's secret, `whsec_…`
    #[arg(long, env = "DEMO_WEBHOOK_SECRET", hide_env_values = true)]
    pub webhook_secret: String,
}

struct Partner {
    options: Options,
    client: Client<hyper_util::client::legacy::connect::HttpConnector, Full<Bytes>>,
    deliveries: Mutex<Vec<Value>>,
}

impl Partner {
    fn deliveries(&self) -> MutexGuard<'_, Vec<Value>> {
        self.deliveries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a request to the service and returns its response.
    async fn forward(&self, method: Method, path: &str, body: String) -> HttpResponse {
        match self.request(method, path, body).await {
            Ok((status, body)) => {
                let status = actix_web::http::StatusCode::from_u16(status);
                let status = status.unwrap_or(actix_web::http::StatusCode::BAD_GATEWAY);
                HttpResponse::build(status).content_type("application/json").body(body)
            }
            Err(_) => HttpResponse::BadGateway().json(json!({ "message": "no answer" })),
        }
    }

    async fn request(
        &self,
        method: Method,
        path: &str,
        body: String,
    ) -> Result<(u16, Bytes), Box<dyn std::error::Error>> {
        let request = Request::builder()
            .method(method)
            .uri(format!("{}/v1/partner/{path}", self.options.service))
            .header("x-api-key", &self.options.api_key)
            .header("content-type", "application/json")
            .body(Full::from(body))?;
        let response = self.client.request(request).await?;
        let status = response.status().as_u16();
        Ok((status, response.into_body().collect().await?.to_bytes()))
    }

    fn verify(&self, request: &HttpRequest, body: &[u8]) -> bool {
        let header = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
        let parts =
            (header("webhook-id"), header("webhook-timestamp"), header("webhook-signature"));
        let (Some(id), Some(timestamp), Some(signatures)) = parts else { return false };
        verified(&self.options.webhook_secret, id, timestamp, signatures, body)
    }
}

/// Verifies signatures as Standard Webhooks specifies: one of them must be the HMAC-SHA256 of
/// `id.timestamp.body`.
#[must_use]
pub fn verified(secret: &str, id: &str, timestamp: &str, signatures: &str, body: &[u8]) -> bool {
    let Ok(key) = STANDARD.decode(secret.trim_start_matches("whsec_")) else { return false };
    signatures.split(' ').filter_map(|signature| signature.strip_prefix("v1,")).any(|sent| {
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&key) else { return false };
        mac.update(format!("{id}.{timestamp}.").as_bytes());
        mac.update(body);
        STANDARD.decode(sent).is_ok_and(|sent| mac.verify_slice(&sent).is_ok())
    })
}

/// Serves the partner's page and receives its webhooks.
pub fn serve(options: Options) -> std::io::Result<Server> {
    let listen = options.listen;
    let client = Client::builder(TokioExecutor::new()).build_http();
    let partner = Data::from(Arc::new(Partner { options, client, deliveries: Mutex::default() }));
    let server = HttpServer::new(move || {
        App::new()
            .app_data(partner.clone())
            .route("/", web::get().to(async || html(PAGE)))
            .route(
                "/page.js",
                web::get().to(async || {
                    HttpResponse::Ok().content_type("text/javascript; charset=utf-8").body(SCRIPT)
                }),
            )
            .route("/sessions", web::post().to(create))
            .route("/sessions/{id}", web::get().to(read))
            .route("/sessions/{id}", web::delete().to(terminate))
            .route("/deliveries", web::get().to(deliveries))
            .route("/webhook", web::post().to(receive))
    });
    Ok(server.workers(1).disable_signals().bind(listen)?.run())
}

fn html(page: &'static str) -> HttpResponse {
    HttpResponse::Ok().content_type("text/html; charset=utf-8").body(page)
}

async fn create(partner: Data<Partner>) -> HttpResponse {
    // The first platform that the key can use; with a development key, the sandbox.
    let platforms = partner.request(Method::GET, "browser-platforms", String::new()).await;
    let platforms =
        platforms.ok().and_then(|(_, body)| serde_json::from_slice::<Value>(&body).ok());
    let platform = platforms.and_then(|body| body.pointer("/data/0/id").cloned());
    let body = json!({
        "platformId": platform,
        "location": { "country": "US" },
        "externalReferenceId": "demo-application-1",
    });
    partner.forward(Method::POST, "browser-session", body.to_string()).await
}

async fn read(partner: Data<Partner>, path: web::Path<String>) -> HttpResponse {
    partner.forward(Method::GET, &format!("browser-session/{path}"), String::new()).await
}

async fn terminate(partner: Data<Partner>, path: web::Path<String>) -> HttpResponse {
    partner.forward(Method::DELETE, &format!("browser-session/{path}"), String::new()).await
}

async fn deliveries(partner: Data<Partner>) -> HttpResponse {
    HttpResponse::Ok().json(&*partner.deliveries())
}

async fn receive(partner: Data<Partner>, request: HttpRequest, body: Bytes) -> HttpResponse {
    let verified = partner.verify(&request, &body);
    let Ok(payload) = serde_json::from_slice::<Value>(&body) else {
        return HttpResponse::BadRequest().finish();
    };
    let id = request.headers().get("webhook-id").and_then(|value| value.to_str().ok());
    let delivery = json!({ "id": id, "verified": verified, "payload": payload });
    let mut deliveries = partner.deliveries();
    if deliveries.len() == MAX_DELIVERIES {
        deliveries.remove(0);
    }
    deliveries.push(delivery);
    HttpResponse::NoContent().finish()
}
