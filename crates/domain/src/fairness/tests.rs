//! The fairness queue with many teams, with quotas, and with random requests.

use proptest::prelude::*;

use super::*;

fn now(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_700_000_000 + seconds, 0).unwrap()
}

fn browser(number: u128) -> BrowserId {
    BrowserId::from_u128(number)
}

fn tenant(team: u128, production: bool) -> Tenant {
    let environment = if production { Environment::Production } else { Environment::Development };
    Tenant { team: TeamId::from_u128(team), environment }
}

fn quotas(total: usize, per_team: usize, development: usize) -> Quotas {
    Quotas { total, per_team, development, waiting_per_team: 100 }
}

fn queue(total: usize) -> BrowserQueue {
    BrowserQueue::new(quotas(total, total, total))
}

fn wait(place: usize, since: i64) -> Turn {
    Turn::Wait { place, since: now(since) }
}

#[test]
fn a_team_with_fifty_sessions_delays_another_by_one_turn() {
    let mut queue = queue(2);
    for number in 0..50 {
        queue.ask(browser(number), tenant(1, true), now(0));
    }
    let mine = browser(100);
    assert_eq!(queue.ask(mine, tenant(2, true), now(1)), wait(1, 1));
    queue.ended(browser(0));
    // No entry of the first team gets the free browser, even if it asks earlier.
    for number in 2..50 {
        assert_ne!(queue.ask(browser(number), tenant(1, true), now(2)), Turn::Now);
    }
    assert_eq!(queue.ask(mine, tenant(2, true), now(2)), Turn::Now);
}

#[test]
fn the_load_counts_turns_and_those_that_still_wait() {
    let mut queue = queue(2);
    let load = |queue: &mut BrowserQueue, seconds| {
        let QueueLoad { total, running, waiting, waiting_since } = queue.load(now(seconds));
        (total, running, waiting, waiting_since)
    };
    assert_eq!(load(&mut queue, 0), (2, 0, 0, None));
    for (number, team, seconds) in [(0, 1, 0), (1, 1, 0), (2, 2, 4), (3, 1, 2), (4, 1, 3)] {
        queue.ask(browser(number), tenant(team, true), now(seconds));
    }
    // The longest waiting one, whichever team is next.
    assert_eq!(load(&mut queue, 5), (2, 2, 3, Some(now(2))));
    queue.ask(browser(4), tenant(1, true), now(9));
    assert_eq!(load(&mut queue, 13), (2, 2, 2, Some(now(3))), "one does not ask any more");
    queue.ended(browser(0));
    queue.ended(browser(4));
    assert_eq!(load(&mut queue, 13), (2, 1, 1, Some(now(4))));
}

#[test]
fn development_neither_crowds_out_production_nor_starves() {
    let mut queue = queue(8);
    for number in 0..8 {
        assert_eq!(queue.ask(browser(number), tenant(1, true), now(0)), Turn::Now);
    }
    let (development, production) = (browser(20), browser(21));
    queue.ask(development, tenant(2, false), now(0));
    queue.ask(production, tenant(3, true), now(1));
    queue.ended(browser(0));
    assert_ne!(queue.ask(development, tenant(2, false), now(2)), Turn::Now);
    assert_eq!(queue.ask(production, tenant(3, true), now(2)), Turn::Now);
    queue.ask(browser(22), tenant(1, true), now(3));
    queue.ended(browser(1));
    assert_ne!(queue.ask(browser(22), tenant(1, true), now(4)), Turn::Now);
    assert_eq!(queue.ask(development, tenant(2, false), now(4)), Turn::Now);
}

#[test]
fn quotas_hold_while_turns_are_free() {
    let mut queue = BrowserQueue::new(quotas(8, 3, 4));
    let turns = |queue: &mut BrowserQueue, from: u128, tenant: Tenant| {
        let ids = from..from + 5;
        ids.filter(|id| queue.ask(browser(*id), tenant, now(0)) == Turn::Now).count()
    };
    assert_eq!(turns(&mut queue, 0, tenant(1, false)), 3);
    assert_eq!(turns(&mut queue, 10, tenant(2, false)), 1);
    assert_eq!(turns(&mut queue, 20, tenant(1, true)), 0);
    assert_eq!(turns(&mut queue, 30, tenant(3, true)), 3);
    // Entries over a quota do not delay the others.
    assert_eq!(turns(&mut queue, 40, tenant(4, true)), 1);
}

#[test]
fn an_entry_that_stops_asking_loses_its_place() {
    let mut queue = queue(1);
    assert_eq!(queue.ask(browser(1), tenant(1, true), now(0)), Turn::Now);
    assert_eq!(queue.ask(browser(1), tenant(1, true), now(0)), Turn::Now, "asked twice");
    queue.ask(browser(2), tenant(2, true), now(0));
    queue.ended(browser(1));
    assert_eq!(queue.ask(browser(3), tenant(3, true), now(9)), wait(2, 9));
    assert_eq!(queue.ask(browser(3), tenant(3, true), now(10)), Turn::Now);
    assert_eq!(queue.waiting(), 0);
    assert_eq!(
        queue.refused(browser(3), tenant(3, true), now(11)),
        wait(1, 9),
        "no capacity was left"
    );
}

#[test]
fn the_limit_of_waiting_entries_is_per_team() {
    let quotas = Quotas { waiting_per_team: 3, ..quotas(1, 1, 1) };
    let mut queue = BrowserQueue::new(quotas);
    assert_eq!(queue.ask(browser(0), tenant(1, true), now(0)), Turn::Now);
    for number in 1..4 {
        let place = usize::try_from(number).unwrap();
        assert_eq!(queue.ask(browser(number), tenant(1, true), now(0)), wait(place, 0));
    }
    assert_eq!(queue.ask(browser(4), tenant(1, true), now(1)), Turn::Full);
    assert_eq!(queue.ask(browser(4), tenant(1, false), now(1)), Turn::Full, "both environments");
    assert_eq!(queue.of_team(tenant(1, true).team), (1, 3));
    // An entry that already waits keeps its place.
    assert_eq!(queue.ask(browser(2), tenant(1, true), now(2)), wait(2, 0));
    assert_eq!(queue.ask(browser(5), tenant(2, true), now(2)), wait(1, 2));
    queue.ended(browser(3));
    assert!(matches!(queue.ask(browser(4), tenant(1, true), now(3)), Turn::Wait { .. }));
}

#[test]
fn a_queue_that_one_team_has_filled_takes_one_entry_of_each_other_team() {
    let quotas = Quotas { waiting_per_team: MAX_WAITING, ..quotas(1, 1, 1) };
    let mut queue = TurnQueue::new(quotas);
    assert_eq!(queue.ask(0, tenant(1, true), now(0)), Turn::Now);
    for number in 1..=MAX_WAITING {
        assert_ne!(queue.ask(number, tenant(1, true), now(0)), Turn::Full);
    }
    assert_eq!(queue.ask(MAX_WAITING + 1, tenant(1, true), now(0)), Turn::Full);
    assert_eq!(queue.ask(MAX_WAITING + 2, tenant(2, true), now(1)), wait(1, 1));
    assert_eq!(queue.ask(MAX_WAITING + 3, tenant(2, true), now(1)), Turn::Full);
}

#[test]
fn a_held_entry_gets_no_turn_and_keeps_its_place() {
    let mut queue = queue(1);
    assert_eq!(queue.ask(browser(0), tenant(1, true), now(0)), Turn::Now);
    assert_eq!(queue.ask(browser(1), tenant(1, true), now(1)), wait(1, 1));
    assert_eq!(queue.ask(browser(2), tenant(1, true), now(2)), wait(2, 2));
    assert_eq!(queue.ask(browser(3), tenant(1, true), now(3)), wait(3, 3));
    assert_eq!(queue.hold(browser(1), tenant(1, true), now(5)), Some(now(1)));
    // The others move up, and a turn goes to the first of them.
    assert_eq!(queue.ask(browser(2), tenant(1, true), now(5)), wait(1, 2));
    assert_eq!((queue.waiting(), queue.of_team(tenant(1, true).team)), (2, (1, 2)));
    queue.ended(browser(0));
    assert_eq!(queue.hold(browser(1), tenant(1, true), now(6)), Some(now(1)));
    assert_eq!(queue.ask(browser(2), tenant(1, true), now(6)), Turn::Now);
    // Back again, it is served before those that came after it.
    assert_eq!(queue.ask(browser(1), tenant(1, true), now(7)), wait(1, 1));
    assert_eq!(queue.ask(browser(3), tenant(1, true), now(8)), wait(2, 3));
    queue.ended(browser(2));
    assert_eq!(queue.ask(browser(3), tenant(1, true), now(9)), wait(2, 3));
    assert_eq!(queue.ask(browser(1), tenant(1, true), now(9)), Turn::Now);
    // A turn that it has is given to the next one.
    assert_eq!(queue.hold(browser(1), tenant(1, true), now(10)), Some(now(1)));
    assert_eq!(queue.ask(browser(3), tenant(1, true), now(10)), Turn::Now);
    // Whoever does not say that it is to be held loses its place.
    assert_eq!(queue.hold(browser(1), tenant(1, true), now(20)), Some(now(20)));
}

#[test]
fn an_entry_that_arrives_keeps_its_place_before_those_that_came_later() {
    let mut queue = queue(1);
    let team = tenant(1, true);
    assert_eq!(queue.ask(browser(1), team, now(0)), Turn::Now);
    assert_eq!(queue.ask(browser(2), team, now(10)), wait(1, 10));
    queue.arrive(browser(3), team, now(4), now(12));
    assert_eq!(queue.in_order(), [(browser(2), now(10))], "it has not asked yet");
    assert_eq!(queue.arriving(), 1);
    assert_eq!(queue.ask(browser(3), team, now(13)), wait(1, 4));
    assert_eq!(queue.in_order(), [(browser(3), now(4)), (browser(2), now(10))]);
    assert_eq!(queue.arriving(), 0);
    let since = [3, 1].map(|number| queue.waiting_since(browser(number)));
    assert_eq!(since, [Some(now(4)), None]);
    // Saying it again changes nothing, and nobody has waited since a time to come.
    queue.arrive(browser(3), team, now(1), now(13));
    queue.arrive(browser(4), team, now(99), now(14));
    assert_eq!(queue.hold(browser(4), team, now(15)), Some(now(14)));
    assert_eq!(queue.arriving(), 1, "it was not there yet");
    queue.ended(browser(1));
    assert_eq!(queue.ask(browser(3), team, now(16)), Turn::Now);
    queue.arrive(browser(3), team, now(1), now(16));
    assert_eq!(queue.ask(browser(3), team, now(16)), Turn::Now, "it has its turn");
}

#[test]
fn those_who_wait_for_their_quota_are_not_among_those_whose_turn_is_next() {
    let mut queue = BrowserQueue::new(quotas(4, 4, 1));
    let asked = [(1, true), (2, true), (3, true), (4, false), (5, false), (6, true)];
    for (number, production) in asked {
        queue.ask(browser(number), tenant(number, production), now(0));
    }
    assert_eq!(queue.in_order(), [(browser(6), now(0))]);
    // One team has all turns, which is no quota.
    let mut queue = BrowserQueue::new(quotas(2, 2, 2));
    for number in 0..3 {
        queue.ask(browser(number), tenant(1, false), now(0));
    }
    assert_eq!(queue.in_order(), [(browser(2), now(0))]);
}

#[test]
fn the_expected_wait_is_the_mean_length_of_turns_for_each_place_and_turn() {
    let mut queue = queue(4);
    let team = tenant(1, true);
    for number in 0..4 {
        queue.ask(browser(number), team, now(0));
    }
    for (number, at) in [(0, 90), (1, 120)] {
        queue.finished(browser(number), now(at));
        queue.ask(browser(10 + number), team, now(at));
    }
    assert_eq!(queue.expected_wait(1), None, "two are too few");
    queue.ended(browser(2));
    queue.ask(browser(12), team, now(130));
    assert_eq!(queue.expected_wait(1), None, "it did not use its turn");
    queue.finished(browser(3), now(150));
    queue.finished(browser(3), now(999));
    queue.ask(browser(13), team, now(150));
    // 120 s on average, of four that run.
    assert_eq!(queue.expected_wait(1), Some(TimeDelta::seconds(30)));
    assert_eq!(queue.expected_wait(6), Some(TimeDelta::seconds(180)));
    // Only the last 32 count.
    for number in 100..132 {
        queue.ended(browser(number - 1));
        queue.ended(browser(10));
        queue.ask(browser(number), team, now(200));
        queue.finished(browser(number), now(210));
    }
    for number in 200..204 {
        queue.ask(browser(number), team, now(300));
    }
    assert_eq!(queue.expected_wait(4), Some(TimeDelta::seconds(10)));
    // A clock that was set back makes no wait negative.
    queue.finished(browser(200), now(0));
    assert!(queue.expected_wait(1).unwrap() >= TimeDelta::zero());
    assert!(queue.expected_wait(usize::MAX).is_some_and(|wait| wait > TimeDelta::zero()));
}

#[test]
fn entries_that_arrive_are_limited_as_those_that_are_held() {
    let mut queue = BrowserQueue::new(Quotas { waiting_per_team: 2, ..quotas(1, 1, 1) });
    let team = tenant(1, true);
    assert_eq!(queue.ask(browser(0), team, now(0)), Turn::Now);
    for number in 1..=3 {
        queue.arrive(browser(number), team, now(0), now(5));
    }
    assert_eq!(queue.ask(browser(2), team, now(6)), wait(1, 0));
    assert_eq!(queue.ask(browser(3), team, now(6)), wait(2, 6), "it was one too many");
}

#[test]
fn held_entries_are_limited_and_take_no_room_of_others() {
    let quotas = Quotas { waiting_per_team: 2, ..quotas(1, 1, 1) };
    let mut queue = BrowserQueue::new(quotas);
    assert_eq!(queue.ask(browser(0), tenant(1, true), now(0)), Turn::Now);
    for number in [1, 2] {
        assert!(matches!(queue.ask(browser(number), tenant(1, true), now(0)), Turn::Wait { .. }));
        assert_eq!(queue.hold(browser(number), tenant(1, true), now(1)), Some(now(0)));
    }
    for number in [3, 4] {
        assert!(matches!(queue.ask(browser(number), tenant(1, true), now(2)), Turn::Wait { .. }));
    }
    assert_eq!(queue.hold(browser(3), tenant(1, true), now(2)), None, "two are held");
    assert_eq!(queue.ask(browser(3), tenant(1, true), now(3)), wait(2, 3), "at the end");
    // One that comes back is not refused although two others wait.
    assert_eq!(queue.ask(browser(1), tenant(1, true), now(3)), wait(1, 0));
    assert_eq!(queue.hold(browser(3), tenant(1, true), now(3)), Some(now(3)));
}

/// The reference implementation: assigns the turns one by one, each to the waiting entry of the
/// lowest rank.
fn reference_order(queue: &BrowserQueue) -> Vec<BrowserId> {
    let (mut shares, mut order) = (queue.shares(), vec![]);
    let mut remaining = queue.waiting.clone();
    remaining.retain(|_, waiting| !waiting.is_held);
    while !remaining.is_empty() {
        let full = shares.total >= queue.quotas.total;
        let next = remaining.iter().min_by_key(|(id, waiting)| {
            let over_quota = !full && !shares.allows(waiting.tenant, queue.quotas);
            (over_quota, shares.rank(waiting.tenant), waiting.since, **id)
        });
        let (id, tenant) = next.map(|(id, waiting)| (*id, waiting.tenant)).unwrap();
        remaining.remove(&id);
        shares.add(tenant);
        order.push(id);
    }
    order
}

proptest! {
    /// The queues per tenant give the same order as ranking each waiting entry.
    #[test]
    fn turns_have_the_order_of_the_reference_implementation(
        asks in prop::collection::vec(
            (0_u128..60, 1_u128..5, any::<bool>(), any::<bool>(), 0_i64..9), 1..80,
        ),
    ) {
        let mut queue = BrowserQueue::new(quotas(4, 2, 3));
        let mut tenants = BTreeMap::new();
        for (id, team, production, is_held, at) in asks {
            let tenant = *tenants.entry(id).or_insert_with(|| tenant(team, production));
            if is_held {
                queue.hold(browser(id), tenant, now(at));
            } else {
                queue.ask(browser(id), tenant, now(at));
            }
        }
        let order: Vec<_> = queue.turns(queue.shares()).map(|turn| turn.id).collect();
        prop_assert_eq!(order, reference_order(&queue));
    }

    /// For any sequence of requests and ends: no quota is exceeded, and a free browser goes to one
    /// of the waiting entries.
    #[test]
    fn quotas_are_kept_and_no_browser_idles(
        steps in prop::collection::vec((0_u128..40, 1_u128..5, any::<bool>(), any::<bool>()), 1..200),
    ) {
        let quotas = quotas(6, 3, 4);
        let mut queue = BrowserQueue::new(quotas);
        let mut tenants = BTreeMap::new();
        for (id, team, production, ends) in steps {
            let tenant = *tenants.entry(id).or_insert_with(|| tenant(team, production));
            if ends {
                queue.ended(browser(id));
            } else {
                queue.ask(browser(id), tenant, now(0));
            }
            let count = |counted: &dyn Fn(&Tenant) -> bool| {
                queue.running.values().filter(|running| counted(&running.tenant)).count()
            };
            prop_assert!(queue.running.len() <= quotas.total);
            prop_assert!(count(&|tenant| tenant.is_development()) <= quotas.development);
            for team in 1..5 {
                let team = TeamId::from_u128(team);
                prop_assert!(count(&|tenant| tenant.team == team) <= quotas.per_team);
            }
        }
        // All waiting entries ask once more: each one that the quotas allow gets a browser.
        let waiting: Vec<_> = queue.waiting.iter().map(|(id, w)| (*id, w.tenant)).collect();
        for _ in 0..waiting.len() {
            for (id, tenant) in &waiting {
                queue.ask(*id, *tenant, now(0));
            }
        }
        let shares = queue.shares();
        for waiting in queue.waiting.values() {
            prop_assert!(!shares.allows(waiting.tenant, quotas));
        }
    }
}
