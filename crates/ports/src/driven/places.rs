//! The supported countries, their regions and cities. Lookups are in memory and cannot fail.

use unicode_normalization::{UnicodeNormalization as _, char::is_combining_mark};

use crate::browser::Locale;

/// Looks up places. **Invariant:** names and codes are compared without regard to case and accents.
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
            keys.iter().any(|key| is_same_name(key, name_or_code))
        })
    }

    /// Finds a city in any of the regions.
    #[must_use]
    pub fn city(&self, name: &str) -> Option<&'static str> {
        self.regions.iter().find_map(|region| region.city(name))
    }

    /// Returns whether the lookup knows cities of this country.
    #[must_use]
    pub fn has_cities(&self) -> bool {
        self.regions.iter().any(Region::has_cities)
    }
}

impl Region {
    /// Iterates over the names of the cities, in their order.
    pub fn cities(&self) -> impl Iterator<Item = &'static str> {
        self.cities.lines()
    }

    /// Finds a city by its name.
    #[must_use]
    pub fn city(&self, name: &str) -> Option<&'static str> {
        self.cities().find(|city| is_same_name(city, name))
    }

    /// Returns whether the lookup knows cities of this region.
    #[must_use]
    pub const fn has_cities(&self) -> bool {
        !self.cities.is_empty()
    }
}

/// Compares two names without regard to case and accents: "Sao Paulo" is "São Paulo".
fn is_same_name(a: &str, b: &str) -> bool {
    if a.is_ascii() && b.is_ascii() {
        return a.eq_ignore_ascii_case(b);
    }
    letters(a).eq(letters(b))
}

/// Returns the characters of a name in lower case, decomposed and without combining marks (Unicode
/// Standard Annex #15). Letters that have no decomposition, such as "ø", stay as they are.
fn letters(name: &str) -> impl Iterator<Item = char> {
    name.nfd().filter(|&letter| !is_combining_mark(letter)).flat_map(char::to_lowercase)
}
