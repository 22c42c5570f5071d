//! Release notes: a section of the changelog.

use crate::Failure;

/// Returns the section whose heading begins with `title`, without the heading.
pub(super) fn cut(changelog: &str, title: &str) -> Result<String, Failure> {
    let is_title = |line: &str| {
        let heading = line.strip_prefix("## ").unwrap_or_default();
        heading.split(' ').next() == Some(title)
    };
    let lines = changelog.lines().skip_while(|line| !is_title(line)).skip(1);
    let section: Vec<_> = lines.take_while(|line| !line.starts_with("## ")).collect();
    let section = section.join("\n");
    if section.trim().is_empty() {
        return Err(format!("CHANGELOG.md has no section `## {title}` with a text").into());
    }
    Ok(format!("{}\n", section.trim()))
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn the_section_of_a_version_is_cut_out() {
        let changelog = "# Changelog\n\n## Unreleased\n\n## 1.10.0 - 2026-12-01\n\n### Added\n- A.\n\n\
                         ## 1.1.0 - 2026-11-01\n- B.\n";
        assert_eq!(cut(changelog, "1.10.0").unwrap(), "### Added\n- A.\n");
        assert_eq!(cut(changelog, "1.1.0").unwrap(), "- B.\n");
        for missing in ["1.1", "Unreleased", "2.0.0"] {
            let error = cut(changelog, missing).unwrap_err().to_string();
            assert!(error.contains(missing), "{error}");
        }
    }
}
