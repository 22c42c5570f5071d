//! A portal user without a browser, who sees every header of the responses.
//!
//! Also functions for what users have: generated passwords, one-time codes, and mailed links.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE};
use http_body_util::{BodyExt as _, Full};
use hyper::{HeaderMap, Method, Request, body::Bytes};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use ring::hmac;

use crate::{eventually, partner::Partner, service::Deployment};

pub struct PortalUser {
    client: Client<HttpConnector, Full<Bytes>>,
    pub base: String,
    cookies: Mutex<BTreeMap<String, String>>,
    /// The password of the last sign-in.
    password: Mutex<String>,
}

/// A page, or a redirect.
pub struct Page {
    pub status: u16,
    pub headers: HeaderMap,
    pub text: String,
}

impl Page {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Returns the value of a hidden field or an attribute: the text between `before` and the next
    /// quote.
    pub fn after(&self, before: &str) -> String {
        let rest = self.text.split_once(before).unwrap_or_else(|| panic!("{before}")).1;
        rest.split('"').next().unwrap().to_owned()
    }

    pub fn token(&self) -> String {
        self.after("name=\"form_token\" value=\"")
    }
}

impl PortalUser {
    pub fn new(base: &str) -> Self {
        let client = Client::builder(TokioExecutor::new()).build_http();
        let (cookies, password) = (Mutex::default(), Mutex::default());
        Self { client, base: base.to_owned(), cookies, password }
    }

    pub fn cookie(&self) -> Option<String> {
        let cookies = self.cookies.lock().unwrap_or_else(PoisonError::into_inner);
        cookies.get("__Host-avouch").cloned()
    }

    /// Forgets the sign-in's cookie and keeps the one that identifies the browser.
    pub fn drop_cookie(&self) {
        self.set_cookie("");
    }

    /// The cookie that identifies a known browser.
    pub fn browser_cookie(&self) -> Option<String> {
        let cookies = self.cookies.lock().unwrap_or_else(PoisonError::into_inner);
        cookies.get("__Host-avouch-browser").cloned()
    }

    pub fn set_browser_cookie(&self, value: &str) {
        let mut cookies = self.cookies.lock().unwrap_or_else(PoisonError::into_inner);
        cookies.insert("__Host-avouch-browser".into(), value.into());
    }

    pub fn set_cookie(&self, value: &str) {
        let mut cookies = self.cookies.lock().unwrap_or_else(PoisonError::into_inner);
        cookies.insert("__Host-avouch".into(), value.into());
    }

    pub async fn get(&self, path: &str) -> Page {
        self.send(Method::GET, path, String::new(), &[]).await
    }

    /// Sends a form as a page of the portal does.
    pub async fn post(&self, path: &str, fields: &[(&str, &str)]) -> Page {
        let from = self.base.clone();
        self.post_from(path, fields, &[("origin", &from), ("sec-fetch-site", "same-origin")]).await
    }

    /// Sends a form with these headers.
    pub async fn post_from(
        &self,
        path: &str,
        fields: &[(&str, &str)],
        headers: &[(&str, &str)],
    ) -> Page {
        let mut form = url::form_urlencoded::Serializer::new(String::new());
        form.extend_pairs(fields);
        self.send(Method::POST, path, form.finish(), headers).await
    }

    /// Sends a form with the token of the page that it is on; reauthenticates where that is
    /// required.
    pub async fn fill(&self, page: &str, path: &str, fields: &[(&str, &str)]) -> Page {
        let answer = self.fill_once(page, path, fields).await;
        if answer.header("location") != "/portal/confirm" {
            return answer;
        }
        assert_eq!(self.confirm(&[]).await.header("location"), "/portal/confirm/continue");
        self.resume_after_confirmation().await
    }

    /// Sends a form once and returns any response.
    pub async fn fill_once(&self, page: &str, path: &str, fields: &[(&str, &str)]) -> Page {
        let token = self.get(page).await.token();
        let fields = [fields, &[("form_token", token.as_str())]].concat();
        self.post(path, &fields).await
    }

    /// Reauthenticates with the password of the last sign-in and further fields.
    pub async fn confirm(&self, more: &[(&str, &str)]) -> Page {
        let password = self.password.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let fields = [&[("password", password.as_str())], more].concat();
        self.fill_once("/portal/confirm", "/portal/confirm", &fields).await
    }

    /// Sends the form that was held until the reauthentication.
    pub async fn resume_after_confirmation(&self) -> Page {
        let page = self.get("/portal/confirm/continue").await;
        let path = page.after("class=\"card\" data-continue action=\"").replace("&#x2f;", "/");
        let resume = page.after("name=\"resume\" value=\"");
        let fields = [("resume", resume.as_str()), ("form_token", &page.token())];
        self.post(&path, &fields).await
    }

    /// Sends a form with a file and the token of the page that it is on.
    pub async fn upload(&self, page: &str, path: &str, file: &[u8]) -> Page {
        let token = self.get(page).await.token();
        let part = "--edge\r\ncontent-disposition: form-data; name=";
        let before = format!(
            "{part}\"form_token\"\r\n\r\n{token}\r\n{part}\"logo\"; filename=\"logo.png\"\r\n\
             content-type: image/png\r\n\r\n"
        );
        let body = [before.as_bytes(), file, b"\r\n--edge--\r\n"].concat();
        let headers = [
            ("content-type", "multipart/form-data; boundary=edge"),
            ("origin", self.base.as_str()),
            ("sec-fetch-site", "same-origin"),
        ];
        self.send(Method::POST, path, body, &headers).await
    }

    pub async fn sign_in(&self, email: &str, password: &str) -> Page {
        password.clone_into(&mut self.password.lock().unwrap_or_else(PoisonError::into_inner));
        self.post("/portal/sign-in", &[("email", email), ("password", password)]).await
    }

    pub async fn send(
        &self,
        method: Method,
        path: &str,
        body: impl Into<Bytes>,
        headers: &[(&str, &str)],
    ) -> Page {
        let body = body.into();
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.base));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let typed = headers.iter().any(|(name, _)| *name == "content-type");
        if !body.is_empty() && !typed {
            request = request.header("content-type", "application/x-www-form-urlencoded");
        }
        let cookies = self.cookies.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let cookies = cookies.iter().filter(|(_, value)| !value.is_empty());
        let cookies: Vec<_> = cookies.map(|(name, value)| format!("{name}={value}")).collect();
        if !cookies.is_empty() {
            request = request.header("cookie", cookies.join("; "));
        }
        let request = request.body(Full::from(body)).expect("a request");
        let response = self.client.request(request).await.expect("an answer");
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        for set in headers.get_all("set-cookie") {
            let set = set.to_str().unwrap();
            for word in ["Path=/", "Secure", "HttpOnly", "SameSite=Lax"] {
                assert!(set.contains(word), "{set}");
            }
            let (name, value) = set.split(';').next().unwrap().split_once('=').unwrap();
            let mut cookies = self.cookies.lock().unwrap_or_else(PoisonError::into_inner);
            cookies.insert(name.to_owned(), value.to_owned());
        }
        let body = response.into_body().collect().await.expect("a whole body").to_bytes();
        Page { status, headers, text: String::from_utf8_lossy(&body).into_owned() }
    }
}

/// Returns the one-time code of a moment (RFC 6238), computed independently of the service.
pub fn code_at(secret: &str, unix: u64) -> String {
    let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let bits = secret.chars().flat_map(|c| {
        let value = alphabet.find(c).expect("base32");
        (0..5).rev().map(move |bit| value >> bit & 1)
    });
    let bits: Vec<_> = bits.collect();
    let bytes: Vec<u8> = bits
        .chunks_exact(8)
        .map(|byte| byte.iter().fold(0, |sum, bit| sum << 1 | u8::try_from(*bit).unwrap()))
        .collect();
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &bytes);
    let tag = hmac::sign(&key, &(unix / 30).to_be_bytes());
    let tag = tag.as_ref();
    let at = usize::from(tag[19] & 15);
    let number = u32::from_be_bytes(tag[at..at + 4].try_into().unwrap()) & 0x7fff_ffff;
    format!("{:06}", number % 1_000_000)
}

/// Returns the seconds since 1970.
pub fn now() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.expect("a clock").as_secs()
}

/// Returns a token of the right form that was never issued.
pub fn made_up() -> String {
    URL_SAFE.encode([7; 32]).trim_end_matches('=').to_owned()
}

/// Creates a user of a team; returns the generated password.
pub fn user(deployment: &Deployment, team: &str, email: &str, role: &str) -> String {
    let made = deployment.admin(&["create-user", "--team", team, "--email", email, "--role", role]);
    made["password"].as_str().expect("a password").to_owned()
}

/// Returns the deployment's public URL.
pub fn base(deployment: &Deployment) -> String {
    deployment.setting("AVOUCH_PUBLIC_URL").expect("an address")
}

/// Returns a user of the deployment's team who has signed in.
pub async fn signed_in(deployment: &Deployment, email: &str, role: &str) -> PortalUser {
    let password = user(deployment, &deployment.team, email, role);
    let person = PortalUser::new(&base(deployment));
    assert_eq!(person.sign_in(email, &password).await.status, 303);
    person
}

/// Returns the link of the latest mail to an address, from the deployment's outbox folder.
pub async fn mailed_link(deployment: &Deployment, address: &str) -> String {
    let start = format!("{}/portal/password?link=", base(deployment));
    let mail = mail_with(deployment, address, &start).await;
    let rest = mail.split_once(&start).and_then(|(_, rest)| rest.split_whitespace().next());
    format!("{start}{}", rest.expect("a link"))
}

/// Returns the latest mail to an address that contains a text, from the deployment's outbox folder,
/// without soft line breaks and escapes of quoted-printable (RFC 2045, section 6.7).
pub async fn mail_with(deployment: &Deployment, address: &str, part: &str) -> String {
    let outbox = deployment.data().join("outbox");
    eventually(&format!("a mail to {address} with {part}"), Duration::from_secs(60), async || {
        let mails = std::fs::read_dir(&outbox).ok()?.flatten();
        let read = mails.map(|mail| {
            let text = std::fs::read_to_string(mail.path()).unwrap_or_default();
            (mail.file_name(), text.replace("=\r\n", "").replace("=3D", "="))
        });
        let theirs = read.filter(|(_, text)| text.contains(address) && text.contains(part));
        Some(theirs.max()?.1)
    })
    .await
}

/// Returns the status of a request with a key.
pub async fn status_with(deployment: &Deployment, key: &str) -> u16 {
    Partner::new(&base(deployment), Some(key)).get("browser-platforms").await.status
}
