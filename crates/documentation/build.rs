//! Builds the site with mdBook, and lists the files that are served.

use std::{
    env,
    error::Error,
    ffi::OsStr,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use mdbook_driver::MDBook;

/// Beginnings of the names of scripts and styles that the site's pages load. mdBook writes others,
/// for a template that is not used.
const LOADED: [&str; 5] = ["theme/docs-", "elasticlunr-", "searchindex-", "highlight-", "favicon-"];

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let source = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../../docs/site");
    let source = source.canonicalize()?;
    println!("cargo:rerun-if-changed={}", source.display());
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let site = out.join("site");

    let mut book = MDBook::load(&source)?;
    book.config.build.build_dir.clone_from(&site);
    book.build()?;

    let mut names = Vec::new();
    let mut folders = vec![site.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if let Some(name) =
                path.strip_prefix(&site)?.to_str().filter(|name| served(name))
            {
                names.push(name.to_owned());
            }
        }
    }
    // In the order of a binary search.
    names.sort_unstable();
    let mut table = String::from("static FILES: &[(&str, &[u8])] = &[\n");
    for name in names {
        let path = site.join(&name);
        writeln!(table, "    ({name:?}, include_bytes!({:?})),", path.display().to_string())?;
    }
    table.push_str("];\n");
    fs::write(out.join("files.rs"), table)?;
    Ok(())
}

fn served(name: &str) -> bool {
    let extension = Path::new(name).extension().and_then(OsStr::to_str);
    let is_page = extension == Some("html") && name != "toc.html";
    let is_image = matches!(extension, Some("png" | "svg"));
    let is_style_of_another_theme = name.starts_with("highlight-") && extension == Some("css");
    is_page
        || is_image
        || LOADED.iter().any(|start| name.starts_with(start)) && !is_style_of_another_theme
}
