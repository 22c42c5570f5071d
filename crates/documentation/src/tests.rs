//! Whether the site is complete: every link has a target, and nothing is loaded from elsewhere.

use std::{collections::BTreeSet, path::Path};

use super::*;

/// Returns the pages with their texts.
fn pages() -> impl Iterator<Item = (&'static str, &'static str)> {
    files()
        .filter(|(name, _)| Path::new(name).extension().is_some_and(|end| end == "html"))
        .map(|(name, page)| (name, std::str::from_utf8(page.content).unwrap()))
}

/// Returns the values of an attribute in a page.
fn values<'a>(page: &'a str, attribute: &str) -> Vec<&'a str> {
    let start = format!(" {attribute}=\"");
    page.split(&start).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

#[test]
fn every_link_has_a_target() {
    let mut broken = BTreeSet::new();
    for (name, page) in pages() {
        for link in [values(page, "href"), values(page, "src")].concat() {
            if link.contains("://") || link.starts_with("mailto:") || link.starts_with('/') {
                continue;
            }
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let path = if path.is_empty() { name } else { path };
            let exists = match file(path) {
                // The reference's sections are made from the interface description.
                Some(_) if path == "reference.html" => true,
                Some(target) if !anchor.is_empty() => {
                    let target = std::str::from_utf8(target.content).unwrap();
                    values(target, "id").contains(&anchor)
                }
                Some(_) => true,
                None => false,
            };
            if !exists {
                broken.insert((name, link));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

/// The service serves the site under a policy that forbids all of this.
#[test]
fn pages_have_no_scripts_and_styles_in_them_and_load_nothing_from_elsewhere() {
    for (name, page) in pages() {
        for script in page.split("<script").skip(1) {
            assert!(script.starts_with(" src=\"") || script.starts_with(" defer src=\""), "{name}");
        }
        assert!(!page.contains("<style") && values(page, "style").is_empty(), "{name}");
        assert!(!page.contains(" onclick=") && !page.contains("javascript:"), "{name}");
        for source in values(page, "src") {
            assert!(!source.contains("//"), "{name} loads {source}");
        }
        for link in page.split("<link ").skip(1) {
            let link = link.split('>').next().unwrap();
            assert!(!link.contains("//"), "{name} loads {link}");
        }
    }
}

#[test]
fn every_page_is_found_and_has_a_title_and_a_description_of_its_own() {
    let mut titles = BTreeSet::new();
    for (name, page) in pages() {
        assert!(file(name).is_some(), "{name}");
        let title = page.split("<title>").nth(1).and_then(|rest| rest.split('<').next()).unwrap();
        assert!(titles.insert(title), "{name}: another page has the title {title}");
        assert_eq!(page.matches("<h1").count(), 1, "{name} has one heading of the first level");
    }
    assert!(titles.len() > 15, "{titles:?}");
    assert!(file("").is_some() && file("no-such-page.html").is_none());
}

#[test]
fn scripts_and_styles_are_served_with_their_types() {
    let types: BTreeSet<_> = files().map(|(_, file)| file.content_type).collect();
    for expected in ["text/css; charset=utf-8", "text/javascript; charset=utf-8"] {
        assert!(types.contains(expected), "{types:?}");
    }
    assert!(!types.contains("application/octet-stream"), "{types:?}");
}
