//! The page in the iframe, carried in the binary: plain JavaScript modules, no build step.

mod mails;

use std::{fmt::Write as _, sync::LazyLock};

use sha2::{Digest as _, Sha256};

pub use self::mails::{Mails, mails_page};

/// A file of the page.
#[derive(Debug, Clone, Copy)]
pub struct Asset {
    pub content_type: &'static str,
    pub content: &'static str,
}

const SCRIPT: &str = "text/javascript; charset=utf-8";

macro_rules! scripts {
    ($($name:literal)+) => {
        &[
            $(($name, Asset {
                content_type: SCRIPT,
                content: include_str!(concat!("../web/", $name)),
            }),)+
            ("style.css", Asset {
                content_type: "text/css; charset=utf-8",
                content: include_str!("../web/style.css"),
            }),
        ]
    };
}

const ASSETS: &[(&str, Asset)] = scripts! {
    "main.js" "device.js" "devices.js" "link.js" "screen.js" "pointer.js" "writer.js" "view.js" "watch.js" "words.js"
    "words/ar.js" "words/de.js" "words/en.js" "words/es.js" "words/fr.js" "words/it.js"
    "words/nl.js" "words/pl.js" "words/pt.js" "words/tr.js"
};

static BUILD: LazyLock<String> = LazyLock::new(|| {
    let mut hash = Sha256::new();
    for (name, asset) in ASSETS {
        hash.update(name);
        hash.update(asset.content);
    }
    hash.finalize().iter().take(8).fold(String::new(), |mut name, byte| {
        // Writing to a string does not fail.
        let _ = write!(name, "{byte:02x}");
        name
    })
});

static PAGE: LazyLock<String> =
    LazyLock::new(|| include_str!("../web/page.html").replace("{build}", &BUILD));

/// A name for the content of all assets, so that browsers may keep them for ever.
#[must_use]
pub fn build() -> &'static str {
    &BUILD
}

static WATCH_PAGE: LazyLock<String> =
    LazyLock::new(|| include_str!("../web/watch.html").replace("{build}", &BUILD));

/// The page of those who watch a session and do not act.
#[must_use]
pub fn watch_page() -> &'static str {
    &WATCH_PAGE
}

/// The module that shows a session in a partner's page, and its types.
#[must_use]
pub const fn module() -> (Asset, Asset) {
    let types = "text/plain; charset=utf-8";
    (
        Asset { content_type: SCRIPT, content: include_str!("../web/embed.js") },
        Asset { content_type: types, content: include_str!("../web/embed.d.ts") },
    )
}

/// What the page is like for one applicant.
#[derive(Debug, Clone, Copy, Default)]
pub struct Guise<'a> {
    /// BCP 47; none: what the browser asks for.
    pub language: Option<&'a str>,
    pub name: Option<&'a str>,
    /// Of buttons, as CSS has it.
    pub colour: Option<&'a str>,
    /// Where the logo is.
    pub logo: Option<&'a str>,
}

/// The page itself.
#[must_use]
pub fn page(guise: &Guise<'_>) -> String {
    let data = |name: &str, value: Option<&str>| {
        value.map(|value| format!(" data-{name}=\"{}\"", escaped(value))).unwrap_or_default()
    };
    let name = escaped(guise.name.unwrap_or_default());
    // The name says it all to who does not see the logo.
    let logo = guise.logo.map(|at| format!("<img src=\"{}\" alt=\"\">", escaped(at)));
    let root = data("language", guise.language) + &data("colour", guise.colour);
    PAGE.replace("{root}", &root).replace("{brand}", &(logo.unwrap_or_default() + &name))
}

/// Text as HTML has it, in attributes too.
fn escaped(text: &str) -> String {
    let mut safe = String::new();
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}

#[must_use]
pub fn asset(name: &str) -> Option<Asset> {
    ASSETS.iter().find(|(known, _)| *known == name).map(|(_, asset)| *asset)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::{Compression, write::GzEncoder};

    use super::*;

    /// The most an applicant's browser fetches, in bytes as sent: assets with gzip, the page as
    /// it is.
    const MAX_SENT_BYTES: usize = 40_000;
    /// The largest logo of a team, which is fetched with the page.
    const MAX_LOGO_BYTES: usize = 8000;

    fn gzipped(asset: &Asset) -> usize {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(asset.content.as_bytes()).unwrap();
        encoder.finish().unwrap().len()
    }

    #[test]
    fn a_guise_is_text_and_no_markup() {
        let odd = "<b>\"' {brand}{root}&amp;";
        let guise = Guise {
            language: Some("de"),
            name: Some(odd),
            colour: Some("#123456"),
            logo: Some(odd),
        };
        let page = page(&guise);
        assert!(page.contains("<html lang=\"en\" data-language=\"de\" data-colour=\"#123456\">"));
        assert!(!page.contains("<b>"), "{page}");
        assert!(
            page.contains("alt=\"\">&lt;b&gt;&quot;&#39; {brand}{root}&amp;amp;</span>"),
            "{page}"
        );
    }

    #[test]
    fn the_page_is_light() {
        let languages = ASSETS.iter().filter(|(name, _)| name.starts_with("words/"));
        let language = languages.map(|(_, asset)| gzipped(asset)).max().unwrap_or_default();
        let others = ASSETS.iter().filter(|(name, _)| {
            !name.starts_with("words/") && *name != "watch.js" || *name == "words/en.js"
        });
        let others: usize = others.map(|(_, asset)| gzipped(asset)).sum();
        let all = page(&Guise::default()).len() + others + language + MAX_LOGO_BYTES;
        println!("the embed page is {all} bytes in all");
        assert!(all < MAX_SENT_BYTES, "{all} bytes");
        let (module, _) = module();
        assert!(module.content.len() <= 5000, "embed.js: {} bytes", module.content.len());
    }
}
