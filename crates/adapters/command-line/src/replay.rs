//! `avouch workflow run --record` and `--replay`.

use std::{
    fmt::Write as _,
    fs::{self, File},
    io::Read as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use domain::workflow::{Definition, Fixture, Replayed};
use ports::driving::DefinitionService;

use crate::{CheckOutput, CommandError, WorkflowCommand, read_definition, trace_line};

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
        let definition = Arc::new(read_definition(definitions, file)?);
        let (mut text, mut passed) = (String::new(), true);
        for path in fixtures {
            let fixture = read_fixture(path)?;
            if fixture.platform != definition.platform {
                return Err(format!("{} is of {}", path.display(), fixture.platform).into());
            }
            let replayed = definitions.replay(&definition, &fixture);
            let differences = fixture.expected.differences(&replayed.result);
            passed &= differences.is_empty();
            report(&mut text, path, &differences, &replayed);
        }
        Ok(CheckOutput { text: text.trim_end().to_owned(), passed })
    }
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
        let _ = writeln!(text, "    {}", trace_line(event));
    }
}

fn read_fixture(path: &Path) -> Result<Fixture, CommandError> {
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

/// Writes a fixture, and returns what its replay cannot repeat: values that are masked. They are
/// expected as the replay gives them.
///
/// # Errors
/// The file cannot be written.
pub fn write_fixture(
    definitions: &dyn DefinitionService,
    definition: &Arc<Definition>,
    mut fixture: Fixture,
    path: &Path,
) -> Result<String, CommandError> {
    let replayed = definitions.replay(definition, &fixture);
    let differences = fixture.expected.differences(&replayed.result);
    fixture.expected = replayed.result;
    let text = serde_json::to_string(&fixture)?;
    fs::write(path, text + "\n")
        .map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
    let mut text = format!("fixture written to {}", path.display());
    for line in differences {
        let _ = write!(text, "\n  its replay differs from the run: {line}");
    }
    Ok(text)
}
