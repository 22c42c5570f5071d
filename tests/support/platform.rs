//! Platforms for single tests, derived from the sandbox's definition.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::{root, service::Deployment};

/// Returns the file of the sandbox's definition.
pub fn sandbox() -> PathBuf {
    root().join("crates/domain/platforms/sandbox.json")
}

/// Publishes the sandbox under another name with changes; returns the platform's id.
pub fn publish(deployment: &Deployment, name: &str, change: impl FnOnce(&mut Value)) -> Value {
    let file = write(deployment, name, change);
    let file = file.to_str().expect("a plain path");
    deployment.admin(&["publish-platform", file])["platformId"].clone()
}

/// Writes the sandbox's definition under another name with changes; returns the file.
pub fn write(deployment: &Deployment, name: &str, change: impl FnOnce(&mut Value)) -> PathBuf {
    let text = std::fs::read_to_string(sandbox()).expect("the sandbox's definition");
    let mut definition: Value = serde_json::from_str(&text).expect("it is JSON");
    definition["platform"] = name.into();
    change(&mut definition);
    let file = deployment.folder.path().join(format!("{name}.json"));
    std::fs::write(&file, definition.to_string()).expect("a file");
    file
}

/// Publishes a platform that shows its sign-in page, stays RUNNING for some seconds, and then asks
/// the applicant to sign in as the sandbox does.
pub fn lingering(deployment: &Deployment, name: &str, seconds: u16) -> Value {
    publish(deployment, name, |definition| {
        definition["signals"]["never"] = json!({ "selector": "#never" });
        definition["nodes"]["open"]["next"] = json!("linger");
        definition["nodes"]["linger"] = json!({
            "type": "branch",
            "cases": [{ "when": "never", "next": "profile" }],
            "settleSeconds": seconds,
            "default": { "next": "route" },
        });
    })
}
