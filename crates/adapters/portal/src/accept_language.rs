//! The language that a browser prefers (RFC 9110, section 12.5.4).

use std::cmp::Reverse;

use crate::language::PageLanguage;

/// The maximum number of language ranges that are read; further ones are ignored.
const MAX_RANGES: usize = 32;
/// The maximum size of a language range with its weight; longer ones are ignored.
const MAX_RANGE_BYTES: usize = 64;
/// The weight of a range without one, in thousandths.
const MAX_WEIGHT: u16 = 1000;

/// One range of the header: a language tag, a prefix of one, or `*`.
struct LanguageRange<'a> {
    tag: &'a str,
    /// In thousandths.
    weight: u16,
}

impl<'a> LanguageRange<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        if text.len() > MAX_RANGE_BYTES {
            return None;
        }
        let mut parts = text.split(';').map(|part| part.trim_matches([' ', '\t']));
        let tag = parts.next().filter(|tag| !tag.is_empty())?;
        let weight = match parts.next() {
            None => MAX_WEIGHT,
            Some(parameter) => {
                let value = parameter.strip_prefix("q=").or_else(|| parameter.strip_prefix("Q="));
                weight(value?)?
            }
        };
        parts.next().is_none().then_some(Self { tag, weight })
    }

    /// Returns whether the range names the language, with or without a region.
    fn names(&self, language: PageLanguage) -> bool {
        let primary = self.tag.split('-').next();
        primary.is_some_and(|primary| primary.eq_ignore_ascii_case(language.tag()))
    }
}

/// Reads a `qvalue`: 0 to 1 with up to three decimals. Returns thousandths.
fn weight(text: &str) -> Option<u16> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    if decimals.len() > 3 || !decimals.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let thousandths = format!("{decimals:0<3}").parse().ok()?;
    match (whole, thousandths) {
        ("0", _) => Some(thousandths),
        ("1", 0) => Some(MAX_WEIGHT),
        (_, _) => None,
    }
}

/// Returns the language with the largest weight, of two equal ones the first; English if neither is
/// acceptable. Ranges that cannot be read are ignored.
pub(crate) fn preferred<'a>(values: impl Iterator<Item = &'a str>) -> PageLanguage {
    let ranges = values.flat_map(|value| value.split(',')).take(MAX_RANGES);
    let ranges: Vec<_> = ranges.filter_map(LanguageRange::parse).collect();
    // A range that names the language counts before `*`.
    let rank = |language: PageLanguage| {
        let named = ranges.iter().enumerate().filter(|(_, range)| range.names(language));
        let other = ranges.iter().enumerate().filter(|(_, range)| range.tag == "*");
        let ranked = |(place, range): (usize, &LanguageRange)| (Reverse(range.weight), place);
        named.map(ranked).min().or_else(|| other.map(ranked).min())
    };
    let ranked = PageLanguage::ALL.map(|language| (rank(language), language));
    let acceptable = ranked.into_iter().filter_map(|(rank, language)| Some((rank?, language)));
    let acceptable = acceptable.filter(|((Reverse(weight), _), _)| *weight > 0);
    let best = acceptable.min_by_key(|(rank, _)| *rank);
    best.map_or(PageLanguage::English, |(_, language)| language)
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn of(value: &str) -> &'static str {
        preferred(std::iter::once(value)).tag()
    }

    #[test]
    fn the_language_with_the_largest_weight_is_preferred() {
        for (header, expected) in [
            ("", "en"),
            ("de", "de"),
            ("DE-at", "de"),
            ("en, de", "en"),
            ("de, en", "de"),
            ("de;q=0.8, en;q=0.9", "en"),
            ("de-DE,de;q=0.9,en-US;q=0.8,en;q=0.7", "de"),
            ("en;q=0.5 ,\tde ; q=0.8", "de"),
            ("en;q=0.5, de;q =0.8", "en"),
            ("fr, de;q=0.1", "de"),
            ("fr", "en"),
            ("*", "en"),
            ("fr, *;q=0.5", "en"),
            ("en;q=0, *", "de"),
            ("de;q=0, *;q=0.1", "en"),
            ("de;q=0", "en"),
            ("en;q=0", "en"),
            ("de;q=0, de-CH;q=0.4", "de"),
            ("deu", "en"),
            ("den-DE", "en"),
            ("de_DE", "en"),
        ] {
            assert_eq!(of(header), expected, "{header}");
        }
        assert_eq!(preferred(["en;q=0.2", "de"].into_iter()), PageLanguage::German, "two fields");
    }

    #[test]
    fn ranges_that_cannot_be_read_are_ignored() {
        for odd in
            ["de;q=2", "de;q=1.1", "de;q=0.1234", "de;q=-1", "de;q=", "de;q", "de;level=1", ";q=1"]
        {
            assert_eq!(of(odd), "en", "{odd}");
            assert_eq!(of(&format!("{odd}, de;q=1.000")), "de", "{odd}");
        }
        let many = "fr,".repeat(MAX_RANGES);
        assert_eq!(of(&format!("{many}de")), "en", "the number of ranges is bounded");
        assert_eq!(of(&format!("de-{}", "x".repeat(MAX_RANGE_BYTES))), "en", "and their size");
    }

    proptest! {
        #[test]
        fn any_header_gives_a_language(values in vec("\\PC*", 0..4), odd in any::<String>()) {
            let values = values.iter().map(String::as_str).chain([odd.as_str()]);
            prop_assert!(PageLanguage::ALL.contains(&preferred(values)));
        }

        #[test]
        fn pieces_of_the_grammar_in_any_order_give_a_language(
            pieces in vec(prop_oneof![
                Just("de"), Just("en"), Just("*"), Just("-"), Just(";"), Just("q="), Just("0"),
                Just("."), Just("1"), Just(","), Just(" "), Just("\t"), Just("é"),
            ], 0..80),
        ) {
            prop_assert!(PageLanguage::ALL.contains(&preferred([pieces.concat().as_str()].into_iter())));
        }

        #[test]
        fn the_larger_of_two_weights_decides(german in 0_u16..=1000, english in 0_u16..=1000) {
            let weight = |weight: u16| format!("{}.{:03}", weight / 1000, weight % 1000);
            let header = format!("de;q={}, en;q={}", weight(german), weight(english));
            let expected = if german > 0 && german >= english { "de" } else { "en" };
            prop_assert_eq!(of(&header), expected, "{}", header);
        }
    }
}
