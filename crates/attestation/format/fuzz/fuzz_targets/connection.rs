//! Arbitrary bytes of both directions, under any secret, are refused without a panic: no
//! certificate is trusted here.
#![no_main]

use attestation::{
    CertificateTrust,
    descriptor::{ClaimDescriptor, Descriptor, RevealMode},
    full_reveal::{Capture, examine},
};
use libfuzzer_sys::fuzz_target;
use rustls_pki_types::UnixTime;

fuzz_target!(|input: (&[u8], &[u8], [u8; 32])| {
    let (client, server, secret) = input;
    let descriptor = Descriptor {
        platform: 1,
        version: 1,
        host: "platform.test".into(),
        target: "/me".into(),
        headers: vec!["cookie".into()],
        hidden: vec![],
        values: std::collections::BTreeMap::new(),
        content_type: "application/json".into(),
        modes: vec![RevealMode::FullReveal],
        claims: vec![ClaimDescriptor { field: "id".into(), pointer: "/id".into() }],
    };
    let trust =
        CertificateTrust { roots: &[], now: UnixTime::since_unix_epoch(std::time::Duration::ZERO) };
    let capture = Capture { client, server };
    assert!(examine(capture, &secret, &descriptor, &trust).is_err());
});
