//! The statements that a verified attestation proves, and the assumptions that they need.

use attestation::{body::Body, descriptor::RevealMode};

use crate::{
    log::LogInclusion,
    report::{Verified, format_time},
};

pub(crate) fn proves(body: &Body, shown: &Verified<'_>) -> Vec<String> {
    let host = &body.server.name;
    let mut lines = vec![format!(
        "the holder of the key states that it examined one TLS 1.3 connection to {host} that it \
         recorded itself, and that the request and the response were those described here"
    )];
    if shown.disclosure.is_some() {
        lines.push(
            "every reported value is the one that was committed to before the signature".into(),
        );
    }
    if shown.found.is_some() {
        lines.push(format!(
            "the recorded bytes are those of a TLS 1.3 connection with the holder of {host}'s \
             certificate, which authenticated every byte of the response; the request was the one \
             described, and its hidden parts are what the connection's own keys encrypted"
        ));
    }
    lines.extend(shown.logged.as_ref().map(LogInclusion::proves));
    lines
}

pub(crate) fn assumes(body: &Body, shown: &Verified<'_>) -> Vec<String> {
    let host = &body.server.name;
    let honest = if shown.found.is_some() {
        "the attestor recorded these bytes on its own connection to the server, and no party that \
         gains from a false attestation holds its key"
    } else {
        "no party that gains from a false attestation holds the attestor's key, and the attestor \
         is honest: the signature is its statement"
    };
    let mut lines = vec![
        honest.to_owned(),
        LogInclusion::assumes(shown.logged.as_ref()),
        format!(
            "no party that works with the prover controlled the network between the attestor and {host}: \
             the prover knows the connection's keys and could have inserted records into it"
        ),
        format!("the private key of {host}'s certificate and its certification authorities are not compromised"),
        "SHA-256, Ed25519 and the ciphers of TLS 1.3 are secure".to_owned(),
        "the account is the one whose credentials were used; that it is the applicant's is not shown"
            .to_owned(),
        "no key was revoked after the lists of keys were fetched".to_owned(),
    ];
    if !shown.checked.contains(&"challenge") {
        lines.push(
            "no challenge of the verifier was checked (--challenge): it may have been made \
             for another purpose, or be replayed"
                .into(),
        );
    }
    let chosen = shown.chosen().unwrap_or_default();
    if !chosen.is_empty() {
        let names = chosen.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        lines.push(format!(
            "the prover chose the values of the request's headers {names}, which the descriptor does \
             not fix; that they do not change whose account the response describes, or how, is not shown"
        ));
    }
    if body.server.resolver != 0 {
        lines
            .push(format!("the attestor's own configuration determined {host}'s address, not DNS"));
    }
    if let Some(at) = shown.issuer.and_then(|issuer| issuer.revoked_at) {
        lines.push(format!(
            "the key was revoked ({}); that the attestation was signed before is a statement of the key's holder",
            format_time(at).unwrap_or_default()
        ));
    }
    if [RevealMode::ZktlsRequest, RevealMode::ZktlsFull]
        .map(RevealMode::number)
        .contains(&body.mode)
    {
        lines.push(
            "discrete logarithms on the curve T256 are hard, and the proof system is sound".into(),
        );
    }
    if body.mode == RevealMode::FullReveal.number() {
        lines.push(
            "the attestor saw the whole request with its credentials: this is not zkTLS".into(),
        );
    }
    lines
}
