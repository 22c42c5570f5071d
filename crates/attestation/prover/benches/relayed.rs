//! Measures an attested request against the same request alone, both through the attestor's relay:
//! the GET over TLS 1.3 with its recording and receipt, and then the proof, its examination and the
//! attestation. All components are real; the server runs on this machine.
#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a benchmark panics to fail")]

#[path = "../tests/witness/programs.rs"]
mod programs;
#[expect(dead_code, reason = "the tests use the other items")]
#[path = "../tests/witness/secrets.rs"]
mod secrets;
#[expect(dead_code, reason = "the tests use the other items")]
#[path = "../tests/witness/setup.rs"]
mod setup;

use std::{
    fs,
    path::Path,
    sync::Mutex,
    time::{Duration, Instant},
};

use domain::{secret::Secret, session::AttestationStep};
use ports::attestor::Attestor as _;
use serde_json::json;

use self::setup::Setup;

const ROUNDS: usize = 5;
/// Lengths of the cookie, in bytes.
const COOKIES: [usize; 2] = [300, 700];

fn main() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let figures: Vec<_> = COOKIES.map(|cookie| runtime.block_on(case(cookie))).into();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../target/bench");
    fs::create_dir_all(&folder).unwrap();
    let report = serde_json::to_string_pretty(&json!({ "figures": figures })).unwrap();
    fs::write(folder.join("relayed.json"), report).unwrap();
}

async fn case(cookie: usize) -> serde_json::Value {
    let setup = Setup::start().await;
    let prover = setup.prover();
    let (mut plain, mut whole) = (vec![], vec![]);
    // The first round creates the proving keys of its size, which the processes cache.
    for round in 0..=ROUNDS {
        let mut order = setup.order();
        order.cookies = Secret::new(format!("sid={}", "c".repeat(cookie - "sid=".len())));
        let recorded = Mutex::new(Duration::ZERO);
        let began = Instant::now();
        let reached = |step| {
            if step == AttestationStep::Recorded {
                *recorded.lock().unwrap() = began.elapsed();
            }
        };
        prover.attest(order, &reached).await.unwrap();
        if round > 0 {
            plain.push(recorded.into_inner().unwrap());
            whole.push(began.elapsed());
        }
    }
    let (plain, whole) = (median(plain), median(whole));
    let ratio = whole.as_secs_f64() / plain.as_secs_f64();
    println!(
        "cookie {cookie} B: a GET through the relay {:.1} ms, attested {:.2} s, ratio {ratio:.0}",
        plain.as_secs_f64() * 1000.0,
        whole.as_secs_f64(),
    );
    json!({
        "cookie": cookie, "relayedSeconds": plain.as_secs_f64(),
        "attestedSeconds": whole.as_secs_f64(), "ratio": ratio,
    })
}

fn median(mut values: Vec<Duration>) -> Duration {
    values.sort();
    values[values.len() / 2]
}
