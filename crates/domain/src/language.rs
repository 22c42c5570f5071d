//! The languages of texts for applicants.

use std::{fmt, str::FromStr};

/// One of the ten languages, by its primary subtag (BCP 47).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Language(&'static str);

impl Language {
    pub const ENGLISH: Self = Self("en");
    pub const ALL: [Self; 10] = [
        Self("ar"),
        Self("de"),
        Self::ENGLISH,
        Self("es"),
        Self("fr"),
        Self("it"),
        Self("nl"),
        Self("pl"),
        Self("pt"),
        Self("tr"),
    ];

    /// Returns the language of a locale such as `pt-BR`; English if it is none of the ten.
    #[must_use]
    pub fn of(locale: Option<&str>) -> Self {
        let primary = locale.and_then(|locale| locale.split('-').next());
        primary.and_then(|tag| tag.parse().ok()).unwrap_or(Self::ENGLISH)
    }

    #[must_use]
    pub const fn tag(self) -> &'static str {
        self.0
    }

    /// Returns the writing direction, as a value of HTML's `dir` attribute.
    #[must_use]
    pub fn direction(self) -> &'static str {
        if self.0 == "ar" { "rtl" } else { "ltr" }
    }
}

impl fmt::Display for Language {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.0)
    }
}

impl FromStr for Language {
    type Err = UnknownLanguage;

    fn from_str(tag: &str) -> Result<Self, UnknownLanguage> {
        let known = Self::ALL.into_iter().find(|known| known.0.eq_ignore_ascii_case(tag));
        known.ok_or(UnknownLanguage)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a language is one of ar, de, en, es, fr, it, nl, pl, pt, tr")]
pub struct UnknownLanguage;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_locale_maps_to_one_of_ten_languages() {
        for (locale, tag) in [("pt-BR", "pt"), ("DE", "de"), ("tlh", "en"), ("", "en")] {
            assert_eq!(Language::of(Some(locale)).tag(), tag, "{locale}");
        }
        assert_eq!(Language::of(None), Language::ENGLISH);
        let list = Language::ALL.map(Language::tag).join(", ");
        assert_eq!(UnknownLanguage.to_string(), format!("a language is one of {list}"));
    }
}
