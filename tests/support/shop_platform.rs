//! A web site that a definition can be written for only with most of the language: a form in a shadow
//! root, texts in German, an API with a token against cross-site request forgery, a frame, and a banner
//! that covers the page.

use std::path::Path;

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use crate::{root, service::Deployment};

const HOST: &str = "shop.localhost";
const PAGE: &str = include_str!("shop_platform.html");
const FRAME: &str = "<!doctype html><html lang=de><p id=since>Mitglied seit 1. M\u{e4}rz 2019</p>";
const PROFILE: &str = "<!doctype html><html lang=de><title>Konto</title><table><tr><td>Konto<td>12,00\u{a0}\u{20ac}\
    <tr><td>Guthaben<td>EUR 1.234,50</table><input name=mail value=ada@shop.localhost>\
    <input type=password value=secret><span id=phone> Keine  Angabe </span><i data-active=ja></i>";

/// The heads of columns are a row without cells, as in many tables.
const ORDERS: &str = "<!doctype html><html lang=de><title>Bestellungen</title>\
    <address><b>Bonn</b><span>Am Markt 1</span></address>\
    <table><thead><tr><th>Nummer<th>Summe<tbody>";

/// The running web site.
pub struct ShopPlatform {
    port: u16,
}

impl ShopPlatform {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("its address").port();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream));
            }
        });
        Self { port }
    }

    /// Permits browsers to reach the site; to be called before the deployment starts.
    pub fn allow(&self, deployment: &mut Deployment) {
        let allowed = deployment.setting("AVOUCH_EGRESS_ALLOW").unwrap_or_default();
        deployment.set("AVOUCH_EGRESS_ALLOW", format!("{allowed},{HOST}:{}", self.port));
    }

    /// Writes the definition of the site to a file.
    pub fn write(&self, file: &Path) {
        let source = root().join("tests/support/shop_platform.json");
        let text = std::fs::read_to_string(source).expect("the definition");
        let address = format!("http://{HOST}:{}", self.port);
        std::fs::write(file, text.replace("http://shop.localhost", &address)).expect("a file");
    }

    /// Publishes the platform; returns its id.
    pub fn publish(&self, deployment: &Deployment) -> Value {
        let file = deployment.folder.path().join("shop.json");
        self.write(&file);
        let file = file.to_str().expect("a plain path");
        deployment.admin(&["publish-platform", file])["platformId"].clone()
    }
}

async fn serve(mut stream: TcpStream) -> Option<()> {
    let mut bytes = Vec::new();
    let (head, body) = loop {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..at]).into_owned();
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
        });
        let length: usize = length.unwrap_or_default();
        if let Some(body) = bytes.get(at + 4..at + 4 + length) {
            break (head, String::from_utf8_lossy(body).into_owned());
        }
    };
    let request = head.lines().next()?.strip_suffix(" HTTP/1.1")?;
    let (answer, body) = answer(request, &head.to_ascii_lowercase(), &body);
    let answer = format!(
        "HTTP/1.1 {answer}cache-control: no-store\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(answer.as_bytes()).await.ok()
}

/// Returns the status line and the header fields, and the body.
fn answer(request: &str, head: &str, body: &str) -> (String, String) {
    let page = "200 OK\r\ncontent-type: text/html; charset=utf-8\r\n".to_owned();
    let json_type = "content-type: application/json\r\n";
    let is_in = head.contains("shop_sid=in");
    let refused = |status: &str| (format!("{status}\r\n{json_type}"), json!({}).to_string());
    match request {
        "GET /" => (page, PAGE.to_owned()),
        "GET /frame" => (page, FRAME.to_owned()),
        "POST /api/session" if body.contains("right") => {
            let cookies =
                "set-cookie: shop_sid=in; Path=/; HttpOnly\r\nset-cookie: csrf=t%2B1; Path=/\r\n";
            (format!("200 OK\r\n{json_type}{cookies}"), json!({}).to_string())
        }
        "POST /api/session" => refused("401 Unauthorized"),
        // The token is checked as the site's own script sends it.
        "POST /graphql" if is_in && head.contains("x-csrf-token: t+1\r\n") => {
            let body: Value = serde_json::from_str(body).unwrap_or_default();
            let id = body["variables"]["id"].as_str().unwrap_or_default();
            let me = json!({ "data": { "user": { "id": format!("#{id}"), "edits": "7 edits" } } });
            (format!("200 OK\r\n{json_type}"), me.to_string())
        }
        "POST /graphql" => refused("403 Forbidden"),
        "GET /users/ada%20l" if is_in => (page, PROFILE.to_owned()),
        "GET /orders" if is_in => (page, orders(1)),
        "GET /orders?page=2" if is_in => (page, orders(2)),
        "GET /orders?page=3" if is_in => (page, orders(3)),
        "GET /visits?after=" if is_in => visits("2026-11-01T08:00:00Z", &json!("b c")),
        "GET /visits?after=b%20c" if is_in => visits("2026-11-02T09:30:00Z", &json!(null)),
        _ => refused("404 Not Found"),
    }
}

fn orders(page: u32) -> String {
    let rows = (1..=2).map(|row| {
        let number = page * 10 + row;
        format!("<tr class=paid><td>A-{number}<td>{number}.000,50\u{a0}\u{20ac}")
    });
    let rows: String = rows.collect();
    let next = format!("<p><a rel=next href=\"/orders?page={}\">Weiter</a>", page + 1);
    let next = if page < 3 { next.as_str() } else { "" };
    format!("{ORDERS}{rows}</table>{next}")
}

fn visits(at: &str, next: &Value) -> (String, String) {
    let head = "200 OK\r\ncontent-type: application/json\r\n".to_owned();
    (head, json!({ "items": [{ "at": at }], "next": next }).to_string())
}
