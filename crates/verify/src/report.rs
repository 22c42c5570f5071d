//! What a verified attestation says, and what one has to believe for it to be so.

use std::net::IpAddr;

use attestation::{
    attest::Disclosure,
    body::{Body, Server},
    descriptor::Mode,
    full_reveal::Findings,
    portable::Subject,
    signed::{Attestation, Issuer, hex},
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::{DateTime, SecondsFormat};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    expectations::{Level, mode_name},
    log::Logged,
};

/// What was shown beside an attestation.
pub(crate) struct Shown<'a> {
    pub(crate) disclosure: Option<&'a Disclosure>,
    /// What its evidence was found to say.
    pub(crate) found: Option<Findings>,
    /// Where its log has it.
    pub(crate) logged: Option<Logged>,
    /// Whose a portable attestation was found to be.
    pub(crate) subject: Option<&'a Subject>,
    /// What the lists of keys say of its key.
    pub(crate) issuer: Option<&'a Issuer>,
    /// Names of what it is held against.
    pub(crate) checked: &'a [&'static str],
    /// Whether the request and the response are told too.
    pub(crate) transcript: bool,
}

impl Shown<'_> {
    /// How much was verified.
    pub(crate) const fn level(&self) -> Level {
        match self {
            Shown { found: Some(_), .. } => Level::Evidence,
            Shown { disclosure: Some(_), .. } => Level::Disclosure,
            Shown { .. } => Level::Signature,
        }
    }

    /// Whether a field's value is known.
    pub(crate) fn is_opened(&self, body: &Body, field: &str) -> bool {
        let place = body.claims.iter().position(|claim| claim.field == field);
        place.is_some_and(|at| self.value(at).is_some())
    }

    fn value(&self, at: usize) -> Option<Value> {
        let opened = || self.disclosure?.claim(u32::try_from(at).ok()?);
        let found = || self.found.as_ref()?.claims.get(at).map(|(_, value)| value.as_str());
        serde_json::from_str(opened().or_else(found)?).ok()
    }
}

pub(crate) fn report(attestation: &Attestation, shown: &Shown<'_>) -> Value {
    let body = &attestation.body;
    let claims = body.claims.iter().enumerate().map(|(at, claim)| {
        json!({ "field": claim.field, "pointer": claim.pointer, "value": shown.value(at) })
    });
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
            "opened": time(body.time.opened), "closed": time(body.time.closed),
            "signed": time(body.time.signed),
        },
        "request": {
            "method": body.request.method, "target": body.request.target,
            "length": body.request.length,
            "hidden": body.request.hidden.iter().map(|hidden| json!({
                "start": hidden.start, "length": hidden.length, "header": hidden.header,
            })).collect::<Vec<_>>(),
        },
        "response": {
            "status": body.response.status, "contentType": body.response.content_type,
            "bodyLength": body.response.body_length, "hiddenBytes": body.response.hidden,
        },
        "claims": claims.collect::<Vec<_>>(),
        "log": {
            "index": body.log.index, "before": hex(&body.log.before),
            "inclusion": shown.logged.as_ref().map(Logged::json),
        },
        "evidence": shown.found.as_ref().map(|found| evidence(found, shown.transcript)),
        "proves": proves(body, shown),
        "assumes": assumes(body, shown),
    })
}

/// As the partner set it; none where it set none.
fn challenge(body: &Body) -> Option<String> {
    let set = !body.challenge.is_empty();
    set.then(|| URL_SAFE_NO_PAD.encode(&body.challenge))
}

/// The key that signed, and what the lists of keys say of it.
fn issuer(body: &Body, listed: Option<&Issuer>) -> Value {
    json!({
        "name": listed.map(|issuer| &issuer.name), "keyId": hex(&body.issuer),
        "validFrom": listed.and_then(|issuer| time(issuer.valid_from)),
        "validTo": listed.and_then(|issuer| time(issuer.valid_to)),
        "revokedAt": listed.and_then(|issuer| issuer.revoked_at).and_then(time),
        "version": body.attestor.version, "binarySha256": hex(&body.attestor.sha256),
    })
}

/// Where the attestor connected to; none where these are not 4 or 16 bytes.
fn address(server: &Server) -> Option<String> {
    let four = <[u8; 4]>::try_from(server.address.as_slice()).map(IpAddr::from);
    let sixteen = || <[u8; 16]>::try_from(server.address.as_slice()).map(IpAddr::from);
    four.or_else(|_| sixteen()).ok().map(|address| address.to_string())
}

/// How the attestor came by that address.
fn resolver(server: &Server) -> &'static str {
    match server.resolver {
        0 => "dns",
        1 => "configuration",
        _ => "unknown",
    }
}

fn egress(server: &Server) -> &'static str {
    match server.egress {
        0 => "direct",
        1 => "proxy",
        _ => "unknown",
    }
}

/// What somebody else can compute again from the evidence, by other means. The bytes that were
/// exchanged are in it only on request: they hold more than was declared.
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
        fields.insert("request".to_owned(), hex(&found.said).into());
        fields.insert("responseHead".to_owned(), head.into());
        fields.insert("responseBody".to_owned(), hex(&response.body).into());
    }
    evidence
}

/// RFC 3339; none for a time that no calendar has.
fn time(milliseconds: u64) -> Option<String> {
    let moment = DateTime::from_timestamp_millis(i64::try_from(milliseconds).ok()?)?;
    Some(moment.to_rfc3339_opts(SecondsFormat::Millis, true))
}

fn proves(body: &Body, shown: &Shown<'_>) -> Vec<String> {
    let host = &body.server.name;
    let mut lines = vec![format!(
        "the holder of the key says that it examined one TLS 1.3 connection to {host} that it \
         recorded itself, and that the request and the response were those described here"
    )];
    if shown.disclosure.is_some() {
        lines.push(
            "every value that is shown is the one that was committed to before the signature"
                .into(),
        );
    }
    if shown.found.is_some() {
        lines.push(format!(
            "the recorded bytes are those of a TLS 1.3 connection with the holder of {host}'s \
             certificate, which vouched for every byte of the response; the request was the one \
             described, and what is hidden of it is what the connection's own keys encrypted"
        ));
    }
    lines.extend(shown.logged.as_ref().map(Logged::proves));
    lines
}

fn assumes(body: &Body, shown: &Shown<'_>) -> Vec<String> {
    let host = &body.server.name;
    let honest = if shown.found.is_some() {
        "the attestor recorded these bytes on its own way to the server, and its key is held by \
         nobody who gains from a false attestation"
    } else {
        "the attestor's key is held by nobody who gains from a false attestation, and the attestor \
         is honest: the signature is its word"
    };
    let mut lines = vec![
        honest.to_owned(),
        Logged::assumes(shown.logged.as_ref()),
        format!(
            "nobody who works with the prover controlled the way between the attestor and {host}: \
             the prover knows the keys of the connection and could have put records into it"
        ),
        format!("the private key of {host}'s certificate, and the authorities that vouch for it, are sound"),
        "SHA-256, Ed25519 and the ciphers of TLS 1.3 hold".to_owned(),
        "the account is that of whoever's credentials were used; that it was the applicant is not shown"
            .to_owned(),
        "no key was revoked since the lists of keys were fetched".to_owned(),
    ];
    if !shown.checked.contains(&"challenge") {
        lines.push(
            "nothing of the verifier's own is held against it (--challenge): it may have been made \
             for another purpose, or be shown again"
                .into(),
        );
    }
    if body.server.resolver != 0 {
        lines.push(format!("the attestor's own configuration gave {host}'s address, not the DNS"));
    }
    if let Some(at) = shown.issuer.and_then(|issuer| issuer.revoked_at) {
        lines.push(format!(
            "the key was revoked ({}); that this was signed before is the word of whoever held it",
            time(at).unwrap_or_default()
        ));
    }
    if [Mode::ZktlsRequest, Mode::ZktlsFull].map(Mode::number).contains(&body.mode) {
        lines.push(
            "discrete logarithms on the curve T256 are hard, and the proof system holds".into(),
        );
    }
    if body.mode == Mode::FullReveal.number() {
        lines.push("the attestor saw the whole request, credentials too: this is no zkTLS".into());
    }
    lines
}
