//! The countries on offer, their regions and cities. Looked up in memory, so nothing can fail.

use crate::browser::Locale;

/// **Invariant:** names and codes are compared without regard to case.
pub trait Places: Send + Sync {
    /// By code.
    fn countries(&self) -> &'static [Country];

    /// `None` for a country that is not on offer.
    fn country(&self, code: &str) -> Option<&'static Country>;

    /// What most people in a country use; of a country that is none, nothing in particular.
    fn locale(&self, country: &str) -> Locale;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Country {
    /// ISO 3166-1 alpha-2.
    pub code: &'static str,
    pub name: &'static str,
    /// By name.
    pub regions: &'static [Region],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// ISO 3166-2.
    pub code: &'static str,
    pub name: &'static str,
    /// A name a line.
    pub cities: &'static str,
}

impl Country {
    /// A region by its name, its code, or the part of its code after the country.
    #[must_use]
    pub fn region(&self, name_or_code: &str) -> Option<&'static Region> {
        self.regions.iter().find(|region| {
            let short = region.code.split_once('-').map_or("", |(_, short)| short);
            [region.name, region.code, short].iter().any(|own| same(own, name_or_code))
        })
    }
}

impl Region {
    /// The names of its cities, in their order.
    pub fn cities(&self) -> impl Iterator<Item = &'static str> {
        self.cities.lines()
    }
}

fn same(a: &str, b: &str) -> bool {
    a.chars().flat_map(char::to_lowercase).eq(b.chars().flat_map(char::to_lowercase))
}
