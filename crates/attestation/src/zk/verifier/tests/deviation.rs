//! Where a malicious prover leaves the rules: in what it commits to, and in which lengths and options.

use super::super::Scalar;

/// What a forger deviates with; by itself nothing: a false statement, otherwise by the rules.
#[derive(Debug, Clone, Default)]
pub(in crate::zk) struct Deviation {
    /// The witness that is committed to, of any length; zeros, as many as there should be, where
    /// none is said.
    pub(in crate::zk) witness: Option<Vec<Scalar>>,
    /// How many public values the random instance has.
    pub(in crate::zk) random_public: Option<usize>,
    /// The witness is committed to once more, once all challenges are known.
    pub(in crate::zk) late: Option<Late>,
    /// Rows of commitments beyond the last round, which cancel the public values.
    pub(in crate::zk) more_rounds: bool,
}

/// Where a late commitment is put: into an option that the circuit does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::zk) enum Late {
    Shared,
    Precommitted,
}

impl Deviation {
    /// The three that convince spartan2.
    pub(in crate::zk) fn convincing() -> [Self; 3] {
        [
            Self { random_public: Some(0), ..Self::default() },
            Self { late: Some(Late::Shared), ..Self::default() },
            Self { more_rounds: true, ..Self::default() },
        ]
    }

    /// Whether the challenges of the checks have to be those of an honest proof.
    pub(super) const fn has_challenges(&self) -> bool {
        self.random_public.is_none() && !self.more_rounds
    }
}
