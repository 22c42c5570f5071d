//! A database with an applicant's data in it, and a look at what is stored.

use std::{collections::BTreeMap, sync::Arc};

use chrono::{DateTime, Utc};
use diesel::{
    Connection as _, QueryableByName, RunQueryDsl as _, SqliteConnection,
    connection::SimpleConnection as _, sql_query, sql_types::Text,
};
use domain::{
    api_key::KeyHash,
    id::{ApiKeyId, ContactId, DraftId, PlatformId, SessionId, TeamId},
    request::Contact,
    session::{Change, Effects, Outcome, Record, State},
    webhook::DeliveryDecision,
};
use ports::{
    authoring::{Draft, DraftContent, DraftStore as _},
    catalogue::Catalogue as _,
    contact_store::{ContactStore as _, StoredContact},
    delivery::{AttemptResult, ClaimRequest, DeliveryAttempt, DeliveryQueue as _},
    delivery_log::DeliveryLog as _,
    encryption::Cipher,
    key_store::{KeyStore as _, TeamStore as _},
    session_store::{SessionFilter, SessionStore as _, TeamSessionQueries as _},
    webhook_sender::{WebhookRequest, WebhookResponse},
    webhook_store::WebhookStore as _,
};
use store::Store;
use testkit::sample::{self, noon};
use uuid::Uuid;

pub(crate) const CANARY: &str = "canary-7f3a";
pub(crate) const REFERENCE: &str = "application-1";

pub(crate) fn data(state: &State) -> String {
    let collected = state.outcome().and_then(Outcome::data);
    collected.map_or_else(String::new, |data| data["secret"].as_str().unwrap().to_owned())
}

pub(crate) async fn claim(store: &Store, now: DateTime<Utc>) -> Vec<ports::delivery::Delivery> {
    let ask = ClaimRequest { now, after: None, limit: 10, each: 10, capacities: vec![] };
    store.claim_deliveries(&ask).await.unwrap().deliveries
}

/// A team with a session that was completed, of which all that is personal has the canary in it.
pub(crate) struct Home {
    pub(crate) team: TeamId,
    pub(crate) owner: ApiKeyId,
    pub(crate) hash: KeyHash,
    platform: PlatformId,
    pub(crate) session: SessionId,
}

impl Home {
    pub(crate) async fn make(store: &Store) -> Self {
        let team = TeamId::from_uuid(Uuid::new_v4());
        store.add_team(team, "Lender", noon()).await.unwrap();
        let (key, parts) = (sample::key(team), [Uuid::new_v4(), Uuid::new_v4()]);
        let hash = KeyHash(parts.map(Uuid::into_bytes).concat().try_into().unwrap());
        store.add_key(&key, &hash, "Backend", noon()).await.unwrap();
        let definition = sample::definition("sample", "1.0.0");
        let (platform, _) = store.publish(&definition, None, noon()).await.unwrap();
        let session = SessionId::from_uuid(Uuid::nil());
        let mut home = Self { team, owner: key.id, hash, platform, session };
        home.session = home.another(store).await;
        home
    }

    /// A session that has just begun.
    pub(crate) async fn begun(&self, store: &Store) -> SessionId {
        let mut opening = sample::opening(self.owner, self.platform);
        opening.session.terms.receiver = Some(contact());
        store.insert(&opening, None).await.unwrap();
        opening.session.id
    }

    /// Another session, completed.
    pub(crate) async fn another(&self, store: &Store) -> SessionId {
        let begun = self.begun(store).await;
        let mut ended = store.find_unscoped(begun).await.unwrap().unwrap();
        let data = serde_json::json!({ "secret": format!("{CANARY}-data") });
        let data = data.as_object().unwrap().clone();
        let outcome = Outcome::Completed { data, attestation: None };
        ended.state = State::Closed { outcome, ran: None, region: None, attempts: 1 };
        ended.version = ended.version.next();
        ended.closed_at = Some(noon());
        let effects = Effects { jobs: vec![], records: vec![Record::NotifyPartner] };
        let change = Change { session: ended, effects, event: "Completed", node: None, at: noon() };
        store.commit(&change, noon()).await.unwrap();
        change.session.id
    }

    /// Stores a draft with a fixture.
    async fn write_draft(&self, store: &Store) {
        let draft = Draft {
            id: DraftId::from_uuid(Uuid::new_v4()),
            team: self.team,
            name: "Shop".to_owned(),
            version: "1.0.0".to_owned(),
            revision: 1,
            updated_by: "ada@example.com".to_owned(),
            updated_at: noon(),
        };
        let content =
            DraftContent { document: "{}".to_owned(), fixture: Some(format!("{CANARY}-fixture")) };
        assert!(store.add_draft(&draft, &content).await.unwrap());
        assert_eq!(store.draft(self.team, draft.id).await.unwrap(), Some((draft, content)));
    }

    /// Registers somebody, and tells a webhook of one more session; it answers with the canary.
    pub(crate) async fn told(&self, store: &Store) {
        let id = ContactId::from_uuid(Uuid::new_v4());
        let (team, contact) = (self.team, Contact { metadata: BTreeMap::new(), ..contact() });
        let receiver = StoredContact { id, team, contact: contact.clone(), created_at: noon() };
        store.add_contact(&receiver).await.unwrap();
        assert_eq!(store.contact(team, id).await.unwrap().unwrap().contact, contact);
        assert!(store.change_receiver(team, id, &contact).await.unwrap());
        self.write_draft(store).await;

        let webhook = sample::webhook(self.team);
        store.add_webhook(&webhook, &[], noon()).await.unwrap();
        let body = format!("{{\"data\":\"{CANARY}-body\"}}");
        let session = SessionId::from_uuid(Uuid::new_v4());
        let delivery = store.enqueue_test(webhook.id, session, &body, noon()).await.unwrap();
        let claimed = claim(store, noon()).await;
        let claimed = claimed.iter().find(|claimed| claimed.id == delivery).unwrap();
        assert_eq!(claimed.body, body);
        let answer = WebhookResponse::Status {
            code: 503,
            body: format!("{CANARY}-answer"),
            retry_after: None,
        };
        let call = WebhookRequest { answer, sent: String::new() };
        let attempt =
            DeliveryAttempt { at: noon(), took: std::time::Duration::from_millis(5), call };
        let verdict = DeliveryDecision::RetryAt(noon());
        let (webhook, claim) = (webhook.id, claimed.claim);
        let settled = AttemptResult { delivery, webhook, claim, attempt, decision: verdict };
        assert_eq!(store.settle_deliveries(&[settled]).await.unwrap(), [true]);
        let (_, attempts) = store.delivery(delivery).await.unwrap().unwrap();
        assert_eq!(attempts[0].answer, format!("{CANARY}-answer"));
    }

    pub(crate) async fn read(&self, store: &Store) -> String {
        let session = store.find_unscoped(self.session).await.unwrap().unwrap();
        assert_eq!(session.terms.receiver, Some(contact()));
        data(&session.state)
    }

    pub(crate) async fn found(&self, store: &Store) -> Vec<SessionId> {
        let text = Some(REFERENCE.to_owned());
        let filter = SessionFilter { text, ..SessionFilter::default() };
        let found = store.team_sessions(self.team, &filter, None, 10).await.unwrap().sessions;
        assert!(found.iter().all(|listed| listed.reference.as_deref() == Some(REFERENCE)));
        found.into_iter().map(|listed| listed.summary.id).collect()
    }
}

fn contact() -> Contact {
    Contact {
        name: Some(format!("{CANARY}-name")),
        email: Some(format!("{CANARY}@applicant.example")),
        phone: Some(format!("+1{CANARY}")),
        locale: Some("en".into()),
        metadata: BTreeMap::from([("case".into(), format!("{CANARY}-metadata"))]),
    }
}

/// A database of a test's own.
pub(crate) struct Place {
    pub(crate) url: String,
    _folder: Option<tempfile::TempDir>,
}

#[derive(QueryableByName)]
struct Line {
    #[diesel(sql_type = Text)]
    line: String,
}

impl Place {
    pub(crate) fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}", folder.path().join("store.db").display());
        Self { url, _folder: Some(folder) }
    }

    pub(crate) async fn postgres() -> Self {
        let server = std::env::var("TEST_DATABASE_URL").unwrap_or_else(|_| {
            panic!("TEST_DATABASE_URL must name a PostgreSQL server: run `cargo xtask test`")
        });
        let name = format!("test_{}", Uuid::new_v4().simple());
        connect(&server).await.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
        let mut url = url::Url::parse(&server).unwrap();
        url.set_path(&name);
        Self { url: url.to_string(), _folder: None }
    }

    pub(crate) async fn open(&self, seal: &Arc<dyn Cipher>) -> Store {
        Store::open(&self.url, seal.clone()).await.unwrap()
    }

    pub(crate) async fn execute(&self, statement: &str) {
        match self.url.strip_prefix("sqlite://") {
            Some(path) => sqlite(path).batch_execute(statement).unwrap(),
            None => connect(&self.url).await.batch_execute(statement).await.unwrap(),
        }
    }

    pub(crate) async fn texts(&self, query: &str) -> Vec<String> {
        if let Some(path) = self.url.strip_prefix("sqlite://") {
            let lines: Vec<Line> = sql_query(query).load(&mut sqlite(path)).unwrap();
            return lines.into_iter().map(|line| line.line).collect();
        }
        let rows = connect(&self.url).await.query(query, &[]).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    }

    /// Every column that may be personal.
    pub(crate) async fn stored(&self) -> String {
        let all = "SELECT terms || state || coalesce(reference, '') AS line FROM sessions \
                   UNION ALL SELECT body FROM notices \
                   UNION ALL SELECT answer FROM delivery_attempts WHERE answer IS NOT NULL \
                   UNION ALL SELECT coalesce(name, '') || coalesce(email, '') || \
                   coalesce(phone, '') FROM receivers \
                   UNION ALL SELECT fixture FROM definition_drafts WHERE fixture IS NOT NULL";
        self.texts(all).await.join("\n")
    }
}

pub(crate) fn sqlite(path: &str) -> SqliteConnection {
    let mut conn = SqliteConnection::establish(path).unwrap();
    conn.batch_execute("PRAGMA busy_timeout = 10000").unwrap();
    conn
}

async fn connect(url: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}
