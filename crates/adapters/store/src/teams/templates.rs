//! The mail templates of teams.

use ::diesel::prelude::*;
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel_async::RunQueryDsl;
use domain::{
    id::{TeamId, TemplateId},
    language::Language,
    template::{Draft, ReviewStep, TemplateStatus, TemplateText},
};
use ports::{
    StoreError,
    template_store::{StoredTemplate, TemplateRevision, TemplateStore},
};

use crate::engine::column::{Id, Timestamp};
use crate::engine::database::{Store, failed, with_conn, with_transaction};
use crate::engine::schema::{email_templates, teams};
use crate::teams::template_batch::TemplatesRequest;

#[derive(Clone, Queryable, Selectable)]
#[diesel(table_name = email_templates)]
#[diesel(check_for_backend(::diesel::pg::Pg, ::diesel::sqlite::Sqlite))]
pub(crate) struct TemplateRow {
    id: i32,
    pub(crate) team: Id,
    name: String,
    language: String,
    subject: String,
    body: String,
    status: String,
    reason: String,
    is_default: bool,
    revision: i32,
    updated_at: Timestamp,
}

impl TemplateRow {
    pub(crate) fn read(self) -> Result<StoredTemplate, StoreError> {
        const ACTION: &str = "read a template back";
        let language = self.language.parse().map_err(failed(ACTION))?;
        let wording = TemplateText { language, subject: self.subject, body: self.body };
        Ok(StoredTemplate {
            id: TemplateId(self.id),
            team: self.team.to(),
            draft: Draft { name: self.name, wording },
            status: self.status.parse().map_err(failed(ACTION))?,
            reason: self.reason,
            is_default: self.is_default,
            revision: TemplateRevision(self.revision),
            updated_at: self.updated_at.0,
        })
    }
}

/// The content of a template.
#[derive(Clone, Insertable, AsChangeset)]
#[diesel(table_name = email_templates)]
struct TemplateContent<'a> {
    name: &'a str,
    language: &'a str,
    subject: &'a str,
    body: &'a str,
    status: &'a str,
    reason: &'a str,
    updated_at: Timestamp,
}

impl<'a> TemplateContent<'a> {
    fn of(draft: &'a Draft, now: DateTime<Utc>) -> Self {
        Self {
            name: &draft.name,
            language: draft.wording.language.tag(),
            subject: &draft.wording.subject,
            body: &draft.wording.body,
            status: TemplateStatus::Draft.as_str(),
            reason: "",
            updated_at: Timestamp(now),
        }
    }
}

/// Reads one template of a team.
#[::diesel::dsl::auto_type]
fn one(team: TeamId, id: TemplateId) -> _ {
    let of: Id = Id::from(team);
    let number: i32 = id.0;
    email_templates::table
        .filter(email_templates::id.eq(number))
        .filter(email_templates::team.eq(of))
}

/// Returns the statuses from which a review step is permitted.
#[::diesel::dsl::auto_type]
fn within(statuses: &'static [TemplateStatus]) -> _ {
    let first: &'static str = word(statuses.first());
    let last: &'static str = word(statuses.last());
    email_templates::status.eq(first).or(email_templates::status.eq(last))
}

fn word(status: Option<&TemplateStatus>) -> &'static str {
    status.map_or("", |status| status.as_str())
}

fn read(rows: Vec<TemplateRow>) -> Result<Vec<StoredTemplate>, StoreError> {
    rows.into_iter().map(TemplateRow::read).collect()
}

#[async_trait]
impl TemplateStore for Store {
    async fn add_template(
        &self,
        team: TeamId,
        draft: &Draft,
        now: DateTime<Utc>,
    ) -> Result<TemplateId, StoreError> {
        let row = (
            email_templates::team.eq(Id::from(team)),
            email_templates::is_default.eq(false),
            email_templates::revision.eq(1),
            TemplateContent::of(draft, now),
        );
        let id: QueryResult<i32> = with_conn!(self, |conn| {
            ::diesel::insert_into(email_templates::table)
                .values(row)
                .returning(email_templates::id)
                .get_result(conn)
                .await
        });
        id.map(TemplateId).map_err(failed("add a template"))
    }

    async fn templates(&self, team: TeamId) -> Result<Vec<StoredTemplate>, StoreError> {
        if let Some(connection) = &self.pipelined {
            return connection.request(TemplatesRequest(Id::from(team))).await?;
        }
        let theirs = email_templates::table
            .filter(email_templates::team.eq(Id::from(team)))
            .order(email_templates::id.desc());
        let rows: QueryResult<Vec<TemplateRow>> =
            with_conn!(self, |conn| theirs.select(TemplateRow::as_select()).load(conn).await);
        read(rows.map_err(failed("read a team's templates"))?)
    }

    async fn template(
        &self,
        team: TeamId,
        id: TemplateId,
    ) -> Result<Option<StoredTemplate>, StoreError> {
        let row: QueryResult<Option<TemplateRow>> = with_conn!(self, |conn| {
            one(team, id).select(TemplateRow::as_select()).first(conn).await.optional()
        });
        row.map_err(failed("find a template"))?.map(TemplateRow::read).transpose()
    }

    async fn submitted_templates(
        &self,
        limit: u16,
    ) -> Result<Vec<(StoredTemplate, String)>, StoreError> {
        let waiting = email_templates::table
            .inner_join(teams::table)
            .filter(email_templates::status.eq(TemplateStatus::Submitted.as_str()))
            .order((email_templates::updated_at, email_templates::id))
            .limit(limit.into());
        let rows: QueryResult<Vec<(TemplateRow, String)>> = with_conn!(self, |conn| {
            waiting.select((TemplateRow::as_select(), teams::name)).load(conn).await
        });
        let rows = rows.map_err(failed("read what was submitted"))?.into_iter();
        rows.map(|(row, team)| Ok((row.read()?, team))).collect()
    }

    async fn edit_template(
        &self,
        team: TeamId,
        id: TemplateId,
        draft: &Draft,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let this = one(team, id).filter(within(ReviewStep::Submit.from()));
        let change = (
            TemplateContent::of(draft, now),
            email_templates::revision.eq(email_templates::revision + 1),
        );
        let edited =
            with_conn!(self, |conn| ::diesel::update(this).set(change).execute(conn).await);
        edited.map(|rows| rows == 1).map_err(failed("write a template anew"))
    }

    async fn step_template(
        &self,
        (team, id, revision): (TeamId, TemplateId, TemplateRevision),
        step: ReviewStep,
        reason: &str,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let this = one(team, id)
            .filter(email_templates::revision.eq(revision.0))
            .filter(within(step.from()));
        let change = (
            email_templates::status.eq(step.to().as_str()),
            email_templates::reason.eq(reason),
            email_templates::updated_at.eq(Timestamp(now)),
        );
        let done = with_conn!(self, |conn| ::diesel::update(this).set(change).execute(conn).await);
        done.map(|rows| rows == 1).map_err(failed("decide about a template"))
    }

    async fn set_default_template(
        &self,
        team: TeamId,
        id: TemplateId,
        on: bool,
    ) -> Result<bool, StoreError> {
        let this =
            one(team, id).filter(email_templates::status.eq(TemplateStatus::Approved.as_str()));
        let theirs = email_templates::table.filter(email_templates::team.eq(Id::from(team)));
        // Two concurrent changes of the default would wait for each other's rows, so both lock the
        // team's row first.
        let first = teams::table.filter(teams::id.eq(Id::from(team)));
        let set: QueryResult<bool> = with_transaction!(self, |conn| {
            ::diesel::update(first).set(teams::name.eq(teams::name)).execute(conn).await?;
            let language: Option<String> =
                this.select(email_templates::language).first(conn).await.optional()?;
            let Some(language) = language else { return Ok(false) };
            ::diesel::update(theirs.filter(email_templates::language.eq(language)))
                .set(email_templates::is_default.eq(false))
                .execute(conn)
                .await?;
            let set = email_templates::is_default.eq(on);
            Ok(::diesel::update(this).set(set).execute(conn).await? == 1)
        });
        set.map_err(failed("set a team's default template"))
    }

    async fn default_template(
        &self,
        team: TeamId,
        language: Language,
    ) -> Result<Option<StoredTemplate>, StoreError> {
        let this = email_templates::table
            .filter(email_templates::team.eq(Id::from(team)))
            .filter(email_templates::language.eq(language.tag()))
            .filter(email_templates::is_default.eq(true));
        let row: QueryResult<Option<TemplateRow>> = with_conn!(self, |conn| {
            this.select(TemplateRow::as_select()).first(conn).await.optional()
        });
        row.map_err(failed("find a team's default template"))?.map(TemplateRow::read).transpose()
    }

    async fn remove_template(&self, team: TeamId, id: TemplateId) -> Result<bool, StoreError> {
        let removed = with_conn!(self, |conn| ::diesel::delete(one(team, id)).execute(conn).await);
        removed.map(|rows| rows == 1).map_err(failed("remove a template"))
    }
}
