//! The deviations of a malicious prover: in its commitments, and in lengths and options.

use super::super::Scalar;

/// The deviations of a forger; without any it proves a false statement according to the protocol.
#[derive(Debug, Clone, Default)]
pub(in crate::zk) struct Deviation {
    /// The committed witness, of any length; zeros of the correct length if `None`.
    pub(in crate::zk) witness: Option<Vec<Scalar>>,
    /// Number of public values of the random instance.
    pub(in crate::zk) random_public: Option<usize>,
    /// Commits to the witness once more, after all challenges are known.
    pub(in crate::zk) late: Option<Late>,
    /// Rows of commitments after the last round, which cancel the public values.
    pub(in crate::zk) more_rounds: bool,
}

/// The place of a late commitment: an option that the circuit does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::zk) enum Late {
    Shared,
    Precommitted,
}

impl Deviation {
    /// Returns the three deviations that spartan2 accepts.
    pub(in crate::zk) fn convincing() -> [Self; 3] {
        [
            Self { random_public: Some(0), ..Self::default() },
            Self { late: Some(Late::Shared), ..Self::default() },
            Self { more_rounds: true, ..Self::default() },
        ]
    }

    /// Returns whether the challenges of the checks must be those of an honest proof.
    pub(super) const fn has_challenges(&self) -> bool {
        self.random_public.is_none() && !self.more_rounds
    }
}
