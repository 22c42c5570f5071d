//! Text that must not be printed.

/// A secret in plain form, for as short as can be.
///
/// **Invariant:** no `Debug`, no `Display`, no `Serialize`: whoever wants the text has to
/// [`expose`](Secret::expose) it, which a reviewer can search for.
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
