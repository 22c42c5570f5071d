//! Tells whether the answer of a URL can be attested, in which modes, and why not: handshakes with
//! the server, one request, and an assessment about what they showed.
//!
//! **Invariant:** the assessment is a pure function of the observations ([`assessments`]). Where the rules
//! of the attestation can be run on the recorded connection, they are run, and a connection that they
//! refuse is never reported as one that can be attested. Texts of the server are bounded and escaped
//! where they are observed. No value of a given header and no value of a cookie is kept.

mod assessment;
mod certificates;
mod connection;
mod examination;
mod exchange;
mod handshakes;
mod json_value;
mod observation;
mod probing;
mod report;
mod response;
mod target;
mod text;

pub use self::{
    assessment::{ModeAssessment, assessments},
    handshakes::{HANDSHAKE_TIMEOUT, MAX_HANDSHAKES},
    observation::{
        AddressObserved, AlpnOutcome, BodyFraming, CertificateObserved, Completeness,
        ConnectionEnd, ExaminedMode, ExchangeOutcome, JsonSyntax, Observations, Offer,
        OfferOutcome, ResponseObserved,
    },
    probing::{DEADLINE, ProbeError, ServerProbe},
    report::ProbeReport,
    target::{InvalidTarget, ProbeTarget},
};
