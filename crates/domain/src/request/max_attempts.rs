//! How many attempts an applicant has.

use serde::{Deserialize, Serialize};

/// The number of attempts in one session: 1 to 5, by default 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MaxAttempts(u8);

impl MaxAttempts {
    /// Returns `None` if the number is out of range.
    #[must_use]
    pub fn new(number: i64) -> Option<Self> {
        u8::try_from(number).ok().filter(|number| (1..=5).contains(number)).map(Self)
    }

    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl Default for MaxAttempts {
    fn default() -> Self {
        Self(3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_applicant_has_one_to_five_attempts() {
        for number in 1..=5 {
            assert_eq!(MaxAttempts::new(number).map(|max| i64::from(max.get())), Some(number));
        }
        for number in [i64::MIN, -1, 0, 6, 257, i64::MAX] {
            assert_eq!(MaxAttempts::new(number), None, "{number}");
        }
        assert_eq!(MaxAttempts::default().get(), 3);
    }
}
