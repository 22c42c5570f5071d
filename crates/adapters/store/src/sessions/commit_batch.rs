//! Saves concurrent changes of different sessions in one statement.

use std::{collections::HashSet, sync::Arc};

use ::diesel::{
    pg::Pg,
    prelude::*,
    query_builder::{AstPass, Query, QueryFragment, QueryId},
    sql_types::{Array, Integer, Nullable, Text},
};
use diesel_async::RunQueryDsl;
use ports::StoreError;

use crate::engine::batcher::{BatchQueue, BatchRequest};
use crate::engine::column::{Id, SqlId, SqlTimestamp, Timestamp};
use crate::engine::database::{failed, with_pipelined_connection};
use crate::engine::pipelined::PipelinedConnection;
use crate::engine::schema::sessions;
use crate::sessions::change_records::ChangeRecords;
use crate::sessions::row::{LeaseColumns, SessionRow};

const ACTION: &str = "commit a change";

/// A changed session with its records, of which [`ChangeRecords::fit_a_batch`] holds.
pub(crate) struct CommitRequest {
    pub(crate) row: SessionRow,
    pub(crate) lease: LeaseColumns,
    pub(crate) records: ChangeRecords,
}

/// Whether the session had the version before, so that the change was saved.
type Answer = Result<bool, StoreError>;

impl BatchRequest for CommitRequest {
    type Answer = Answer;

    fn waiting(connection: &PipelinedConnection) -> &BatchQueue<Self> {
        &connection.commits
    }

    /// A statement locks its sessions in the order of their identifiers, so that the statements of
    /// two instances do not wait for each other. It has each session once: PostgreSQL would apply
    /// any one of two changes of the same row. The second one is part of the next statement.
    async fn answer(
        connection: &PipelinedConnection,
        asks: &[Self],
    ) -> Result<Vec<Answer>, StoreError> {
        let mut waiting: Vec<_> = asks.iter().enumerate().collect();
        waiting.sort_by_key(|(place, ask)| (ask.row.id.0, *place));
        let mut answers = Vec::with_capacity(asks.len());
        while !waiting.is_empty() {
            let mut seen = HashSet::with_capacity(waiting.len());
            let (first, others): (Vec<_>, Vec<_>) =
                waiting.into_iter().partition(|(_, ask)| seen.insert(ask.row.id));
            let (places, together): (Vec<_>, Vec<_>) = first.into_iter().unzip();
            answers.extend(places.into_iter().zip(save(connection, &together).await));
            waiting = others;
        }
        answers.sort_by_key(|(place, _)| *place);
        Ok(answers.into_iter().map(|(_, answer)| answer).collect())
    }
}

/// Saves changes of different sessions. If the statement fails, each change is saved separately, so
/// that one that cannot be saved does not prevent the others.
async fn save(connection: &PipelinedConnection, asks: &[&CommitRequest]) -> Vec<Answer> {
    let mut sent = Sent::default();
    match sent.statement(connection, asks).await {
        Ok(Ok(answers)) => answers,
        Ok(Err(error)) if asks.len() > 1 && !connection.broke(&error) => {
            let mut answers = Vec::with_capacity(asks.len());
            for ask in asks {
                let alone = sent.statement(connection, std::slice::from_ref(ask)).await;
                let alone = alone.and_then(|saved| saved.map_err(failed(ACTION)));
                answers.push(alone.and_then(|mut saved| {
                    saved.pop().unwrap_or_else(|| Err(StoreError::new(ACTION, "no answer")))
                }));
            }
            answers
        }
        Ok(Err(error)) => fail_all(failed(ACTION)(error), asks.len()),
        Err(error) => fail_all(error, asks.len()),
    }
}

fn fail_all(error: StoreError, count: usize) -> Vec<Answer> {
    let error = Arc::new(error);
    (0..count).map(|_| Err(failed(ACTION)(error.clone()))).collect()
}

/// What is known about earlier statements with the same changes.
#[derive(Default)]
struct Sent {
    /// Whether the connection broke before the answer of one arrived, so that PostgreSQL may have
    /// carried it out.
    is_in_doubt: bool,
}

impl Sent {
    /// Sends the statement, and once more if the connection breaks. The outer error means that there
    /// is no connection.
    async fn statement(
        &mut self,
        connection: &PipelinedConnection,
        asks: &[&CommitRequest],
    ) -> Result<QueryResult<Vec<Answer>>, StoreError> {
        let mut count = 0_u8;
        let saved: QueryResult<Vec<Id>> = with_pipelined_connection!(connection, |conn| {
            count = count.saturating_add(1);
            CommitBatch::of(asks).load(conn).await
        });
        self.is_in_doubt |= count > 1;
        let saved: HashSet<Id> = match saved {
            Ok(saved) => saved.into_iter().collect(),
            Err(error) => return Ok(Err(error)),
        };
        if self.is_in_doubt && saved.len() < asks.len() {
            return resolve(connection, asks, &saved).await;
        }
        Ok(Ok(asks.iter().map(|ask| Ok(saved.contains(&ask.row.id))).collect()))
    }
}

/// Decides, for changes that a repeated statement did not save, whether the first one saved them. A
/// version of a session is saved once, and its encrypted state has a random part: the change whose
/// state the row has is the one that was saved. If the row has a later version, this is not known
/// any more, and the result is an error.
async fn resolve(
    connection: &PipelinedConnection,
    asks: &[&CommitRequest],
    saved: &HashSet<Id>,
) -> Result<QueryResult<Vec<Answer>>, StoreError> {
    let ids: Vec<_> = asks.iter().map(|ask| ask.row.id).collect();
    let rows: QueryResult<Vec<(Id, i32, String)>> =
        with_pipelined_connection!(connection, |conn| {
            sessions::table
                .filter(sessions::id.eq_any(&ids))
                .select((sessions::id, sessions::version, sessions::state))
                .load(conn)
                .await
        });
    let rows = match rows {
        Ok(rows) => rows,
        Err(error) => return Ok(Err(error)),
    };
    let decide = |ask: &&CommitRequest| {
        if saved.contains(&ask.row.id) {
            return Ok(true);
        }
        match rows.iter().find(|(id, ..)| *id == ask.row.id) {
            Some((_, version, _)) if *version > ask.row.version => {
                Err(StoreError::new(ACTION, "the connection broke, and the session was changed"))
            }
            Some((_, version, state)) => Ok(*version == ask.row.version && *state == ask.row.state),
            None => Ok(false),
        }
    };
    Ok(Ok(asks.iter().map(decide).collect()))
}

/// The columns of the changed sessions and of their records, each as an array; those of the jobs
/// separately, since a session may have several.
struct CommitBatch<'a> {
    ids: Vec<Id>,
    teams: Vec<Id>,
    terms: Vec<&'a str>,
    states: Vec<&'a str>,
    statuses: Vec<&'a str>,
    workflows: Vec<Option<&'a str>>,
    references: Vec<Option<&'a str>>,
    progress: Vec<i32>,
    versions: Vec<i32>,
    created: Vec<Timestamp>,
    expires: Vec<Timestamp>,
    closed: Vec<Option<Timestamp>>,
    erased: Vec<Option<Timestamp>>,
    browsers: Vec<Option<Id>>,
    alive: Vec<Option<Timestamp>>,
    times: Vec<Timestamp>,
    events: Vec<&'a str>,
    errors: Vec<Option<&'a str>>,
    nodes: Vec<Option<&'a str>>,
    notices: Vec<Option<Id>>,
    bodies: Vec<Option<&'a str>>,
    due: Vec<Option<Timestamp>>,
    recordings: Vec<Option<Timestamp>>,
    jobs: JobColumns<'a>,
}

struct JobColumns<'a> {
    sessions: Vec<Id>,
    effects: Vec<&'a str>,
    instances: Vec<Option<Id>>,
    due: Vec<Timestamp>,
}

impl<'a> CommitBatch<'a> {
    fn of(asks: &[&'a CommitRequest]) -> Self {
        fn all<'a, T>(
            asks: &[&'a CommitRequest],
            of: impl Fn(&'a SessionRow, &'a ChangeRecords) -> T,
        ) -> Vec<T> {
            asks.iter().map(|ask| of(&ask.row, &ask.records)).collect()
        }
        Self {
            ids: all(asks, |row, _| row.id),
            teams: all(asks, |_, records| records.team),
            terms: all(asks, |row, _| row.terms.as_str()),
            states: all(asks, |row, _| row.state.as_str()),
            statuses: all(asks, |row, _| row.status.as_str()),
            workflows: all(asks, |row, _| row.workflow.as_deref()),
            references: all(asks, |row, _| row.reference.as_deref()),
            progress: all(asks, |row, _| row.progress),
            versions: all(asks, |row, _| row.version),
            created: all(asks, |row, _| row.created_at),
            expires: all(asks, |row, _| row.expires_at),
            closed: all(asks, |row, _| row.closed_at),
            erased: all(asks, |row, _| row.erased_at),
            browsers: asks.iter().map(|ask| ask.lease.browser).collect(),
            alive: asks.iter().map(|ask| ask.lease.alive_until).collect(),
            times: all(asks, |_, records| records.event.at),
            events: all(asks, |_, records| records.event.event.as_str()),
            errors: all(asks, |_, records| records.event.error_code.as_deref()),
            nodes: all(asks, |_, records| records.event.node.as_deref()),
            notices: all(asks, |_, records| records.notice.as_ref().map(|(id, ..)| *id)),
            bodies: all(asks, |_, records| records.notice.as_ref().map(|(_, body, _)| &**body)),
            due: all(asks, |_, records| records.notice.as_ref().map(|(.., due)| *due)),
            recordings: all(asks, |_, records| records.recording),
            jobs: JobColumns::of(asks),
        }
    }
}

impl<'a> JobColumns<'a> {
    fn of(asks: &[&'a CommitRequest]) -> Self {
        let jobs = || asks.iter().flat_map(|ask| &ask.records.entries);
        Self {
            sessions: jobs().map(|job| job.session).collect(),
            effects: jobs().map(|job| job.effect.as_str()).collect(),
            instances: jobs().map(|job| job.node).collect(),
            due: jobs().map(|job| job.due).collect(),
        }
    }

    /// Appends the columns as a table `t (session, effect, node, due)`.
    fn walk<'b>(&'b self, out: &mut AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql("unnest(");
        out.push_bind_param::<Array<SqlId>, _>(&self.sessions)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Text>, _>(&self.effects)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Nullable<SqlId>>, _>(&self.instances)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<SqlTimestamp>, _>(&self.due)?;
        out.push_sql(") AS t (session, effect, node, due)");
        Ok(())
    }
}

impl QueryId for CommitBatch<'_> {
    type QueryId = CommitBatch<'static>;
    const HAS_STATIC_QUERY_ID: bool = true;
}

/// Returns the sessions that had the version before.
impl Query for CommitBatch<'_> {
    type SqlType = SqlId;
}

/// Sets the sessions whose version is the one before; under a concurrent change PostgreSQL waits for
/// it and compares again. `owner` and `platform` never change.
const SAVED: &str = ") AS t (id, team, terms, state, status, event, workflow, reference, error_code, \
         node, body, progress, version, created_at, expires_at, at, closed_at, erased_at, \
         alive_until, due, recording, browser, notice)), \
     saved AS (UPDATE sessions s SET terms = a.terms, state = a.state, status = a.status, \
         progress = a.progress, workflow = a.workflow, version = a.version, \
         created_at = a.created_at, expires_at = a.expires_at, closed_at = a.closed_at, \
         erased_at = a.erased_at, reference = a.reference, browser = a.browser, \
         alive_until = coalesce(a.alive_until, s.alive_until) \
         FROM asked a WHERE s.id = a.id AND s.version = a.version - 1 \
         RETURNING s.id, s.owner, s.version, s.status, a.team, a.at, a.event, a.error_code, a.node, \
         a.notice, a.body, a.due, a.recording), \
     logged AS (INSERT INTO session_events (session, version, at, event, status, error_code, node) \
         SELECT id, version, at, event, status, error_code, node FROM saved), \
     recorded AS (INSERT INTO recordings (session, state, due) \
         SELECT id, 'pending', recording FROM saved WHERE recording IS NOT NULL), ";

/// Notifies the partner: the webhooks of the team that are active and registered for the owner, or for
/// no key. `OFFSET 0` and the aggregate have PostgreSQL look both tables up by their indexes: the plan
/// is made once, and would otherwise read all rows of a table that was small then. An identifier of a
/// delivery has the time of its notice (the first 48 bits) and a random rest (RFC 9562, section 5.7).
const TOLD: &str = "told AS MATERIALIZED (SELECT w.id AS webhook, s.id AS session, s.notice, s.body, s.due, \
         encode(overlay(uuid_send(gen_random_uuid()) PLACING substring(uuid_send(s.notice) \
             FROM 1 FOR 7) FROM 1), 'hex')::uuid AS id \
         FROM saved s CROSS JOIN LATERAL (SELECT w.id FROM webhooks w \
             WHERE w.team = s.team AND w.active AND coalesce((SELECT bool_or(k.key = s.owner) \
             FROM webhook_keys k WHERE k.webhook = w.id), true) OFFSET 0) w \
         WHERE s.notice IS NOT NULL), \
     written AS (INSERT INTO notices (id, test, body) \
         SELECT DISTINCT ON (notice) notice, false, body FROM told), \
     owed AS (INSERT INTO deliveries (id, webhook, session, notice, created_at) \
         SELECT id, webhook, session, notice, due FROM told), \
     waiting AS (INSERT INTO delivery_queue \
         (delivery, webhook, session, notice, since, due, single, attempts) \
         SELECT id, webhook, session, notice, due, due, false, 0 FROM told) \
     SELECT id FROM saved";

impl QueryFragment<Pg> for CommitBatch<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql("WITH asked AS MATERIALIZED (SELECT * FROM unnest(");
        out.push_bind_param::<Array<SqlId>, _>(&self.ids)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<SqlId>, _>(&self.teams)?;
        for texts in [&self.terms, &self.states, &self.statuses, &self.events] {
            out.push_sql(", ");
            out.push_bind_param::<Array<Text>, _>(texts)?;
        }
        let texts = [&self.workflows, &self.references, &self.errors, &self.nodes, &self.bodies];
        for texts in texts {
            out.push_sql(", ");
            out.push_bind_param::<Array<Nullable<Text>>, _>(texts)?;
        }
        for numbers in [&self.progress, &self.versions] {
            out.push_sql(", ");
            out.push_bind_param::<Array<Integer>, _>(numbers)?;
        }
        for times in [&self.created, &self.expires, &self.times] {
            out.push_sql(", ");
            out.push_bind_param::<Array<SqlTimestamp>, _>(times)?;
        }
        let times = [&self.closed, &self.erased, &self.alive, &self.due, &self.recordings];
        for times in times {
            out.push_sql(", ");
            out.push_bind_param::<Array<Nullable<SqlTimestamp>>, _>(times)?;
        }
        for ids in [&self.browsers, &self.notices] {
            out.push_sql(", ");
            out.push_bind_param::<Array<Nullable<SqlId>>, _>(ids)?;
        }
        out.push_sql(SAVED);
        out.push_sql(
            "queued AS (INSERT INTO outbox (session, effect, node, due) \
             SELECT t.session, t.effect, t.node, t.due FROM ",
        );
        self.jobs.walk(&mut out)?;
        out.push_sql(" JOIN saved ON saved.id = t.session), ");
        out.push_sql(TOLD);
        Ok(())
    }
}
