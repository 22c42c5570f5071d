//! Sessions that wait for a browser are moved to instances that have one free.

use application::{browser_turns::START_RETRY_DELAY, instances::REPORT_INTERVAL};
use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    id::BrowserId,
    placement::plan_moves,
    session::{Event, Lease, MOVES_ALLOWED, State},
};

use crate::{
    instances::InstanceIndex,
    simulation::{Occurrence, SessionOccurrence, Simulation},
};

impl Simulation<'_> {
    /// Has an instance look once a second whether others have room, while sessions wait there.
    pub(crate) fn balance_later(&mut self, index: InstanceIndex) {
        if !self.parameters.deployment.moves_waiting {
            return;
        }
        let Some(instance) = self.instances.get_mut(index) else { return };
        if !instance.will_balance {
            instance.will_balance = true;
            let interval = TimeDelta::from_std(REPORT_INTERVAL).unwrap_or(TimeDelta::seconds(1));
            self.after(interval, Occurrence::QueueBalanced(index));
        }
    }

    /// An instance moves as many of its waiting sessions as others have free browsers.
    pub(crate) fn balance(&mut self, index: InstanceIndex) {
        let now = self.now;
        let Some(instance) = self.instances.get_mut(index) else { return };
        instance.will_balance = false;
        if !instance.is_up || instance.turns.load(now).waiting == 0 {
            return;
        }
        let Some((own, others)) = self.instances.seen_by(index, now) else { return };
        for planned in plan_moves(&own, &others) {
            let Some(target) = self.instances.with_id(planned.to) else { continue };
            for _ in 0..planned.count {
                self.move_next(index, target);
            }
        }
        self.balance_later(index);
    }

    /// Moves the session whose turn is next, if it may be moved.
    fn move_next(&mut self, from: InstanceIndex, to: InstanceIndex) {
        let Some(instance) = self.instances.get(from) else { return };
        let next = instance.turns.in_order().into_iter();
        let mut next = next.filter_map(|(browser, since)| {
            let number = *instance.numbers.get(&browser)?;
            let live = self.live.get(&number).filter(|live| live.browser == browser)?;
            let State::Initializing { history, .. } = live.session.state else { return None };
            (live.is_present && history.moves < MOVES_ALLOWED).then_some((number, since))
        });
        if let Some((number, since)) = next.next() {
            self.move_wait(number, since, to);
        }
    }

    fn move_wait(&mut self, number: u64, since: DateTime<Utc>, to: InstanceIndex) {
        let now = self.now;
        let Some(target) = self.instances.get(to) else { return };
        let (node, incarnation) = (target.id, target.incarnation);
        let browser = BrowserId::from_u128(self.random.id());
        let Some(live) = self.live.get_mut(&number) else { return };
        let (by, waiting_since) = (live.instance, live.waiting_since.take());
        self.replan(number);
        let lease = Lease { browser, node, region: None };
        self.apply_from_browser(number, Event::WaitMoved { to: lease, since });
        // What the earlier instance had planned, and the question that the job would ask at once: the page
        // has to connect again before.
        self.replan(number);
        self.tally.moved = self.tally.moved.saturating_add(1);
        if let Some(instance) = self.instances.same_run(by) {
            instance.change_load(now, false);
        }
        if let Some(instance) = self.instances.get_mut(to) {
            instance.leased.insert(number);
            instance.change_load(now, true);
        }
        if let Some(live) = self.live.get_mut(&number) {
            live.instance = (to, incarnation);
            live.browser = browser;
            live.renewed_at = now;
            live.waiting_since = waiting_since;
        }
        let delay = START_RETRY_DELAY + self.until_claimed();
        self.plan(number, delay, SessionOccurrence::TurnAsked { attempt: 2 });
    }
}
