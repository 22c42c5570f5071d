//! `avouch workflow run --record` and `--replay`.

use std::{
    fmt::Write as _,
    fs::{self, File},
    io::Read as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use domain::workflow::{Definition, Fixture, MaskedFixture, Replayed, mask_tokens};
use ports::driving::DefinitionService;

use crate::{CheckOutput, CommandError, WorkflowCommand, read_definition};

impl WorkflowCommand {
    /// Runs a definition on fixtures, and returns what differs.
    ///
    /// # Errors
    /// A file cannot be read, or the definition cannot be published.
    pub fn replay(
        definitions: &dyn DefinitionService,
        file: &Path,
        fixtures: &[PathBuf],
    ) -> Result<CheckOutput, CommandError> {
        replay_fixtures(definitions, &read_definition(definitions, file)?, fixtures)
    }
}

/// Runs a definition on fixtures.
///
/// # Errors
/// A fixture cannot be read, or is of another platform.
pub(crate) fn replay_fixtures(
    definitions: &dyn DefinitionService,
    definition: &Definition,
    fixtures: &[PathBuf],
) -> Result<CheckOutput, CommandError> {
    let definition = Arc::new(definition.clone());
    let (mut text, mut passed) = (String::new(), true);
    for path in fixtures {
        let fixture = read_fixture(path)?;
        if fixture.platform != definition.platform {
            let (shown, platform) = (path.display(), &fixture.platform);
            return Err(format!("{shown} is a fixture of {platform}").into());
        }
        let replayed = definitions.replay(&definition, &fixture);
        let differences = fixture.expected.differences(&replayed.result);
        passed &= differences.is_empty();
        report(&mut text, path, &differences, &replayed);
    }
    Ok(CheckOutput { text: text.trim_end().to_owned(), passed })
}

/// Adds a line for the fixture; where something differs, what does and the trace.
fn report(text: &mut String, path: &Path, differences: &[String], replayed: &Replayed) {
    let path = path.display();
    // Writing to a string cannot fail.
    if differences.is_empty() {
        let _ = writeln!(text, "{path}: as expected");
        return;
    }
    let _ = writeln!(text, "{path}: differs");
    for line in differences {
        let _ = writeln!(text, "  {line}");
    }
    for request in &replayed.unrecorded {
        let _ = writeln!(text, "  the fixture does not have {request}: record it again");
    }
    for event in &replayed.trace {
        let _ = writeln!(text, "    {event}");
    }
}

pub(crate) fn read_fixture(path: &Path) -> Result<Fixture, CommandError> {
    let shown = path.display();
    let unreadable = |error| format!("{shown} cannot be read: {error}");
    let mut text = String::new();
    let limit = u64::try_from(Fixture::MAX_BYTES)?.saturating_add(1);
    let reader = File::open(path).map_err(unreadable)?;
    reader.take(limit).read_to_string(&mut text).map_err(unreadable)?;
    if text.len() > Fixture::MAX_BYTES {
        return Err(format!("{shown} is too long: at most {} bytes", Fixture::MAX_BYTES).into());
    }
    let fixture: Fixture =
        serde_json::from_str(&text).map_err(|error| format!("{shown} is no fixture: {error}"))?;
    match fixture.error() {
        Some(error) => Err(format!("{shown} is no fixture: {error}").into()),
        None => Ok(fixture),
    }
}

/// What was written of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenFixture {
    /// What is told of it, for people.
    pub text: String,
    /// The number of different texts that look like access tokens and were masked.
    pub masked_tokens: usize,
    /// The number of those that were kept, since the definition may need them.
    pub kept_tokens: usize,
}

/// Writes a fixture without the access tokens that pages and responses show, and returns what its replay
/// cannot repeat: values that are masked. They are expected as the replay gives them.
///
/// # Errors
/// The file cannot be written.
pub fn write_fixture(
    definitions: &dyn DefinitionService,
    definition: &Arc<Definition>,
    mut fixture: Fixture,
    path: &Path,
) -> Result<WrittenFixture, CommandError> {
    if let Some(error) = fixture.error() {
        return Err(format!("the run cannot be replayed: {error}").into());
    }
    let replayed = definitions.replay(definition, &fixture);
    let differences = fixture.expected.differences(&replayed.result);
    fixture.expected = replayed.result;
    let replay = |fixture: &Fixture| definitions.replay(definition, fixture);
    let MaskedFixture { fixture, masked, kept } = mask_tokens(fixture, &replay);
    let text = serde_json::to_string(&fixture)?;
    fs::write(path, text + "\n")
        .map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
    let mut text = told_of_tokens(masked, kept);
    let _ = write!(text, "fixture written to {}", path.display());
    for line in differences {
        let _ = write!(text, "\n  its replay differs from the run: {line}");
    }
    Ok(WrittenFixture { text, masked_tokens: masked, kept_tokens: kept })
}

/// Returns a line for the tokens that were masked, and one for those that were kept, if there are any.
fn told_of_tokens(masked: usize, kept: usize) -> String {
    let mut text = match masked {
        0 => String::new(),
        1 => "1 text that looks like an access token was masked. Check the file before you share it.\n"
            .to_owned(),
        _ => format!(
            "{masked} texts that look like access tokens were masked. Check the file before you share it.\n"
        ),
    };
    match kept {
        0 => (),
        1 => text.push_str(
            "warning: 1 text that looks like an access token was kept, since the definition may need it.\n",
        ),
        _ => {
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "warning: {kept} texts that look like access tokens were kept, since the definition \
                 may need them."
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use domain::workflow::{PageNode, PageTree, RunResult};
    use ports::driving::MockDefinitionService;
    use testkit::sample;

    use super::*;

    fn fixture(platform: &str) -> Fixture {
        Fixture {
            schema: Fixture::SCHEMA.into(),
            platform: platform.into(),
            version: "1.0.0".into(),
            expected: RunResult { path: vec!["open".into()], ..RunResult::default() },
            events: vec![],
            pages: vec![],
        }
    }

    /// A service whose replays enter these nodes.
    fn service(path: &[&str]) -> MockDefinitionService {
        let path: Vec<String> = path.iter().map(|node| (*node).to_owned()).collect();
        let mut definitions = MockDefinitionService::new();
        definitions.expect_replay().returning(move |_, _| Replayed {
            result: RunResult { path: path.clone(), ..RunResult::default() },
            trace: vec![],
            unrecorded: vec!["GET https://a.test/".into()],
        });
        definitions
    }

    #[test]
    fn differences_are_printed_for_each_fixture() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("fixture.json");
        let definition = sample::definition("sample", "1.0.0");
        let written = write_fixture(
            &service(&["open"]),
            &Arc::new(definition.clone()),
            fixture("sample"),
            &file,
        );
        assert_eq!(written.unwrap().text, format!("fixture written to {}", file.display()));
        let files = [file.clone()];
        let same = replay_fixtures(&service(&["open"]), &definition, &files).unwrap();
        assert_eq!(same.text, format!("{}: as expected", file.display()));
        assert!(same.passed);
        let other = replay_fixtures(&service(&["open", "end"]), &definition, &files).unwrap();
        let lines = "differs\n  path: after open, expected the end, but it was end\n  \
                     the fixture does not have GET https://a.test/: record it again";
        assert_eq!(other.text, format!("{}: {lines}", file.display()));
        assert!(!other.passed);
    }

    #[test]
    fn an_author_is_told_of_access_tokens() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("fixture.json");
        let token = |number: u8| format!("{number:02}a7b3c5d1e2f4a6b8c0d9e1f3a5b7c9d1");
        let page = |tokens: &[String]| {
            let texts = tokens.iter().map(|token| PageNode {
                parent: Some(0),
                text: Some(token.clone()),
                ..PageNode::default()
            });
            PageTree { nodes: std::iter::once(PageNode::default()).chain(texts).collect() }
        };
        let written = |tokens: &[String]| {
            let fixture = Fixture { pages: vec![page(tokens)], ..fixture("sample") };
            // The first token is shared.
            let mut definitions = MockDefinitionService::new();
            let shared = token(1);
            definitions.expect_replay().returning(move |_, _| Replayed {
                result: RunResult {
                    data: [("key".to_owned(), shared.clone().into())].into(),
                    ..RunResult::default()
                },
                trace: vec![],
                unrecorded: vec![],
            });
            let definition = Arc::new(sample::definition("sample", "1.0.0"));
            let written = write_fixture(&definitions, &definition, fixture, &file).unwrap();
            let text = written.text.replace(&file.display().to_string(), "FILE");
            let lines: Vec<_> = text.lines().map(str::to_owned).collect();
            (written.masked_tokens, written.kept_tokens, lines)
        };
        let tokens: Vec<_> = (1..=4).map(token).collect();
        let (masked, kept, lines) = written(&tokens);
        assert_eq!((masked, kept), (3, 1));
        assert_eq!(
            lines[..2],
            [
                "3 texts that look like access tokens were masked. Check the file before you share it.",
                "warning: 1 text that looks like an access token was kept, since the definition may need it.",
            ]
        );
        // It differs from the run, which has shared nothing.
        assert_eq!(lines[2], "fixture written to FILE");
        let text = fs::read_to_string(&file).unwrap();
        let has = |number: u8| text.contains(&token(number));
        assert_eq!([1, 2, 3, 4].map(has), [true, false, false, false]);
        let (masked, kept, lines) = written(&[]);
        assert_eq!((masked, kept, lines[0].as_str()), (0, 0, "fixture written to FILE"));
    }

    #[test]
    fn a_file_that_is_no_fixture_of_the_platform_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("fixture.json");
        let definition = sample::definition("sample", "1.0.0");
        let fails = |text: &str| {
            fs::write(&file, text).unwrap();
            let result = replay_fixtures(&service(&[]), &definition, std::slice::from_ref(&file));
            let error = result.err().map(|error| error.to_string());
            error.unwrap().replace(&file.display().to_string(), "FILE")
        };
        let text = |fixture: &Fixture| serde_json::to_string(fixture).unwrap();
        assert_eq!(fails(&text(&fixture("other"))), "FILE is a fixture of other");
        let old = Fixture { schema: "avouch-fixture/0".into(), ..fixture("sample") };
        let error = "FILE is no fixture: `schema` is not `avouch-fixture/1`";
        assert_eq!(fails(&text(&old)), error);
        assert!(fails("{}").starts_with("FILE is no fixture: missing field"));
    }
}
