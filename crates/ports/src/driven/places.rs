//! The supported countries, their regions and cities. Lookups are in memory and cannot fail.

use crate::browser::Locale;

/// Looks up places. **Invariant:** names and codes are compared case-insensitively.
pub trait Places: Send + Sync {
    /// Returns all countries, sorted by code.
    fn countries(&self) -> &'static [Country];

    /// Returns a country; `None` if it is not supported.
    fn country(&self, code: &str) -> Option<&'static Country>;

    /// Returns the most common locale of a country; the default one for an unknown country.
    fn locale(&self, country: &str) -> Locale;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Country {
    /// ISO 3166-1 alpha-2.
    pub code: &'static str,
    pub name: &'static str,
    /// The regions, sorted by name.
    pub regions: &'static [Region],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// ISO 3166-2.
    pub code: &'static str,
    pub name: &'static str,
    /// The names of the cities, one per line.
    pub cities: &'static str,
}

impl Country {
    /// Finds a region by its name, its code, or the part of its code after the country.
    #[must_use]
    pub fn region(&self, name_or_code: &str) -> Option<&'static Region> {
        self.regions.iter().find(|region| {
            let short = region.code.split_once('-').map_or("", |(_, short)| short);
            let keys = [region.name, region.code, short];
            keys.iter().any(|key| eq_ignore_case(key, name_or_code))
        })
    }
}

impl Region {
    /// Iterates over the names of the cities, in their order.
    pub fn cities(&self) -> impl Iterator<Item = &'static str> {
        self.cities.lines()
    }
}

fn eq_ignore_case(a: &str, b: &str) -> bool {
    a.chars().flat_map(char::to_lowercase).eq(b.chars().flat_map(char::to_lowercase))
}
