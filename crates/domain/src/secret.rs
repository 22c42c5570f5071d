//! A secret text that cannot be printed or serialized by accident.

/// A secret in plain form, which should be kept as briefly as possible.
///
/// **Invariant:** no `Debug`, no `Display`, no `Serialize`: reading the text requires a call of
/// [`expose`](Secret::expose), which a reviewer can search for.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    #[must_use]
    pub const fn new(text: String) -> Self {
        Self(text)
    }

    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}
