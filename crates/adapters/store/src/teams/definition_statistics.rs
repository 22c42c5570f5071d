//! The statistics of definitions.

use std::collections::BTreeMap;

use ::diesel::{dsl::sql, prelude::*, sql_types::BigInt};
use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use diesel_async::RunQueryDsl;
use domain::{definition_health::Count, id::PlatformId};
use ports::{
    StoreError,
    definition_statistics::{DefinitionStatistics, HourCounts, VersionCounts},
};

use crate::engine::column::Timestamp;
use crate::engine::database::{Store, failed, with_conn, with_read, with_transaction};
use crate::engine::schema::definition_statistics as statistics;

#[async_trait]
impl DefinitionStatistics for Store {
    async fn add_counts(&self, counts: &[HourCounts]) -> Result<(), StoreError> {
        if counts.is_empty() {
            return Ok(());
        }
        let written: QueryResult<()> = with_transaction!(self, |conn| {
            for hour in counts {
                for (item, count) in &hour.counts {
                    let runs = i64::try_from(count.runs).unwrap_or(i64::MAX);
                    let matches = i64::try_from(count.matches).unwrap_or(i64::MAX);
                    let row = (
                        statistics::platform.eq(hour.platform.0),
                        statistics::version.eq(&hour.version),
                        statistics::hour.eq(Timestamp(hour.hour)),
                        statistics::item.eq(item.to_string()),
                        statistics::runs.eq(runs),
                        statistics::matches.eq(matches),
                    );
                    let key = (
                        statistics::platform,
                        statistics::version,
                        statistics::hour,
                        statistics::item,
                    );
                    ::diesel::insert_into(statistics::table)
                        .values(row)
                        .on_conflict(key)
                        .do_update()
                        .set((
                            statistics::runs.eq(statistics::runs + runs),
                            statistics::matches.eq(statistics::matches + matches),
                        ))
                        .execute(conn)
                        .await?;
                }
            }
            Ok(())
        });
        written.map_err(failed("add to the statistics of definitions"))
    }

    async fn counts(
        &self,
        platform: PlatformId,
        since: DateTime<Utc>,
        recent: DateTime<Utc>,
    ) -> Result<Vec<VersionCounts>, StoreError> {
        let mut versions = BTreeMap::<String, VersionCounts>::new();
        // No hour is later than now.
        let end = recent + TimeDelta::days(366);
        for (from, to) in [(since, recent), (recent, end)] {
            // The sum of a bigint is a numeric.
            let sum_of = |column| sql::<BigInt>(&format!("CAST(SUM({column}) AS BIGINT)"));
            let rows: QueryResult<Vec<(String, String, i64, i64)>> = with_read!(self, |conn| {
                statistics::table
                    .filter(statistics::platform.eq(platform.0))
                    .filter(statistics::hour.ge(Timestamp(from)))
                    .filter(statistics::hour.lt(Timestamp(to)))
                    .group_by((statistics::version, statistics::item))
                    .select((
                        statistics::version,
                        statistics::item,
                        sum_of("runs"),
                        sum_of("matches"),
                    ))
                    .load(conn)
                    .await
            });
            for (version, item, runs, matches) in rows.map_err(failed("read statistics"))? {
                // A later release may count what this one does not know.
                let Ok(item) = item.parse() else { continue };
                let found = versions.entry(version).or_default();
                let counts = if to == recent { &mut found.earlier } else { &mut found.recent };
                let [runs, matches] = [runs, matches].map(|n| u64::try_from(n).unwrap_or_default());
                counts.entry(item).or_default().add(Count { runs, matches });
            }
        }
        Ok(versions
            .into_iter()
            .map(|(version, counts)| VersionCounts { version, ..counts })
            .collect())
    }

    async fn remove_counts(&self, before: DateTime<Utc>) -> Result<(), StoreError> {
        let removed: QueryResult<usize> = with_conn!(self, |conn| {
            let old = statistics::table.filter(statistics::hour.lt(Timestamp(before)));
            ::diesel::delete(old).execute(conn).await
        });
        removed.map_err(failed("remove old statistics of definitions"))?;
        Ok(())
    }
}
