//! A discrete-event simulation of a deployment: a day of sessions on virtual time, decided by the code
//! of the service.
//!
//! From `domain`: the transitions of a session and their effects, the placement of sessions, the backoff
//! of deliveries, the circuit breaker. From `application`: the fairness queue of browsers, how often a
//! waiting session asks, and the intervals and limits of workers. Simulated are the applicants, the
//! browsers, the webhook endpoints, crashes, and the store, whose rows are counted.
//!
//! **Invariant:** the result depends on the parameters alone: no clock is read, and nothing is iterated
//! over whose order is random.

mod agenda;
mod applicant;
mod attempt;
mod browsers;
mod deliveries;
mod endpoints;
mod histogram;
mod instances;
mod level;
mod moves;
mod numbers;
mod parameters;
mod random;
mod report;
mod session;
mod simulation;
mod tally;
mod transitions;
mod writes;

pub use self::{
    histogram::Percentiles,
    level::HourlyLevel,
    parameters::{
        Applicants, Browsers, DAILY_CURVE, Deployment, Endpoints, InvalidParameters, Parameters,
        Partners,
    },
    random::LogNormal,
    report::{DeliveryReport, LittlesLaw, QueueReport, Report, StoreReport},
    simulation::simulate,
    writes::{SampledBytes, Write},
};
