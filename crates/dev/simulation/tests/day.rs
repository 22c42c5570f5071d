//! Simulated days: what must hold in each of them, whatever the load and the failures.

use chrono::TimeDelta;
use simulation::{Deployment, LittlesLaw, Parameters, Report, simulate};

/// A deployment with room for all of these sessions, whose queues are looked into every five seconds.
fn day(sessions: u32) -> Parameters {
    let parameters = Parameters::for_sessions(sessions);
    Parameters { look_interval: TimeDelta::seconds(5), ..parameters }
}

/// A day whose busiest hours need twice as many browsers as there are.
fn crowded_day() -> Parameters {
    Parameters { deployment: Deployment::with(2, 1), ..day(2000) }
}

/// Simulates a day, and asserts what must hold on every day.
fn report(parameters: &Parameters) -> Report {
    let Ok(report) = simulate(parameters) else { panic!("{parameters:?} were refused") };
    let expected = f64::from(parameters.sessions);
    let created = f64::from(u32::try_from(report.created).unwrap_or(u32::MAX));
    assert!((created - expected).abs() < 5.0 * expected.sqrt(), "{created} sessions");
    assert_eq!(report.never_ended, 0, "sessions that never ended");
    assert_eq!(report.rejected_events, 0, "events that a session refused");
    assert_eq!(report.outcomes.values().sum::<u64>(), report.created);
    assert_eq!(report.deliveries.lost, 0, "deliveries that were lost");
    let webhooks = parameters.partners.webhooks_per_team;
    assert_eq!(Ok(report.deliveries.owed / report.created), u64::try_from(webhooks));
    assert_eq!(report.deliveries.owed % report.created, 0);
    assert_eq!(report.queue.over_capacity, 0, "more browsers than slots");
    assert!(report.queue.most_slots <= report.slots);
    assert_eq!(report.queue.overtaken, 0, "sessions that waited for longer were overtaken");
    assert_close(report.queue.running, 0.03);
    report
}

fn assert_close(law: LittlesLaw, part: f64) {
    let LittlesLaw { seen, expected } = law;
    assert!((seen - expected).abs() <= part * expected, "seen {seen}, expected {expected}");
}

#[test]
fn a_day_of_20_000_sessions_ends_completely() {
    let report = report(&day(20_000));
    assert!(report.with_status("COMPLETED") * 10 > report.created * 6);
    assert!(report.queue.waits.p99 < 1000, "{:?}", report.queue.waits);
    assert_eq!(report.queue.refused_full + report.queue.refused_late, 0);
    // Each session is created, expires or ends, and tells its partner.
    assert!(report.rows_per_session() > 20.0);
}

#[test]
fn the_same_seed_gives_the_same_day() {
    let parameters = day(3000);
    let first = simulate(&parameters).unwrap();
    assert_eq!(first, simulate(&parameters).unwrap());
    assert_ne!(first, simulate(&Parameters { seed: 2, ..parameters }).unwrap());
}

#[test]
fn a_crowded_day_refuses_sessions_and_loses_none() {
    let report = report(&crowded_day());
    let queue = &report.queue;
    assert!(queue.refused_late > 50 && queue.left > 50);
    assert_close(queue.waiting, 0.05);
    // Nobody waits for longer than the limit and the next question after it.
    assert!(queue.waits.max < 310_000, "{:?}", queue.waits);
    assert_eq!(queue.most_slots, report.slots);
}

#[test]
fn browsers_do_not_wait_for_applicants_who_left_the_queue() {
    let (crowded, roomy) = (report(&crowded_day()), report(&day(2000)));
    assert!(crowded.queue.left > 50 && roomy.queue.left == 0);
    let holds = (crowded.queue.holds.mean, roomy.queue.holds.mean);
    assert!(holds.0 < holds.1 * 1.1, "{holds:?}");
}

#[test]
fn a_team_with_many_sessions_does_not_crowd_others_out() {
    let mut parameters = Parameters { deployment: Deployment::with(1, 4), ..day(3000) };
    parameters.partners.teams = 10;
    parameters.partners.development = 0.0;
    parameters.applicants.leave = 0.0;
    parameters.applicants.patience_seconds = 86_400.0;
    let queue = report(&parameters).queue;
    // A third of the sessions are of the largest team.
    let (largest, others) = (queue.waits_of_largest, queue.waits_of_others);
    assert!(largest.mean > 10_000.0 && others.mean * 1.5 < largest.mean, "{others:?} {largest:?}");
}

#[test]
fn sessions_of_a_crashed_instance_begin_again() {
    let mut parameters = day(10_000);
    parameters.deployment = Deployment::with(4, 16);
    parameters.deployment.crashes_per_day = 24.0;
    let report = report(&parameters);
    assert!(report.crashes > 50 && report.browsers_lost > 100);
    assert!(report.with_status("COMPLETED") * 10 > report.created * 6);
}

#[test]
fn an_instance_that_crashes_after_a_call_causes_a_duplicate() {
    let mut parameters = day(5000);
    parameters.deployment = Deployment::with(4, 16);
    parameters.deployment.crashes_per_day = 100.0;
    parameters.endpoints.answer.median_seconds = 5.0;
    let deliveries = report(&parameters).deliveries;
    assert!(deliveries.duplicated > 0 && deliveries.duplicated <= deliveries.results_lost);
}

#[test]
fn deliveries_to_endpoints_that_never_answer_are_exhausted() {
    let mut parameters = day(2000);
    parameters.partners.teams = 5;
    parameters.partners.webhooks_per_team = 2;
    parameters.endpoints.dead = 1.0;
    let report = report(&parameters);
    assert_eq!(report.deliveries.exhausted, report.deliveries.owed);
    // The pauses of the circuit breaker use up no attempts.
    assert_eq!(report.deliveries.calls, report.deliveries.owed * 4);
}

#[test]
fn sessions_begin_in_their_regions() {
    let mut parameters = day(3000);
    parameters.deployment = Deployment { regions: 5, ..Deployment::with(10, 16) };
    assert!(report(&parameters).relayed > 500);
}

/// Instances with few browsers each: some are full while others are not.
#[test]
fn sessions_that_wait_are_moved_to_where_a_browser_is_free() {
    let mut parameters = day(4000);
    parameters.deployment = Deployment { crashes_per_day: 12.0, ..Deployment::with(12, 1) };
    let moved = report(&parameters);
    parameters.deployment.moves_waiting = false;
    let stayed = report(&parameters);
    assert!(moved.moved > 100 && stayed.moved == 0);
    let waits = (moved.queue.waits.mean, stayed.queue.waits.mean);
    assert!(waits.0 < waits.1, "{waits:?}");
    assert!(moved.queue.refused_late <= stayed.queue.refused_late);
}

#[test]
fn parameters_without_sense_are_refused() {
    let wrong: [fn(&mut Parameters); 4] = [
        |parameters| parameters.sessions = 0,
        |parameters| parameters.deployment.instances = 0,
        |parameters| parameters.deployment.regions = 6,
        |parameters| parameters.hourly_shares = [0.0; 24],
    ];
    for change in wrong {
        let mut parameters = day(100);
        change(&mut parameters);
        assert!(simulate(&parameters).is_err());
    }
}
