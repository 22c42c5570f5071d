//! What a verified attestation proves, and what one has to believe for it to be so.

use attestation::{body::Body, descriptor::Mode};

use crate::{
    log::Logged,
    report::{Shown, time},
};

pub(crate) fn proves(body: &Body, shown: &Shown<'_>) -> Vec<String> {
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

pub(crate) fn assumes(body: &Body, shown: &Shown<'_>) -> Vec<String> {
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
    let chosen = shown.chosen().unwrap_or_default();
    if !chosen.is_empty() {
        let names = chosen.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        lines.push(format!(
            "the prover chose the values of the request's headers {names}, which the descriptor does \
             not fix; that they do not change whose account is answered for, or how, is not shown"
        ));
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
