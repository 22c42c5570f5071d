//! The documentation for partners as files of a web site. The build script makes them from
//! `docs/site` with mdBook.

include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// A file of the site.
#[derive(Debug, Clone, Copy)]
pub struct Asset {
    pub content_type: &'static str,
    pub content: &'static [u8],
    /// Whether the name contains a hash of the content, so that the content of a name never
    /// changes.
    pub immutable: bool,
}

/// Returns a file by its path below the root of the site; the empty path is the first page.
#[must_use]
pub fn file(path: &str) -> Option<Asset> {
    let path = if path.is_empty() { "index.html" } else { path };
    let position = FILES.binary_search_by_key(&path, |(name, _)| *name).ok()?;
    let (name, content) = FILES.get(position)?;
    Some(asset(name, content))
}

/// Returns all files with their paths, in ascending order.
pub fn files() -> impl Iterator<Item = (&'static str, Asset)> {
    FILES.iter().map(|(name, content)| (*name, asset(name, content)))
}

fn asset(name: &str, content: &'static [u8]) -> Asset {
    let (content_type, immutable) = match name.rsplit_once('.') {
        Some((_, "html")) => ("text/html; charset=utf-8", false),
        Some((_, "css")) => ("text/css; charset=utf-8", true),
        Some((_, "js")) => ("text/javascript; charset=utf-8", true),
        Some((_, "png")) => ("image/png", false),
        Some((_, "svg")) => ("image/svg+xml", false),
        _ => ("application/octet-stream", false),
    };
    Asset { content_type, content, immutable }
}

#[cfg(test)]
mod tests;
