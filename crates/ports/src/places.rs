//! The countries on offer, their regions and cities. Looked up in memory, so nothing can fail.

/// **Invariant:** names and codes are compared without regard to case.
pub trait Places: Send + Sync {
    fn countries(&self) -> Vec<Country>;

    /// Empty for a country that is not on offer.
    fn regions(&self, country: &str) -> Vec<Region>;

    /// A region by its name or code.
    fn region(&self, country: &str, name_or_code: &str) -> Option<Region>;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Country {
    /// ISO 3166-1 alpha-2.
    pub code: String,
    pub name: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// ISO 3166-2.
    pub code: String,
    pub name: String,
}
