//! The registered contacts of teams; names and addresses are encrypted.

use ::diesel::prelude::*;
use async_trait::async_trait;
use diesel_async::RunQueryDsl;
use domain::{
    id::{ContactId, TeamId},
    request::Contact,
};
use ports::{
    StoreError,
    contact_store::{ContactStore, StoredContact},
};

use crate::engine::column::{Id, Timestamp};
use crate::engine::data_key::{EMAIL, NAME, PHONE};
use crate::engine::database::{Store, failed, with_conn};
use crate::engine::keyring::WriteKey;
use crate::engine::schema::receivers;

#[derive(Queryable, Selectable, Insertable)]
#[diesel(table_name = receivers)]
#[diesel(check_for_backend(::diesel::pg::Pg, ::diesel::sqlite::Sqlite))]
struct ContactRow {
    id: Id,
    team: Id,
    name: Option<String>,
    email: Option<String>,
    phone: Option<String>,
    locale: Option<String>,
    created_at: Timestamp,
}

/// The encrypted name, address and number of a contact.
struct EncryptedContact {
    name: Option<String>,
    email: Option<String>,
    phone: Option<String>,
}

impl EncryptedContact {
    fn of(writer: &WriteKey, id: Id, contact: &Contact) -> Result<Self, StoreError> {
        Ok(Self {
            name: writer.encrypt_some(NAME, id, contact.name.as_deref())?,
            email: writer.encrypt_some(EMAIL, id, contact.email.as_deref())?,
            phone: writer.encrypt_some(PHONE, id, contact.phone.as_deref())?,
        })
    }
}

impl Store {
    async fn read_receiver(&self, row: ContactRow) -> Result<StoredContact, StoreError> {
        let ContactRow { id, team, name, email, phone, locale, created_at } = row;
        let name = self.opened_some(team, NAME, id, name).await?;
        let email = self.opened_some(team, EMAIL, id, email).await?;
        let phone = self.opened_some(team, PHONE, id, phone).await?;
        Ok(StoredContact {
            id: id.to(),
            team: team.to(),
            contact: Contact { name, email, phone, locale, ..Contact::default() },
            created_at: created_at.0,
        })
    }
}

#[async_trait]
impl ContactStore for Store {
    async fn add_contact(&self, receiver: &StoredContact) -> Result<(), StoreError> {
        let (id, team) = (Id::from(receiver.id), Id::from(receiver.team));
        let EncryptedContact { name, email, phone } =
            EncryptedContact::of(&self.writer(team).await?, id, &receiver.contact)?;
        let row = ContactRow {
            id,
            team,
            name,
            email,
            phone,
            locale: receiver.contact.locale.clone(),
            created_at: Timestamp(receiver.created_at),
        };
        let added = with_conn!(self, |conn| {
            ::diesel::insert_into(receivers::table).values(&row).execute(conn).await
        });
        added.map(drop).map_err(failed("add a receiver"))
    }

    async fn contacts(&self, team: TeamId) -> Result<Vec<StoredContact>, StoreError> {
        let theirs = receivers::table
            .filter(receivers::team.eq(Id::from(team)))
            .order((receivers::created_at.desc(), receivers::id));
        let rows: QueryResult<Vec<ContactRow>> =
            with_conn!(self, |conn| theirs.select(ContactRow::as_select()).load(conn).await);
        let rows = rows.map_err(failed("read a team's receivers"))?;
        let mut read = Vec::with_capacity(rows.len());
        for row in rows {
            read.push(self.read_receiver(row).await?);
        }
        Ok(read)
    }

    async fn contact(
        &self,
        team: TeamId,
        id: ContactId,
    ) -> Result<Option<StoredContact>, StoreError> {
        let this = receivers::table
            .filter(receivers::id.eq(Id::from(id)))
            .filter(receivers::team.eq(Id::from(team)));
        let row: QueryResult<Option<ContactRow>> = with_conn!(self, |conn| {
            this.select(ContactRow::as_select()).first(conn).await.optional()
        });
        match row.map_err(failed("find a receiver"))? {
            Some(row) => self.read_receiver(row).await.map(Some),
            None => Ok(None),
        }
    }

    async fn change_receiver(
        &self,
        team: TeamId,
        id: ContactId,
        contact: &Contact,
    ) -> Result<bool, StoreError> {
        let (id, team) = (Id::from(id), Id::from(team));
        let closed = EncryptedContact::of(&self.writer(team).await?, id, contact)?;
        let this = receivers::table.filter(receivers::id.eq(id)).filter(receivers::team.eq(team));
        let change = (
            receivers::name.eq(&closed.name),
            receivers::email.eq(&closed.email),
            receivers::phone.eq(&closed.phone),
            receivers::locale.eq(&contact.locale),
        );
        let changed =
            with_conn!(self, |conn| ::diesel::update(this).set(change).execute(conn).await);
        changed.map(|rows| rows == 1).map_err(failed("change a receiver"))
    }

    async fn remove_contact(&self, team: TeamId, id: ContactId) -> Result<bool, StoreError> {
        let this = receivers::table
            .filter(receivers::id.eq(Id::from(id)))
            .filter(receivers::team.eq(Id::from(team)));
        let removed = with_conn!(self, |conn| ::diesel::delete(this).execute(conn).await);
        removed.map(|rows| rows == 1).map_err(failed("remove a receiver"))
    }
}
