//! Applies events to sessions by the domain's rules, and carries the effects out.

use application::advance::LEASE_RENEW_INTERVAL;
use chrono::TimeDelta;
use domain::session::{Change, Event, InvalidTransition, Job, Session};

use crate::{
    endpoints::Delivery,
    numbers::{count, in_seconds},
    session::{LiveSession, UnopenedSession},
    simulation::{Occurrence, SessionOccurrence, Simulation},
    writes::Write,
};

impl Simulation<'_> {
    /// Holds a session in memory until it ends.
    pub(crate) fn keep_open(&mut self, unopened: UnopenedSession) {
        let number = unopened.number;
        let session = unopened.session(self.parameters.partners.expires_in);
        let live = LiveSession {
            unopened,
            epoch: 0,
            is_present: false,
            opened_at: self.now,
            has_seen_page: false,
            instance: (0, 0),
            browser: domain::id::BrowserId::from_u128(0),
            waiting_since: None,
            queued_since: None,
            patient_until: self.now,
            slot_since: None,
            renewed_at: self.now,
            failed_starts: 0,
            plan: crate::applicant::Plan::new(),
            is_sampled: self.is_sampled(number),
            session,
        };
        self.live.insert(number, live);
        self.tally.most_live = self.tally.most_live.max(count(self.live.len()));
    }

    /// Adds an event of a session's present plan. It is the expiry instead if that comes first.
    pub(crate) fn plan(&mut self, number: u64, time: TimeDelta, what: SessionOccurrence) {
        let Some(live) = self.live.get(&number) else { return };
        let (epoch, expires_at) = (live.epoch, live.session.expires_at);
        let at = self.now + time;
        let expired = Occurrence::Session { number, epoch, what: SessionOccurrence::Expired };
        if at >= expires_at {
            self.agenda.add(expires_at, expired);
        } else {
            self.agenda.add(at, Occurrence::Session { number, epoch, what });
        }
    }

    /// Forgets what was planned for a session.
    pub(crate) fn replan(&mut self, number: u64) {
        if let Some(live) = self.live.get_mut(&number) {
            live.epoch = live.epoch.saturating_add(1);
        }
    }

    /// Applies an event of anyone. Returns whether the session is open afterwards.
    pub(crate) fn apply(&mut self, number: u64, event: Event) -> bool {
        let now = self.now;
        self.change(number, |live| live.session.apply(event, now))
    }

    /// Applies an event of the session's browser. Returns whether the session is open afterwards.
    pub(crate) fn apply_from_browser(&mut self, number: u64, event: Event) -> bool {
        let now = self.now;
        self.change(number, |live| live.session.apply_from(live.browser, event, now))
    }

    fn change(
        &mut self,
        number: u64,
        decide: impl FnOnce(&LiveSession) -> Result<Option<Change>, InvalidTransition>,
    ) -> bool {
        let Some(live) = self.live.get_mut(&number) else { return false };
        let was_serving = is_serving(&live.session);
        let change = match decide(live) {
            Ok(Some(change)) => change,
            Ok(None) => return !live.session.state.is_closed(),
            Err(_) => {
                self.tally.rejected = self.tally.rejected.saturating_add(1);
                return !live.session.state.is_closed();
            }
        };
        self.writes.transition(&change, count(self.parameters.partners.webhooks_per_team));
        if live.is_sampled {
            self.writes.sampled_change(&change);
        }
        let Change { session, effects, .. } = change;
        let (is_serving, is_closed) = (is_serving(&session), session.state.is_closed());
        live.session = session;
        let instance = live.instance;
        if was_serving != is_serving
            && let Some(instance) = self.instances.same_run(instance)
        {
            instance.change_load(self.now, is_serving);
        }
        for job in effects.jobs {
            self.carry_out_job(number, &job);
        }
        if is_closed {
            self.finish(number);
        }
        !is_closed
    }

    fn carry_out_job(&mut self, number: u64, job: &Job) {
        match job {
            Job::StartBrowser { .. } => {
                self.plan(number, TimeDelta::zero(), SessionOccurrence::TurnAsked { attempt: 1 });
            }
            Job::ReleaseBrowser { .. } => {
                if self.release(number) {
                    self.writes.add(Write::JobClaimed, 1);
                }
                // An orphan of an instance that is gone is deleted too, after ten minutes.
                self.writes.add(Write::JobDeleted, 1);
            }
            Job::ForgetRecording => {
                self.writes.add(Write::JobClaimed, 1);
                self.writes.add(Write::JobDeleted, 1);
            }
        }
    }

    /// Ends a browser, or the wait for one. Returns whether its instance still ran.
    fn release(&mut self, number: u64) -> bool {
        let now = self.now;
        let Some(live) = self.live.get_mut(&number) else { return false };
        let (by, browser, tenant) = (live.instance, live.browser, live.unopened.tenant());
        let (slot_since, queued) = (live.slot_since.take(), live.queued_since.take());
        let (waiting_since, team) = (live.waiting_since.take(), live.unopened.team);
        if let Some(since) = slot_since {
            self.slot_given_back(now - since);
        }
        if let Some(since) = waiting_since {
            self.tally.waited(team, since, now);
        }
        let Some(instance) = self.instances.same_run(by) else { return false };
        instance.turns.finished(browser, now);
        instance.leased.remove(&number);
        if let Some(since) = queued {
            instance.waits_no_longer(tenant, since, browser);
        }
        if slot_since.is_some() {
            let stop = self.random.log_normal(self.parameters.browsers.stop);
            self.after(stop, Occurrence::SlotFreed { by });
        }
        true
    }

    /// Counts the time for which a session had a slot, and the renewals of its lease in it.
    pub(crate) fn slot_given_back(&mut self, held: TimeDelta) {
        self.tally.slots.subtract(self.now);
        self.tally.holds.record(held);
        self.count_renewals(held);
    }

    /// Counts the renewals of a lease at intervals, of which the first is at the beginning.
    pub(crate) fn count_renewals(&mut self, held: TimeDelta) {
        let interval = TimeDelta::from_std(LEASE_RENEW_INTERVAL).unwrap_or(TimeDelta::seconds(5));
        let renewals = held.num_milliseconds() / interval.num_milliseconds().max(1);
        let renewals = u64::try_from(renewals).unwrap_or_default().saturating_add(1);
        self.writes.add(Write::LeaseRenewed, renewals);
    }

    /// Counts a session that has ended, adds its deliveries, and forgets it.
    fn finish(&mut self, number: u64) {
        let Some(live) = self.live.remove(&number) else { return };
        let now = self.now;
        if let Some(instance) = self.instances.same_run(live.instance) {
            instance.leased.remove(&number);
        }
        if live.is_present {
            self.applicant_gone(&live);
        }
        self.tally.open.subtract(now);
        self.tally.ended(&live.session);
        let per_team = self.parameters.partners.webhooks_per_team;
        let team = usize::try_from(live.unopened.team).unwrap_or_default();
        let first = team.saturating_mul(per_team);
        for endpoint in first..first.saturating_add(per_team) {
            self.tally.owed = self.tally.owed.saturating_add(1);
            self.delivery_due(Delivery::new(endpoint, now));
        }
        self.erase_later(&live);
    }

    /// Counts how long an applicant was connected.
    pub(crate) fn applicant_gone(&mut self, live: &LiveSession) {
        self.tally.connected_seconds += in_seconds(self.now - live.opened_at);
    }

    /// Counts now what is erased when the session's retention is over, so that it need not be kept.
    /// Its deliveries have ended by then, since a delivery ends after seven days at the latest.
    fn erase_later(&mut self, live: &LiveSession) {
        let Some(closed_at) = live.session.closed_at else { return };
        let at = closed_at + self.parameters.deployment.retention;
        let Some(change) = live.session.erase(at) else { return };
        let webhooks = count(self.parameters.partners.webhooks_per_team);
        // Attempts are counted as erased when they are made.
        self.writes.erasure(&change, (webhooks.min(1), 0));
        self.writes.add(Write::BodyDeleted, webhooks.min(1));
        self.writes.add(Write::DeliveryDeleted, webhooks);
        // The job that deletes the recording.
        self.writes.add(Write::JobClaimed, 1);
        self.writes.add(Write::JobDeleted, 1);
        if live.session.is_worth_recording() && live.has_seen_page {
            self.writes.add(Write::RecordingErased, 1);
        }
        if live.session.state.outcome().is_some_and(|outcome| outcome.attestation().is_some()) {
            self.writes.add(Write::AttestationInserted, 1);
            self.writes.add(Write::AttestationDeleted, 1);
        }
        if live.is_sampled {
            self.writes.sampled_change(&change);
        }
    }
}

/// Returns whether a session has a browser or waits for one, as `SessionHub::running` counts it.
pub(crate) fn is_serving(session: &Session) -> bool {
    session.state.lease().is_some() && session.state.offered_retry().is_none()
}
