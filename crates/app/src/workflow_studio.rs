//! `avouch workflow studio`: the authoring studio of one definition, in a service of its own that is
//! removed afterwards.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use authoring::{StudioDocument, new_definition, text_of};
use command_line::{CommandError, DefinitionFiles, read_document, with_sign_ins};
use domain::api_key::Environment;
use system::data_dir::TemporaryFolder;

use crate::{
    attest_probe::HostProbe,
    config::Config,
    service::{Overrides, Service},
    storage::error_chain,
    workflow_run::{stop_signal, trial_config},
};

/// The country of the sessions of a trial.
const COUNTRY: &str = "US";

/// Returns the text of the definition in a file, or that of a new one, and whether it is in the file.
pub(crate) fn document(
    file: &Path,
    login_url: Option<&str>,
    name: Option<&str>,
) -> Result<(String, bool), CommandError> {
    if file.exists() {
        if login_url.is_some() {
            let file = file.display();
            return Err(format!("{file} exists already: leave --login-url out to change it").into());
        }
        let document = read_document(file)?;
        if with_sign_ins(document.clone(), file)? != document {
            let file = file.display();
            let text = "the studio would lose the files of its sign-ins: put them into the definition, \
                or change the file as text beside `avouch workflow run --watch`";
            return Err(format!("{file}: {text}").into());
        }
        return Ok((document, true));
    }
    let url = login_url.ok_or("a new definition needs --login-url")?;
    let host = url.split("://").nth(1).and_then(|rest| rest.split(['/', ':']).next());
    let name = name.or(host).unwrap_or(url);
    let is_local = host.is_some_and(|host| host == "localhost" || host.ends_with(".localhost"));
    let environment = if is_local { Environment::Development } else { Environment::Production };
    Ok((text_of(&new_definition(url, name, environment)?), false))
}

/// Serves the studio until a signal asks the process to end.
pub(crate) async fn studio(
    config: Config,
    file: &Path,
    (document, is_saved): (String, bool),
) -> Result<(), CommandError> {
    let folder = TemporaryFolder::new("avouch-studio").map_err(error_chain)?;
    let config = trial_config(config, &folder)?;
    let files = DefinitionFiles { definition: file.to_owned(), fixture: fixture_of(file) };
    let fixture = if is_saved { files.read_fixture()? } else { None };
    let document = StudioDocument {
        document,
        fixture,
        is_saved,
        storage: Arc::new(files),
        publisher: None,
        probe: Some(Arc::new(HostProbe { roots: config.egress_roots.clone() })),
        country: COUNTRY.to_owned(),
        home: None,
    };
    let service = Service::start(&config, Overrides::default()).await?;
    let result = match service.studios.open_local(document).await {
        Err(error) => Err(error_chain(error)),
        Ok(key) => {
            eprintln!("open the studio: {}/studio/{key}/", config.addresses.public);
            stop_signal().await.map(drop)
        }
    };
    service.stop().await;
    result
}

/// Returns the file of a definition's fixture: that of `shop.json` is `shop.fixture.json`.
fn fixture_of(file: &Path) -> PathBuf {
    file.with_extension("fixture.json")
}
