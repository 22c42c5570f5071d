//! Turns under many teams, quotas, and random comings and goings.

use proptest::prelude::*;
use uuid::Uuid;

use super::*;

fn now(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_700_000_000 + seconds, 0).unwrap()
}

fn browser(number: u128) -> BrowserId {
    BrowserId::from_uuid(Uuid::from_u128(number))
}

fn tenant(team: u128, production: bool) -> Tenant {
    let environment = if production { Environment::Production } else { Environment::Development };
    Tenant { team: TeamId::from_uuid(Uuid::from_u128(team)), environment }
}

fn queue(total: usize) -> BrowserQueue {
    BrowserQueue::new(BrowserQuotas { total, per_team: total, development: total })
}

#[test]
fn a_team_with_fifty_sessions_delays_another_by_one_turn() {
    let mut queue = queue(2);
    for number in 0..50 {
        queue.ask(browser(number), tenant(1, true), now(0));
    }
    let mine = browser(100);
    assert_eq!(queue.ask(mine, tenant(2, true), now(1)), Turn::Wait { place: 1 });
    queue.ended(browser(0));
    // Whoever of the first team asks first does not get the browser that is free.
    for number in 2..50 {
        assert_ne!(queue.ask(browser(number), tenant(1, true), now(2)), Turn::Now);
    }
    assert_eq!(queue.ask(mine, tenant(2, true), now(2)), Turn::Now);
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
fn quotas_hold_while_there_is_room() {
    let quotas = BrowserQuotas { total: 8, per_team: 3, development: 4 };
    let mut queue = BrowserQueue::new(quotas);
    let turns = |queue: &mut BrowserQueue, from: u128, tenant: Tenant| {
        let ids = from..from + 5;
        ids.filter(|id| queue.ask(browser(*id), tenant, now(0)) == Turn::Now).count()
    };
    assert_eq!(turns(&mut queue, 0, tenant(1, false)), 3);
    assert_eq!(turns(&mut queue, 10, tenant(2, false)), 1);
    assert_eq!(turns(&mut queue, 20, tenant(1, true)), 0);
    assert_eq!(turns(&mut queue, 30, tenant(3, true)), 3);
    // Those who are over a quota hold nobody up.
    assert_eq!(turns(&mut queue, 40, tenant(4, true)), 1);
}

#[test]
fn whoever_asks_no_longer_loses_the_place() {
    let mut queue = queue(1);
    assert_eq!(queue.ask(browser(1), tenant(1, true), now(0)), Turn::Now);
    assert_eq!(queue.ask(browser(1), tenant(1, true), now(0)), Turn::Now, "asked twice");
    queue.ask(browser(2), tenant(2, true), now(0));
    queue.ended(browser(1));
    assert_eq!(queue.ask(browser(3), tenant(3, true), now(9)), Turn::Wait { place: 2 });
    assert_eq!(queue.ask(browser(3), tenant(3, true), now(10)), Turn::Now);
    assert_eq!(queue.waiting(), 0);
    assert_eq!(
        queue.refused(browser(3), tenant(3, true), now(11)),
        Turn::Wait { place: 1 },
        "there was no room"
    );
}

proptest! {
    /// Whatever comes and goes: no quota is exceeded, and a browser that is free is given out
    /// to one of those who ask.
    #[test]
    fn quotas_are_kept_and_no_browser_idles(
        steps in prop::collection::vec((0_u128..40, 1_u128..5, any::<bool>(), any::<bool>()), 1..200),
    ) {
        let quotas = BrowserQuotas { total: 6, per_team: 3, development: 4 };
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
                queue.running.values().filter(|(tenant, _)| counted(tenant)).count()
            };
            prop_assert!(queue.running.len() <= quotas.total);
            prop_assert!(count(&|tenant| tenant.is_development()) <= quotas.development);
            for team in 1..5 {
                let team = TeamId::from_uuid(Uuid::from_u128(team));
                prop_assert!(count(&|tenant| tenant.team == team) <= quotas.per_team);
            }
        }
        // All who wait ask once more, in some order: whoever fits gets one.
        let waiting: Vec<_> = queue.waiting.iter().map(|(id, w)| (*id, w.tenant)).collect();
        for _ in 0..waiting.len() {
            for (id, tenant) in &waiting {
                queue.ask(*id, *tenant, now(0));
            }
        }
        let mut shares = Shares { by_tenant: BTreeMap::new(), total: 0 };
        queue.running.values().for_each(|(tenant, _)| shares.add(*tenant));
        for waiting in queue.waiting.values() {
            prop_assert!(!shares.may_have_more(waiting.tenant, quotas));
        }
    }
}
