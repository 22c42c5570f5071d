//! Commitments to values, which can be opened later, selectively and to chosen recipients.

use minicbor::{Decode, Encode};

use crate::tls::flight::sha256;

const LEAF_LABEL: &[u8] = b"avouch/attestation-leaf/v1\0";

/// The kind of a committed value. It is part of the commitment, so that no commitment can stand for
/// another kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum OpeningKind {
    /// A line of the request, without its CRLF.
    #[n(0)]
    RequestLine,
    /// A line of the response's head, without its CRLF.
    #[n(1)]
    ResponseLine,
    /// Up to 64 bytes of the response's body.
    #[n(2)]
    BodyPart,
    /// A claimed value, as JSON text.
    #[n(3)]
    Claim,
}

/// A value with its salt, which prevents guessing the value.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct Opening {
    #[n(0)]
    pub kind: OpeningKind,
    /// Index among the leaves of its tree, or among the claims.
    #[n(1)]
    pub index: u32,
    #[cbor(n(2), with = "minicbor::bytes")]
    pub salt: [u8; 16],
    #[cbor(n(3), with = "minicbor::bytes")]
    pub value: Vec<u8>,
}

impl Opening {
    /// Returns the commitment that is attested.
    #[must_use]
    pub fn commitment(&self) -> [u8; 32] {
        let kind = match self.kind {
            OpeningKind::RequestLine => 0,
            OpeningKind::ResponseLine => 1,
            OpeningKind::BodyPart => 2,
            OpeningKind::Claim => 3,
        };
        let index = self.index.to_be_bytes();
        sha256(&[LEAF_LABEL, &[kind], &index, &self.salt, &self.value].concat())
    }
}

/// Returns the root of a Merkle tree (RFC 9162, section 2.1.1), with separate hashes for leaves and
/// nodes.
#[must_use]
pub fn merkle_root(leaves: &[[u8; 32]]) -> [u8; 32] {
    match leaves {
        [] => sha256(&[]),
        [leaf] => sha256(&[&[0], leaf.as_slice()].concat()),
        leaves => {
            let half = leaves.len().next_power_of_two() / 2;
            let (left, right) = leaves.split_at_checked(half).unwrap_or((leaves, &[]));
            sha256(&[&[1], merkle_root(left).as_slice(), &merkle_root(right)].concat())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_depends_on_leaf_order_and_on_node_kind() {
        let leaves = [[1; 32], [2; 32], [3; 32]];
        let whole = merkle_root(&leaves);
        let node = merkle_root(&leaves[..2]);
        assert_ne!(merkle_root(&[node, [3; 32]]), whole, "a node is not a leaf");
        assert_ne!(merkle_root(&[[2; 32], [1; 32], [3; 32]]), whole);
        assert_ne!(merkle_root(&leaves[..2]), whole);
        // RFC 9162, section 2.1.5: the tree of three leaves joins the tree of two with the third.
        let right = sha256(&[&[0], leaves[2].as_slice()].concat());
        assert_eq!(whole, sha256(&[&[1], node.as_slice(), &right].concat()));
    }

    #[test]
    fn a_commitment_depends_on_every_field() {
        let one =
            Opening { kind: OpeningKind::Claim, index: 1, salt: [2; 16], value: b"v".to_vec() };
        let others = [
            Opening { kind: OpeningKind::BodyPart, ..one.clone() },
            Opening { index: 2, ..one.clone() },
            Opening { salt: [3; 16], ..one.clone() },
            Opening { value: b"w".to_vec(), ..one.clone() },
        ];
        assert!(others.iter().all(|other| other.commitment() != one.commitment()));
    }
}
