//! A web site that looks like the sandbox's to a workflow, and that can stop answering.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use crate::{platform::publish, service::Deployment};

const HOST: &str = "small.localhost";
const SIGN_IN: &str = "<form id=sign-in method=post action=/login><label>User name <input name=user>\
    </label><label>Password <input type=password></label><button>Sign in</button></form>";
const CODE: &str = "<form method=post action=/code><label>Code <input name=code \
    autocomplete=one-time-code autofocus></label><button>Continue</button></form>";
/// A page that signs in by its script, and interrupts twenty responses of the sign-in's URL before it shows
/// its form.
const SINGLE_PAGE: &str = "<form id=sign-in><label>User name <input name=user></label><label>Password \
    <input type=password></label><button>Sign in</button></form><script>\
    const form = document.querySelector('form'); form.hidden = true;\
    (async () => { for (let i = 0; i < 20; i += 1) { const stop = new AbortController();\
    await fetch('/api/sign-in', { signal: stop.signal }); stop.abort(); } form.hidden = false; })();\
    form.onsubmit = async (event) => { event.preventDefault();\
    await fetch('/api/sign-in', { method: 'POST' }); };</script>";
const ACCOUNT: &str = "<main id=account><p data-field=tier>gold</p><script>fetch('/api/stats').then((r) => r.json())</script></main>";

/// The running web site.
pub struct SmallPlatform {
    port: u16,
    is_down: Arc<AtomicBool>,
}

impl SmallPlatform {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("its address").port();
        let is_down = Arc::new(AtomicBool::new(false));
        let down = is_down.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                if !down.load(Ordering::SeqCst) {
                    tokio::spawn(serve(stream));
                }
            }
        });
        Self { port, is_down }
    }

    /// Permits browsers to reach the site; to be called before the deployment starts.
    pub fn allow(&self, deployment: &mut Deployment) {
        let allowed = deployment.setting("AVOUCH_EGRESS_ALLOW").unwrap_or_default();
        deployment.set("AVOUCH_EGRESS_ALLOW", format!("{allowed},{HOST}:{}", self.port));
    }

    /// Lets the site close every connection without an answer, or answer again.
    pub fn set_down(&self, is_down: bool) {
        self.is_down.store(is_down, Ordering::SeqCst);
    }

    /// Publishes the platform; returns its id.
    pub fn publish(&self, deployment: &Deployment) -> Value {
        self.publish_with(deployment, "acme-small", |_| ())
    }

    /// Publishes the platform with a sign-in page that refuses every sign-in, by a response alone;
    /// returns its id.
    pub fn publish_single_page(&self, deployment: &Deployment) -> Value {
        self.publish_with(deployment, "acme-single-page", |definition| {
            definition["nodes"]["open"]["url"] = format!("http://{HOST}:{}/app", self.port).into();
            definition["signals"]["badLogin"] =
                json!({ "response": { "url": "/api/sign-in", "status": 401 } });
        })
    }

    /// Publishes the platform with an address that each session gives; returns its id.
    pub fn publish_with_custom_url(&self, deployment: &Deployment) -> Value {
        self.publish_with(deployment, "acme-custom", |definition| {
            definition["customUrl"] = json!({
                "pattern": "/account*",
                "textKey": "ask_address",
                "wrongTextKey": "wrong_address",
                "timeoutSeconds": 600,
            });
            definition["nodes"]["open"]["url"] = "{customUrl}".into();
            definition["requests"]["me"]["url"] = "{customOrigin}/api/me".into();
            let english = &mut definition["texts"]["en"];
            english["ask_address"] = "Enter the address of your account".into();
            english["wrong_address"] = "That is no address of an account".into();
        })
    }

    /// Returns the address of one of its pages.
    #[must_use]
    pub fn address(&self, path: &str) -> String {
        format!("http://{HOST}:{}{path}", self.port)
    }

    fn publish_with(
        &self,
        deployment: &Deployment,
        name: &str,
        change: impl FnOnce(&mut Value),
    ) -> Value {
        publish(deployment, name, |definition| {
            let base = format!("http://{HOST}:{}", self.port);
            let text = definition.to_string().replace("http://sandbox.localhost", &base);
            let text = text.replace("\"sandbox.localhost\"", &format!("\"{HOST}\""));
            *definition = serde_json::from_str(&text).expect("JSON");
            definition["attest"] = Value::Null;
            let requests = definition["requests"].as_object_mut().expect("requests");
            requests.remove("certified");
            change(definition);
        })
    }
}

async fn serve(mut stream: TcpStream) -> Option<()> {
    let mut bytes = Vec::new();
    let head = loop {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..at]).to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.and_then(|length| length.parse().ok()).unwrap_or_default();
        if bytes.len() >= at + 4 + length {
            break head;
        }
    };
    let (request, headers) = head.split_once("\r\n")?;
    let request = request.strip_suffix(" http/1.1")?;
    let is_in = headers.contains("acme_sid=in");
    let to = |path: &str, stage: &str| {
        format!("303 See Other\r\nlocation: {path}\r\nset-cookie: acme_sid={stage}; Path=/\r\n")
    };
    let page = "200 OK\r\ncontent-type: text/html; charset=utf-8\r\n".to_owned();
    let data = "200 OK\r\ncontent-type: application/json\r\n".to_owned();
    let me =
        r#"{"id":"acme-small-4711","name":"Ada Example","memberSince":"2019-04-01T00:00:00Z"}"#;
    if request == "get /api/sign-in" {
        // The body never comes.
        let head = b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n";
        stream.write_all(head).await.ok()?;
        return stream.read_buf(&mut bytes).await.ok().map(drop);
    }
    let (answer, body) = match request {
        "get /app" => (page, SINGLE_PAGE),
        "post /api/sign-in" => ("401 Unauthorized\r\n".to_owned(), ""),
        "get /account" | "get /account?tab=profile" if is_in => (page, ACCOUNT),
        "get /account" | "get /account?tab=profile" => (to("/login", "out"), ""),
        "get /login" => (page, SIGN_IN),
        "post /login" => (to("/code", "code"), ""),
        "get /code" => (page, CODE),
        "post /code" => (to("/account", "in"), ""),
        "get /api/me" if is_in => (data, me),
        "get /api/stats" if is_in => (data, r#"{"followers":1289}"#),
        _ => ("404 Not Found\r\n".to_owned(), ""),
    };
    let body = if body.starts_with('<') {
        format!("<!doctype html><html lang=en><title>Acme</title><h1>Acme</h1>{body}")
    } else {
        body.to_owned()
    };
    let answer = format!(
        "HTTP/1.1 {answer}cache-control: no-store\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(answer.as_bytes()).await.ok()
}
