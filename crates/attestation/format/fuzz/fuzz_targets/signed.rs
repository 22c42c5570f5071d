//! Arbitrary bytes are refused without a panic: the private key of the trusted key is unknown here.
//! An accepted disclosure or portable attestation has one encoding.
#![no_main]

use attestation::{
    attest::Disclosure,
    portable::AttestationBundle,
    signed::{Issuer, hex, verify},
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let issuer = Issuer {
        name: String::new(),
        public_key: hex(&[3; 32]),
        valid_from: 0,
        valid_to: u64::MAX,
        revoked_at: None,
    };
    assert!(verify(bytes, &[issuer]).is_err());
    if let Ok(disclosure) = Disclosure::read(bytes) {
        assert_eq!(disclosure.write().as_deref(), Ok(bytes));
    }
    if let Ok(portable) = AttestationBundle::read(bytes) {
        assert_eq!(portable.write().as_deref(), Ok(bytes));
        assert!(AttestationBundle::has_format_prefix(bytes));
    }
});
