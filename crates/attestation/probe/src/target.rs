//! What is probed: a URL and the headers of the request, validated.

use attestation::{
    descriptor::{ClaimDescriptor, Descriptor, DescriptorError, RevealMode},
    http::request::MAX_REQUEST_BYTES,
};
use domain::{secret::Secret, workflow::AttestMode};
use rustls::pki_types::ServerName;
use url::Url;

use crate::text::printable;

/// The port to which an attestor connects.
pub(crate) const ATTESTED_PORT: u16 = 443;
/// Maximum length of the URL, in bytes.
const MAX_URL_BYTES: usize = 2048;
/// Identifies the probe, unless a header is given; an attestation has the user agent of the browser.
const USER_AGENT: (&str, &str) = ("user-agent", "avouch-attest-probe");

/// A URL that can be probed, with the request.
pub struct ProbeTarget {
    /// The URL, as it may be printed.
    pub(crate) url: String,
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) server_name: ServerName<'static>,
    /// Why no descriptor can have this URL.
    pub(crate) defects: Vec<String>,
    path_and_query: String,
    headers: Vec<(String, Secret)>,
}

/// Why a URL or a header cannot be probed. No message has the value of a header.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTarget {
    #[error("the URL must be https://HOST[:PORT]/PATH, without user and password")]
    Url,
    #[error("the URL is longer than {MAX_URL_BYTES} bytes")]
    UrlTooLong,
    #[error("header {0} must be `Name: value`, and its value must not have control characters")]
    HeaderForm(usize),
    #[error("header `{0}` cannot be part of an attested request, or is there twice")]
    Header(String),
    #[error("there are too many headers")]
    TooManyHeaders,
    #[error("the headers are too long: a request has at most {MAX_REQUEST_BYTES} bytes")]
    RequestTooLong,
}

impl ProbeTarget {
    /// Parses a URL, and headers as `Name: value`.
    ///
    /// # Errors
    /// The first one that is invalid.
    pub fn parse(text: &str, headers: &[Secret]) -> Result<Self, InvalidTarget> {
        if text.len() > MAX_URL_BYTES {
            return Err(InvalidTarget::UrlTooLong);
        }
        let url = Url::parse(text).ok().filter(|url| {
            url.scheme() == "https" && url.username().is_empty() && url.password().is_none()
        });
        let url = url.ok_or(InvalidTarget::Url)?;
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or(InvalidTarget::Url)?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let server_name =
            ServerName::try_from(host.clone()).map_err(|_| InvalidTarget::Url)?.to_owned();
        let port = url.port().unwrap_or(ATTESTED_PORT);
        let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
        let target = Self {
            url: printable(text),
            defects: url_defects(text, port),
            path_and_query: format!("{}{query}", url.path()),
            headers: parse_headers(headers)?,
            host,
            port,
            server_name,
        };
        if target.request().len() > MAX_REQUEST_BYTES {
            return Err(InvalidTarget::RequestTooLong);
        }
        Ok(target)
    }

    /// Returns the bytes of the request, in the order of attested ones.
    pub(crate) fn request(&self) -> Vec<u8> {
        let Self { path_and_query, .. } = self;
        let host =
            if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let port =
            if self.port == ATTESTED_PORT { String::new() } else { format!(":{}", self.port) };
        let first = format!("GET {path_and_query} HTTP/1.1\r\nHost: {host}{port}\r\n");
        let fixed = "Connection: close\r\nAccept-Encoding: identity\r\n".to_owned();
        let given =
            self.headers.iter().map(|(name, value)| format!("{name}: {}\r\n", value.expose()));
        let lines = [first, fixed].into_iter().chain(given).chain(["\r\n".to_owned()]);
        lines.collect::<String>().into_bytes()
    }

    /// Returns a descriptor that the request conforms to, with a claim at this pointer. All given
    /// values are hidden, as cookies are.
    pub(crate) fn descriptor(&self, mode: AttestMode, pointer: &str) -> Descriptor {
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name.clone()).collect();
        Descriptor {
            hidden: names.clone(),
            headers: names,
            modes: vec![reveal_mode(mode)],
            claims: vec![ClaimDescriptor {
                field: "value".to_owned(),
                pointer: pointer.to_owned(),
            }],
            ..descriptor(&self.host, &self.path_and_query)
        }
    }
}

/// Returns the mode as attestations name it.
pub(crate) const fn reveal_mode(mode: AttestMode) -> RevealMode {
    match mode {
        AttestMode::ZktlsFull => RevealMode::ZktlsFull,
        AttestMode::ZktlsRequest => RevealMode::ZktlsRequest,
        AttestMode::FullReveal => RevealMode::FullReveal,
    }
}

/// The only content type that is attested.
pub(crate) const CONTENT_TYPE: &str = "application/json";

/// Returns a descriptor that is valid if its host and target are.
fn descriptor(host: &str, target: &str) -> Descriptor {
    Descriptor {
        platform: 0,
        version: 0,
        host: host.to_owned(),
        target: target.to_owned(),
        headers: vec![],
        hidden: vec![],
        values: std::collections::BTreeMap::new(),
        content_type: CONTENT_TYPE.to_owned(),
        modes: vec![RevealMode::ZktlsFull],
        claims: vec![ClaimDescriptor { field: "value".to_owned(), pointer: "/value".to_owned() }],
    }
}

/// Returns why no descriptor can have this URL, which is read as the text that a definition has.
fn url_defects(text: &str, port: u16) -> Vec<String> {
    let mut defects = vec![];
    if port != ATTESTED_PORT {
        defects.push(format!(
            "the attestor connects to port {ATTESTED_PORT}; the URL has port {port}"
        ));
    }
    let Some(rest) = text.strip_prefix("https://") else {
        defects.push(
            "the URL of an attested request must begin with https:// as it stands here".into(),
        );
        return defects;
    };
    let (authority, target) = rest.find(['/', '?', '#']).map_or((rest, ""), |at| rest.split_at(at));
    let host = authority.strip_suffix(&format!(":{port}")).unwrap_or(authority);
    let slash = if target.starts_with('/') { "" } else { "/" };
    // Each check stops at the first error: one part at a time.
    let parts = [("host", host, "/".to_owned()), ("path", "a.example", format!("{slash}{target}"))];
    for (part, host, target) in parts {
        if let Err(error) = descriptor(host, &target).check() {
            defects.push(format!("the {part} of the URL cannot be attested: {error}"));
        }
    }
    defects
}

fn parse_headers(given: &[Secret]) -> Result<Vec<(String, Secret)>, InvalidTarget> {
    let mut headers: Vec<(String, Secret)> = vec![];
    for (at, header) in (1..).zip(given) {
        let (name, value) = header.expose().split_once(':').ok_or(InvalidTarget::HeaderForm(at))?;
        let (name, value) = (name.to_ascii_lowercase(), value.trim_matches(' '));
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let is_valid = !name.is_empty() && name.len() <= 64 && name.bytes().all(is_name);
        let has_control = value.bytes().any(|byte| byte < 0x20 || byte == 0x7f);
        if !is_valid || value.is_empty() || has_control {
            return Err(InvalidTarget::HeaderForm(at));
        }
        headers.push((name, Secret::new(value.to_owned())));
    }
    let (user_agent, value) = USER_AGENT;
    if !headers.iter().any(|(name, _)| name == user_agent) {
        headers.push((user_agent.to_owned(), Secret::new(value.to_owned())));
    }
    let names = headers.iter().map(|(name, _)| name.clone()).collect();
    let checked = Descriptor { headers: names, ..descriptor("a.example", "/") };
    match checked.check() {
        Ok(()) => Ok(headers),
        Err(DescriptorError::Header(name)) => Err(InvalidTarget::Header(name)),
        Err(
            DescriptorError::Host
            | DescriptorError::Target
            | DescriptorError::Hidden(_)
            | DescriptorError::Value(_)
            | DescriptorError::ContentType
            | DescriptorError::Claim(_)
            | DescriptorError::Count
            | DescriptorError::Modes,
        ) => Err(InvalidTarget::TooManyHeaders),
    }
}

#[cfg(test)]
mod tests {
    use attestation::http::request::hidden_ranges;

    use super::*;

    #[test]
    fn only_https_urls_with_a_host_and_without_a_user_are_probed() {
        for text in [
            "http://a.example/",
            "https://",
            "https:///x y",
            "https://user@a.example/",
            "https://user:word@a.example/",
            "https://:word@a.example/",
            "a.example",
            "https://a_b..example/",
            "https://a.example:99999/",
        ] {
            assert_eq!(refusal(text, &[]), InvalidTarget::Url, "{text}");
        }
        let long = format!("https://a.example/{}", "a".repeat(MAX_URL_BYTES));
        assert_eq!(refusal(&long, &[]), InvalidTarget::UrlTooLong);
    }

    #[test]
    fn what_no_descriptor_can_have_is_a_defect_and_no_refusal() {
        let defects = |text: &str| parse(text, &[]).defects.join("; ");
        for text in [
            "https://a.example",
            "https://a.example:443/x?y=1",
            "https://a.example?x",
            "https://a.example/x/",
        ] {
            assert_eq!(defects(text), "", "{text}");
        }
        for (text, defect) in [
            ("https://a.example:8443/", "port 443; the URL has port 8443"),
            ("https://127.0.0.1:8443/", "port 8443"),
            ("https://A.example/", "a DNS name in lower case"),
            ("https://localhost/", "a DNS name in lower case"),
            ("https://[::1]/", "a DNS name in lower case"),
            ("https://a.example//x", "the target must be"),
            ("https://a.example/x#y", "the target must be"),
            ("https://a.example/a b", "the target must be"),
            ("HTTPS://a.example/", "must begin with https://"),
        ] {
            assert!(defects(text).contains(defect), "{text}: {}", defects(text));
        }
    }

    #[test]
    fn the_request_conforms_to_its_descriptor() {
        let given = ["Cookie: sid=1; é", "Accept:application/json"];
        let target = parse("https://a.example/api/me?x=1", &given);
        for mode in [AttestMode::ZktlsFull, AttestMode::ZktlsRequest, AttestMode::FullReveal] {
            let hidden = hidden_ranges(&target.request(), &target.descriptor(mode, "/id")).unwrap();
            assert_eq!(hidden.len(), 3, "{mode:?}");
        }
        let ended = "Accept-Encoding: identity\r\ncookie: sid=1; é\r\naccept: application/json\r\n\
                     user-agent: avouch-attest-probe\r\n\r\n";
        let text = String::from_utf8(target.request()).unwrap();
        assert_eq!(
            text,
            format!("GET /api/me?x=1 HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n{ended}")
        );
        let own = parse("https://a.example:8443", &["User-Agent: x"]).request();
        let text = String::from_utf8(own).unwrap();
        assert!(text.starts_with("GET / HTTP/1.1\r\nHost: a.example:8443\r\n"), "{text}");
        assert!(text.ends_with("identity\r\nuser-agent: x\r\n\r\n"), "{text}");
    }

    #[test]
    fn headers_that_an_attested_request_cannot_have_are_refused_without_their_values() {
        let url = "https://a.example/";
        for header in ["x", "x:", ": secret", "x: a\r\nsecret: b", "x: \u{1b}secret", "x y: secret"]
        {
            let refused = refusal(url, &["accept: a", header]);
            assert_eq!(refused, InvalidTarget::HeaderForm(2), "{header:?}");
            assert!(!refused.to_string().contains("secret"));
        }
        for header in ["Host: a", "Content-Length: 1", "Range: a", "If-None-Match: a", "ACCEPT: b"]
        {
            let refused = refusal(url, &["accept: a", header]);
            assert!(matches!(refused, InvalidTarget::Header(_)), "{header}: {refused}");
        }
        let many: Vec<_> = (0..40).map(|at| format!("x-{at}: a")).collect();
        let many: Vec<_> = many.iter().map(String::as_str).collect();
        assert_eq!(refusal(url, &many), InvalidTarget::TooManyHeaders);
        let long = format!("cookie: {}", "a".repeat(MAX_REQUEST_BYTES));
        assert_eq!(refusal(url, &[&long]), InvalidTarget::RequestTooLong);
    }

    fn parse(text: &str, headers: &[&str]) -> ProbeTarget {
        ProbeTarget::parse(text, &secrets(headers)).unwrap()
    }

    fn secrets(headers: &[&str]) -> Vec<Secret> {
        headers.iter().map(|header| Secret::new((*header).to_owned())).collect()
    }

    fn refusal(text: &str, headers: &[&str]) -> InvalidTarget {
        ProbeTarget::parse(text, &secrets(headers)).err().unwrap()
    }
}
