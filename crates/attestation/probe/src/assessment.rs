//! The assessment: which modes of attestation the observations allow, and why not.

#[cfg(test)]
mod tests;

use attestation::{
    MAX_CHAIN_CERTIFICATES, http::response::MAX_RESPONSE_BYTES, zk::MAX_PROVED_BYTES,
};
use domain::workflow::AttestMode;
use prover::offered_parameters;
use serde::Serialize;

use crate::{
    examination::MODES,
    handshakes::{group_name, suite_name},
    observation::{
        AlpnOutcome, BodyFraming, Completeness, ExaminedMode, ExchangeOutcome, JsonSyntax,
        Observations, Offer, OfferOutcome, ResponseObserved,
    },
    target::{CONTENT_TYPE, reveal_mode},
};

/// Bytes of a proof that the cookies and the user agent of an applicant may need.
const SPACE_FOR_COOKIES: usize = 2048;

/// Whether a server's answer can be attested in one mode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ModeAssessment {
    pub mode: AttestMode,
    pub can_be_attested: bool,
    /// Why it cannot, each in a sentence; empty if it can.
    pub reasons: Vec<String>,
    /// What is not known from this probe, or may fail later.
    pub warnings: Vec<String>,
}

/// Returns the assessment of each mode, the one that reveals least first.
#[must_use]
pub fn assessments(observations: &Observations) -> Vec<ModeAssessment> {
    MODES.into_iter().map(|mode| assessment(observations, mode)).collect()
}

fn assessment(observations: &Observations, mode: AttestMode) -> ModeAssessment {
    let mut reasons = observations.url_defects.clone();
    let mut warnings = vec![];
    if !observations.address.is_public {
        warnings.push(format!(
            "the address {} is not public: an attestor connects to it only if its operator allows it",
            observations.address.socket_address
        ));
    }
    reasons.extend(tls_reasons(observations, mode));
    reasons.extend(certificate_reasons(observations));
    match &observations.exchange {
        ExchangeOutcome::Response(response) if is_signed_out(response) => {
            warnings.push(format!(
                "the server answers {}, so that the probe is signed out: what it answers to an \
                 applicant is not known, unless a header signs the probe in",
                response.status
            ));
        }
        ExchangeOutcome::Response(response) => {
            reasons.extend(response_reasons(response, mode));
            warnings.extend(space_warning(response, mode));
        }
        ExchangeOutcome::NoResponse(why) => {
            reasons.push(format!("the attestation needs a response: {why}"));
        }
        ExchangeOutcome::NotSent(why) if reasons.is_empty() => {
            reasons
                .push(format!("the attestation needs a response, and none was requested: {why}"));
        }
        ExchangeOutcome::NotSent(_) => (),
    }
    if reasons.is_empty() {
        reasons.extend(examination_reason(observations, mode));
    }
    ModeAssessment { mode, can_be_attested: reasons.is_empty(), reasons, warnings }
}

fn tls_reasons(observations: &Observations, mode: AttestMode) -> Vec<String> {
    let mut reasons = vec![];
    let offered = offered_parameters(reveal_mode(mode));
    if accepted(&observations.versions).contains(&"TLS 1.3") {
        let suites: Vec<_> =
            offered.cipher_suites.iter().map(|suite| suite_name(suite.suite())).collect();
        reasons.extend(offer_reason("cipher suite", &observations.suites, &suites));
        let groups: Vec<_> =
            offered.kx_groups.iter().map(|group| group_name(group.name())).collect();
        reasons.extend(offer_reason("key exchange group", &observations.groups, &groups));
    } else {
        let needed = ["TLS 1.3".to_owned()];
        reasons.extend(offer_reason("version of TLS", &observations.versions, &needed));
    }
    match observations.alpn {
        AlpnOutcome::Selected | AlpnOutcome::Unknown => (),
        AlpnOutcome::NotSelected => reasons.push(
            "the attestation needs a server that selects the protocol http/1.1 by ALPN; the server \
             selects none"
                .into(),
        ),
        AlpnOutcome::Refused => reasons.push(
            "the attestation needs the protocol http/1.1 by ALPN; the server refuses it".into(),
        ),
    }
    reasons
}

fn accepted(offers: &[Offer]) -> Vec<&str> {
    let accepted = offers.iter().filter(|offer| offer.outcome == OfferOutcome::Accepted);
    accepted.map(|offer| offer.name.as_str()).collect()
}

/// Returns why none of the needed offers is accepted.
fn offer_reason(kind: &str, offers: &[Offer], needed: &[String]) -> Option<String> {
    let accepted = accepted(offers);
    if needed.iter().any(|needed| accepted.contains(&needed.as_str())) {
        return None;
    }
    let is_unknown = |offer: &&Offer| match offer.outcome {
        OfferOutcome::Unanswered | OfferOutcome::NotTried => true,
        OfferOutcome::Accepted | OfferOutcome::Refused(_) => false,
    };
    let unknown = offers.iter().filter(|offer| needed.contains(&offer.name)).find(is_unknown);
    let needed = needed.join(" or ");
    if let Some(Offer { name, .. }) = unknown {
        return Some(format!(
            "no known common {kind}: the attestation needs {needed}; whether the server accepts \
             {name} is not known, as it did not answer in time"
        ));
    }
    let offers =
        if accepted.is_empty() { "none that was tried".to_owned() } else { accepted.join(", ") };
    Some(format!("no common {kind}: the attestation needs {needed}; the server offers {offers}"))
}

fn certificate_reasons(observations: &Observations) -> Vec<String> {
    let Some(certificate) = &observations.certificate else { return vec![] };
    let error = certificate
        .error
        .as_ref()
        .map(|error| format!("the attestation needs a valid certificate for the host: {error}"));
    let is_long = certificate.length > MAX_CHAIN_CERTIFICATES;
    let long = is_long.then(|| {
        format!(
            "the attestation needs a chain of {MAX_CHAIN_CERTIFICATES} certificates at most; the \
             server sends {}",
            certificate.length
        )
    });
    error.into_iter().chain(long).collect()
}

/// Returns whether a server refuses the request because nobody is signed in.
fn is_signed_out(response: &ResponseObserved) -> bool {
    matches!(response.status, 401 | 403)
}

fn response_reasons(response: &ResponseObserved, mode: AttestMode) -> Vec<String> {
    let mut reasons = vec![];
    if response.http_version != "HTTP/1.1" {
        let version = &response.http_version;
        reasons.push(format!("the attestation needs HTTP/1.1; the server answers with {version}"));
    }
    if response.status != 200 {
        reasons.push(status_reason(response));
    }
    if !is_attested_type(response.content_type.as_deref()) {
        let sent = response.content_type.as_deref().unwrap_or("none");
        reasons.push(format!(
            "the attestation needs the content type {CONTENT_TYPE}, with no parameter but the \
             charset UTF-8; the server sends {sent}"
        ));
    }
    if let Some(encoding) = response.content_encoding.as_deref().filter(|it| *it != "identity") {
        reasons.push(format!(
            "the attestation needs a response without a content encoding; the server sends \
             {encoding}, although it was asked for identity"
        ));
    }
    reasons.extend(framing_reason(response));
    if let JsonSyntax::Invalid(why) = &response.json {
        reasons.push(format!("the attestation needs a body of JSON: {why}"));
    }
    if response.json == JsonSyntax::Valid && response.shortest_value.is_none() {
        reasons.push(
            "the attestation needs an object or a list with a string, number, boolean or null; the \
             body has none"
                .into(),
        );
    }
    let revealed = match mode {
        AttestMode::ZktlsFull => None,
        AttestMode::ZktlsRequest | AttestMode::FullReveal => Some(&response.credential_headers),
    };
    if let Some(headers) = revealed.filter(|headers| !headers.is_empty()) {
        reasons.push(format!(
            "{} reveals the whole response, and so needs one without credentials; the server sends {}",
            mode.as_str(),
            headers.join(", ")
        ));
    }
    let proved = response.request_bytes.saturating_add(response.total_bytes);
    if mode == AttestMode::ZktlsFull && proved > MAX_PROVED_BYTES {
        reasons.push(format!(
            "{} needs a request and a response of {MAX_PROVED_BYTES} bytes together at most; they \
             have {proved} at least",
            mode.as_str()
        ));
    }
    reasons
}

fn status_reason(response: &ResponseObserved) -> String {
    let status = response.status;
    let redirect = response.location.as_ref().filter(|_| (300..400).contains(&status));
    redirect.map_or_else(
        || format!("the attestation needs the status 200; the server answers {status}"),
        |location| {
            format!(
                "the attestation needs the status 200; the server answers {status}, a redirect to \
                 {location}: if that is its sign-in page, probe with a header that signs in"
            )
        },
    )
}

fn framing_reason(response: &ResponseObserved) -> Option<String> {
    let stated = match response.framing {
        BodyFraming::ContentLength | BodyFraming::Chunked => None,
        BodyFraming::Close => Some("it ends with the connection"),
        BodyFraming::Ambiguous => Some("it is stated in two ways, or in one that cannot be read"),
    };
    if let Some(stated) = stated {
        return Some(format!(
            "the attestation needs a length of the response by Content-Length or chunks; {stated}"
        ));
    }
    let why = match &response.completeness {
        Completeness::Complete => return None,
        Completeness::TooLong => {
            return Some(format!(
                "the attestation needs a response of {MAX_RESPONSE_BYTES} bytes at most; the \
                 server's is longer"
            ));
        }
        Completeness::Truncated => "the connection ended before the response did",
        Completeness::TimedOut => "the response did not end in time",
        Completeness::Malformed(why) => why,
    };
    Some(format!("the attestation needs a complete response; {why}"))
}

/// Returns whether the type is JSON in UTF-8.
fn is_attested_type(value: Option<&str>) -> bool {
    let (essence, parameters) =
        value.map_or(("", ""), |value| value.split_once(';').unwrap_or((value, "")));
    let parameters = parameters.trim_matches([' ', '\t']).to_ascii_lowercase();
    essence.trim_matches([' ', '\t']).eq_ignore_ascii_case(CONTENT_TYPE)
        && matches!(parameters.as_str(), "" | "charset=utf-8" | "charset=\"utf-8\"")
}

/// Warns of a proof that an applicant's cookies may make too long.
fn space_warning(response: &ResponseObserved, mode: AttestMode) -> Option<String> {
    let proved = match mode {
        AttestMode::FullReveal => return None,
        AttestMode::ZktlsRequest => response.request_bytes,
        AttestMode::ZktlsFull => response.request_bytes.saturating_add(response.total_bytes),
    };
    let left = MAX_PROVED_BYTES.checked_sub(proved)?;
    (left < SPACE_FOR_COOKIES).then(|| {
        format!(
            "{} leaves about {left} bytes for what the request of an applicant has in addition: \
             cookies and user agent",
            mode.as_str()
        )
    })
}

/// Returns what the rules of the attestation refuse, where nothing else explains it.
fn examination_reason(observations: &Observations, mode: AttestMode) -> Option<String> {
    let signed_out = match &observations.exchange {
        ExchangeOutcome::Response(response) => is_signed_out(response),
        ExchangeOutcome::NotSent(_) | ExchangeOutcome::NoResponse(_) => false,
    };
    let examined = observations.examined.iter().find(|(examined, _)| *examined == mode);
    match examined.map(|(_, examined)| examined) {
        Some(ExaminedMode::Accepted) => None,
        Some(ExaminedMode::ResponseRefused(_)) if signed_out => None,
        Some(ExaminedMode::ConnectionRefused(why)) => {
            Some(format!("the rules of the attestation refuse the connection: {why}"))
        }
        Some(ExaminedMode::ResponseRefused(why)) => {
            Some(format!("the rules of the attestation refuse the response: {why}"))
        }
        Some(ExaminedMode::TooLong) => Some(format!(
            "{} needs a request and a response that fit a proof; they are too long",
            mode.as_str()
        )),
        None => Some("the rules of the attestation could not be applied to a connection".into()),
    }
}
