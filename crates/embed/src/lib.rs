//! The embed page, which is shown in an iframe and included in the binary: plain JavaScript modules
//! without a build step.

mod unsubscribe;

use std::{fmt::Write as _, sync::LazyLock};

use sha2::{Digest as _, Sha256};

pub use self::unsubscribe::{UnsubscribePage, unsubscribe_page};

/// A file that the page loads.
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
    "main.js" "activity.js" "device.js" "devices.js" "dom.js" "link.js" "outcome.js" "outline.js"
    "partner.js" "pointer.js" "screen.js" "share.js" "values.js" "view.js" "watch.js" "words.js" "writer.js"
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

/// Returns a hash of all assets, which is part of their URLs, so that browsers can cache them forever.
#[must_use]
pub fn build() -> &'static str {
    &BUILD
}

static WATCH_PAGE: LazyLock<String> =
    LazyLock::new(|| include_str!("../web/watch.html").replace("{build}", &BUILD));

/// Returns the page of observers of a session.
#[must_use]
pub fn watch_page() -> &'static str {
    &WATCH_PAGE
}

/// Returns the module that embeds a session in a partner's page, and its type declarations.
#[must_use]
pub const fn module() -> (Asset, Asset) {
    let types = "text/plain; charset=utf-8";
    (
        Asset { content_type: SCRIPT, content: include_str!("../web/embed.js") },
        Asset { content_type: types, content: include_str!("../web/embed.d.ts") },
    )
}

/// The appearance of the page for one applicant.
#[derive(Debug, Clone, Copy, Default)]
pub struct EmbedAppearance<'a> {
    /// A BCP 47 tag; `None` for the language of the browser.
    pub language: Option<&'a str>,
    pub name: Option<&'a str>,
    /// The CSS colour of buttons.
    pub colour: Option<&'a str>,
    /// The URL of the logo.
    pub logo: Option<&'a str>,
    /// What the link can do: `new` starts the session, `begun` continues it, `over` shows its outcome.
    /// `None` for a link that is not valid.
    pub link: Option<&'a str>,
    /// What the page tells before the start, as a JSON object with `partner`, `platform`, `purpose`,
    /// `reads`, `returnUrl`, `privacyUrl` and `reference`.
    pub introduction: Option<&'a str>,
    /// Whether an author's studio shows the page: what is said of other devices is for authors then.
    pub is_studio: bool,
}

/// Renders the page.
#[must_use]
pub fn page(appearance: &EmbedAppearance<'_>) -> String {
    let data = |name: &str, value: Option<&str>| {
        value.map(|value| format!(" data-{name}=\"{}\"", escape(value))).unwrap_or_default()
    };
    let name = escape(appearance.name.unwrap_or_default());
    // The logo needs no alternative text, because the name follows it.
    let logo = appearance.logo.map(|url| format!("<img src=\"{}\" alt=\"\">", escape(url)));
    let root = data("language", appearance.language)
        + &data("colour", appearance.colour)
        + &data("link", appearance.link)
        + &data("introduction", appearance.introduction)
        + &data("studio", appearance.is_studio.then_some(""));
    let brand = logo.unwrap_or_default() + &name;
    // Each marker is replaced once, so that a marker in a value of the appearance stays text.
    let (before, rest) = PAGE.split_once("{root}").unwrap_or_default();
    let (between, after) = rest.split_once("{brand}").unwrap_or_default();
    [before, &root, between, &brand, after].concat()
}

/// Escapes text for HTML, including attributes.
fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// Returns the asset of this name.
#[must_use]
pub fn asset(name: &str) -> Option<Asset> {
    ASSETS.iter().find(|(asset, _)| *asset == name).map(|(_, asset)| *asset)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::{Compression, write::GzEncoder};

    use super::*;

    /// Bytes that an applicant's browser downloads: assets with gzip, the page without.
    const MAX_SENT_BYTES: usize = 80_000;
    /// Bytes of the largest logo of a team, which is downloaded with the page.
    const MAX_LOGO_BYTES: usize = 8000;

    fn gzipped(asset: &Asset) -> usize {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(asset.content.as_bytes()).unwrap();
        encoder.finish().unwrap().len()
    }

    #[test]
    fn values_of_the_appearance_are_escaped() {
        let hostile = "<b>\"' {brand}{root}&amp;";
        let appearance = EmbedAppearance {
            language: Some("de"),
            name: Some(hostile),
            colour: Some("#123456"),
            logo: Some(hostile),
            link: Some("new"),
            introduction: Some("{\"purpose\":\"<b>{brand}\"}"),
            is_studio: false,
        };
        let page = page(&appearance);
        let root = "<html lang=\"en\" data-language=\"de\" data-colour=\"#123456\" data-link=\"new\" \
            data-introduction=\"{&quot;purpose&quot;:&quot;&lt;b&gt;{brand}&quot;}\">";
        assert!(page.contains(root), "{page}");
        assert!(!page.contains("<b>"), "{page}");
        assert!(
            page.contains("alt=\"\">&lt;b&gt;&quot;&#39; {brand}{root}&amp;amp;</span>"),
            "{page}"
        );
    }

    #[test]
    fn the_page_knows_that_a_studio_shows_it() {
        for is_studio in [true, false] {
            let page = page(&EmbedAppearance { is_studio, ..EmbedAppearance::default() });
            assert_eq!(page.contains("<html lang=\"en\" data-studio=\"\">"), is_studio, "{page}");
        }
    }

    #[test]
    fn the_text_for_a_code_holds_for_that_of_an_app_as_well() {
        let (_, english) = ASSETS.iter().find(|(name, _)| *name == "words/en.js").unwrap();
        assert!(english.content.contains("otp: 'Enter the code to sign in to {platform}'"));
    }

    #[test]
    fn the_page_is_within_its_size_budget() {
        let languages = ASSETS.iter().filter(|(name, _)| name.starts_with("words/"));
        let language = languages.map(|(_, asset)| gzipped(asset)).max().unwrap_or_default();
        let others = ASSETS.iter().filter(|(name, _)| {
            !name.starts_with("words/") && *name != "watch.js" || *name == "words/en.js"
        });
        let others: usize = others.map(|(_, asset)| gzipped(asset)).sum();
        let all = page(&EmbedAppearance::default()).len() + others + language + MAX_LOGO_BYTES;
        println!("the embed page is {all} bytes in all");
        assert!(all < MAX_SENT_BYTES, "{all} bytes");
        let (module, _) = module();
        assert!(module.content.len() <= 5000, "embed.js: {} bytes", module.content.len());
    }
}
