//! `avouch workflow run`: one session of a definition, in a service that is thrown away after.

use std::{net::TcpListener, path::Path, time::Duration};

use domain::{
    api_key::ApiKey,
    id::{ApiKeyId, PlatformId, TeamId},
    request::NewSession,
    webhook::{payload, wire_time},
};
use ports::{
    catalogue::Catalogue as _,
    clock::Clock as _,
    driving::{Caller, SessionService as _},
    key_store::{KeyStore as _, TeamStore as _},
    random::RandomSource as _,
};
use serde_json::{Value, json};
use store::DatabaseUrl;
use system::{
    clock::{SystemClock, SystemRandom},
    data_dir::TemporaryFolder,
};
use uuid::Uuid;

use crate::{
    admin::read_definition,
    config::Config,
    service::{Overrides, Service},
    storage::{error_chain, open_store},
};
use application::{api_keys::ApiKeyText, settings::Addresses};

type Failure = Box<dyn std::error::Error + Send + Sync>;

const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Runs the definition once; answers how the session ended.
pub(crate) async fn run(config: Config, file: &Path) -> Result<Value, Failure> {
    let folder = TemporaryFolder::new("avouch-trial").map_err(error_chain)?;
    // Free a moment ago, and nobody else is in a hurry for it.
    let listen = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let config = Config {
        listen,
        addresses: Addresses { public: format!("http://{listen}"), ..Addresses::default() },
        data_dir: folder.path().to_owned(),
        database_url: DatabaseUrl::Sqlite(folder.path().join("avouch.db").display().to_string()),
        ..config
    };
    let (caller, platform) = furnish(&config, file).await?;
    let service = Service::start(&config, Overrides::default()).await?;
    let ended = tokio::select! {
        ended = one_session(&service, &caller, platform) => ended,
        _ = tokio::signal::ctrl_c() => Err("stopped".into()),
    };
    service.stop().await;
    ended
}

/// Publishes the definition, and makes a key that can use it.
async fn furnish(config: &Config, file: &Path) -> Result<(Caller, PlatformId), Failure> {
    let definition = read_definition(file)?;
    let store = open_store(config).await?.store;
    let (now, id) = (SystemClock.now(), || Uuid::from_u128(SystemRandom.new_id()));
    let (platform, _) = store.publish(&definition, now).await.map_err(error_chain)?;
    let team = TeamId::from_uuid(id());
    store.add_team(team, "Author", now).await.map_err(error_chain)?;
    let environment = definition.environment;
    let key = ApiKey {
        id: ApiKeyId::from_uuid(id()),
        team,
        environment,
        expires_at: None,
        revoked_at: None,
    };
    let hash = ApiKeyText::new(environment, SystemRandom.random_bytes()).hash();
    store.add_key(&key, &hash, "Trial", now).await.map_err(error_chain)?;
    Ok((key, platform))
}

async fn one_session(
    service: &Service,
    caller: &Caller,
    platform: PlatformId,
) -> Result<Value, Failure> {
    let body = json!({ "platformId": platform.0, "location": { "country": "US" } });
    let request = NewSession::read(&body).map_err(error_chain)?;
    let created = service.partners.create(caller, request, None).await.map_err(error_chain)?.face;
    eprintln!("open this and play the applicant: {}", created.embed_url);
    let mut status = created.session.status();
    loop {
        let face = service.partners.read(caller, created.session.id).await.map_err(error_chain)?;
        if face.session.status() != status {
            status = face.session.status();
            eprintln!("{} {status}", wire_time(SystemClock.now()));
        }
        // What a partner would be told.
        if let Some(result) = payload(&face.session) {
            return Ok(result);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
