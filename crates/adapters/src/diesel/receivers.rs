//! People whom teams have registered.

use ::diesel::prelude::*;
use async_trait::async_trait;
use diesel_async::RunQueryDsl;
use domain::{
    id::{ReceiverId, TeamId},
    request::Receiver,
};
use ports::{
    StoreError,
    receiver_store::{KeptReceiver, ReceiverStore},
};

use super::{
    column::{Id, Moment},
    database::{Store, failed, with_conn},
    schema::receivers,
};

#[derive(Queryable, Selectable, Insertable)]
#[diesel(table_name = receivers)]
#[diesel(check_for_backend(::diesel::pg::Pg, ::diesel::sqlite::Sqlite))]
struct ReceiverRow {
    id: Id,
    team: Id,
    name: Option<String>,
    email: Option<String>,
    phone: Option<String>,
    locale: Option<String>,
    created_at: Moment,
}

impl From<ReceiverRow> for KeptReceiver {
    fn from(row: ReceiverRow) -> Self {
        let ReceiverRow { name, email, phone, locale, .. } = row;
        Self {
            id: ReceiverId::from_uuid(row.id.0),
            team: TeamId::from_uuid(row.team.0),
            contact: Receiver { name, email, phone, locale, ..Receiver::default() },
            created_at: row.created_at.0,
        }
    }
}

#[async_trait]
impl ReceiverStore for Store {
    async fn add_receiver(&self, receiver: &KeptReceiver) -> Result<(), StoreError> {
        let contact = receiver.contact.clone();
        let row = ReceiverRow {
            id: Id(*receiver.id.as_uuid()),
            team: Id(*receiver.team.as_uuid()),
            name: contact.name,
            email: contact.email,
            phone: contact.phone,
            locale: contact.locale,
            created_at: Moment(receiver.created_at),
        };
        let added = with_conn!(self, |conn| {
            ::diesel::insert_into(receivers::table).values(&row).execute(conn).await
        });
        added.map(drop).map_err(failed("add a receiver"))
    }

    async fn receivers(&self, team: TeamId) -> Result<Vec<KeptReceiver>, StoreError> {
        let theirs = receivers::table
            .filter(receivers::team.eq(Id(*team.as_uuid())))
            .order((receivers::created_at.desc(), receivers::id));
        let rows: QueryResult<Vec<ReceiverRow>> =
            with_conn!(self, |conn| theirs.select(ReceiverRow::as_select()).load(conn).await);
        let rows = rows.map_err(failed("read a team's receivers"))?;
        Ok(rows.into_iter().map(KeptReceiver::from).collect())
    }

    async fn receiver(
        &self,
        team: TeamId,
        id: ReceiverId,
    ) -> Result<Option<KeptReceiver>, StoreError> {
        let this = receivers::table
            .filter(receivers::id.eq(Id(*id.as_uuid())))
            .filter(receivers::team.eq(Id(*team.as_uuid())));
        let row: QueryResult<Option<ReceiverRow>> = with_conn!(self, |conn| {
            this.select(ReceiverRow::as_select()).first(conn).await.optional()
        });
        Ok(row.map_err(failed("find a receiver"))?.map(KeptReceiver::from))
    }

    async fn change_receiver(
        &self,
        team: TeamId,
        id: ReceiverId,
        contact: &Receiver,
    ) -> Result<bool, StoreError> {
        let this = receivers::table
            .filter(receivers::id.eq(Id(*id.as_uuid())))
            .filter(receivers::team.eq(Id(*team.as_uuid())));
        let change = (
            receivers::name.eq(&contact.name),
            receivers::email.eq(&contact.email),
            receivers::phone.eq(&contact.phone),
            receivers::locale.eq(&contact.locale),
        );
        let changed =
            with_conn!(self, |conn| ::diesel::update(this).set(change).execute(conn).await);
        changed.map(|rows| rows == 1).map_err(failed("change a receiver"))
    }

    async fn remove_receiver(&self, team: TeamId, id: ReceiverId) -> Result<bool, StoreError> {
        let this = receivers::table
            .filter(receivers::id.eq(Id(*id.as_uuid())))
            .filter(receivers::team.eq(Id(*team.as_uuid())));
        let removed = with_conn!(self, |conn| ::diesel::delete(this).execute(conn).await);
        removed.map(|rows| rows == 1).map_err(failed("remove a receiver"))
    }
}
