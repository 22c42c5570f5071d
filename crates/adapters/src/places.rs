//! Countries and regions after ISO 3166, from a table in the binary.

use ports::places::{Country, Places, Region};

/// Every country of ISO 3166-1, or those that the operator offers.
pub struct IsoPlaces {
    offered: Option<Vec<String>>,
}

impl IsoPlaces {
    /// `offered` holds alpha-2 codes in upper case; `None` offers all.
    #[must_use]
    pub const fn new(offered: Option<Vec<String>>) -> Self {
        Self { offered }
    }

    fn offers(&self, code: &str) -> bool {
        self.offered.as_ref().is_none_or(|offered| offered.iter().any(|c| c == code))
    }
}

impl Places for IsoPlaces {
    fn countries(&self) -> Vec<Country> {
        let all = rust_iso3166::ALL.iter().filter(|country| self.offers(country.alpha2));
        let mut countries: Vec<_> = all
            .map(|country| Country { code: country.alpha2.into(), name: country.name.into() })
            .collect();
        countries.sort_by(|a, b| a.name.cmp(&b.name));
        countries
    }

    fn regions(&self, country: &str) -> Vec<Region> {
        let code = country.to_ascii_uppercase();
        let Some(country) = rust_iso3166::from_alpha2(&code).filter(|_| self.offers(&code)) else {
            return vec![];
        };
        let mut regions: Vec<_> = country
            .subdivisions()
            .unwrap_or_default()
            .iter()
            .map(|region| Region { code: region.code.into(), name: region.name.into() })
            .collect();
        regions.sort_by(|a, b| a.name.cmp(&b.name));
        regions
    }

    fn region(&self, country: &str, name_or_code: &str) -> Option<Region> {
        let asked = name_or_code.to_lowercase();
        self.regions(country).into_iter().find(|region| {
            let code = region.code.to_lowercase();
            region.name.to_lowercase() == asked
                || code == asked
                || code.split_once('-').is_some_and(|(_, short)| short == asked)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_found_by_name_and_code_in_any_case() {
        let places = IsoPlaces::new(None);
        for asked in ["California", "california", "US-CA", "ca"] {
            assert_eq!(places.region("us", asked).unwrap().name, "California", "{asked}");
        }
        assert_eq!(places.region("US", "Atlantis"), None);
        assert!(places.regions("XX").is_empty());
        assert_eq!(places.countries().len(), 249);
    }

    #[test]
    fn only_what_is_offered_is_there() {
        let places = IsoPlaces::new(Some(vec!["DE".into()]));
        assert_eq!(places.countries().len(), 1);
        assert!(places.regions("US").is_empty());
    }
}
