//! The page in the iframe, carried in the binary: plain JavaScript modules, no build step.

use std::{fmt::Write as _, sync::LazyLock};

use sha2::{Digest as _, Sha256};

/// A file of the page.
#[derive(Debug, Clone, Copy)]
pub struct Asset {
    pub content_type: &'static str,
    pub content: &'static str,
}

const SCRIPT: &str = "text/javascript; charset=utf-8";
const ASSETS: &[(&str, Asset)] = &[
    ("main.js", Asset { content_type: SCRIPT, content: include_str!("../web/main.js") }),
    ("link.js", Asset { content_type: SCRIPT, content: include_str!("../web/link.js") }),
    ("screen.js", Asset { content_type: SCRIPT, content: include_str!("../web/screen.js") }),
    ("pointer.js", Asset { content_type: SCRIPT, content: include_str!("../web/pointer.js") }),
    ("writer.js", Asset { content_type: SCRIPT, content: include_str!("../web/writer.js") }),
    ("watch.js", Asset { content_type: SCRIPT, content: include_str!("../web/watch.js") }),
    ("view.js", Asset { content_type: SCRIPT, content: include_str!("../web/view.js") }),
    (
        "style.css",
        Asset {
            content_type: "text/css; charset=utf-8",
            content: include_str!("../web/style.css"),
        },
    ),
];

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

/// The page itself.
#[must_use]
pub fn page() -> &'static str {
    &PAGE
}

#[must_use]
pub fn asset(name: &str) -> Option<Asset> {
    ASSETS.iter().find(|(known, _)| *known == name).map(|(_, asset)| *asset)
}
