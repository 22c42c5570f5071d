//! What a verified attestation says, and what one has to believe for it to be so.

use attestation::{
    attest::Disclosure,
    body::Body,
    descriptor::Mode,
    full_reveal::Findings,
    portable::Subject,
    signed::{Attestation, Issuer, hex, key_id},
};
use chrono::{DateTime, SecondsFormat};
use serde_json::{Value, json};
use uuid::Uuid;

/// What was shown beside an attestation.
pub(crate) struct Shown<'a> {
    pub(crate) disclosure: Option<&'a Disclosure>,
    /// What its evidence was found to say.
    pub(crate) found: Option<Findings>,
    /// Whose the attestation was found to be.
    pub(crate) subject: Option<&'a Subject>,
}

pub(crate) fn report(attestation: &Attestation, shown: &Shown<'_>, issuers: &[Issuer]) -> Value {
    let body = &attestation.body;
    let issuer = issuers.iter().find(|issuer| signed_by(issuer) == Some(body.issuer));
    let level = match shown {
        Shown { found: Some(_), .. } => "evidence",
        Shown { disclosure: Some(_), .. } => "disclosure",
        Shown { .. } => "signature",
    };
    let claims: Vec<_> = body
        .claims
        .iter()
        .enumerate()
        .map(|(at, claim)| {
            json!({
                "field": claim.field, "pointer": claim.pointer,
                "value": value(shown, at),
            })
        })
        .collect();
    json!({
        "level": level,
        "proofHash": attestation.proof_hash,
        "attestationId": hex(&body.id),
        "subject": shown.subject.map(|subject| json!({
            "sessionId": Uuid::from_bytes(subject.session),
            "teamId": Uuid::from_bytes(subject.partner),
        })),
        "attestationType": mode(body),
        "issuer": {
            "name": issuer.map(|issuer| &issuer.name), "keyId": hex(&body.issuer),
            "version": body.attestor.version, "binarySha256": hex(&body.attestor.sha256),
        },
        "descriptor": {
            "platform": body.descriptor.platform, "version": body.descriptor.version,
            "sha256": hex(&body.descriptor.sha256),
        },
        "server": {
            "name": body.server.name, "port": body.server.port,
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
            "bodyLength": body.response.body_length,
        },
        "claims": claims,
        "log": { "index": body.log.index, "before": hex(&body.log.before) },
        "evidence": shown.found.as_ref().map(evidence),
        "proves": proves(body, shown),
        "assumes": assumes(body, shown.found.is_some()),
    })
}

fn signed_by(issuer: &Issuer) -> Option<[u8; 32]> {
    issuer.key().map(|key| key_id(&key))
}

fn value(shown: &Shown<'_>, at: usize) -> Option<Value> {
    let opened = || shown.disclosure?.claim(u32::try_from(at).ok()?);
    let found = || shown.found.as_ref()?.claims.get(at).map(|(_, value)| value.as_str());
    serde_json::from_str(opened().or_else(found)?).ok()
}

/// What somebody else can compute again from the evidence, by other means.
fn evidence(found: &Findings) -> Value {
    let (connection, response) = (&found.connection, &found.response);
    let head: Vec<_> = response.lines.iter().map(|line| hex(line)).collect();
    json!({
        "cipherSuite": format!("{:#06x}", connection.suite.number()),
        "group": format!("{:#06x}", connection.group),
        "signatureScheme": format!("{:#06x}", connection.scheme),
        "leafKeySha256": hex(&connection.leaf_key_sha256),
        "certificateChainSha256": hex(&connection.chain_sha256),
        "transcript": hex(&connection.transcript),
        "request": hex(&found.said),
        "responseHead": head,
        "responseBody": hex(&response.body),
    })
}

fn mode(body: &Body) -> &'static str {
    match body.mode {
        mode if mode == Mode::FullReveal.number() => "full-reveal",
        mode if mode == Mode::ZktlsRequest.number() => "zktls-request",
        _ => "unknown",
    }
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
    lines
}

fn assumes(body: &Body, examined: bool) -> Vec<String> {
    let host = &body.server.name;
    let honest = if examined {
        "the attestor recorded these bytes on its own way to the server, and its key is held by \
         nobody who gains from a false attestation"
    } else {
        "the attestor's key is held by nobody who gains from a false attestation, and the attestor \
         is honest: the signature is its word"
    };
    let mut lines = vec![
        honest.to_owned(),
        format!(
            "nobody who works with the prover controlled the way between the attestor and {host}: \
             the prover knows the keys of the connection and could have put records into it"
        ),
        format!("the private key of {host}'s certificate, and the authorities that vouch for it, are sound"),
        "SHA-256, Ed25519 and the ciphers of TLS 1.3 hold".to_owned(),
        "the account is that of whoever's credentials were used; that it was the applicant is not shown"
            .to_owned(),
    ];
    if body.mode == Mode::ZktlsRequest.number() {
        lines.push(
            "discrete logarithms on the curve T256 are hard, and the proof system holds".into(),
        );
    }
    if body.mode == Mode::FullReveal.number() {
        lines.push("the attestor saw the whole request, credentials too: this is no zkTLS".into());
    }
    lines
}
