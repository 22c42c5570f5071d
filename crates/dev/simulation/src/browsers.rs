//! The way of a session to its browser: where it begins, its turn, and the start.

use application::{
    browser_turns::{ABSENT_RETRY_DELAY, MAX_START_FAILURES, START_RETRY_DELAY, delay_at},
    live::{NO_SHOW_TTL, RETRY_OFFER},
    workers::JOB_POLL_INTERVAL,
};
use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    error_code::ErrorCode,
    fairness::Turn,
    id::BrowserId,
    session::{DefinitionVersion, Event, Lease},
};

use crate::{
    applicant,
    instances::InstanceIndex,
    numbers::count,
    session::UnopenedSession,
    simulation::{SessionOccurrence, Simulation},
    writes::Write,
};

/// How long an applicant's page waits before it connects again when no instance answers.
const RECONNECT: TimeDelta = TimeDelta::seconds(5);

impl Simulation<'_> {
    /// The applicant opens the link.
    pub(crate) fn open(&mut self, unopened: UnopenedSession) {
        let number = unopened.number;
        self.keep_open(unopened);
        self.tally.opened = self.tally.opened.saturating_add(1);
        if let Some(live) = self.live.get_mut(&number) {
            live.is_present = true;
        }
        self.plan(number, TimeDelta::zero(), SessionOccurrence::Connected { is_new: true });
    }

    /// The applicant's page has reached an instance. A new session begins at the least used one; one
    /// whose browser was lost, at the instance that its page reached.
    pub(crate) fn connected(&mut self, number: u64, is_new: bool) {
        let Some(live) = self.live.get(&number) else { return };
        let region = usize::from(live.unopened.region);
        let Some(own) = self.instances.any_of_region(region, &mut self.random) else {
            self.plan(number, RECONNECT, SessionOccurrence::Connected { is_new });
            return;
        };
        let instance = if is_new { self.instances.choose(own, self.now) } else { own };
        if instance != own {
            self.tally.relayed = self.tally.relayed.saturating_add(1);
        }
        self.request_browser(number, instance);
    }

    pub(crate) fn request_browser(&mut self, number: u64, index: InstanceIndex) {
        let browser = BrowserId::from_u128(self.random.id());
        let patience = self.random.exponential(self.parameters.applicants.patience_seconds);
        let now = self.now;
        let Some(instance) = self.instances.get_mut(index) else { return };
        let Some(live) = self.live.get_mut(&number) else { return };
        instance.leased.insert(number);
        live.instance = (index, instance.incarnation);
        live.browser = browser;
        live.patient_until = now + patience;
        live.renewed_at = now;
        live.waiting_since = Some(now);
        self.tally.waiting.add(now);
        let lease = Lease { browser, node: instance.id, region: None };
        self.apply(number, Event::BrowserRequested { lease });
    }

    /// Carries out the job that starts the browser: the session asks for its turn.
    pub(crate) fn ask_for_turn(&mut self, number: u64, attempt: u32) {
        let now = self.now;
        self.writes.add(Write::JobClaimed, 1);
        self.writes.add(Write::LeaseRenewed, 1);
        let Some(live) = self.live.get_mut(&number) else { return };
        live.renewed_at = now;
        let (by, browser, tenant) = (live.instance, live.browser, live.unopened.tenant());
        if live.is_present && now >= live.patient_until {
            live.is_present = false;
            self.tally.left_queue = self.tally.left_queue.saturating_add(1);
            self.tally.connected_seconds += crate::numbers::in_seconds(now - live.opened_at);
        }
        if !live.is_present {
            self.hold(number, attempt);
            return;
        }
        let slots = self.parameters.deployment.quotas.total;
        let Some(instance) = self.instances.same_run(by) else { return };
        let moved = live.session.state.waiting_since();
        if let Some(since) = moved {
            instance.turns.arrive(browser, tenant, since, now);
        }
        let ahead = instance.waiting_before(tenant, live.queued_since.or(moved).unwrap_or(now));
        // It may get a turn before those that wait for longer only if turns are free for them as well.
        let free = (ahead > 0).then(|| slots.saturating_sub(instance.turns.load(now).running));
        let mut turn = instance.turns.ask(browser, tenant, now);
        if turn == Turn::Now {
            let is_overtaking = free.is_some_and(|free| ahead >= free);
            self.tally.overtaken = self.tally.overtaken.saturating_add(u64::from(is_overtaking));
            if instance.occupied >= slots {
                // A browser that has just ended still occupies its slot.
                self.tally.turns_given_back = self.tally.turns_given_back.saturating_add(1);
                turn = instance.turns.refused(browser, tenant, now);
            }
        }
        match turn {
            Turn::Now => self.take_slot(number),
            Turn::Wait { place, since } => {
                if live.queued_since.is_none() {
                    live.queued_since = Some(since);
                    if live.waiting_since.is_none() {
                        live.waiting_since = Some(now);
                        self.tally.waiting.add(now);
                    }
                    instance.waits(tenant, since, (browser, number));
                }
                self.balance_later(by.0);
                self.wait(number, attempt, (place, since));
            }
            Turn::Full => {
                self.tally.refused_full = self.tally.refused_full.saturating_add(1);
                self.give_up(number);
            }
        }
    }

    /// The applicant has left: the place is kept as long as a session may wait. They do not come back.
    fn hold(&mut self, number: u64, attempt: u32) {
        let now = self.now;
        let Some(live) = self.live.get_mut(&number) else { return };
        let (by, browser, tenant) = (live.instance, live.browser, live.unopened.tenant());
        if let Some(since) = live.waiting_since.take() {
            self.tally.waited(live.unopened.team, since, now);
        }
        let Some(instance) = self.instances.same_run(by) else { return };
        if let Some(since) = live.queued_since.take() {
            instance.waits_no_longer(tenant, since, browser);
        }
        let since = instance.turns.hold(browser, tenant, now);
        if since.is_some_and(|since| now - since < self.parameters.deployment.queue_timeout) {
            self.writes.add(Write::JobPutOff, 1);
            let delay = ABSENT_RETRY_DELAY + self.until_claimed();
            let attempt = attempt.saturating_add(1);
            self.plan(number, delay, SessionOccurrence::TurnAsked { attempt });
            return;
        }
        self.writes.add(Write::JobDeleted, 1);
        self.wait_for_applicant(number);
    }

    /// Gives the browser of an applicant who is away back, or their place; the session waits for them
    /// until it expires.
    pub(crate) fn wait_for_applicant(&mut self, number: u64) {
        if self.apply_from_browser(number, Event::ApplicantAbsent)
            && let Some(live) = self.live.get(&number)
        {
            let until = live.session.expires_at - self.now;
            self.plan(number, until, SessionOccurrence::Expired);
        }
    }

    fn wait(&mut self, number: u64, attempt: u32, (place, since): (usize, DateTime<Utc>)) {
        self.tally.longest_place = self.tally.longest_place.max(count(place));
        if self.now - since >= self.parameters.deployment.queue_timeout {
            self.tally.refused_late = self.tally.refused_late.saturating_add(1);
            self.give_up(number);
            return;
        }
        self.writes.add(Write::JobPutOff, 1);
        let delay = delay_at(place) + self.until_claimed();
        let attempt = attempt.saturating_add(1);
        self.plan(number, delay, SessionOccurrence::TurnAsked { attempt });
    }

    /// Returns how long a job that is due waits until it is claimed.
    pub(crate) fn until_claimed(&mut self) -> TimeDelta {
        let interval = TimeDelta::from_std(JOB_POLL_INTERVAL).unwrap_or_default();
        self.random.uniform(interval)
    }

    fn give_up(&mut self, number: u64) {
        self.writes.add(Write::JobDeleted, 1);
        self.fail(number, ErrorCode::BrowserUnavailable);
    }

    /// The attempt fails; another one is offered to an applicant who is at the page.
    pub(crate) fn fail(&mut self, number: u64, why: ErrorCode) {
        let is_present = self.live.get(&number).is_some_and(|live| live.is_present);
        let retry_until = is_present.then_some(self.now + RETRY_OFFER);
        let node = Some("sign-in".to_owned());
        let failed = Event::Failed { why, node, retry_until };
        if self.apply_from_browser(number, failed) {
            let now = self.now;
            if let Some(live) = self.live.get_mut(&number) {
                live.renewed_at = now;
                // The lease of the offer is of the same instance, although its browser is gone.
                let by = live.instance;
                if let Some(instance) = self.instances.same_run(by) {
                    instance.leased.insert(number);
                }
            }
            self.replan(number);
            let time = self.random.log_normal(self.parameters.applicants.thinking);
            self.plan(number, time, SessionOccurrence::RetryDecided);
        }
    }

    fn take_slot(&mut self, number: u64) {
        let now = self.now;
        let Some(live) = self.live.get_mut(&number) else { return };
        let (by, browser, tenant) = (live.instance, live.browser, live.unopened.tenant());
        if let Some(since) = live.waiting_since.take() {
            self.tally.waited(live.unopened.team, since, now);
        }
        live.slot_since = Some(now);
        self.tally.slots.add(now);
        if let Some(instance) = self.instances.same_run(by) {
            if let Some(since) = live.queued_since.take() {
                instance.waits_no_longer(tenant, since, browser);
            }
            instance.occupied = instance.occupied.saturating_add(1);
            let is_over = instance.occupied > self.parameters.deployment.quotas.total;
            self.tally.over_capacity = self.tally.over_capacity.saturating_add(u64::from(is_over));
        }
        let browsers = &self.parameters.browsers;
        let is_failed = self.random.chance(browsers.start_failure);
        let time = self.random.log_normal(browsers.start);
        self.plan(number, time, SessionOccurrence::BrowserStarted { is_failed });
    }

    /// The browser has started, or could not be started.
    pub(crate) fn started(&mut self, number: u64, is_failed: bool) {
        if is_failed {
            self.start_failed(number);
            return;
        }
        self.writes.add(Write::JobDeleted, 1);
        if !self.apply_from_browser(number, Event::BrowserStarted) {
            return;
        }
        let now = self.now;
        let Some(live) = self.live.get_mut(&number) else { return };
        live.renewed_at = now;
        live.failed_starts = 0;
        if !live.is_present {
            let time = TimeDelta::from_std(NO_SHOW_TTL).unwrap_or_default();
            live.plan = [(time, applicant::Act::NotCome)].into();
            self.next_act(number);
            return;
        }
        if !live.has_seen_page {
            live.has_seen_page = true;
            let since = now - live.opened_at;
            self.tally.first_pages.record(since);
        }
        let version = DefinitionVersion { version: "1.0.0".into(), sha256: "0".repeat(64) };
        let events = [
            Event::ApplicantConnected,
            Event::WorkflowOpened,
            Event::WorkflowLoaded { workflow: version },
        ];
        for event in events {
            if !self.apply_from_browser(number, event) {
                return;
            }
        }
        let parameters = self.parameters;
        let is_attested = self.live.get(&number).is_some_and(|live| live.unopened.is_attested);
        let plan = applicant::plan(
            &mut self.random,
            (&parameters.applicants, &parameters.browsers),
            (is_attested, parameters.partners.terminated),
        );
        if let Some(live) = self.live.get_mut(&number) {
            live.plan = plan;
        }
        self.next_act(number);
    }

    fn start_failed(&mut self, number: u64) {
        let now = self.now;
        self.tally.failed_starts = self.tally.failed_starts.saturating_add(1);
        let Some(live) = self.live.get_mut(&number) else { return };
        let (by, browser) = (live.instance, live.browser);
        live.failed_starts = live.failed_starts.saturating_add(1);
        let failures = live.failed_starts;
        let held = live.slot_since.take().map(|since| now - since);
        if let Some(instance) = self.instances.same_run(by) {
            instance.turns.ended(browser);
            instance.occupied = instance.occupied.saturating_sub(1);
        }
        if let Some(held) = held {
            self.slot_given_back(held);
        }
        if failures < MAX_START_FAILURES {
            self.writes.add(Write::JobPutOff, 1);
            let delay = START_RETRY_DELAY + self.until_claimed();
            self.plan(number, delay, SessionOccurrence::TurnAsked { attempt: failures });
        } else {
            self.give_up(number);
        }
    }
}
