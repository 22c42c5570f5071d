//! Arbitrary bytes are refused without a panic, and a search for a key considers every accepted
//! entry.
#![no_main]

use attestation::{
    signed::{Issuer, MAX_ISSUERS, key_id},
    trust_list::parse_trust_list,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|json: &[u8]| {
    let Ok(issuers) = parse_trust_list(json) else { return };
    assert!((1..=MAX_ISSUERS).contains(&issuers.len()));
    for issuer in &issuers {
        let key = issuer.key().expect("a valid key");
        let found = Issuer::find(&issuers, &key_id(&key)).expect("it is listed");
        assert!(found.valid_from >= issuer.valid_from && found.valid_to <= issuer.valid_to);
        assert!(issuer.revoked_at.is_none_or(|at| found.revoked_at.is_some_and(|all| all <= at)));
    }
});
