//! How the runs of a definition end, and what in it no longer matches.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    str::FromStr,
};

use crate::error_code::{Category, ErrorCode};

/// The upper bounds of the durations that are counted, in seconds.
const DURATIONS: &[u32] = &[5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 300, 600, 1200, 7200];
/// The runs from which rates are computed at least.
const MIN_RUNS: u64 = 5;
/// The earlier runs with which recent ones are compared at least.
const MIN_EARLIER_RUNS: u64 = 20;
/// What matched in this share of the earlier runs, and in no more than a fifth of it now, is reported.
const USUAL_SHARE: f64 = 0.5;
const LOST_SHARE: f64 = 0.1;

/// What is known of one run that has ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFacts {
    /// Whether each signal held at some time on a settled page.
    pub signals: BTreeMap<String, bool>,
    /// Whether each field that was looked for was read.
    pub fields: BTreeMap<String, bool>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunEnd {
    /// The data was collected.
    Succeeded,
    /// It failed at this node, for a reason that is not the applicant's.
    Failed { node: Option<String> },
    /// The applicant declined, entered nothing in time, or could not sign in.
    Abandoned,
}

impl RunEnd {
    /// Returns the end of a run that failed with a code at a node.
    #[must_use]
    pub fn failed(code: ErrorCode, node: Option<String>) -> Self {
        match code.category() {
            Category::Applicant => Self::Abandoned,
            Category::Platform | Category::Service | Category::Policy => Self::Failed { node },
        }
    }
}

/// Something that is counted over the runs of a definition.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CountedItem {
    Succeeded,
    Failed,
    Abandoned,
    /// Runs that failed at this node.
    FailedAt(String),
    /// Runs that succeeded within this number of seconds, and not within the next smaller one.
    Took(u32),
    /// Runs in which a signal held.
    Signal(String),
    /// Runs in which a field was read.
    Field(String),
}

/// How many runs an item was looked for in, and in how many it matched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    pub runs: u64,
    pub matches: u64,
}

impl Count {
    pub fn add(&mut self, other: Self) {
        self.runs = self.runs.saturating_add(other.runs);
        self.matches = self.matches.saturating_add(other.matches);
    }

    /// Returns the share of the runs in which it matched; `None` for fewer runs than `min`.
    fn share(self, min: u64) -> Option<f64> {
        (self.runs >= min).then(|| ratio(self.matches, self.runs))
    }
}

/// The counts of one version, or of several.
pub type Counts = BTreeMap<CountedItem, Count>;

/// Returns what a run adds to the counts of its version. Signals and fields are counted in runs that
/// the applicant did not end, since those do not come to all pages.
#[must_use]
pub fn counts_of(facts: &RunFacts, end: &RunEnd, seconds: u32) -> Counts {
    let once = Count { runs: 1, matches: 1 };
    let mut counts = Counts::new();
    match end {
        RunEnd::Succeeded => {
            counts.insert(CountedItem::Succeeded, once);
            let bound = DURATIONS.iter().find(|bound| seconds <= **bound).or(DURATIONS.last());
            counts.extend(bound.map(|bound| (CountedItem::Took(*bound), once)));
        }
        RunEnd::Failed { node } => {
            counts.insert(CountedItem::Failed, once);
            counts.extend(node.iter().map(|node| (CountedItem::FailedAt(node.clone()), once)));
        }
        RunEnd::Abandoned => {
            counts.insert(CountedItem::Abandoned, once);
            return counts;
        }
    }
    let count = |matched: &bool| Count { runs: 1, matches: u64::from(*matched) };
    let signals = facts.signals.iter();
    counts.extend(signals.map(|(name, held)| (CountedItem::Signal(name.clone()), count(held))));
    let fields = facts.fields.iter();
    counts.extend(fields.map(|(name, read)| (CountedItem::Field(name.clone()), count(read))));
    counts
}

/// How the runs of a version ended.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct VersionHealth {
    /// The runs that succeeded or failed.
    pub runs: u64,
    /// The runs that the applicant ended.
    pub abandoned: u64,
    /// The share of the runs that succeeded, from 0 to 1; `None` for fewer than 5 runs.
    pub success_rate: Option<f64>,
    /// Half of the runs that succeeded took at most this long; `None` for fewer than 5 of them.
    pub median_seconds: Option<u32>,
    /// The node at which most runs failed.
    pub failing_node: Option<String>,
}

impl VersionHealth {
    #[must_use]
    pub fn of(counts: &Counts) -> Self {
        let matches = |item| counts.get(&item).copied().unwrap_or_default().matches;
        let succeeded = matches(CountedItem::Succeeded);
        let runs = succeeded.saturating_add(matches(CountedItem::Failed));
        let failing = counts.iter().filter_map(|(item, count)| {
            let CountedItem::FailedAt(node) = item else { return None };
            Some((count.matches, node))
        });
        Self {
            runs,
            abandoned: matches(CountedItem::Abandoned),
            success_rate: Count { runs, matches: succeeded }.share(MIN_RUNS),
            median_seconds: (succeeded >= MIN_RUNS).then(|| median(counts)).flatten(),
            failing_node: failing.max().map(|(_, node)| node.clone()),
        }
    }
}

/// Returns the smallest bound within which at least half of the successful runs ended.
fn median(counts: &Counts) -> Option<u32> {
    let took: Vec<_> = counts
        .iter()
        .filter_map(|(item, count)| {
            let CountedItem::Took(bound) = item else { return None };
            Some((*bound, count.matches))
        })
        .collect();
    let total: u64 = took.iter().map(|(_, count)| count).sum();
    let mut seen = 0;
    let within = took.iter().find(|(_, count)| {
        seen += count;
        seen * 2 >= total
    });
    within.map(|(bound, _)| *bound)
}

/// A signal or a field that used to match and no longer does: the platform has probably changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Drift {
    /// A signal or a field.
    pub item: CountedItem,
    /// The share of the earlier runs in which it matched, from 0 to 1.
    pub before: f64,
    /// The share of the recent runs.
    pub now: f64,
}

/// Returns the signals and fields of the recent runs that matched in at least half of 20 or more
/// earlier runs, and in at most a tenth of 5 or more recent ones.
#[must_use]
pub fn drift(recent: &Counts, earlier: &Counts) -> Vec<Drift> {
    let lost = |(item, count): (&CountedItem, &Count)| {
        match item {
            CountedItem::Signal(_) | CountedItem::Field(_) => (),
            CountedItem::Succeeded
            | CountedItem::Failed
            | CountedItem::Abandoned
            | CountedItem::FailedAt(_)
            | CountedItem::Took(_) => return None,
        }
        let now = count.share(MIN_RUNS)?;
        let before = earlier.get(item)?.share(MIN_EARLIER_RUNS)?;
        let is_lost = before >= USUAL_SHARE && now <= LOST_SHARE;
        is_lost.then(|| Drift { item: item.clone(), before, now })
    };
    recent.iter().filter_map(lost).collect()
}

#[expect(clippy::cast_precision_loss, clippy::as_conversions, reason = "counts far below 2^52")]
fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}

impl fmt::Display for CountedItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Succeeded => f.write_str("succeeded"),
            Self::Failed => f.write_str("failed"),
            Self::Abandoned => f.write_str("abandoned"),
            Self::FailedAt(node) => write!(f, "failed at {node}"),
            Self::Took(bound) => write!(f, "took {bound}"),
            Self::Signal(name) => write!(f, "signal {name}"),
            Self::Field(name) => write!(f, "field {name}"),
        }
    }
}

/// A text that is no counted item.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no counted item")]
pub struct UnknownItem(String);

impl FromStr for CountedItem {
    type Err = UnknownItem;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unknown = || UnknownItem(text.to_owned());
        if let Some(node) = text.strip_prefix("failed at ") {
            return Ok(Self::FailedAt(node.to_owned()));
        }
        match text.split_once(' ') {
            Some(("took", bound)) => Ok(Self::Took(bound.parse().map_err(|_| unknown())?)),
            Some(("signal", name)) => Ok(Self::Signal(name.to_owned())),
            Some(("field", name)) => Ok(Self::Field(name.to_owned())),
            None if text == "succeeded" => Ok(Self::Succeeded),
            None if text == "failed" => Ok(Self::Failed),
            None if text == "abandoned" => Ok(Self::Abandoned),
            Some(_) | None => Err(unknown()),
        }
    }
}

/// Adds the counts of versions up.
#[must_use]
pub fn sum<'a>(all: impl IntoIterator<Item = &'a Counts>) -> Counts {
    let mut sum = Counts::new();
    for counts in all {
        add(&mut sum, counts);
    }
    sum
}

/// Adds counts to others.
pub fn add(sum: &mut Counts, counts: &Counts) {
    for (item, count) in counts {
        sum.entry(item.clone()).or_default().add(*count);
    }
}

/// Returns the names of the signals or fields, for a message.
#[must_use]
pub fn names(drift: &[Drift]) -> BTreeSet<String> {
    drift.iter().map(|drift| drift.item.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(signal: bool, field: bool) -> RunFacts {
        RunFacts {
            signals: BTreeMap::from([("loggedIn".to_owned(), signal)]),
            fields: BTreeMap::from([("balance".to_owned(), field)]),
        }
    }

    fn runs(number: u64, facts: &RunFacts, end: &RunEnd) -> Counts {
        let one = counts_of(facts, end, 12);
        sum((0..number).map(|_| &one))
    }

    #[test]
    fn the_health_of_a_version_is_that_of_the_runs_it_is_to_blame_for() {
        let failed = RunEnd::failed(ErrorCode::UnexpectedPage, Some("route".to_owned()));
        let mut counts = runs(9, &facts(true, true), &RunEnd::Succeeded);
        add(&mut counts, &runs(3, &facts(true, false), &failed));
        let cancelled = RunEnd::failed(ErrorCode::CredentialsInvalid, Some("login".to_owned()));
        add(&mut counts, &runs(50, &facts(false, false), &cancelled));
        let health = VersionHealth::of(&counts);
        assert_eq!((health.runs, health.abandoned), (12, 50));
        assert_eq!(health.success_rate, Some(0.75));
        assert_eq!(health.median_seconds, Some(15));
        assert_eq!(health.failing_node.as_deref(), Some("route"));
        let few = VersionHealth::of(&runs(4, &facts(true, true), &RunEnd::Succeeded));
        assert_eq!((few.success_rate, few.median_seconds), (None, None), "too few runs");
    }

    #[test]
    fn what_used_to_match_and_no_longer_does_is_reported() {
        let earlier = runs(20, &facts(true, true), &RunEnd::Succeeded);
        let failed = RunEnd::Failed { node: None };
        let recent = runs(5, &facts(true, false), &failed);
        let found = drift(&recent, &earlier);
        assert_eq!(names(&found), BTreeSet::from(["field balance".to_owned()]));
        assert_eq!(drift(&runs(4, &facts(true, false), &failed), &earlier), [], "too few runs");
        assert_eq!(drift(&recent, &runs(19, &facts(true, true), &failed)), []);
        let rare = runs(40, &facts(true, false), &failed);
        assert_eq!(drift(&recent, &rare), [], "it never matched");
    }

    #[test]
    fn items_are_stored_as_text() {
        for item in [
            CountedItem::Succeeded,
            CountedItem::Failed,
            CountedItem::Abandoned,
            CountedItem::FailedAt("a node".to_owned()),
            CountedItem::Took(30),
            CountedItem::Signal("x y".to_owned()),
            CountedItem::Field("z".to_owned()),
        ] {
            assert_eq!(item.to_string().parse(), Ok(item));
        }
        for text in ["", "took", "took x", "other z"] {
            assert!(text.parse::<CountedItem>().is_err(), "{text}");
        }
    }
}
