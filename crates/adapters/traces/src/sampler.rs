//! Which traces are recorded.

use std::str::FromStr;

use domain::id::SessionId;

use crate::ids::{TraceId, trace_of};

/// The number of values that the random part of a trace identifier has.
const RANDOM_VALUES: f64 = 72_057_594_037_927_936.0;

/// Decides from the identifier of a trace whether it is recorded, so that all processes decide alike.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Sampler {
    Always,
    Never,
    /// This part of the traces, from 0 to 1.
    Ratio(f64),
}

/// Why there is no such sampler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSampler {
    #[error(
        "must be always_on, always_off, traceidratio, or one of these with parentbased_ before it"
    )]
    Name,
    #[error("must be a number from 0 to 1")]
    Ratio,
}

impl Sampler {
    /// Reads the name of a sampler of OpenTelemetry and its argument, which only a ratio has; without it,
    /// the ratio is 1.
    ///
    /// A trace of this service has no parent elsewhere, so `parentbased_` makes no difference.
    ///
    /// # Errors
    /// There is no such sampler, or the ratio is not from 0 to 1.
    pub fn of(name: &str, argument: Option<&str>) -> Result<Self, InvalidSampler> {
        match name.strip_prefix("parentbased_").unwrap_or(name) {
            "always_on" => Ok(Self::Always),
            "always_off" => Ok(Self::Never),
            "traceidratio" => {
                let ratio = argument.map_or(Ok(1.0), f64::from_str);
                let ratio = ratio.ok().filter(|ratio| (0.0..=1.0).contains(ratio));
                ratio.map(Self::Ratio).ok_or(InvalidSampler::Ratio)
            }
            _ => Err(InvalidSampler::Name),
        }
    }

    /// Returns the identifier of a session's trace, and `None` if its spans are not recorded.
    #[must_use]
    pub fn trace_of(self, session: SessionId) -> Option<u128> {
        let trace = trace_of(session);
        self.samples(trace).then_some(u128::from_be_bytes(trace))
    }

    /// Compares the last 56 bits, which are the random part of an identifier (W3C Trace Context, level 2).
    /// In that of a session they are behind the variant of its UUID.
    pub(crate) fn samples(self, trace: TraceId) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Ratio(ratio) => {
                let (_, random) = trace.split_at(9);
                let random = random.iter().fold(0.0, |sum, byte| sum * 256.0 + f64::from(*byte));
                // Those above a threshold, as in "Probability Sampling" of OpenTelemetry: a collector with the
                // same ratio keeps the same traces. The largest values are rounded up to their number.
                ratio > 0.0 && random >= (1.0 - ratio) * RANDOM_VALUES
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use sha2::{Digest as _, Sha256};
    use uuid::Uuid;

    use super::*;

    #[test]
    fn the_samplers_of_opentelemetry_have_their_names() {
        assert_eq!(Sampler::of("always_on", None), Ok(Sampler::Always));
        assert_eq!(Sampler::of("parentbased_always_off", None), Ok(Sampler::Never));
        assert_eq!(Sampler::of("traceidratio", None), Ok(Sampler::Ratio(1.0)));
        let quarter = Sampler::of("parentbased_traceidratio", Some("0.25"));
        assert_eq!(quarter, Ok(Sampler::Ratio(0.25)));
        for argument in ["", "-0.1", "1.1", "NaN", "all"] {
            let error = Sampler::of("traceidratio", Some(argument));
            assert_eq!(error, Err(InvalidSampler::Ratio), "{argument}");
        }
        for name in ["", "jaeger_remote", "parentbased_", "ALWAYS_ON"] {
            assert_eq!(Sampler::of(name, None), Err(InvalidSampler::Name), "{name}");
        }
    }

    /// Identifiers of sessions have a time, a version and a variant, which do not count.
    #[test]
    fn a_ratio_samples_that_part_of_the_sessions() {
        const SESSIONS: u32 = 20_000;
        for ratio in [0.0, 0.01, 0.25, 0.5, 1.0] {
            let sampled = (0..SESSIONS).filter(|number| {
                let hash: [u8; 32] = Sha256::digest(number.to_be_bytes()).into();
                let id = uuid::Builder::from_unix_timestamp_millis(
                    1_800_000_000_000,
                    hash.first_chunk().unwrap(),
                );
                Sampler::Ratio(ratio).samples(id.into_uuid().into_bytes())
            });
            let part = f64::from(u32::try_from(sampled.count()).unwrap()) / f64::from(SESSIONS);
            assert!((part - ratio).abs() < 0.01, "{part} instead of {ratio}");
        }
    }

    #[test]
    fn the_traces_above_the_threshold_are_sampled() {
        let trace = |random: u8| {
            let mut bytes = [0; 16];
            bytes[9] = random;
            bytes
        };
        for (ratio, random, sampled) in
            [(0.25, 0xBF, false), (0.25, 0xC0, true), (0.5, 0x7F, false), (0.5, 0x80, true)]
        {
            assert_eq!(Sampler::Ratio(ratio).samples(trace(random)), sampled, "{ratio} {random}");
        }
    }

    #[test]
    fn the_trace_of_a_sampled_session_is_its_identifier() {
        let [session, other] = [u128::MAX, 7].map(SessionId::from_u128);
        assert_eq!(Sampler::Ratio(0.5).trace_of(session), Some(u128::MAX));
        assert_eq!(Sampler::Ratio(0.5).trace_of(other), None);
    }

    #[test]
    fn the_bounds_of_a_ratio_hold_for_every_identifier() {
        for trace in [[0; 16], [0xFF; 16], Uuid::from_u128(7).into_bytes()] {
            assert!(Sampler::Ratio(1.0).samples(trace) && Sampler::Always.samples(trace));
            assert!(!Sampler::Ratio(0.0).samples(trace) && !Sampler::Never.samples(trace));
        }
    }
}
