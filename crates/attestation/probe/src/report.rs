//! The report of a probe, as text and as JSON.

use std::fmt::{self, Write as _};

use domain::workflow::AttestMode;
use serde::Serialize;

use crate::{
    assessment::{ModeAssessment, assessments},
    observation::{
        AlpnOutcome, BodyFraming, CertificateObserved, Completeness, ConnectionEnd,
        ExchangeOutcome, JsonSyntax, Observations, Offer, OfferOutcome, ResponseObserved,
    },
};

/// What a probe observed, and the assessment about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProbeReport {
    #[serde(flatten)]
    observations: Observations,
    modes: Vec<ModeAssessment>,
}

impl ProbeReport {
    #[must_use]
    pub fn new(observations: Observations) -> Self {
        let modes = assessments(&observations);
        Self { observations, modes }
    }

    /// Returns whether the answer can be attested in this mode, or in any.
    #[must_use]
    pub fn can_be_attested(&self, wanted: Option<AttestMode>) -> bool {
        let is_wanted =
            |assessment: &&ModeAssessment| wanted.is_none_or(|mode| mode == assessment.mode);
        self.modes.iter().filter(is_wanted).any(|assessment| assessment.can_be_attested)
    }

    /// Returns whether the answer can be attested, and what speaks against the mode with the fewest
    /// obstacles, or should be known of it.
    #[must_use]
    pub fn best(&self) -> (bool, Vec<String>) {
        let best = self.modes.iter().min_by_key(|one| (!one.can_be_attested, one.reasons.len()));
        best.map_or((false, vec![]), |best| {
            let all = best.reasons.iter().chain(&best.warnings);
            (best.can_be_attested, all.cloned().collect())
        })
    }

    /// Keeps the assessment of one mode.
    #[must_use]
    pub fn restricted_to(mut self, mode: AttestMode) -> Self {
        self.modes.retain(|assessment| assessment.mode == mode);
        self
    }

    #[must_use]
    pub fn to_json(&self) -> String {
        // Serializing a structure of texts, numbers and lists cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write_text(&mut text);
        text
    }

    fn write_text(&self, text: &mut String) -> fmt::Result {
        let Observations {
            url,
            address,
            versions,
            suites,
            groups,
            hello_retry_request,
            alpn,
            certificate,
            exchange,
            ..
        } = &self.observations;
        writeln!(text, "{url}")?;
        let mut row = |name: &str, value: &str| writeln!(text, "  {name:<13}{value}");
        let public = if address.is_public { "" } else { ", not public" };
        row("address", &format!("{}{public}", address.socket_address))?;
        row("certificate", &certificate_text(certificate.as_ref()))?;
        row("TLS", &offers_text(versions))?;
        row("suites", &offers_text(suites))?;
        row("groups", &offers_text(groups))?;
        if let Some(retry) = hello_retry_request {
            row("retry", if *retry { "HelloRetryRequest" } else { "no HelloRetryRequest" })?;
        }
        row("ALPN", alpn_text(*alpn))?;
        match exchange {
            ExchangeOutcome::NotSent(why) => row("response", &format!("not requested: {why}"))?,
            ExchangeOutcome::NoResponse(why) => row("response", &format!("none: {why}"))?,
            ExchangeOutcome::Response(response) => {
                row("response", &response_text(response))?;
                if let Some(location) = &response.location {
                    row("Location", location)?;
                }
                if !response.cookies.is_empty() {
                    row("Set-Cookie", &response.cookies.join(", "))?;
                }
            }
        }
        for ModeAssessment { mode, can_be_attested, reasons, warnings } in &self.modes {
            let assessment =
                if *can_be_attested { "can be attested" } else { "cannot be attested" };
            writeln!(text, "{}: {assessment}", mode.as_str())?;
            for reason in reasons {
                writeln!(text, "  - {reason}")?;
            }
            for warning in warnings {
                writeln!(text, "  warning: {warning}")?;
            }
        }
        Ok(())
    }
}

fn certificate_text(certificate: Option<&CertificateObserved>) -> String {
    let Some(CertificateObserved { error, length, names }) = certificate else {
        return "not seen".to_owned();
    };
    let validity = error.as_ref().map_or("valid".to_owned(), |error| format!("not valid: {error}"));
    let count = if *length == 1 { "certificate" } else { "certificates" };
    let names =
        if names.is_empty() { String::new() } else { format!(", for {}", names.join(", ")) };
    format!("{validity}; {length} {count}{names}")
}

fn offers_text(offers: &[Offer]) -> String {
    let texts = offers.iter().map(|Offer { name, outcome }| {
        let outcome = match outcome {
            OfferOutcome::Accepted => "yes",
            OfferOutcome::Refused(_) => "no",
            OfferOutcome::Unanswered => "no answer",
            OfferOutcome::NotTried => "not tried",
        };
        format!("{name} {outcome}")
    });
    texts.collect::<Vec<_>>().join(", ")
}

const fn alpn_text(alpn: AlpnOutcome) -> &'static str {
    match alpn {
        AlpnOutcome::Selected => "http/1.1 selected",
        AlpnOutcome::NotSelected => "no protocol selected",
        AlpnOutcome::Refused => "http/1.1 refused",
        AlpnOutcome::Unknown => "not known",
    }
}

fn response_text(response: &ResponseObserved) -> String {
    let mut text = format!("{} {}", response.http_version, response.status);
    let _ = write!(text, ", {}", response.content_type.as_deref().unwrap_or("no content type"));
    let json = match response.json {
        JsonSyntax::Valid => "JSON",
        JsonSyntax::Invalid(_) => "not JSON",
        JsonSyntax::Unknown => "not read as JSON",
    };
    let _ = write!(text, ", {json}");
    if let Some(encoding) = &response.content_encoding {
        let _ = write!(text, ", Content-Encoding {encoding}");
    }
    let framing = match response.framing {
        BodyFraming::ContentLength => "Content-Length",
        BodyFraming::Chunked => "chunks",
        BodyFraming::Close => "no length",
        BodyFraming::Ambiguous => "an ambiguous length",
    };
    let completeness = match response.completeness {
        Completeness::Complete => "",
        Completeness::Truncated => ", truncated",
        Completeness::TooLong => ", too long",
        Completeness::TimedOut => ", without an end in time",
        Completeness::Malformed(_) => ", malformed",
    };
    let end = match response.end {
        ConnectionEnd::CloseNotify => "closed with close_notify",
        ConnectionEnd::Closed => "closed without close_notify",
        ConnectionEnd::Open => "left open",
    };
    let _ = write!(text, ", {} bytes, {framing}{completeness}, {end}", response.body_bytes);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::{AddressObserved, ExaminedMode};

    #[test]
    fn the_text_has_a_row_for_each_observation_and_each_mode() {
        let text = ProbeReport::new(observed()).to_text();
        let lines = [
            "https://a.example/me",
            "  address      203.0.113.7:443, not public",
            "  certificate  not valid: the certificate is for other names; 2 certificates, for b.example",
            "  TLS          TLS 1.2 no, TLS 1.3 yes",
            "  suites       TLS_CHACHA20_POLY1305_SHA256 no answer",
            "  groups       X25519 not tried",
            "  retry        HelloRetryRequest",
            "  ALPN         no protocol selected",
            "  response     HTTP/1.1 302, no content type, not read as JSON, Content-Encoding br, \
             7 bytes, chunks, truncated, left open",
            "  Location     /sign-in",
            "  Set-Cookie   sid, t",
            "zktls-full: cannot be attested",
        ];
        assert!(text.starts_with(&lines.join("\n")), "{text}");
        assert!(text.ends_with('\n') && !text.ends_with("\n\n"));
    }

    #[test]
    fn the_names_of_the_json_are_stable() {
        let report = ProbeReport::new(observed()).restricted_to(AttestMode::FullReveal);
        let mut value: serde_json::Value = serde_json::from_str(&report.to_json()).unwrap();
        let modes = value["modes"].take();
        assert_eq!(modes.as_array().unwrap().len(), 1);
        assert_eq!(modes[0]["mode"], "full-reveal");
        assert_eq!(modes[0]["canBeAttested"], false);
        assert!(modes[0]["reasons"].is_array() && modes[0]["warnings"].is_array());
        let expected = serde_json::json!({
            "url": "https://a.example/me",
            "address": { "socketAddress": "203.0.113.7:443", "isPublic": false },
            "versions": [
                { "name": "TLS 1.2", "outcome": "refused", "reason": "handshake failure" },
                { "name": "TLS 1.3", "outcome": "accepted" },
            ],
            "suites": [{ "name": "TLS_CHACHA20_POLY1305_SHA256", "outcome": "unanswered" }],
            "groups": [{ "name": "X25519", "outcome": "notTried" }],
            "helloRetryRequest": true,
            "alpn": "notSelected",
            "certificate": {
                "error": "the certificate is for other names", "length": 2, "names": ["b.example"],
            },
            "exchange": { "outcome": "response", "content": {
                "status": 302, "httpVersion": "HTTP/1.1", "contentType": null, "contentEncoding": "br",
                "json": { "outcome": "unknown" }, "framing": "chunked", "headBytes": 50, "bodyBytes": 7,
                "totalBytes": 60, "requestBytes": 100, "completeness": { "outcome": "truncated" },
                "cookies": ["sid", "t"], "credentialHeaders": ["set-cookie"], "location": "/sign-in",
                "end": "open",
            } },
            "modes": null,
        });
        assert_eq!(value, expected);
    }

    fn observed() -> Observations {
        let offer = |name: &str, outcome| Offer { name: name.into(), outcome };
        Observations {
            url: "https://a.example/me".into(),
            address: AddressObserved { socket_address: "203.0.113.7:443".into(), is_public: false },
            url_defects: vec![],
            versions: vec![
                offer("TLS 1.2", OfferOutcome::Refused("handshake failure".into())),
                offer("TLS 1.3", OfferOutcome::Accepted),
            ],
            suites: vec![offer("TLS_CHACHA20_POLY1305_SHA256", OfferOutcome::Unanswered)],
            groups: vec![offer("X25519", OfferOutcome::NotTried)],
            hello_retry_request: Some(true),
            alpn: AlpnOutcome::NotSelected,
            certificate: Some(CertificateObserved {
                error: Some("the certificate is for other names".into()),
                length: 2,
                names: vec!["b.example".into()],
            }),
            exchange: ExchangeOutcome::Response(Box::new(ResponseObserved {
                status: 302,
                http_version: "HTTP/1.1".into(),
                content_type: None,
                content_encoding: Some("br".into()),
                json: JsonSyntax::Unknown,
                shortest_value: None,
                framing: BodyFraming::Chunked,
                head_bytes: 50,
                body_bytes: 7,
                total_bytes: 60,
                request_bytes: 100,
                completeness: Completeness::Truncated,
                cookies: vec!["sid".into(), "t".into()],
                credential_headers: vec!["set-cookie".into()],
                location: Some("/sign-in".into()),
                end: ConnectionEnd::Open,
            })),
            examined: vec![(AttestMode::ZktlsFull, ExaminedMode::Accepted)],
        }
    }
}
