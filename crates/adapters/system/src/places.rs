//! Countries, regions and cities, from a table in the binary that `data/README.md` describes.

use std::sync::LazyLock;

use ports::{
    browser::Locale,
    places::{Country, Places, Region},
};

/// `=CODE<tab>name` begins a country, `-CODE<tab>name` one of its regions; cities follow, one per
/// line.
static TABLE: &str = include_str!("../data/places.txt");
/// One line for each country: code, language, time zone.
static LOCALES: &str = include_str!("../data/locales.txt");

/// Parsed once per process; the names refer to the table in the binary.
static WORLD: LazyLock<Vec<Country>> = LazyLock::new(|| countries(TABLE).collect());

/// The countries of ISO 3166-1, or those that the operator offers.
pub struct IsoPlaces {
    offered: &'static [Country],
}

impl IsoPlaces {
    /// `offered` holds alpha-2 codes in upper case; `None` offers all. Each value stays in memory
    /// for as long as the process runs.
    #[must_use]
    pub fn new(offered: Option<&[String]>) -> Self {
        let Some(codes) = offered else { return Self { offered: &WORLD } };
        let chosen = WORLD.iter().filter(|country| codes.iter().any(|code| code == country.code));
        Self { offered: Vec::leak(chosen.copied().collect()) }
    }
}

impl Places for IsoPlaces {
    fn countries(&self) -> &'static [Country] {
        self.offered
    }

    fn country(&self, code: &str) -> Option<&'static Country> {
        self.offered.iter().find(|country| country.code.eq_ignore_ascii_case(code))
    }

    fn locale(&self, country: &str) -> Locale {
        let mut lines = LOCALES.lines().map(|line| line.split('\t'));
        let found = lines.find_map(|mut words| {
            let here = words.next()?.eq_ignore_ascii_case(country);
            here.then_some((words.next()?, words.next()?))
        });
        let (language, zone) = found.unwrap_or_default();
        let time_zone = Some(zone).filter(|zone| !zone.is_empty()).map(str::to_owned);
        Locale { language: language.to_owned(), time_zone }
    }
}

fn countries(table: &'static str) -> impl Iterator<Item = Country> {
    sections(table, "=").map(|section| {
        let (head, rest) = section.split_once('\n').unwrap_or((section, ""));
        let (code, name) = head.split_once('\t').unwrap_or((head, ""));
        Country { code, name, regions: Vec::leak(sections(rest, "-").map(region).collect()) }
    })
}

fn region(section: &'static str) -> Region {
    let (head, cities) = section.split_once('\n').unwrap_or((section, ""));
    let (code, name) = head.split_once('\t').unwrap_or((head, ""));
    Region { code, name, cities }
}

/// Returns the parts of a text that begin with a mark at the start of a line, without the mark.
fn sections(text: &'static str, mark: &'static str) -> impl Iterator<Item = &'static str> {
    let mut rest = text.strip_prefix(mark);
    std::iter::from_fn(move || {
        let text = rest?;
        let end = text.match_indices('\n').find(|(at, _)| {
            text.get(at.saturating_add(1)..).is_some_and(|after| after.starts_with(mark))
        });
        let (section, after) = match end {
            Some((at, _)) => (text.get(..at)?, text.get(at.saturating_add(2)..)),
            None => (text.trim_end_matches('\n'), None),
        };
        rest = after;
        Some(section)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_found_by_name_and_code_in_any_case() {
        let places = IsoPlaces::new(None);
        let country = places.country("us").unwrap();
        for asked in ["California", "california", "US-CA", "ca"] {
            assert_eq!(country.region(asked).unwrap().name, "California", "{asked}");
        }
        assert_eq!(country.region("Atlantis"), None);
        assert_eq!(places.country("XX"), None);
        let germany = places.country("DE").unwrap();
        let code = |country: &Country, asked| country.region(asked).map(|region| region.code);
        assert_eq!(code(germany, "BAVARIA"), Some("DE-BY"));
        assert_eq!(code(germany, "by"), Some("DE-BY"));
        let france = places.country("FR").unwrap();
        assert_eq!(code(france, "île-de-france"), Some("FR-IDF"));
    }

    #[test]
    fn the_whole_world_is_there() {
        let world = IsoPlaces::new(None).countries();
        assert_eq!(world.len(), 249);
        assert!(world.is_sorted_by_key(|country| country.code));
        let regions: Vec<_> = world.iter().flat_map(|country| country.regions).collect();
        assert_eq!(regions.len(), 5070);
        assert!(world.iter().all(|c| c.code.len() == 2 && !c.name.is_empty()));
        assert!(regions.iter().all(|r| r.code.get(2..3) == Some("-") && !r.name.is_empty()));
        let cities: usize = regions.iter().map(|region| region.cities().count()).sum();
        assert!(cities > 160_000, "{cities}");
        let bavaria = world.iter().find(|c| c.code == "DE").unwrap().region("DE-BY").unwrap();
        assert!(bavaria.cities().any(|city| city == "Nuremberg"), "{}", bavaria.cities);
    }

    #[test]
    fn only_what_is_offered_is_there() {
        let places = IsoPlaces::new(Some(&["DE".into()]));
        assert_eq!(places.countries().len(), 1);
        assert_eq!(places.country("US"), None);
    }
}
