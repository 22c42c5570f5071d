//! The printed report of a verified attestation.

use std::net::IpAddr;

use attestation::{
    attest::Disclosure,
    body::{AttestedServer, Body},
    full_reveal::Findings,
    portable::Subject,
    signed::{Attestation, Issuer, hex},
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::{DateTime, SecondsFormat};
use serde::Serialize;
use serde_json::{Map, Value, json, value::RawValue};
use uuid::Uuid;

use crate::{
    error::VerifyError,
    expectations::{Level, mode_name},
    log::LogInclusion,
    statements::{assumes, proves},
};

/// The printed report.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Report {
    #[serde(flatten)]
    members: Map<String, Value>,
    /// `None` if nothing is reported about the attestation.
    #[serde(skip_serializing_if = "Option::is_none")]
    claims: Option<Vec<ReportedClaim>>,
}

#[derive(Debug, Serialize)]
struct ReportedClaim {
    field: String,
    pointer: String,
    /// Numbers keep their text: `Value` would round those of more than 64 bits.
    value: Option<Box<RawValue>>,
}

impl Report {
    /// Returns the report of an attestation that is not genuine or was not examined.
    pub(crate) fn refused(failure: &VerifyError) -> Self {
        let mut report = Self::default();
        report.conclude(Some(failure));
        report
    }

    /// Adds whether the attestation is accepted.
    pub(crate) fn conclude(&mut self, refused: Option<&VerifyError>) {
        self.members.insert("accepted".to_owned(), refused.is_none().into());
        if let Some(failure) = refused {
            self.members.insert("refused".to_owned(), failure.json());
        }
    }

    pub(crate) fn json(&self) -> String {
        // Serialization cannot fail: the values are texts, numbers and parsed JSON.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// The verified parts of an attestation and its context.
pub(crate) struct Verified<'a> {
    pub(crate) disclosure: Option<&'a Disclosure>,
    /// The findings of its evidence.
    pub(crate) found: Option<Findings>,
    /// Its verified inclusion in the log.
    pub(crate) logged: Option<LogInclusion>,
    /// The verified subject of a portable attestation.
    pub(crate) subject: Option<&'a Subject>,
    /// The listed entry of its key.
    pub(crate) issuer: Option<&'a Issuer>,
    /// Names of the checked properties.
    pub(crate) checked: &'a [&'static str],
    /// Whether the report includes the request and the response.
    pub(crate) transcript: bool,
}

impl Verified<'_> {
    /// Returns how much was verified.
    pub(crate) const fn level(&self) -> Level {
        match self {
            Verified { found: Some(_), .. } => Level::Evidence,
            Verified { disclosure: Some(_), .. } => Level::Disclosure,
            Verified { .. } => Level::Signature,
        }
    }

    /// Returns whether a field's value is known.
    pub(crate) fn is_known(&self, body: &Body, field: &str) -> bool {
        let place = body.claims.iter().position(|claim| claim.field == field);
        place.is_some_and(|at| self.value(at).is_some())
    }

    /// Returns a claim's value, or `None` if it is unknown or not a scalar.
    fn value(&self, at: usize) -> Option<Box<RawValue>> {
        let opened = || self.disclosure?.claim(u32::try_from(at).ok()?);
        let found = || self.found.as_ref()?.claims.get(at).map(|(_, value)| value.as_str());
        let written = opened().or_else(found)?;
        let text = match serde_json::from_str(written).ok()? {
            Value::Number(_) => written.to_owned(),
            value @ (Value::Null | Value::Bool(_) | Value::String(_)) => value.to_string(),
            Value::Array(_) | Value::Object(_) => return None,
        };
        RawValue::from_string(text).ok()
    }

    /// Returns the headers whose values the prover chose, or `None` if the evidence was not
    /// examined.
    pub(crate) fn chosen(&self) -> Option<Vec<(&str, String)>> {
        let found = self.found.as_ref()?;
        let chosen = found.request.chosen.iter().map(|chosen| {
            let value = found.request_bytes.get(chosen.value.clone()).unwrap_or_default();
            (chosen.header.as_str(), String::from_utf8_lossy(value).into_owned())
        });
        Some(chosen.collect())
    }
}

pub(crate) fn report(attestation: &Attestation, shown: &Verified<'_>) -> Report {
    let claims = attestation.body.claims.iter().enumerate().map(|(at, claim)| ReportedClaim {
        field: claim.field.clone(),
        pointer: claim.pointer.clone(),
        value: shown.value(at),
    });
    let members =
        if let Value::Object(members) = members(attestation, shown) { members } else { Map::new() };
    Report { members, claims: Some(claims.collect()) }
}

/// Returns all members of the report except the claims.
fn members(attestation: &Attestation, shown: &Verified<'_>) -> Value {
    let body = &attestation.body;
    json!({
        "level": shown.level().name(),
        "checked": shown.checked,
        "proofHash": attestation.proof_hash,
        "attestationId": hex(&body.id),
        "attestationType": mode_name(body.mode),
        "subject": shown.subject.map(|subject| json!({
            "sessionId": Uuid::from_bytes(subject.session),
            "teamId": Uuid::from_bytes(subject.partner),
        })),
        "session": hex(&body.session),
        "partner": hex(&body.partner),
        "attempt": body.attempt,
        "challenge": challenge(body),
        "issuer": issuer(body, shown.issuer),
        "descriptor": {
            "platform": body.descriptor.platform, "version": body.descriptor.version,
            "sha256": hex(&body.descriptor.sha256),
        },
        "server": {
            "name": body.server.name, "port": body.server.port,
            "address": address(&body.server), "resolver": resolver(&body.server),
            "egress": egress(&body.server),
            "certificateChainSha256": hex(&body.tls.chain_sha256),
            "leafKeySha256": hex(&body.tls.leaf_key_sha256),
            "cipherSuite": format!("{:#06x}", body.tls.suite),
        },
        "times": {
            "opened": format_time(body.time.opened), "closed": format_time(body.time.closed),
            "signed": format_time(body.time.signed),
        },
        "request": {
            "method": body.request.method, "target": body.request.target,
            "length": body.request.length,
            "chosenHeaders": shown.chosen().map(|chosen| chosen.iter().map(|(name, value)| {
                json!({ "name": name, "value": value })
            }).collect::<Vec<_>>()),
            "hidden": body.request.hidden.iter().map(|hidden| json!({
                "start": hidden.start, "length": hidden.length, "header": hidden.header,
            })).collect::<Vec<_>>(),
        },
        "response": {
            "status": body.response.status, "contentType": body.response.content_type,
            "bodyLength": body.response.body_length, "hiddenBytes": body.response.hidden,
        },
        "log": {
            "index": body.log.index, "before": hex(&body.log.previous_hash),
            "inclusion": shown.logged.as_ref().map(LogInclusion::json),
        },
        "evidence": shown.found.as_ref().map(|found| evidence(found, shown.transcript)),
        "proves": proves(body, shown),
        "assumes": assumes(body, shown),
    })
}

/// Returns the partner's challenge, or `None` if it set none.
fn challenge(body: &Body) -> Option<String> {
    let set = !body.challenge.is_empty();
    set.then(|| URL_SAFE_NO_PAD.encode(&body.challenge))
}

/// Returns the key that signed, with its listed entry.
fn issuer(body: &Body, listed: Option<&Issuer>) -> Value {
    json!({
        "name": listed.map(|issuer| &issuer.name), "keyId": hex(&body.issuer),
        "validFrom": listed.and_then(|issuer| format_time(issuer.valid_from)),
        "validTo": listed.and_then(|issuer| format_time(issuer.valid_to)),
        "revokedAt": listed.and_then(|issuer| issuer.revoked_at).and_then(format_time),
        "version": body.attestor.version, "binarySha256": hex(&body.attestor.sha256),
    })
}

/// Returns the address that the attestor connected to, or `None` if it does not have 4 or 16 bytes.
fn address(server: &AttestedServer) -> Option<String> {
    let four = <[u8; 4]>::try_from(server.address.as_slice()).map(IpAddr::from);
    let sixteen = || <[u8; 16]>::try_from(server.address.as_slice()).map(IpAddr::from);
    four.or_else(|_| sixteen()).ok().map(|address| address.to_string())
}

/// Returns how the attestor resolved that address.
fn resolver(server: &AttestedServer) -> &'static str {
    match server.resolver {
        0 => "dns",
        1 => "configuration",
        _ => "unknown",
    }
}

fn egress(server: &AttestedServer) -> &'static str {
    match server.egress {
        0 => "direct",
        1 => "proxy",
        _ => "unknown",
    }
}

/// Returns values that other programs can compute again from the evidence. The exchanged bytes are
/// included only on request, because they contain undeclared data.
fn evidence(found: &Findings, transcript: bool) -> Value {
    let (connection, response) = (&found.connection, &found.response);
    let mut evidence = json!({
        "cipherSuite": format!("{:#06x}", connection.suite.number()),
        "group": format!("{:#06x}", connection.group),
        "signatureScheme": format!("{:#06x}", connection.scheme),
        "leafKeySha256": hex(&connection.leaf_key_sha256),
        "certificateChainSha256": hex(&connection.chain_sha256),
        "transcript": hex(&connection.transcript),
    });
    if let (true, Some(fields)) = (transcript, evidence.as_object_mut()) {
        let head: Vec<_> = response.lines.iter().map(|line| hex(line)).collect();
        fields.insert("request".to_owned(), hex(&found.request_bytes).into());
        fields.insert("responseHead".to_owned(), head.into());
        fields.insert("responseBody".to_owned(), hex(&response.body).into());
    }
    evidence
}

/// Formats a time by RFC 3339, or returns `None` if it is out of the calendar's range.
pub(crate) fn format_time(milliseconds: u64) -> Option<String> {
    let time = DateTime::from_timestamp_millis(i64::try_from(milliseconds).ok()?)?;
    Some(time.to_rfc3339_opts(SecondsFormat::Millis, true))
}
