//! The decimal mark of a language, as the Unicode CLDR has it.

use domain::workflow::DecimalMark;

/// Languages with a decimal comma.
const COMMA_LANGUAGES: &[&str] = &[
    "af", "az", "be", "bg", "bs", "ca", "cs", "da", "de", "el", "es", "et", "eu", "fa", "fi", "fo",
    "fr", "gl", "hr", "hu", "hy", "id", "is", "it", "ka", "kk", "ky", "lb", "lt", "lv", "mk", "nb",
    "nl", "nn", "no", "pl", "pt", "ro", "ru", "sk", "sl", "sq", "sr", "sv", "tr", "uk", "uz", "vi",
];
/// Regions that have another mark than their language has elsewhere.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("ar", "DZ LY MA TN"),
    ("en", "AT BE DE DK FI NL SE SI"),
    ("es", "419 BZ CU DO GT HN MX NI PA PE PR SV US"),
];
/// Regions with a decimal point in amounts, whatever the language.
const POINT_REGIONS: &[&str] = &["CH", "LI"];

/// Returns the mark of numbers on pages with a language tag such as `de-CH`; a point where it is not known.
pub(super) fn decimal_mark(tag: &str) -> DecimalMark {
    let mut parts = tag.split('-');
    let language = parts.next().unwrap_or_default().to_ascii_lowercase();
    let region = parts.find(|part| part.len() == 2 || part.len() == 3);
    let region = region.unwrap_or_default().to_ascii_uppercase();
    if POINT_REGIONS.contains(&region.as_str()) {
        return DecimalMark::Point;
    }
    let is_exception = EXCEPTIONS
        .iter()
        .any(|(own, regions)| *own == language && regions.split(' ').any(|other| other == region));
    if COMMA_LANGUAGES.contains(&language.as_str()) == is_exception {
        DecimalMark::Point
    } else {
        DecimalMark::Comma
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_is_that_of_the_language_and_its_region() {
        for (tag, mark) in [
            ("de", DecimalMark::Comma),
            ("DE-at", DecimalMark::Comma),
            ("de-CH", DecimalMark::Point),
            ("de-LI", DecimalMark::Point),
            ("fr-FR", DecimalMark::Comma),
            ("es", DecimalMark::Comma),
            ("es-AR", DecimalMark::Comma),
            ("es-MX", DecimalMark::Point),
            ("es-US", DecimalMark::Point),
            ("es-419", DecimalMark::Point),
            ("sr-Latn-RS", DecimalMark::Comma),
            ("en", DecimalMark::Point),
            ("en-GB", DecimalMark::Point),
            ("en-DE", DecimalMark::Comma),
            ("ja", DecimalMark::Point),
            ("ar-EG", DecimalMark::Point),
            ("ar-MA", DecimalMark::Comma),
            ("", DecimalMark::Point),
        ] {
            assert_eq!(decimal_mark(tag), mark, "{tag}");
        }
    }
}
