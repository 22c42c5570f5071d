//! What happens in one attempt: the events of its workflow, and how it ends.

use std::collections::VecDeque;

use chrono::TimeDelta;
use domain::{
    error_code::ErrorCode, session::AttestationStep, workflow::MIN_ABSENCE, workflow::PromptKind,
};

use crate::{
    numbers::{in_seconds, seconds},
    parameters::{Applicants, Browsers},
    random::Random,
};

/// The time between two steps that the applicant does not take part in.
const BETWEEN_STEPS: TimeDelta = TimeDelta::milliseconds(500);
/// Failures after which another attempt may succeed, and after which it cannot.
const WORTHWHILE: [ErrorCode; 4] = [
    ErrorCode::CredentialsInvalid,
    ErrorCode::MfaFailed,
    ErrorCode::UnexpectedPage,
    ErrorCode::ExtractionFailed,
];
const POINTLESS: [ErrorCode; 2] = [ErrorCode::NoData, ErrorCode::AccountLocked];

/// What happens next in an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    InputNeeded(PromptKind),
    InputGiven,
    CollectionStarted,
    DataCollected {
        is_complete: bool,
    },
    AttestationAdvanced(AttestationStep),
    AttestationIssued,
    AttestationRefused,
    Failed(ErrorCode),
    /// The applicant closes the page.
    Left,
    /// The applicant has been away for [`MIN_ABSENCE`].
    AbsentForTooLong,
    /// The applicant has been away since the browser was up.
    NotCome,
    Cancelled,
    Declined,
    Terminated,
}

/// The acts of an attempt, each with the time after the one before it.
pub(crate) type Plan = VecDeque<(TimeDelta, Act)>;

/// How an attempt ends.
#[derive(Debug, Clone, Copy)]
enum Ending {
    Success,
    Leaves,
    Cancels,
    Declines,
    Fails(ErrorCode),
    Terminates,
}

/// Draws what happens in an attempt from the time at which the applicant sees the platform's page.
/// `terminated` is the part of the attempts that the partner ends.
pub(crate) fn plan(
    random: &mut Random,
    (applicants, browsers): (&Applicants, &Browsers),
    (is_attested, terminated): (bool, f64),
) -> Plan {
    let ending = ending(random, applicants, terminated);
    let mut plan: Plan = [
        (random.log_normal(browsers.page_load), Act::InputNeeded(PromptKind::Login)),
        (random.log_normal(applicants.sign_in), Act::InputGiven),
    ]
    .into();
    if random.chance(applicants.challenged) {
        plan.push_back((BETWEEN_STEPS, Act::InputNeeded(PromptKind::Otp)));
        plan.push_back((random.log_normal(applicants.challenge), Act::InputGiven));
    }
    match ending {
        Ending::Leaves => return left(random, plan),
        Ending::Cancels => return cut(random, plan, Act::Cancelled),
        Ending::Terminates => return cut(random, plan, Act::Terminated),
        Ending::Fails(why) => {
            plan.push_back((BETWEEN_STEPS, Act::Failed(why)));
            return plan;
        }
        Ending::Success | Ending::Declines => (),
    }
    plan.push_back((BETWEEN_STEPS, Act::CollectionStarted));
    let extraction = random.log_normal(browsers.extraction);
    plan.push_back((extraction, Act::InputNeeded(PromptKind::Consent)));
    let consent = random.log_normal(applicants.consent);
    if matches!(ending, Ending::Declines) {
        plan.push_back((consent, Act::Declined));
        return plan;
    }
    plan.push_back((consent, Act::InputGiven));
    let is_complete = !random.chance(browsers.incomplete);
    plan.push_back((BETWEEN_STEPS, Act::DataCollected { is_complete }));
    if is_attested {
        plan.extend(attestation(random, browsers));
    }
    plan
}

fn ending(random: &mut Random, applicants: &Applicants, terminated: f64) -> Ending {
    let drawn = random.fraction();
    let why = if random.chance(applicants.pointless) {
        POINTLESS.get(random.below(POINTLESS.len()))
    } else {
        WORTHWHILE.get(random.below(WORTHWHILE.len()))
    };
    let why = why.copied().unwrap_or(ErrorCode::InternalError);
    let endings = [
        (applicants.leave, Ending::Leaves),
        (applicants.cancel, Ending::Cancels),
        (applicants.decline, Ending::Declines),
        (applicants.fail, Ending::Fails(why)),
        (terminated, Ending::Terminates),
    ];
    let mut below = 0.0;
    let found = endings.into_iter().find(|(part, _)| {
        below += part;
        drawn < below
    });
    found.map_or(Ending::Success, |(_, ending)| ending)
}

/// Ends a plan while the applicant gives their first or last input.
fn cut(random: &mut Random, mut plan: Plan, act: Act) -> Plan {
    if random.chance(0.5) {
        plan.truncate(2);
    }
    if let Some((time, last)) = plan.back_mut() {
        *time = seconds(in_seconds(*time) * random.fraction());
        *last = act;
    }
    plan
}

fn left(random: &mut Random, plan: Plan) -> Plan {
    let mut plan = cut(random, plan, Act::Left);
    plan.push_back((MIN_ABSENCE, Act::AbsentForTooLong));
    plan
}

fn attestation(random: &mut Random, browsers: &Browsers) -> [(TimeDelta, Act); 3] {
    let time = random.log_normal(browsers.attestation);
    let end = if random.chance(browsers.attestation_refused) {
        Act::AttestationRefused
    } else {
        Act::AttestationIssued
    };
    [
        (time / 4, Act::AttestationAdvanced(AttestationStep::Recorded)),
        (time / 2, Act::AttestationAdvanced(AttestationStep::Proved)),
        (time / 4, end),
    ]
}
