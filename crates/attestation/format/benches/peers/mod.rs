//! Other systems that prove a server's response, in their published packages, each in its own
//! processes.

use std::{path::Path, process::Command};

use serde_json::Value;

const RECLAIM: &str = "@reclaimprotocol/zk-symmetric-crypto 5.1.3 (stwo)";
const TLSNOTARY: &str = "tlsn-wasm 0.1.0-alpha.12";

/// Proves that some key decrypts this number of bytes, which is the expensive part of an
/// attestation.
pub(crate) fn reclaim(bytes: usize) -> Value {
    run("reclaim", &[&bytes.to_string()])
}

/// Runs a complete request with a hidden cookie of this length, and a revealed response.
pub(crate) fn tlsnotary(cookie: usize, response: usize) -> Value {
    run("tlsnotary", &["chromium", &cookie.to_string(), &response.to_string()])
}

fn run(peer: &str, arguments: &[&str]) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/peers").join(peer);
    let output = Command::new("node").arg(folder.join("prove.mjs")).args(arguments).output();
    let output = output.unwrap();
    assert!(
        output.status.success(),
        "run `npm ci` in tests/peers/{peer}, as `cargo xtask bench` does: {}",
        String::from_utf8_lossy(&output.stdout)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

pub(crate) fn beside_reclaim(figure: &Value) -> String {
    let peer = |name: &str| figure["reclaim"][name].as_f64().unwrap();
    let ratio = |name: &str| figure[name].as_f64().unwrap() / peer(name);
    format!(
        "  {RECLAIM}: prove {:.2} s (ratio {:.2}), verify {:.2} s ({:.2}), proofs {:.0} B ({:.3}), \
         memory {:.0} MiB ({:.1})",
        peer("proveSeconds"),
        ratio("proveSeconds"),
        peer("verifySeconds"),
        ratio("verifySeconds"),
        peer("proofBytes"),
        ratio("proofBytes"),
        peer("memoryMiB"),
        ratio("memoryMiB"),
    )
}

/// Proving and verifying are one interactive protocol there.
pub(crate) fn beside_tlsnotary(figure: &Value) -> String {
    let peer = |name: &str| figure["tlsnotary"][name].as_f64().unwrap();
    let own = |name: &str| figure[name].as_f64().unwrap();
    let (setup, request) = (peer("setupSeconds"), peer("requestSeconds") + peer("revealSeconds"));
    format!(
        "  {TLSNOTARY}: set up {setup:.2} s and request {request:.2} s (ratio {:.2}), on the wire \
         {:.0} B ({:.4}), memory {:.0} MiB ({:.1})",
        (own("proveSeconds") + own("verifySeconds")) / (setup + request),
        peer("wireBytes"),
        own("wireBytes") / peer("wireBytes"),
        peer("memoryMiB"),
        own("memoryMiB") / peer("memoryMiB"),
    )
}
