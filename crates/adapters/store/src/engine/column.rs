//! The column types whose representation differs between the databases.

use ::diesel::{
    backend::Backend,
    deserialize::{self, FromSql, FromSqlRow},
    expression::AsExpression,
    pg::Pg,
    query_builder::QueryId,
    serialize::{self, IsNull, Output, ToSql},
    sql_types::{self, BigInt, SqlType, Text, Timestamptz},
    sqlite::Sqlite,
};
use chrono::{DateTime, Utc};
use uuid::Uuid;

/// The SQL type of [`Id`].
#[derive(Clone, Copy, SqlType, QueryId)]
#[diesel(postgres_type(oid = 2950, array_oid = 2951))]
#[diesel(sqlite_type(name = "Text"))]
pub struct SqlId;

/// The SQL type of [`Timestamp`].
#[derive(Clone, Copy, SqlType, QueryId)]
#[diesel(postgres_type(oid = 1184, array_oid = 1185))]
#[diesel(sqlite_type(name = "Long"))]
pub struct SqlTimestamp;

/// An identifier: `uuid` in PostgreSQL, its text in SQLite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, FromSqlRow, AsExpression)]
#[diesel(sql_type = SqlId)]
pub struct Id(pub(crate) Uuid);

impl<T: Into<Uuid>> From<T> for Id {
    fn from(id: T) -> Self {
        Self(id.into())
    }
}

impl Id {
    /// Returns the identifier as one of the domain's types.
    pub(crate) fn to<T: From<Uuid>>(self) -> T {
        self.0.into()
    }
}

impl ToSql<SqlId, Pg> for Id {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> serialize::Result {
        ToSql::<sql_types::Uuid, Pg>::to_sql(&self.0, out)
    }
}

impl FromSql<SqlId, Pg> for Id {
    fn from_sql(bytes: <Pg as Backend>::RawValue<'_>) -> deserialize::Result<Self> {
        FromSql::<sql_types::Uuid, Pg>::from_sql(bytes).map(Self)
    }
}

impl ToSql<SqlId, Sqlite> for Id {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Sqlite>) -> serialize::Result {
        out.set_value(self.0.to_string());
        Ok(IsNull::No)
    }
}

impl FromSql<SqlId, Sqlite> for Id {
    fn from_sql(bytes: <Sqlite as Backend>::RawValue<'_>) -> deserialize::Result<Self> {
        let text = <String as FromSql<Text, Sqlite>>::from_sql(bytes)?;
        Ok(Self(text.parse()?))
    }
}

/// A timestamp: `timestamptz` in PostgreSQL, microseconds since 1970 in SQLite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromSqlRow, AsExpression)]
#[diesel(sql_type = SqlTimestamp)]
pub struct Timestamp(pub(crate) DateTime<Utc>);

impl ToSql<SqlTimestamp, Pg> for Timestamp {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> serialize::Result {
        ToSql::<Timestamptz, Pg>::to_sql(&self.0, out)
    }
}

impl FromSql<SqlTimestamp, Pg> for Timestamp {
    fn from_sql(bytes: <Pg as Backend>::RawValue<'_>) -> deserialize::Result<Self> {
        FromSql::<Timestamptz, Pg>::from_sql(bytes).map(Self)
    }
}

impl ToSql<SqlTimestamp, Sqlite> for Timestamp {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Sqlite>) -> serialize::Result {
        out.set_value(self.0.timestamp_micros());
        Ok(IsNull::No)
    }
}

impl FromSql<SqlTimestamp, Sqlite> for Timestamp {
    fn from_sql(bytes: <Sqlite as Backend>::RawValue<'_>) -> deserialize::Result<Self> {
        let micros = <i64 as FromSql<BigInt, Sqlite>>::from_sql(bytes)?;
        Ok(Self(DateTime::from_timestamp_micros(micros).ok_or("no such moment")?))
    }
}
