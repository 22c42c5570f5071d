//! What happened during the faults, as text and as JSON, and what of it must not happen.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};

use super::{
    check::{moments, reason},
    faults::{Kill, Target},
    session::Visit,
};

/// Lines of a list that the text shows.
const SHOWN: usize = 20;

#[derive(Default)]
pub(crate) struct Report {
    pub(crate) started: u32,
    /// By script.
    pub(crate) as_expected: BTreeMap<String, u32>,
    /// Sessions that lost a browser, so that the applicant had to sign in again.
    pub(crate) restarted: u32,
    pub(crate) otherwise: Vec<String>,
    pub(crate) stuck: Vec<String>,
    /// Sessions whose applicant's own browser failed, so that they were not played to the end.
    pub(crate) broken: u32,
    /// Sessions that took long, with their timelines.
    pub(crate) slow: Vec<String>,
    /// Pages that showed nothing and were loaded again.
    pub(crate) reloads: u32,
    pub(crate) webhooks: Webhooks,
    pub(crate) left: BTreeMap<&'static str, Vec<String>>,
    /// Times, by what they are of.
    pub(crate) recoveries: BTreeMap<String, Vec<Duration>>,
    pub(crate) ended_by_themselves: usize,
}

#[derive(Default)]
pub(crate) struct Webhooks {
    pub(crate) owed: usize,
    pub(crate) lost: Vec<String>,
    pub(crate) duplicated: usize,
    /// Duplicates of which the first result was not saved, since a process or server was killed.
    pub(crate) explained: usize,
    /// With a wrong signature, or another status than that of the session.
    pub(crate) wrong: Vec<String>,
}

impl Report {
    /// Adds how long the killed processes took.
    pub(crate) fn kills(&mut self, kills: &[Kill], ended_by_themselves: usize) {
        self.ended_by_themselves = ended_by_themselves;
        for kill in kills {
            match kill.ready_after {
                Some(took) => self.recovered(format!("{} ready after a kill", kill.target), took),
                None => self.stuck.push(format!("{} was not ready again in time", kill.target)),
            }
        }
    }

    /// Adds how long an applicant had to wait after what was killed: for the connection, and to be asked
    /// again where the browser was lost.
    pub(crate) fn interruptions(
        &mut self,
        kills: &[Kill],
        visit: &Visit,
        asked_again: &[(SystemTime, SystemTime)],
    ) {
        let mut add = |what: &str, kill: Option<&Kill>, to: SystemTime| {
            if let Some(kill) = kill {
                let took = to.duration_since(kill.at).unwrap_or_default();
                self.recovered(format!("{what} after a kill"), took);
            }
        };
        for (lost, again) in moments(&visit.gaps) {
            add("applicant connected again", reason(kills, lost, |_| true), again);
        }
        let with_browsers = |target| matches!(target, Target::BrowserInstance | Target::Browser);
        for (noticed, again) in asked_again {
            // The loss of an instance is noticed later than by the page, which loses its connection at once.
            let mut gaps = moments(&visit.gaps);
            let gap = gaps.find(|(lost, again)| lost <= noticed && noticed <= again);
            let lost = gap.map_or(*noticed, |(lost, _)| lost);
            add("applicant asked to sign in again", reason(kills, lost, with_browsers), *again);
        }
    }

    fn recovered(&mut self, what: String, took: Duration) {
        self.recoveries.entry(what).or_default().push(took);
    }

    /// What must not happen, one line for each.
    pub(crate) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let mut add = |what: &str, count: usize| {
            if count > 0 {
                faults.push(format!("{count} {what}"));
            }
        };
        add("stuck", self.stuck.len());
        add("webhooks lost", self.webhooks.lost.len());
        add("webhooks wrong", self.webhooks.wrong.len());
        add(
            "webhooks duplicated without a reason",
            self.webhooks.duplicated - self.webhooks.explained,
        );
        for (what, left) in &self.left {
            add(&format!("left: {what}"), left.len());
        }
        if self.as_expected.is_empty() {
            faults.push("no session ended as expected".to_owned());
        }
        faults
    }

    pub(crate) fn json(&self) -> Value {
        let times = self.recoveries.iter().map(|(what, all)| {
            let [p50, p95] = [50, 95].map(|percent| percentile(all, percent).as_secs_f64());
            (what.clone(), json!({ "count": all.len(), "p50Seconds": p50, "p95Seconds": p95 }))
        });
        json!({
            "sessions": {
                "started": self.started, "asExpected": self.as_expected, "restarted": self.restarted,
                "otherwise": self.otherwise, "slow": self.slow, "applicantFailed": self.broken, "stuck": self.stuck, "pagesLoadedAgain": self.reloads,
            },
            "webhooks": {
                "owed": self.webhooks.owed, "lost": self.webhooks.lost,
                "duplicated": self.webhooks.duplicated, "duplicatesExplained": self.webhooks.explained,
                "wrong": self.webhooks.wrong.len(),
            },
            "left": self.left,
            "recovery": times.collect::<serde_json::Map<_, _>>(),
            "instancesEndedByThemselves": self.ended_by_themselves,
            "faults": self.faults(),
        })
    }

    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        let expected: u32 = self.as_expected.values().sum();
        let _ = writeln!(text, "{} sessions started, {expected} ended as expected", self.started);
        for (script, count) in &self.as_expected {
            let _ = writeln!(text, "  {count} {script}");
        }
        let _ = writeln!(text, "{} sessions lost a browser, and began again", self.restarted);
        let _ = writeln!(text, "{} pages showed nothing and were loaded again", self.reloads);
        let _ = writeln!(
            text,
            "{} were not played to the end: the applicant's own browser failed",
            self.broken
        );
        list(&mut text, "ended otherwise", &self.otherwise);
        list(&mut text, "took long", &self.slow);
        list(&mut text, "stuck", &self.stuck);
        let Webhooks { owed, lost, duplicated, explained, wrong } = &self.webhooks;
        let _ = writeln!(
            text,
            "{owed} webhooks owed, {duplicated} duplicated, {explained} of these since the first result was not saved when something was killed"
        );
        list(&mut text, "webhooks lost", lost);
        list(&mut text, "webhooks wrong", wrong);
        for (what, left) in &self.left {
            list(&mut text, &format!("left: {what}"), left);
        }
        let _ = writeln!(
            text,
            "{} times an instance had ended by itself and was started again",
            self.ended_by_themselves
        );
        for (what, all) in &self.recoveries {
            let [p50, p95] = [50, 95].map(|percent| percentile(all, percent).as_secs_f64());
            let count = all.len();
            let _ = writeln!(text, "{what}: {count} times, p50 {p50:.1} s, p95 {p95:.1} s");
        }
        let faults = self.faults();
        let _ = writeln!(
            text,
            "{}",
            if faults.is_empty() { "Nothing is stuck, lost or left." } else { "FAULTS:" }
        );
        for fault in faults {
            let _ = writeln!(text, "  {fault}");
        }
        text
    }
}

fn list(text: &mut String, what: &str, lines: &[String]) {
    let _ = writeln!(text, "{} {what}", lines.len());
    for line in lines.iter().take(SHOWN) {
        let _ = writeln!(text, "  {line}");
    }
}

/// The value that this many percent of the values do not exceed (nearest rank).
fn percentile(values: &[Duration], percent: usize) -> Duration {
    let mut sorted = values.to_vec();
    sorted.sort();
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or_default()
}

#[test]
fn whatever_is_stuck_lost_wrong_or_left_is_a_fault() {
    let calm = || Report { as_expected: [("one".to_owned(), 1)].into(), ..Report::default() };
    assert!(calm().faults().is_empty(), "{:?}", calm().faults());
    let one = || vec!["one".to_owned()];
    let webhooks = |webhooks: Webhooks| Report { webhooks, ..calm() };
    let faults = [
        Report::default(),
        Report { stuck: one(), ..calm() },
        webhooks(Webhooks { lost: one(), ..Webhooks::default() }),
        webhooks(Webhooks { wrong: one(), ..Webhooks::default() }),
        webhooks(Webhooks { duplicated: 2, explained: 1, ..Webhooks::default() }),
        Report { left: [("recordings", one())].into(), ..calm() },
    ];
    for report in faults {
        assert_eq!(report.faults().len(), 1, "{}", report.text());
        assert_eq!(report.json()["faults"].as_array().map(Vec::len), Some(1));
    }
    let explained = webhooks(Webhooks { duplicated: 2, explained: 2, ..Webhooks::default() });
    assert!(Report { otherwise: one(), ..explained }.faults().is_empty());
}

#[test]
fn percentiles_are_values_that_were_measured() {
    let values = [3, 1, 2, 4].map(Duration::from_secs);
    let of = |percent| percentile(&values, percent).as_secs();
    assert_eq!([50, 95, 100].map(of), [2, 4, 4]);
    assert_eq!(percentile(&[], 50), Duration::ZERO);
}
