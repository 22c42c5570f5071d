//! A receiver of Avouch's webhooks: checks the signature, keeps each notice once.
//!
//! ```text
//! WEBHOOK_SECRET=whsec_… INBOX=./inbox PORT=8091 cargo run -p receiver
//! ```

use std::{
    env, fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use actix_web::{
    App, HttpRequest, HttpResponse, HttpServer,
    web::{self, Bytes, Data, PayloadConfig},
};
use hyper::{HeaderMap, header::HeaderValue};
use serde::Deserialize;
use standardwebhooks::{
    HEADER_WEBHOOK_ID, HEADER_WEBHOOK_SIGNATURE, HEADER_WEBHOOK_TIMESTAMP, Webhook,
};

const MOST: usize = 1024 * 1024;

struct Receiver {
    webhook: Webhook,
    inbox: PathBuf,
}

/// As much of a notice as this receiver prints.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Notice {
    session_id: String,
    status: String,
}

#[actix_web::main]
async fn main() -> io::Result<()> {
    let set = |name: &str, default: &str| env::var(name).unwrap_or_else(|_| default.to_owned());
    let port = set("PORT", "8091").parse().map_err(io::Error::other)?;
    let inbox = PathBuf::from(set("INBOX", "./inbox"));
    fs::create_dir_all(&inbox)?;
    let webhook = Webhook::new(&set("WEBHOOK_SECRET", "")).map_err(io::Error::other)?;
    let receiver = Data::new(Receiver { webhook, inbox });
    HttpServer::new(move || {
        App::new()
            .app_data(receiver.clone())
            .app_data(PayloadConfig::new(MOST))
            .default_service(web::post().to(receive))
    })
    .bind(("127.0.0.1", port))?
    .run()
    .await
}

async fn receive(
    request: HttpRequest,
    body: Bytes,
    receiver: Data<Receiver>,
) -> Result<HttpResponse, actix_web::Error> {
    // The signature is over the bytes as they came: parse afterwards.
    let headers = signed(&request);
    let id = headers.get(HEADER_WEBHOOK_ID).and_then(|id| id.to_str().ok()).map(str::to_owned);
    let (Ok(()), Some(id)) = (receiver.webhook.verify(&body, &headers), id) else {
        return Ok(HttpResponse::Unauthorized().finish());
    };
    let notice: Notice = serde_json::from_slice(&body)?;
    // Where it cannot be kept this is a 500, and it is sent again.
    if web::block(move || keep(&receiver.inbox, &id, &body)).await?? {
        println!("session {} is {}", notice.session_id, notice.status);
    }
    Ok(HttpResponse::NoContent().finish())
}

/// The headers that make a signature, in the form that the verifier takes.
fn signed(request: &HttpRequest) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for name in [HEADER_WEBHOOK_ID, HEADER_WEBHOOK_TIMESTAMP, HEADER_WEBHOOK_SIGNATURE] {
        let value = request.headers().get(name);
        if let Some(value) = value.and_then(|value| HeaderValue::from_bytes(value.as_bytes()).ok())
        {
            headers.insert(name, value);
        }
    }
    headers
}

/// Keeps a notice under its webhook-id, which is the same each time it is sent. Answers false where
/// it was kept before. Where you have a database, its unique key does this: insert the identifier in
/// the transaction that does what the notice is for.
fn keep(inbox: &Path, id: &str, body: &[u8]) -> io::Result<bool> {
    let mut draft = tempfile::NamedTempFile::new_in(inbox)?;
    draft.write_all(body)?;
    draft.as_file().sync_all()?;
    match draft.persist_noclobber(inbox.join(format!("{id}.json"))) {
        Ok(_) => Ok(true),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error.error),
    }
}
