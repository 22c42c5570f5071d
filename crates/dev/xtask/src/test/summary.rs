//! What a run of the tests comes to: seconds by phase, the slowest tests, and how many passed.

use std::time::{Duration, Instant};

use crate::Failure;

/// How many of the slowest tests are listed.
const SLOWEST: usize = 15;

/// A test that ran, with the time it took.
pub(super) struct Timed {
    pub(super) name: String,
    pub(super) took: Duration,
}

/// What one command that runs tests reports.
#[derive(Default)]
pub(super) struct PhaseOutcome {
    pub(super) passed: u32,
    pub(super) failed: u32,
    /// The names of tests that failed, with the reason where it is known.
    pub(super) failures: Vec<String>,
    /// Known for tests that nextest ran.
    pub(super) tests: Vec<Timed>,
}

/// The phases of a run so far.
#[derive(Default)]
pub(super) struct Summary {
    phases: Vec<(&'static str, Duration)>,
    outcome: PhaseOutcome,
}

impl Summary {
    /// Runs a phase and notes how long it took, also where it fails.
    pub(super) fn time<T>(
        &mut self,
        name: &'static str,
        phase: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        println!("── {name}");
        let began = Instant::now();
        let done = phase();
        self.phases.push((name, began.elapsed()));
        done
    }

    /// The same for a phase that runs tests.
    pub(super) fn tests(
        &mut self,
        name: &'static str,
        phase: impl FnOnce() -> Result<PhaseOutcome, Failure>,
    ) -> Result<(), Failure> {
        let PhaseOutcome { passed, failed, failures, tests } = self.time(name, phase)?;
        self.outcome.passed += passed;
        self.outcome.failed += failed;
        self.outcome.failures.extend(failures);
        self.outcome.tests.extend(tests);
        Ok(())
    }

    /// Prints the phases and the slowest tests.
    pub(super) fn print(&mut self) {
        println!("\nphase           seconds");
        for (name, took) in &self.phases {
            println!("{name:<14} {:>8.1}", took.as_secs_f64());
        }
        let all: Duration = self.phases.iter().map(|(_, took)| *took).sum();
        println!("{:<14} {:>8.1}", "all", all.as_secs_f64());
        self.outcome.tests.sort_by_key(|test| std::cmp::Reverse(test.took));
        if !self.outcome.tests.is_empty() {
            println!("\nslowest tests   seconds");
        }
        for Timed { name, took } in self.outcome.tests.iter().take(SLOWEST) {
            println!("{:>8.1} {name}", took.as_secs_f64());
        }
        println!();
    }

    /// Prints the tests that failed and `N passed, M failed`; an error where a test failed. They are
    /// last, so that the end of a long log tells what to look for in it.
    pub(super) fn end(&self) -> Result<(), Failure> {
        for failure in &self.outcome.failures {
            println!("failed: {failure}");
        }
        println!("{} passed, {} failed", self.outcome.passed, self.outcome.failed);
        if self.outcome.failed == 0 { Ok(()) } else { Err("some tests failed".into()) }
    }
}
