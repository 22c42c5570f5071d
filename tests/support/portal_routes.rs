//! The portal's routes, read from its source, so that a test of all routes leaves none out.

use crate::root;

/// Returns the paths with a handler for this method, `get` or `post`; `{name}` stands for any
/// segment.
#[must_use]
pub fn routes(method: &str) -> Vec<String> {
    // Pages are read by GET and HEAD with one route.
    let handler = match method {
        "get" => "reading(",
        "post" => "submitting(",
        _ => panic!("the portal has no routes for {method}"),
    };
    let folder = root().join("crates/adapters/portal/src");
    let files = std::fs::read_dir(folder).expect("its source").flatten();
    let mut found = vec![];
    for file in files.filter(|file| file.path().extension().is_some_and(|kind| kind == "rs")) {
        let source = std::fs::read_to_string(file.path()).expect("a source file");
        for route in source.split(".route(").skip(1) {
            let (place, way) = route.split_once(',').expect("a path and a handler");
            if !way.trim_start().starts_with(handler) {
                continue;
            }
            let named = format!("const {place}: &str = ");
            let path = source.split_once(&named).map_or(place, |(_, value)| value);
            found.push(path.split('"').nth(1).expect("a path").to_owned());
        }
    }
    assert!(found.len() > 20, "{found:?}");
    found
}

/// Returns whether a path matches a pattern such as `/a/{id}`.
#[must_use]
pub fn fits(pattern: &str, path: &str) -> bool {
    let (parts, given) = (pattern.split('/'), path.split('/'));
    parts.clone().count() == given.clone().count()
        && parts.zip(given).all(|(part, given)| part.starts_with('{') || part == given)
}
