//! Files in which the studio keeps a definition and its fixture.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::{CommandError, replay::read_fixture};
use async_trait::async_trait;
use domain::workflow::Fixture;
use ports::authoring::{AuthoringError, DefinitionStorage, Stored};

/// Keeps a definition and its fixture in two files.
#[derive(Debug, Clone)]
pub struct DefinitionFiles {
    pub definition: PathBuf,
    pub fixture: PathBuf,
}

impl DefinitionFiles {
    /// Returns the stored fixture, if there is one.
    ///
    /// # Errors
    /// It cannot be read, or is no fixture.
    pub fn read_fixture(&self) -> Result<Option<Fixture>, CommandError> {
        if !self.fixture.exists() {
            return Ok(None);
        }
        read_fixture(&self.fixture).map(Some)
    }
}

#[async_trait]
impl DefinitionStorage for DefinitionFiles {
    async fn save(
        &self,
        document: &str,
        fixture: Option<&Fixture>,
    ) -> Result<Stored, AuthoringError> {
        if let Some(fixture) = fixture {
            let text =
                serde_json::to_string(fixture).map_err(|error| failed(&self.fixture, error))?;
            replace(&self.fixture, &(text + "\n"))?;
        }
        replace(&self.definition, document)?;
        Ok(Stored { is_copy: false, has_fixture: fixture.is_some() })
    }

    fn names(&self) -> (String, String) {
        (self.definition.display().to_string(), self.fixture.display().to_string())
    }
}

fn failed(file: &Path, error: impl Into<io::Error>) -> AuthoringError {
    AuthoringError(format!("{} cannot be written: {}", file.display(), error.into()))
}

/// Replaces a file at once, so that none is left half written.
fn replace(file: &Path, text: &str) -> Result<(), AuthoringError> {
    let mut new = file.as_os_str().to_owned();
    new.push(".new");
    let written = fs::write(&new, text).and_then(|()| fs::rename(&new, file));
    written.map_err(|error| failed(file, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_definition_and_its_fixture_are_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let [definition, fixture] =
            ["a.json", "a.fixture.json"].map(|name| folder.path().join(name));
        fs::write(&definition, "old").unwrap();
        let files = DefinitionFiles { definition: definition.clone(), fixture: fixture.clone() };
        files.save("new", None).await.unwrap();
        assert_eq!(fs::read_to_string(&definition).unwrap(), "new");
        assert!(!fixture.exists());
        let missing = DefinitionFiles { definition: folder.path().join("no/a.json"), fixture };
        let error = missing.save("new", None).await.unwrap_err();
        assert!(error.to_string().contains("cannot be written"), "{error}");
    }
}
