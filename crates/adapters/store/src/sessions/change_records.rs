//! What a change of a session owes besides the session itself, written in its transaction.

use ::diesel::prelude::*;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{
    session::{Change, Record},
    webhook,
};
use ports::StoreError;
use uuid::{NoContext, Timestamp as UuidTimestamp, Uuid};

use crate::engine::column::{Id, Timestamp};
use crate::engine::data_key::BODY;
use crate::engine::database::SqliteConn;
use crate::engine::keyring::WriteKey;
use crate::engine::schema::{deliveries, delivery_queue, notices};
use crate::sessions::outbox::NewEntry;
use crate::sessions::reads::TimelineRow;

/// Rows that one statement inserts; each has up to eight values, of which PostgreSQL takes 65,535.
pub(crate) const MAX_ROWS_PER_STATEMENT: usize = 1000;

#[derive(Insertable)]
#[diesel(table_name = notices)]
pub(crate) struct NewNotification<'a> {
    pub(crate) id: Id,
    pub(crate) test: bool,
    pub(crate) body: &'a str,
}

#[derive(Insertable)]
#[diesel(table_name = deliveries)]
pub(crate) struct NewDelivery {
    pub(crate) id: Id,
    webhook: Id,
    session: Id,
    notice: Id,
    created_at: Timestamp,
}

/// A delivery that is to be sent, at once.
#[derive(Insertable)]
#[diesel(table_name = delivery_queue)]
pub(crate) struct NewQueueEntry {
    pub(crate) delivery: Id,
    pub(crate) webhook: Id,
    pub(crate) session: Id,
    pub(crate) notice: Id,
    pub(crate) since: Timestamp,
    pub(crate) due: Timestamp,
    pub(crate) single: bool,
    pub(crate) attempts: i32,
}

/// What is told of a session at a moment.
pub(crate) struct WebhookBody<'a> {
    pub(crate) row: NewNotification<'a>,
    session: Id,
    at: Timestamp,
}

impl<'a> WebhookBody<'a> {
    /// `body` is encrypted for the notice that is called `id`.
    pub(crate) fn of(id: Id, session: Id, body: &'a str, test: bool, at: Timestamp) -> Self {
        Self { row: NewNotification { id, test, body }, session, at }
    }

    /// Owes it to a webhook.
    pub(crate) fn owed_to(&self, webhook: Id) -> (NewDelivery, NewQueueEntry) {
        let Self { row: NewNotification { id: notice, test: single, .. }, session, at } = *self;
        let id = id_at(at);
        let delivery = NewDelivery { id, webhook, session, notice, created_at: at };
        let (since, due) = (at, at);
        let task = NewQueueEntry {
            delivery: id,
            webhook,
            session,
            notice,
            since,
            due,
            single,
            attempts: 0,
        };
        (delivery, task)
    }
}

/// A new identifier that sorts by the moment (RFC 9562, section 5.7): what is due at the same time
/// lies side by side.
pub(crate) fn id_at(at: Timestamp) -> Id {
    let seconds = u64::try_from(at.0.timestamp()).unwrap_or(0);
    let stamp = UuidTimestamp::from_unix(NoContext, seconds, at.0.timestamp_subsec_nanos());
    Id(Uuid::new_v7(stamp))
}

/// Inserts deliveries, and what is to be done for them, each in as few statements as there can be:
/// a team may have many webhooks.
pub(crate) trait InsertDeliveries {
    async fn insert_owed(
        &mut self,
        owed: (Vec<NewDelivery>, Vec<NewQueueEntry>),
    ) -> QueryResult<()>;
}

impl InsertDeliveries for AsyncPgConnection {
    async fn insert_owed(
        &mut self,
        owed: (Vec<NewDelivery>, Vec<NewQueueEntry>),
    ) -> QueryResult<()> {
        ::diesel::insert_into(deliveries::table).values(owed.0).execute(self).await?;
        ::diesel::insert_into(delivery_queue::table).values(owed.1).execute(self).await?;
        Ok(())
    }
}

impl InsertDeliveries for SqliteConn {
    async fn insert_owed(
        &mut self,
        owed: (Vec<NewDelivery>, Vec<NewQueueEntry>),
    ) -> QueryResult<()> {
        for delivery in owed.0 {
            ::diesel::insert_into(deliveries::table).values(delivery).execute(self).await?;
        }
        for task in owed.1 {
            ::diesel::insert_into(delivery_queue::table).values(task).execute(self).await?;
        }
        Ok(())
    }
}

/// What a change writes besides the session itself.
pub(crate) struct ChangeRecords {
    pub(crate) entries: Vec<NewEntry>,
    /// The notice of the deliveries with its encrypted body, and from when on they are due.
    pub(crate) notice: Option<(Id, String, Timestamp)>,
    /// What is left for the bodies of deliveries once the session is erased, and what encrypts it.
    pub(crate) erased: Option<(String, WriteKey)>,
    /// From when on the applicant is to be sent the link.
    pub(crate) link: Option<Timestamp>,
    /// From when on a film of the session is due.
    pub(crate) film: Option<Timestamp>,
    pub(crate) event: TimelineRow,
}

impl ChangeRecords {
    pub(crate) fn of(change: &Change, writer: &WriteKey) -> Result<Self, StoreError> {
        let session = &change.session;
        let body = || webhook::payload(session).map(|body| body.to_string());
        let event = TimelineRow::of(change);
        let mut debts =
            Self { entries: vec![], notice: None, erased: None, link: None, film: None, event };
        for job in &change.effects.jobs {
            debts.entries.push(NewEntry::of(session.id, job, change.at)?);
        }
        for record in &change.effects.records {
            let due = Timestamp(record.due(change.at));
            match record {
                Record::NotifyPartner => {
                    if let Some(body) = body() {
                        let id = id_at(due);
                        let body = writer.close(BODY, id, &body)?;
                        debts.notice = Some((id, body, due));
                    }
                }
                Record::SendLink => debts.link = Some(due),
                Record::EraseCopies => debts.erased = body().map(|body| (body, writer.clone())),
                Record::KeepRecording => debts.film = Some(due),
            }
        }
        Ok(debts)
    }

    pub(crate) const fn none_but_the_event(&self) -> bool {
        self.entries.is_empty()
            && self.notice.is_none()
            && self.erased.is_none()
            && self.link.is_none()
            && self.film.is_none()
    }
}

/// Ends a transaction in which a value could not be encrypted.
pub(crate) fn unwritten(error: StoreError) -> ::diesel::result::Error {
    ::diesel::result::Error::SerializationError(Box::new(error))
}

/// Saves what is owed, within the transaction of `$conn`.
macro_rules! write_change_records {
    ($conn:expr, $row:expr, $debts:expr) => {{
        use $crate::{
            deliveries::notifications::NewNotificationRow,
            engine::{
                data_key::BODY,
                schema::{
                    api_keys, attestations, deliveries, delivery_attempts, notices, notifications,
                    outbox, recordings, session_events, webhook_keys, webhooks,
                },
            },
            sessions::{
                change_records::{
                    InsertDeliveries as _, MAX_ROWS_PER_STATEMENT, WebhookBody, unwritten,
                },
                recordings::{ERASED, NewRecording, PENDING},
            },
        };
        ::diesel::insert_into(session_events::table).values(&$debts.event).execute($conn).await?;
        for entry in &$debts.entries {
            ::diesel::insert_into(outbox::table).values(entry).execute($conn).await?;
        }
        if let Some((id, body, due)) = &$debts.notice {
            let team = api_keys::table
                .filter(api_keys::id.eq($row.owner))
                .select(api_keys::team)
                .first::<Id>($conn)
                .await?;
            let chosen = || webhook_keys::table.filter(webhook_keys::webhook.eq(webhooks::id));
            let for_this = exists(chosen().filter(webhook_keys::key.eq($row.owner)));
            let told = webhooks::table
                .filter(webhooks::team.eq(team))
                .filter(webhooks::active.eq(true))
                .filter(for_this.or(not(exists(chosen()))))
                .select(webhooks::id)
                .load::<Id>($conn)
                .await?;
            let notice = WebhookBody::of(*id, $row.id, body, false, *due);
            if !told.is_empty() {
                ::diesel::insert_into(notices::table).values(&notice.row).execute($conn).await?;
            }
            for told in told.chunks(MAX_ROWS_PER_STATEMENT) {
                let owed = told.iter().map(|webhook| notice.owed_to(*webhook)).unzip();
                $conn.insert_owed(owed).await?;
            }
        }
        if let Some((body, writer)) = &$debts.erased {
            let told = || deliveries::table.filter(deliveries::session.eq($row.id));
            let copies: Vec<Id> = told().select(deliveries::notice).distinct().load($conn).await?;
            for copy in copies {
                let body = writer.close(BODY, copy, body).map_err(unwritten)?;
                let copy = notices::table.find(copy);
                ::diesel::update(copy).set(notices::body.eq(body)).execute($conn).await?;
            }
            // The partner's server may have repeated what it was sent.
            let answers = delivery_attempts::table
                .filter(delivery_attempts::delivery.eq_any(told().select(deliveries::id)));
            let none = delivery_attempts::answer.eq(None::<String>);
            ::diesel::update(answers).set(none).execute($conn).await?;
            let film = recordings::table.filter(recordings::session.eq($row.id));
            ::diesel::update(film).set(recordings::state.eq(ERASED)).execute($conn).await?;
            let proved = attestations::table.filter(attestations::session.eq($row.id));
            ::diesel::delete(proved).execute($conn).await?;
        }
        if let Some(due) = $debts.link {
            let team = api_keys::table
                .filter(api_keys::id.eq($row.owner))
                .select(api_keys::team)
                .first::<Id>($conn)
                .await?;
            let link = NewNotificationRow::of($row.id, team, 1, due);
            ::diesel::insert_into(notifications::table).values(link).execute($conn).await?;
        }
        if let Some(due) = $debts.film {
            let film = NewRecording { session: $row.id, state: PENDING, due };
            ::diesel::insert_into(recordings::table).values(film).execute($conn).await?;
        }
    }};
}
pub(crate) use write_change_records;
