//! Measures attestations: proving, verifying, bytes and memory, by mode and by the lengths of the
//! cookie and of the response. Compares each with the same GET over TLS 1.3 without attestation.
//!
//! Each case runs in a separate process, so that its memory is measured separately.
#![expect(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a benchmark panics to fail"
)]

#[path = "../tests/attacks/any_certificate.rs"]
mod any_certificate;
mod peers;
#[expect(dead_code, reason = "the attacks use the other items")]
#[path = "../tests/attacks/setup.rs"]
mod setup;

use std::{fs, path::Path, process::Command, time::Instant};

use attestation::{
    CertificateTrust,
    descriptor::{Descriptor, RevealMode},
    full_reveal::Capture,
    zk::Spartan,
    zktls::{HidePolicy, examine, reveal},
};
use rustls::pki_types::UnixTime;
use serde_json::{Value, json};

use self::setup::{HOST, Setup, descriptor, request_with};

/// The mode, and the lengths of the cookie and of the response's body in bytes. With `zktls-full`
/// all but some 60 bytes of the body are hidden.
const CASES: &[(RevealMode, usize, usize)] = &[
    (RevealMode::ZktlsRequest, 300, 1024),
    (RevealMode::ZktlsRequest, 700, 1024),
    (RevealMode::ZktlsRequest, 700, 16 * 1024),
    (RevealMode::ZktlsRequest, 700, 64 * 1024),
    (RevealMode::ZktlsRequest, 1600, 1024),
    (RevealMode::ZktlsRequest, 4096, 1024),
    (RevealMode::ZktlsFull, 300, 1024),
    (RevealMode::ZktlsFull, 700, 1024),
    (RevealMode::ZktlsFull, 700, 4 * 1024),
];
const ROUNDS: usize = 3;

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).filter(|one| one != "--bench").collect();
    if let [mode, cookie, body] = arguments.as_slice() {
        let mode = serde_json::from_value(json!(mode)).unwrap();
        println!("{}", case(mode, cookie.parse().unwrap(), body.parse().unwrap()));
        return;
    }
    let program = std::env::current_exe().unwrap();
    let mut figures = vec![];
    for (mode, cookie, body) in CASES {
        let mut command = Command::new(&program);
        command.arg(json!(mode).as_str().unwrap());
        let output = command.args([cookie, body].map(ToString::to_string)).output();
        let mut figure: Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
        println!("{}", line(&figure));
        // The length of the response does not affect the one, and takes minutes with the other.
        if (*mode, *body) == (CASES[0].0, CASES[0].2) {
            figure["reclaim"] = peers::reclaim(*cookie);
            println!("{}", peers::beside_reclaim(&figure));
            figure["tlsnotary"] = peers::tlsnotary(*cookie, *body);
            println!("{}", peers::beside_tlsnotary(&figure));
        }
        figures.push(figure);
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../target/bench");
    fs::create_dir_all(&folder).unwrap();
    let report = serde_json::to_string_pretty(&json!({ "figures": figures }));
    fs::write(folder.join("attestation.json"), report.unwrap()).unwrap();
}

fn line(figure: &Value) -> String {
    let number = |name: &str| figure[name].as_f64().unwrap();
    format!(
        "{}, cookie {} B, response {} B: prove {:.2} s, verify {:.2} s, proof {} B, on the wire {} B, \
         memory {:.0} MiB; a plain GET {:.1} ms, ratio {:.0}",
        figure["mode"].as_str().unwrap(),
        figure["cookie"],
        figure["response"],
        number("proveSeconds"),
        number("verifySeconds"),
        figure["proofBytes"],
        figure["wireBytes"],
        number("memoryMiB"),
        number("plainSeconds") * 1000.0,
        (number("proveSeconds") + number("verifySeconds") + number("plainSeconds"))
            / number("plainSeconds"),
    )
}

fn case(mode: RevealMode, cookie: usize, body: usize) -> Value {
    let text = "x".repeat(body.saturating_sub(60));
    let json = format!("{{\"user\":{{\"id\":\"a\",\"verified\":true}},\"text\":\"{text}\"}}");
    let length = json.len();
    let response = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{json}"
    );
    let headers = format!("Accept: application/json\r\nCookie: {}\r\n", "c".repeat(cookie));
    let descriptor = Descriptor { modes: vec![mode], ..descriptor() };
    let (request, response) = (request_with(&headers), response.into_bytes());
    let setup = Setup { request, response, ..Setup::default() };
    let backend = Spartan::default();
    let (mut prove, mut verify, mut plain) = (vec![], vec![], vec![]);
    let mut sizes = (0, 0);
    // The first round creates the keys of its size, which are cached.
    for round in 0..=ROUNDS {
        let began = Instant::now();
        let session = setup.play();
        let played = began.elapsed().as_secs_f64();
        let capture = Capture { client: &session.client, server: &session.server };
        let trust = CertificateTrust { roots: &session.roots, now: UnixTime::now() };
        let secret = session.secret.as_slice().try_into().unwrap();
        let hide = HidePolicy::of(&descriptor);
        let began = Instant::now();
        let revealed = reveal(capture, secret, &hide, &backend, HOST, &trust).unwrap();
        let proved = began.elapsed().as_secs_f64();
        let began = Instant::now();
        examine(capture, &revealed, &backend, &descriptor, &trust).unwrap();
        let verified = began.elapsed().as_secs_f64();
        let telling = attestation::signed::write(&revealed).unwrap().len();
        sizes = (revealed.proof.len(), session.client.len() + session.server.len() + telling);
        if round > 0 {
            prove.push(proved);
            verify.push(verified);
            plain.push(played);
        }
    }
    json!({
        "mode": mode, "cookie": cookie, "response": body,
        "proveSeconds": median(prove), "verifySeconds": median(verify),
        "plainSeconds": median(plain), "proofBytes": sizes.0, "wireBytes": sizes.1,
        "memoryMiB": memory(),
    })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Returns the peak memory of this process.
fn memory() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() as f64 / 1024.0
}
