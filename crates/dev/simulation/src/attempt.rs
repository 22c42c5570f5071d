//! The acts of an attempt as events of the session, the choice of another attempt, and crashes.

use application::advance::{BROWSER_LEASE_TTL, LEASE_RENEW_INTERVAL};
use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    error_code::ErrorCode,
    session::{Collected, Event, IssuedAttestation, PendingPrompt, ProofHash, State},
    workflow::{AttestMode, PromptKind},
};
use serde_json::json;

use crate::{
    applicant::Act,
    instances::InstanceIndex,
    session::LiveSession,
    simulation::{Occurrence, SessionOccurrence, Simulation},
    writes::Write,
};

/// How long a prompt waits; nobody in the simulation uses it up.
const PROMPT_TIME: TimeDelta = TimeDelta::minutes(10);
/// How often the applicant's page asks the store for its session.
const PAGE_POLL: TimeDelta = TimeDelta::milliseconds(500);

impl Simulation<'_> {
    /// Adds the next act of the plan to the agenda.
    pub(crate) fn next_act(&mut self, number: u64) {
        let next = self.live.get(&number).and_then(|live| live.plan.front());
        if let Some((time, _)) = next.copied() {
            self.plan(number, time, SessionOccurrence::Acted);
        }
    }

    pub(crate) fn act(&mut self, number: u64) {
        let Some(live) = self.live.get_mut(&number) else { return };
        let Some((_, act)) = live.plan.pop_front() else { return };
        let event = match act {
            Act::InputNeeded(kind) => Event::InputNeeded { ask: prompt(kind, self.now) },
            Act::InputGiven => Event::InputGiven,
            Act::CollectionStarted => Event::CollectionStarted,
            Act::DataCollected { is_complete } => {
                Event::DataCollected { collected: collected(number, is_complete) }
            }
            Act::AttestationAdvanced(to) => Event::AttestationAdvanced { to },
            Act::AttestationIssued => Event::AttestationIssued { attestation: attestation() },
            Act::AttestationRefused => Event::AttestationRefused,
            Act::Declined => Event::ConsentDeclined,
            Act::Cancelled => {
                self.apply(number, Event::ApplicantCancelled);
                return;
            }
            Act::Terminated => {
                self.apply(number, Event::TerminatedByPartner);
                return;
            }
            Act::Failed(why) => {
                self.fail(number, why);
                return;
            }
            Act::AbsentForTooLong => {
                self.fail(number, ErrorCode::UserInputTimeout);
                return;
            }
            Act::NotCome => {
                self.wait_for_applicant(number);
                return;
            }
            Act::Left => {
                self.leave(number);
                self.next_act(number);
                return;
            }
        };
        if self.apply_from_browser(number, event) {
            self.next_act(number);
        }
    }

    /// The applicant closes the page.
    fn leave(&mut self, number: u64) {
        if let Some(live) = self.live.get_mut(&number).filter(|live| live.is_present) {
            live.is_present = false;
            let connected = self.now - live.opened_at;
            self.tally.connected_seconds += crate::numbers::in_seconds(connected);
        }
    }

    /// The applicant makes another attempt, declines it, or leaves.
    pub(crate) fn decide_retry(&mut self, number: u64) {
        let Some(live) = self.live.get(&number) else { return };
        let by = live.instance;
        let thought = self.now - live.renewed_at;
        self.count_renewals(thought);
        let applicants = &self.parameters.applicants;
        let drawn = self.random.fraction();
        if drawn < applicants.retry {
            if let Some(instance) = self.instances.same_run(by) {
                instance.leased.remove(&number);
            }
            if self.apply(number, Event::RetryRequested) {
                self.begin_again(number, by);
            }
        } else if drawn < applicants.retry + applicants.decline_retry {
            self.apply(number, Event::RetryDeclined);
        } else {
            self.leave(number);
            if let Some(live) = self.live.get_mut(&number) {
                live.renewed_at = self.now;
            }
            self.plan(number, BROWSER_LEASE_TTL, SessionOccurrence::LeaseLapsed);
        }
    }

    /// Begins another attempt at the same instance, to which the page is connected.
    fn begin_again(&mut self, number: u64, (index, incarnation): (InstanceIndex, u32)) {
        if let Some(live) = self.live.get_mut(&number) {
            live.failed_starts = 0;
        }
        if self.instances.same_run((index, incarnation)).is_some() {
            self.request_browser(number, index);
        } else {
            self.plan(number, PAGE_POLL, SessionOccurrence::Connected { is_new: false });
        }
    }

    /// An instance stops without warning: its queue is gone, and its sessions' leases lapse.
    pub(crate) fn crash(&mut self, index: InstanceIndex) {
        let now = self.now;
        self.tally.crashes = self.tally.crashes.saturating_add(1);
        for number in self.instances.crash(index, now) {
            let Some(live) = self.live.get_mut(&number) else { continue };
            if live.session.state.offered_retry().is_some() {
                // The page connects to another instance, which renews the lease of the offer.
                continue;
            }
            let (slot_since, waiting_since) = (live.slot_since.take(), live.waiting_since.take());
            let team = live.unopened.team;
            live.queued_since = None;
            live.epoch = live.epoch.saturating_add(1);
            let is_starting = matches!(live.session.state, State::Initializing { .. });
            let waits = is_starting && slot_since.is_none();
            let lapses_in = lapse(live, waits, now) - now;
            if is_starting {
                // The job that would start the browser is deleted as an orphan.
                self.writes.add(Write::JobDeleted, 1);
            }
            if let Some(since) = slot_since {
                self.slot_given_back(now - since);
            }
            if let Some(since) = waiting_since {
                self.tally.waited(team, since, now);
            }
            if !self.random.chance(self.parameters.applicants.stay_after_crash) {
                self.leave(number);
            }
            self.plan(number, lapses_in, SessionOccurrence::LeaseLapsed);
        }
        self.after(self.parameters.deployment.restart, Occurrence::InstanceRestarted(index));
    }

    /// The sweeper takes the browser away from a session whose lease has lapsed. The applicant's page,
    /// if it is still there, has another one started.
    pub(crate) fn lease_lapsed(&mut self, number: u64) {
        let Some(live) = self.live.get(&number) else { return };
        let is_offered = live.session.state.offered_retry().is_some();
        let browser = live.session.state.lease().map(|lease| lease.browser);
        if browser != Some(live.browser) {
            return;
        }
        let event = if is_offered { Event::RetryExpired } else { Event::BrowserLost };
        self.tally.browsers_lost = self.tally.browsers_lost.saturating_add(u64::from(!is_offered));
        if !self.apply_from_browser(number, event) {
            return;
        }
        self.replan(number);
        let Some(live) = self.live.get(&number) else { return };
        if live.is_present {
            self.plan(number, PAGE_POLL, SessionOccurrence::Connected { is_new: false });
        } else {
            // Nobody is there: the session waits for its applicant until it expires.
            let until = live.session.expires_at - self.now;
            self.plan(number, until, SessionOccurrence::Expired);
        }
    }
}

/// Returns when the lease of a session lapses whose instance has stopped. While a session waits for a
/// browser, it is renewed each time that it asks for its turn.
fn lapse(live: &LiveSession, waits: bool, now: DateTime<Utc>) -> DateTime<Utc> {
    if waits {
        return live.renewed_at + BROWSER_LEASE_TTL;
    }
    let interval = i64::try_from(LEASE_RENEW_INTERVAL.as_millis()).unwrap_or(5000);
    let since = (now - live.renewed_at).num_milliseconds();
    now - TimeDelta::milliseconds(since % interval.max(1)) + BROWSER_LEASE_TTL
}

fn prompt(kind: PromptKind, now: DateTime<Utc>) -> PendingPrompt {
    PendingPrompt { kind, text_key: "prompt.text".into(), deadline: now + PROMPT_TIME, hint: None }
}

/// Returns data of six fields, as large as that of the sandbox platform.
fn collected(number: u64, is_complete: bool) -> Collected {
    let data = json!({
        "accountId": format!("acct-{number:012}"),
        "fullName": "Ada Applicant",
        "email": format!("applicant-{number}@mail.example"),
        "memberSince": "2019-04-01",
        "balance": 1234.56,
        "isVerified": true,
    });
    let missing = if is_complete { vec![] } else { vec!["address".to_owned()] };
    Collected { data: data.as_object().cloned().unwrap_or_default(), missing }
}

fn attestation() -> IssuedAttestation {
    IssuedAttestation {
        proof: ProofHash::new(&"0".repeat(64)).unwrap_or_else(|| unreachable!("64 digits")),
        fields: vec!["accountId".into(), "fullName".into()],
        mode: Some(AttestMode::ZktlsRequest),
    }
}
