//! The identifiers of traces and spans. Those that several processes have to agree on follow from the
//! identifier of the session.

use domain::{id::SessionId, session::Version};
use sha2::{Digest as _, Sha256};

pub(crate) type TraceId = [u8; 16];
pub(crate) type SpanId = [u8; 8];

/// Returns the identifier of a session's trace: that of the session, without hyphens.
pub(crate) const fn trace_of(session: SessionId) -> TraceId {
    session.as_uuid().into_bytes()
}

/// Returns the identifier of the span of the whole session.
pub(crate) fn root_of(session: SessionId) -> SpanId {
    derived(session, "session", 0)
}

/// Returns the identifier of the span of the status that a session got with a version.
pub(crate) fn status_of(session: SessionId, since: Version) -> SpanId {
    derived(session, "status", since.0)
}

fn derived(session: SessionId, kind: &str, number: i32) -> SpanId {
    let hash = Sha256::new()
        .chain_update(b"avouch span\0")
        .chain_update(session.as_uuid().as_bytes())
        .chain_update(kind.as_bytes())
        .chain_update(number.to_be_bytes())
        .finalize();
    valid(hash.first_chunk().copied().unwrap_or_default())
}

/// Replaces zero, which is no identifier.
pub(crate) fn valid<const N: usize>(id: [u8; N]) -> [u8; N] {
    if id == [0; N] { [1; N] } else { id }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn session() -> SessionId {
        SessionId::from_uuid(Uuid::from_u128(0x0199_0000_0000_7000_8000_0000_0000_0001))
    }

    /// Processes of different releases must agree as well: the values never change.
    #[test]
    fn identifiers_follow_from_the_session_and_stay_the_same() {
        let trace: u128 = 0x0199_0000_0000_7000_8000_0000_0000_0001;
        assert_eq!(trace_of(session()), trace.to_be_bytes());
        assert_eq!(root_of(session()), 0x3403_5e39_3777_59db_u64.to_be_bytes());
        let status = status_of(session(), Version(1));
        assert_eq!(status, 0xc59d_128b_0fb1_fa4a_u64.to_be_bytes());
    }

    #[test]
    fn identifiers_differ_and_are_never_zero() {
        let other = SessionId::from_uuid(Uuid::from_u128(2));
        let ids = [
            root_of(session()),
            root_of(other),
            status_of(session(), Version(0)),
            status_of(session(), Version(1)),
            status_of(other, Version(1)),
            valid([0; 8]),
        ];
        for (place, id) in ids.iter().enumerate() {
            assert_ne!(*id, [0; 8]);
            assert!(!ids[place + 1..].contains(id));
        }
    }
}
