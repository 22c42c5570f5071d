//! The sites over HTTP, as a browser without scripts uses them.

use std::{collections::BTreeMap, net::SocketAddr};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::{HOST, HOSTS, SiteCertificate, accounts, library, serve, shop};

#[actix_web::test]
async fn each_host_has_its_own_pages_and_cookies() {
    let mut browser = Browser::start();
    for (host, path, to) in [
        (HOST, "/", "/account"),
        ("127.0.0.1", "/", "/account"),
        (library::HOST, "/", "/login"),
        (library::HOST, "/card", "/login"),
    ] {
        assert_eq!(browser.get(host, path).await.leads_to(), to, "{host}{path}");
    }
    for host in HOSTS.into_iter().filter(|host| *host != HOST) {
        assert_eq!(browser.get(host, "/account").await.status, 404, "{host}");
    }
    assert_eq!(browser.get(HOST, "/authorize").await.status, 404);
    for (host, cookie) in
        [(HOST, "acme_sid"), (accounts::HOST, "acme_id_sid"), (library::HOST, "library_sid")]
    {
        browser.get(host, "/login").await;
        assert!(browser.cookie(host, cookie).is_some(), "{host}");
    }
}

#[actix_web::test]
async fn the_shop_signs_in_by_a_code_of_the_provider() {
    let mut browser = Browser::start();
    for user in ["ok", "many"] {
        let callback = browser.sign_in_to_shop(user).await;
        let code = browser.exchange(&callback).await;
        assert_eq!((code.status, &code.json()["signedIn"]), (200, &json!(true)));
        let me = browser.call("GET", "/api/profile", "").await.json();
        assert_eq!(me["customer"]["id"], format!("shop-{user}-4711"));
        browser.call("DELETE", "/api/session", "").await;
        // The provider has a session of its own.
        browser.forget(accounts::HOST);
    }
}

#[actix_web::test]
async fn the_shop_refuses_codes_of_others_and_a_second_use() {
    let mut browser = Browser::start();
    let callback = browser.sign_in_to_shop("ok").await;
    let mut other = browser.another();
    other.get(shop::HOST, "/sign-in/start").await;
    let refused = other.exchange(&callback).await;
    assert_eq!((refused.status, refused.json()["error"].clone()), (400, json!("state")));
    assert_eq!(browser.exchange(&callback).await.status, 200);
    assert_eq!(browser.exchange(&callback).await.json()["error"], "state");

    let start = other.get(shop::HOST, "/sign-in/start").await.leads_to().to_owned();
    let (code, state) = (parameter(&callback, "code"), parameter(&start, "state"));
    let used = other.exchange(&format!("?code={code}&state={state}")).await;
    assert_eq!((used.status, used.json()["error"].clone()), (400, json!("code")));
}

#[actix_web::test]
async fn the_provider_sends_codes_to_its_client_alone() {
    let mut browser = Browser::start();
    let start = browser.get(shop::HOST, "/sign-in/start").await.leads_to().to_owned();
    let asked = start.strip_prefix("http://accounts.sandbox.localhost").unwrap();
    for (own, wrong) in [
        ("client_id=acme-web-shop", "client_id=other"),
        ("http://shop.sandbox.localhost/", "http://elsewhere.invalid/"),
        ("response_type=code", "response_type=token"),
    ] {
        let asked = asked.replace(own, wrong);
        assert_eq!(browser.get(accounts::HOST, &asked).await.status, 400, "{wrong}");
    }
    assert_eq!(browser.get(accounts::HOST, asked).await.leads_to(), "/login");
}

#[actix_web::test]
async fn a_denied_permission_reaches_the_shop() {
    for (answer, expected) in [("deny", "error"), ("allow", "code")] {
        let mut browser = Browser::start();
        assert_eq!(browser.sign_in_to_shop("denied").await, "/permission");
        let page = browser.get(accounts::HOST, "/permission").await;
        let form = format!("csrf={}&answer={answer}", page.token());
        let answered = browser.post(accounts::HOST, "/permission", &form).await;
        let callback = answered.leads_to();
        assert!(callback.starts_with("http://shop.sandbox.localhost/sign-in/callback?"));
        assert!(!parameter(callback, expected).is_empty(), "{callback}");
    }
}

#[actix_web::test]
async fn the_api_of_the_shop_wants_its_token() {
    let mut browser = Browser::start();
    browser.get(shop::HOST, "/api/session").await;
    for (method, path) in
        [("GET", "/api/profile"), ("GET", "/api/orders"), ("DELETE", "/api/session")]
    {
        let refused = browser.send(shop::HOST, method, path, &[], "").await;
        assert_eq!((refused.status, refused.json()), (403, json!({ "error": "csrf" })), "{path}");
    }
    let refused = browser.call("GET", "/api/orders?cursor=", "").await;
    assert_eq!((refused.status, refused.json()), (401, json!({ "error": "signed_out" })));
    let callback = browser.sign_in_to_shop("ok").await;
    browser.exchange(&callback).await;
    let orders = browser.call("GET", "/api/orders?cursor=", "").await.json();
    assert_eq!(orders["next"], "before-1005");
    let newest = json!({
        "number": "S-1007", "placedOn": "21/10/2026", "items": 1, "status": "shipped",
        "total": { "amount": 19.95, "currency": "EUR" },
    });
    assert_eq!(orders["orders"][0], newest);
    assert_eq!(browser.call("GET", "/api/orders?cursor=x", "").await.status, 400);
}

#[actix_web::test]
async fn no_page_needs_a_script_that_stands_in_it() {
    let mut browser = Browser::start();
    for (host, path) in [
        (shop::HOST, "/orders"),
        (shop::HOST, "/sign-in/callback"),
        (accounts::HOST, "/login"),
        (library::HOST, "/login"),
    ] {
        let page = browser.get(host, path).await;
        let policy = page.header("content-security-policy").unwrap();
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        for tag in page.body.split("<script").skip(1) {
            assert!(tag.contains("src=\"/") && tag.contains("></script>"), "{path}: {tag}");
        }
        assert!(!page.body.contains("<style") && !page.body.contains(" style="), "{path}");
    }
    let page = browser.get(library::HOST, "/login").await.body;
    assert!(page.contains("lang=\"ar\" dir=\"rtl\"") && !page.contains("<script"), "{page}");
}

#[actix_web::test]
async fn the_user_name_decides_what_the_library_does() {
    let outcomes = [
        ("ok", 303, "/loans"),
        ("otp", 303, "/code"),
        ("one_page", 303, "/loans"),
        ("no_loans", 303, "/loans"),
        ("logout_midway", 303, "/loans"),
        ("maintenance", 503, "للصيانة"),
        ("locked", 200, "تم إيقاف هذا الحساب"),
        ("nobody", 200, "كلمة المرور غير صحيحة"),
    ];
    for (user, status, expected) in outcomes {
        let mut browser = Browser::start();
        let answer = browser.sign_in_to_library(user).await;
        assert_eq!(answer.status, status, "{user}");
        let shown = if status == 303 { answer.leads_to() } else { &answer.body };
        assert!(shown.contains(expected), "{user}: {shown}");
    }
}

#[actix_web::test]
async fn the_loans_go_on_until_the_session_times_out() {
    let mut browser = Browser::start();
    browser.sign_in_to_library("ok").await;
    for (page, rows, next) in [(1, 3, true), (2, 3, true), (3, 1, false)] {
        let shown = browser.get(library::HOST, &format!("/loans?page={page}")).await;
        assert_eq!(shown.body.matches("<tr><td>").count(), rows);
        assert_eq!(shown.body.contains("rel=\"next\""), next, "{page}");
    }
    assert_eq!(browser.get(library::HOST, "/loans?page=4").await.status, 404);

    let mut browser = Browser::start();
    browser.sign_in_to_library("logout_midway").await;
    assert_eq!(browser.get(library::HOST, "/loans").await.status, 200);
    assert_eq!(browser.get(library::HOST, "/loans?page=2").await.leads_to(), "/expired");
    assert_eq!(browser.get(library::HOST, "/loans").await.leads_to(), "/login");
}

#[actix_web::test]
async fn the_notice_about_cookies_is_shown_until_it_was_read() {
    let mut browser = Browser::start();
    let page = browser.get(library::HOST, "/login").await;
    assert!(page.body.contains("id=\"cookies\""));
    let form = format!("csrf={}", page.token());
    assert_eq!(browser.post(library::HOST, "/cookies", &form).await.leads_to(), "/login");
    let page = browser.get(library::HOST, "/login").await;
    assert!(!page.body.contains("id=\"cookies\""));
    let form = format!("csrf={}", uuid::Uuid::nil());
    assert_eq!(browser.post(library::HOST, "/cookies", &form).await.status, 403);
}

#[actix_web::test]
async fn codes_of_the_library_and_of_the_provider_are_checked() {
    let mut browser = Browser::start();
    browser.sign_in_to_library("otp").await;
    browser.sign_in_to_shop("otp").await;
    for host in [library::HOST, accounts::HOST] {
        for (code, status) in [("000000", 200), ("123456", 303)] {
            let form = format!("csrf={}&code={code}", browser.get(host, "/code").await.token());
            assert_eq!(browser.post(host, "/code", &form).await.status, status, "{host}");
        }
    }
}

/// A browser with cookies for each host.
struct Browser {
    address: SocketAddr,
    cookies: BTreeMap<(String, String), String>,
}

struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: String,
}

impl Browser {
    fn start() -> Self {
        let folder = TempDir::new().unwrap();
        let socket = || std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let listener = socket();
        let address = listener.local_addr().unwrap();
        let certificate = SiteCertificate::open(folder.path()).unwrap();
        actix_web::rt::spawn(serve(listener, socket(), certificate).unwrap());
        Self { address, cookies: BTreeMap::new() }
    }

    /// Returns a browser without cookies.
    fn another(&self) -> Self {
        Self { address: self.address, cookies: BTreeMap::new() }
    }

    fn forget(&mut self, host: &str) {
        self.cookies.retain(|(of, _), _| of != host);
    }

    fn cookie(&self, host: &str, name: &str) -> Option<&str> {
        self.cookies.get(&(host.to_owned(), name.to_owned())).map(String::as_str)
    }

    async fn get(&mut self, host: &str, path: &str) -> Answer {
        self.send(host, "GET", path, &[], "").await
    }

    async fn post(&mut self, host: &str, path: &str, form: &str) -> Answer {
        let kind = ("content-type", "application/x-www-form-urlencoded");
        self.send(host, "POST", path, &[kind], form).await
    }

    /// Calls the API of the shop as its script does.
    async fn call(&mut self, method: &str, path: &str, body: &str) -> Answer {
        let token = self.cookie(shop::HOST, "shop_csrf").unwrap().to_owned();
        let headers = [("content-type", "application/json"), ("x-csrf-token", token.as_str())];
        self.send(shop::HOST, method, path, &headers, body).await
    }

    async fn send(
        &mut self,
        host: &str,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let own = self.cookies.iter().filter(|((of, _), _)| of == host);
        let cookies: Vec<_> = own.map(|((_, name), value)| format!("{name}={value}")).collect();
        let headers = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
        let headers: String = headers.collect();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncookie: {}\r\n\
             content-length: {}\r\n{headers}\r\n{body}",
            cookies.join("; "),
            body.len(),
        );
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut received = String::new();
        stream.read_to_string(&mut received).await.unwrap();
        let answer = Answer::read(&received);
        for (_, cookie) in answer.headers.iter().filter(|(name, _)| name == "set-cookie") {
            let (name, value) = cookie.split(';').next().unwrap().split_once('=').unwrap();
            self.cookies.insert((host.to_owned(), name.to_owned()), value.to_owned());
        }
        answer
    }

    async fn sign_in_to_library(&mut self, user: &str) -> Answer {
        let page = self.get(library::HOST, "/login").await;
        let form = format!("csrf={}&user={user}&password=any", page.token());
        self.post(library::HOST, "/login", &form).await
    }

    /// Signs in at the provider for the shop; returns where that leads to.
    async fn sign_in_to_shop(&mut self, user: &str) -> String {
        let start = self.get(shop::HOST, "/sign-in/start").await;
        let asked = start.leads_to().strip_prefix("http://accounts.sandbox.localhost").unwrap();
        self.get(accounts::HOST, asked).await;
        let page = self.get(accounts::HOST, "/login").await;
        let form = format!("csrf={}&user={user}&password=any", page.token());
        self.post(accounts::HOST, "/login", &form).await.leads_to().to_owned()
    }

    /// Gives the shop the code in the address that the provider leads to.
    async fn exchange(&mut self, callback: &str) -> Answer {
        let (code, state) = (parameter(callback, "code"), parameter(callback, "state"));
        let body = json!({ "code": code, "state": state }).to_string();
        self.call("POST", "/api/session", &body).await
    }
}

impl Answer {
    fn read(received: &str) -> Self {
        let (head, body) = received.split_once("\r\n\r\n").unwrap();
        let mut lines = head.lines();
        let status = lines.next().and_then(|line| line.split(' ').nth(1)).unwrap().parse().unwrap();
        let header = |line: &str| {
            let (name, value) = line.split_once(": ").unwrap();
            (name.to_ascii_lowercase(), value.to_owned())
        };
        Self { status, headers: lines.map(header).collect(), body: body.to_owned() }
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    fn leads_to(&self) -> &str {
        self.header("location").unwrap()
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// Returns the token of the first form.
    fn token(&self) -> &str {
        let (_, rest) = self.body.split_once("name=\"csrf\" value=\"").unwrap();
        rest.split('"').next().unwrap()
    }
}

fn parameter<'a>(url: &'a str, name: &str) -> &'a str {
    let (_, query) = url.split_once('?').unwrap();
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.find_map(|(own, value)| (own == name).then_some(value)).unwrap_or_default()
}
