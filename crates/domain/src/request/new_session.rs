//! Parses the body of a create request field by field.

use serde_json::{Map, Value};

use super::{
    AttestationRequest, Challenge, Contact, ExpiresIn, InvalidRequest, MaxAttempts, challenge,
    read::Reader,
};
use crate::{
    https_url::{self, HttpsUrl},
    id::{InstanceId, PlatformId},
    worker_region::WorkerRegion,
};

/// Characters of a sender's name.
const MAX_SENDER_CHARS: usize = 100;
/// Characters of the purpose, which fits on a phone in three lines.
const MAX_PURPOSE_CHARS: usize = 140;

/// A create request whose fields are each valid. The lookups decide whether the platform,
/// channel, template and places that it names exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSession {
    pub platform: PlatformId,
    pub location: RequestedLocation,
    pub receiver: Option<Contact>,
    pub expires_in: ExpiresIn,
    pub preferred_region: Option<WorkerRegion>,
    pub attestation: AttestationRequest,
    pub attestation_challenge: Option<Challenge>,
    pub channel: Option<i64>,
    pub sender_name: Option<String>,
    pub email_template: Option<i64>,
    pub receiver_id: Option<String>,
    pub external_reference: Option<String>,
    pub custom_url: Option<String>,
    pub purpose: Option<String>,
    pub return_url: Option<HttpsUrl>,
    pub max_attempts: MaxAttempts,
    /// Of a draft: the instance that has its studio. No request of a partner names one.
    pub studio: Option<InstanceId>,
}

/// A location as the partner wrote it: names or codes, in upper or lower case. `state` and `region`
/// mean the same; whether two values name one place is decided by the lookup.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestedLocation {
    pub country: String,
    pub state: Option<String>,
    pub region: Option<String>,
    pub city: Option<String>,
}

impl NewSession {
    /// Parses a body; unknown members are ignored.
    ///
    /// # Errors
    /// All findings at once, each naming its field.
    pub fn read(body: &Value) -> Result<Self, InvalidRequest> {
        let object = body
            .as_object()
            .ok_or_else(|| InvalidRequest::one("the body must be a JSON object"))?;
        let mut reader = Reader::new(object, "");
        let platform = platform(&mut reader);
        let location = location(&mut reader);
        let receiver = receiver(&mut reader);
        let expires_in = expires_in(&mut reader);
        let preferred_region = preferred_region(&mut reader);
        let attestation = match reader.flag("generateAttestation") {
            Some(true) => AttestationRequest::Wanted,
            Some(false) | None => AttestationRequest::NotWanted,
        };
        let attestation_challenge = attestation_challenge(&mut reader);
        let channel = reader.integer("notificationPlatformId");
        if reader.has("notificationPlatformId") && receiver.is_none() {
            reader.finding("receiverData", "must be given with notificationPlatformId");
        }
        let email_template = reader.integer("emailTemplateId");
        if email_template.is_some() && !reader.has("notificationPlatformId") {
            reader.finding("emailTemplateId", "must be left out without notificationPlatformId");
        }
        let request = Self {
            platform: platform.unwrap_or(PlatformId(0)),
            location: location.unwrap_or_default(),
            receiver,
            expires_in,
            preferred_region,
            attestation,
            attestation_challenge,
            channel,
            sender_name: plain_text(
                &mut reader,
                "senderName",
                MAX_SENDER_CHARS,
                "must be a name, without links or addresses",
            ),
            email_template,
            receiver_id: reader.text("receiverId", 255).map(str::to_owned),
            external_reference: reader.text("externalReferenceId", 255).map(str::to_owned),
            custom_url: reader.text("customUrl", 2048).map(str::to_owned),
            purpose: plain_text(
                &mut reader,
                "purpose",
                MAX_PURPOSE_CHARS,
                "must not contain links or addresses",
            ),
            return_url: return_url(&mut reader),
            max_attempts: max_attempts(&mut reader),
            studio: None,
        };
        let findings = reader.into_findings();
        if findings.is_empty() { Ok(request) } else { Err(InvalidRequest(findings)) }
    }
}

/// Reads free text of the partner that a stranger reads in a mail, in a message or on the embed page.
/// It must not contain an address that programs turn into a link, nor change the direction of the
/// text after it.
fn plain_text(
    reader: &mut Reader<'_>,
    field: &str,
    max_chars: usize,
    link_rule: &str,
) -> Option<String> {
    let text = reader.text(field, max_chars)?;
    let lower = text.to_lowercase();
    let is_address = lower.contains("://") || lower.contains("www.") || lower.contains('@');
    if is_address {
        reader.finding(field, link_rule);
        return None;
    }
    if text.chars().any(is_bidi_control) {
        reader.finding(field, "must not contain bidirectional control characters");
        return None;
    }
    if text.chars().any(is_line_break) {
        reader.finding(field, "must be one line");
        return None;
    }
    Some(text.to_owned())
}

/// Returns whether a character separates lines or paragraphs without being a control character.
const fn is_line_break(character: char) -> bool {
    matches!(character, '\u{2028}' | '\u{2029}')
}

fn return_url(reader: &mut Reader<'_>) -> Option<HttpsUrl> {
    let text = reader.text("returnUrl", https_url::MAX_CHARS)?;
    let url = HttpsUrl::new(text);
    if url.is_none() {
        reader.finding("returnUrl", "must be an https URL without user name and password");
    }
    url
}

/// Returns whether a character embeds, overrides or isolates text of another direction (Unicode
/// Standard Annex #9, section 2).
const fn is_bidi_control(character: char) -> bool {
    matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn platform(reader: &mut Reader<'_>) -> Option<PlatformId> {
    if !reader.has("platformId") {
        reader.finding("platformId", "must be a number");
        return None;
    }
    let number = reader.integer("platformId")?;
    // A number out of the identifiers' range is an unknown platform, not an invalid request.
    Some(PlatformId(i32::try_from(number).unwrap_or(0)))
}

fn location(reader: &mut Reader<'_>) -> Option<RequestedLocation> {
    if !reader.has("location") {
        reader.finding("location", "must be an object");
        return None;
    }
    let object: &Map<String, Value> = reader.object("location")?;
    let mut inner = Reader::new(object, "location.");
    if !inner.has("country") {
        inner.finding("country", "must be an ISO 3166-1 alpha-2 code");
    }
    let country = inner.text("country", 2).unwrap_or_default().to_ascii_uppercase();
    let [state, region, city] =
        ["state", "region", "city"].map(|name| inner.text(name, 120).map(str::to_owned));
    let location = RequestedLocation { country, state, region, city };
    reader.absorb(inner);
    Some(location)
}

fn receiver(reader: &mut Reader<'_>) -> Option<Contact> {
    let (contact, inner) = Contact::read(reader.object("receiverData")?, "receiverData.");
    reader.absorb(inner);
    Some(contact)
}

fn expires_in(reader: &mut Reader<'_>) -> ExpiresIn {
    let Some(hours) = reader.integer("expiresInHours") else {
        return ExpiresIn::MAX_HOURS;
    };
    ExpiresIn::hours(hours).unwrap_or_else(|| {
        reader.finding("expiresInHours", "must be between 1 and 168");
        ExpiresIn::MAX_HOURS
    })
}

fn max_attempts(reader: &mut Reader<'_>) -> MaxAttempts {
    let Some(number) = reader.integer("maxAttempts") else { return MaxAttempts::default() };
    MaxAttempts::new(number).unwrap_or_else(|| {
        reader.finding("maxAttempts", "must be between 1 and 5");
        MaxAttempts::default()
    })
}

fn attestation_challenge(reader: &mut Reader<'_>) -> Option<Challenge> {
    let text = reader.text("attestationChallenge", challenge::MAX_CHARS)?;
    let challenge = Challenge::new(text);
    if challenge.is_none() {
        let rule = "must be 1 to 64 bytes in base64url without padding";
        reader.finding("attestationChallenge", rule);
    }
    challenge
}

fn preferred_region(reader: &mut Reader<'_>) -> Option<WorkerRegion> {
    let name = reader.text("preferredRegion", 40)?;
    let region = WorkerRegion::named(name);
    if region.is_none() {
        let names: Vec<_> = WorkerRegion::ALL.iter().map(|region| region.as_str()).collect();
        reader.finding("preferredRegion", &format!("must be one of {}", names.join(", ")));
    }
    region
}
