//! What a change of a session owes besides the session itself, written in its transaction.

use ::diesel::prelude::*;
use chrono::TimeDelta;
use domain::{
    session::{Change, Effect},
    webhook,
};
use ports::StoreError;

use super::{
    column::{Id, Moment},
    outbox::NewEntry,
    reads::EventRow,
    schema::deliveries,
};

/// What is recorded is written this soon.
const LAST_SHOTS: TimeDelta = TimeDelta::seconds(3);

#[derive(Insertable)]
#[diesel(table_name = deliveries)]
pub(super) struct NewDelivery {
    pub(super) id: Id,
    pub(super) webhook: Id,
    pub(super) session: Id,
    pub(super) body: String,
    pub(super) due: Moment,
}

/// What a change writes besides the session itself.
pub(super) struct Debts {
    pub(super) entries: Vec<NewEntry>,
    /// The body of the deliveries, and from when on they are due.
    pub(super) notice: Option<(String, Moment)>,
    /// What is left for the bodies of deliveries once the session is erased.
    pub(super) erased: Option<String>,
    /// From when on a film of the session is due.
    pub(super) film: Option<Moment>,
    pub(super) event: EventRow,
}

impl Debts {
    pub(super) fn of(change: &Change) -> Result<Self, StoreError> {
        let session = &change.session;
        let body = || webhook::payload(session).map(|body| body.to_string());
        let event = EventRow::of(change);
        let mut debts = Self { entries: vec![], notice: None, erased: None, film: None, event };
        for effect in &change.effects {
            match effect {
                Effect::NotifyPartner => {
                    debts.notice = body().map(|body| (body, Moment(change.at)));
                }
                Effect::EraseCopies => debts.erased = body(),
                // The last of what was recorded may be on its way still.
                Effect::KeepRecording => debts.film = Some(Moment(change.at + LAST_SHOTS)),
                Effect::StartBrowser { .. }
                | Effect::ReleaseBrowser { .. }
                | Effect::ForgetRecording
                | Effect::RequestAttestation => {
                    debts.entries.push(NewEntry::of(session.id, effect, change.at)?);
                }
            }
        }
        Ok(debts)
    }

    pub(super) const fn none_but_the_event(&self) -> bool {
        self.entries.is_empty()
            && self.notice.is_none()
            && self.erased.is_none()
            && self.film.is_none()
    }
}

/// Saves what is owed, within the transaction of `$conn`.
macro_rules! owe {
    ($conn:expr, $row:expr, $debts:expr) => {{
        use $crate::diesel::{
            debts::NewDelivery,
            recordings::{ERASED, NewRecording, PENDING},
            schema::{api_keys, deliveries, outbox, recordings, session_events, webhooks},
        };
        ::diesel::insert_into(session_events::table).values(&$debts.event).execute($conn).await?;
        for entry in &$debts.entries {
            ::diesel::insert_into(outbox::table).values(entry).execute($conn).await?;
        }
        if let Some((body, due)) = &$debts.notice {
            let team = api_keys::table
                .filter(api_keys::id.eq($row.owner))
                .select(api_keys::team)
                .first::<Id>($conn)
                .await?;
            let active = webhooks::table
                .filter(webhooks::team.eq(team))
                .filter(webhooks::active.eq(true))
                .select(webhooks::id)
                .load::<Id>($conn)
                .await?;
            for webhook in active {
                let delivery = NewDelivery {
                    id: Id(Uuid::new_v4()),
                    webhook,
                    session: $row.id,
                    body: body.clone(),
                    due: *due,
                };
                ::diesel::insert_into(deliveries::table).values(delivery).execute($conn).await?;
            }
        }
        if let Some(body) = &$debts.erased {
            let copies = deliveries::table.filter(deliveries::session.eq($row.id));
            ::diesel::update(copies).set(deliveries::body.eq(body)).execute($conn).await?;
            let film = recordings::table.filter(recordings::session.eq($row.id));
            ::diesel::update(film).set(recordings::state.eq(ERASED)).execute($conn).await?;
        }
        if let Some(due) = $debts.film {
            let film = NewRecording { session: $row.id, state: PENDING, due };
            ::diesel::insert_into(recordings::table).values(film).execute($conn).await?;
        }
    }};
}
pub(super) use owe;
