//! The records that a change of a session writes in its transaction, besides the session itself.

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

/// The maximum number of rows in one insert; each has up to eight parameters, of which PostgreSQL
/// accepts 65,535.
pub(crate) const MAX_ROWS_PER_STATEMENT: usize = 1000;

#[derive(Insertable)]
#[diesel(table_name = notices)]
pub(crate) struct NewWebhookBody<'a> {
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

/// The queue entry of a delivery, which is due at once.
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

/// A notice: the body that is delivered to webhooks.
pub(crate) struct WebhookBody<'a> {
    pub(crate) row: NewWebhookBody<'a>,
    session: Id,
    at: Timestamp,
}

impl<'a> WebhookBody<'a> {
    /// `body` is encrypted for the notice `id`.
    pub(crate) fn of(id: Id, session: Id, body: &'a str, test: bool, at: Timestamp) -> Self {
        Self { row: NewWebhookBody { id, test, body }, session, at }
    }

    /// Returns a delivery of the notice to a webhook, with its queue entry.
    pub(crate) fn delivery_to(&self, webhook: Id) -> (NewDelivery, NewQueueEntry) {
        let Self { row: NewWebhookBody { id: notice, test: single, .. }, session, at } = *self;
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

/// Returns a new identifier that sorts by the time (RFC 9562, section 5.7), so that deliveries that
/// are due at the same time are adjacent in indexes.
pub(crate) fn id_at(at: Timestamp) -> Id {
    let seconds = u64::try_from(at.0.timestamp()).unwrap_or(0);
    let stamp = UuidTimestamp::from_unix(NoContext, seconds, at.0.timestamp_subsec_nanos());
    Id(Uuid::new_v7(stamp))
}

/// Inserts deliveries and their queue entries, each with as few statements as possible, since a
/// team may have many webhooks.
pub(crate) trait InsertDeliveries {
    async fn insert_deliveries(
        &mut self,
        owed: (Vec<NewDelivery>, Vec<NewQueueEntry>),
    ) -> QueryResult<()>;
}

impl InsertDeliveries for AsyncPgConnection {
    async fn insert_deliveries(
        &mut self,
        owed: (Vec<NewDelivery>, Vec<NewQueueEntry>),
    ) -> QueryResult<()> {
        ::diesel::insert_into(deliveries::table).values(owed.0).execute(self).await?;
        ::diesel::insert_into(delivery_queue::table).values(owed.1).execute(self).await?;
        Ok(())
    }
}

impl InsertDeliveries for SqliteConn {
    async fn insert_deliveries(
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

/// The records that a change writes besides the session itself.
pub(crate) struct ChangeRecords {
    /// The team of the session's owner.
    pub(crate) team: Id,
    pub(crate) entries: Vec<NewEntry>,
    /// The notice's identifier and encrypted body, and when its deliveries are due.
    pub(crate) notice: Option<(Id, String, Timestamp)>,
    /// The body that replaces those of deliveries once the session is erased, and its encryption.
    pub(crate) erased: Option<(String, WriteKey)>,
    /// When the notification with the link is due.
    pub(crate) link: Option<Timestamp>,
    /// When the recording of the session is due.
    pub(crate) recording: Option<Timestamp>,
    pub(crate) event: TimelineRow,
}

impl ChangeRecords {
    pub(crate) fn of(change: &Change, team: Id, writer: &WriteKey) -> Result<Self, StoreError> {
        let session = &change.session;
        let body = || webhook::payload(session).map(|body| body.to_string());
        let event = TimelineRow::of(change);
        let mut records = Self {
            team,
            entries: vec![],
            notice: None,
            erased: None,
            link: None,
            recording: None,
            event,
        };
        for job in &change.effects.jobs {
            records.entries.push(NewEntry::of(session.id, job, change.at)?);
        }
        for record in &change.effects.records {
            let due = Timestamp(record.due(change.at));
            match record {
                Record::NotifyPartner => {
                    if let Some(body) = body() {
                        let id = id_at(due);
                        let body = writer.encrypt(BODY, id, &body)?;
                        records.notice = Some((id, body, due));
                    }
                }
                Record::SendLink => records.link = Some(due),
                Record::EraseCopies => records.erased = body().map(|body| (body, writer.clone())),
                Record::KeepRecording => records.recording = Some(due),
            }
        }
        Ok(records)
    }

    pub(crate) const fn has_only_event(&self) -> bool {
        self.entries.is_empty()
            && self.notice.is_none()
            && self.erased.is_none()
            && self.link.is_none()
            && self.recording.is_none()
    }

    /// Returns whether [`CommitRequest`] can write the records. Links are sent with new sessions, and
    /// erasing is rare.
    ///
    /// [`CommitRequest`]: crate::sessions::commit_batch::CommitRequest
    pub(crate) const fn fit_a_batch(&self) -> bool {
        self.erased.is_none() && self.link.is_none()
    }
}

/// Aborts a transaction in which a value could not be encrypted.
pub(crate) fn unwritten(error: StoreError) -> ::diesel::result::Error {
    ::diesel::result::Error::SerializationError(Box::new(error))
}

/// Saves the records of a change, within the transaction of `$conn`.
macro_rules! write_change_records {
    ($conn:expr, $row:expr, $records:expr) => {{
        use $crate::{
            deliveries::notifications::NewNotificationRow,
            engine::{
                data_key::BODY,
                schema::{
                    attestations, deliveries, delivery_attempts, notices, notifications, outbox,
                    recordings, session_events, webhook_keys, webhooks,
                },
            },
            sessions::{
                change_records::{
                    InsertDeliveries as _, MAX_ROWS_PER_STATEMENT, WebhookBody, unwritten,
                },
                recordings::{ERASED, NewRecording, PENDING},
            },
        };
        ::diesel::insert_into(session_events::table).values(&$records.event).execute($conn).await?;
        for entry in &$records.entries {
            ::diesel::insert_into(outbox::table).values(entry).execute($conn).await?;
        }
        if let Some((id, body, due)) = &$records.notice {
            let chosen = || webhook_keys::table.filter(webhook_keys::webhook.eq(webhooks::id));
            let for_this = exists(chosen().filter(webhook_keys::key.eq($row.owner)));
            let told = webhooks::table
                .filter(webhooks::team.eq($records.team))
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
                let owed = told.iter().map(|webhook| notice.delivery_to(*webhook)).unzip();
                $conn.insert_deliveries(owed).await?;
            }
        }
        if let Some((body, writer)) = &$records.erased {
            let told = || deliveries::table.filter(deliveries::session.eq($row.id));
            let copies: Vec<Id> = told().select(deliveries::notice).distinct().load($conn).await?;
            for copy in copies {
                let body = writer.encrypt(BODY, copy, body).map_err(unwritten)?;
                let copy = notices::table.find(copy);
                ::diesel::update(copy).set(notices::body.eq(body)).execute($conn).await?;
            }
            // The partner's server may have repeated data in its response.
            let answers = delivery_attempts::table
                .filter(delivery_attempts::delivery.eq_any(told().select(deliveries::id)));
            let none = delivery_attempts::answer.eq(None::<String>);
            ::diesel::update(answers).set(none).execute($conn).await?;
            let recording = recordings::table.filter(recordings::session.eq($row.id));
            ::diesel::update(recording).set(recordings::state.eq(ERASED)).execute($conn).await?;
            let proved = attestations::table.filter(attestations::session.eq($row.id));
            ::diesel::delete(proved).execute($conn).await?;
        }
        if let Some(due) = $records.link {
            let link = NewNotificationRow::of($row.id, $records.team, 1, due);
            ::diesel::insert_into(notifications::table).values(link).execute($conn).await?;
        }
        if let Some(due) = $records.recording {
            let recording = NewRecording { session: $row.id, state: PENDING, due };
            ::diesel::insert_into(recordings::table).values(recording).execute($conn).await?;
        }
    }};
}
pub(crate) use write_change_records;
