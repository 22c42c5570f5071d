//! The commands that configure a page before its first script runs.

use ports::browser::{BrowserSpec, Device, Viewport};
use serde_json::{Value, json};

use super::{
    WORLD_NAME,
    scripts::{BINDING_NAME, REPORT_FIELDS, STYLE_SELECTS},
};

/// Bytes of response bodies that Chromium buffers for the workflow.
const RESPONSE_BUFFER_BYTES: u32 = 8 * 1024 * 1024;

/// The JPEG quality of frames: viewers are never sent a higher one.
const JPEG_QUALITY: u8 = 80;
/// Frames that Chromium sends without an acknowledgement.
const MAX_FRAMES_IN_FLIGHT: u8 = 3;

/// Chromium's own user agent, without the word that tells that it is headless. Nothing else is hidden:
/// going further is a legal decision of the operator's, not a default.
pub(super) struct UserAgent {
    text: String,
    version: String,
}

impl UserAgent {
    pub(super) fn new(original: &str) -> Self {
        let text = original.replace("HeadlessChrome", "Chrome");
        let version = text.split_once("Chrome/").map(|(_, rest)| rest);
        let version = version.and_then(|rest| rest.split([' ', '.']).next()).unwrap_or_default();
        Self { version: version.to_owned(), text }
    }

    /// Returns the parameters of `Emulation.setUserAgentOverride`.
    fn override_params(&self, spec: &BrowserSpec) -> Value {
        let mobile = spec.device.touch;
        let text = if mobile {
            // The reduced user agent of Chrome for Android, the same for every device.
            format!(
                "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) \
                 Chrome/{}.0.0.0 Mobile Safari/537.36",
                self.version
            )
        } else {
            self.text.clone()
        };
        json!({
            "userAgent": text,
            "acceptLanguage": accept_language(&spec.locale.language),
            "userAgentMetadata": {
                "brands": [
                    { "brand": "Chromium", "version": self.version },
                    { "brand": "Not=A?Brand", "version": "24" },
                ],
                "platform": if mobile { "Android" } else { "Linux" },
                "platformVersion": "",
                "architecture": if mobile { "" } else { "x86" },
                "model": "",
                "mobile": mobile,
            },
        })
    }
}

/// Returns the value of `Accept-Language`: the tag, its language without the country, and English
/// (RFC 9110, section 12.5.4; Chromium adds the weights).
fn accept_language(tag: &str) -> String {
    let language = tag.split('-').next().unwrap_or_default();
    match language {
        "" | "en" => [tag, "en"].into_iter().filter(|tag| !tag.is_empty()).collect::<Vec<_>>(),
        language => vec![tag, language, "en"],
    }
    .join(",")
}

/// Returns the commands for every page, in this order, while it is paused.
pub(super) fn page_commands() -> Vec<(&'static str, Value)> {
    let documents = json!([{ "resourceType": "Document", "requestStage": "Request" }]);
    let mut commands = frame_commands();
    commands.extend([
        ("Fetch.enable", json!({ "patterns": documents })),
        ("Emulation.setFocusEmulationEnabled", json!({ "enabled": true })),
        ("Page.setInterceptFileChooserDialog", json!({ "enabled": true })),
    ]);
    commands
}

/// Returns the commands for every frame that has a process of its own, in this order, while it is paused.
/// They are among those for pages.
pub(super) fn frame_commands() -> Vec<(&'static str, Value)> {
    let script =
        |source| json!({ "source": source, "worldName": WORLD_NAME, "runImmediately": true });
    vec![
        ("Page.enable", json!({})),
        ("Network.enable", json!({ "maxTotalBufferSize": RESPONSE_BUFFER_BYTES })),
        ("Target.setAutoAttach", auto_attach()),
        ("Runtime.enable", json!({})),
        ("Runtime.addBinding", json!({ "name": BINDING_NAME, "executionContextName": WORLD_NAME })),
        ("Page.addScriptToEvaluateOnNewDocument", script(STYLE_SELECTS)),
        ("Page.addScriptToEvaluateOnNewDocument", script(REPORT_FIELDS)),
    ]
}

/// Returns the commands that apply the parameters of a session.
pub(super) fn session_commands(
    spec: &BrowserSpec,
    agent: &UserAgent,
) -> Vec<(&'static str, Value)> {
    let device = spec.device;
    let mut commands = vec![
        ("Emulation.setEmulatedMedia", media_features(device)),
        ("Emulation.setUserAgentOverride", agent.override_params(spec)),
    ];
    if device.touch {
        let touch = json!({ "enabled": true, "maxTouchPoints": 5 });
        commands.push(("Emulation.setTouchEmulationEnabled", touch));
    }
    if !spec.locale.language.is_empty() {
        let locale = json!({ "locale": spec.locale.language.replace('-', "_") });
        commands.push(("Emulation.setLocaleOverride", locale));
    }
    if let Some(time_zone) = &spec.locale.time_zone {
        commands.push(("Emulation.setTimezoneOverride", json!({ "timezoneId": time_zone })));
    }
    commands
}

/// Returns the parameters of `Target.setAutoAttach`. Without a filter: a worker that one leaves out waits
/// for ever.
pub(super) fn auto_attach() -> Value {
    json!({ "autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true })
}

/// Returns the commands for every worker, while it is paused.
pub(super) fn worker_commands(spec: &BrowserSpec, agent: &UserAgent) -> [(&'static str, Value); 2] {
    [
        ("Target.setAutoAttach", auto_attach()),
        ("Network.setUserAgentOverride", agent.override_params(spec)),
    ]
}

/// Returns the commands that set the viewport and start the screencast.
pub(super) fn viewport_commands(device: Device) -> [(&'static str, Value); 2] {
    let (Viewport { width, height }, scale) = (device.viewport, device.scale.times());
    let metrics = json!({
        "width": width, "height": height, "deviceScaleFactor": scale, "mobile": device.touch,
        "screenWidth": width, "screenHeight": height,
    });
    let screencast = json!({
        "format": "jpeg", "quality": JPEG_QUALITY, "everyNthFrame": 1, "sendLastFrame": true,
        "maxWidth": width * scale, "maxHeight": height * scale,
        "maxFramesInFlight": MAX_FRAMES_IN_FLIGHT,
    });
    [("Emulation.setDeviceMetricsOverride", metrics), ("Page.startScreencast", screencast)]
}

/// Returns the media features that express the device's preferences.
fn media_features(device: Device) -> Value {
    let feature =
        |name, enabled, value| json!({ "name": name, "value": if enabled { value } else { "" } });
    json!({ "features": [
        feature("prefers-color-scheme", device.dark, "dark"),
        feature("prefers-reduced-motion", device.reduced_motion, "reduce"),
    ] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_is_followed_by_english() {
        assert_eq!(accept_language("de-DE"), "de-DE,de,en");
        assert_eq!(accept_language("en-US"), "en-US,en");
        assert_eq!(accept_language(""), "en");
    }

    #[test]
    fn the_user_agent_does_not_contain_headless() {
        let original = "Mozilla/5.0 (X11; Linux x86_64) HeadlessChrome/156.0.0.0 Safari/537.36";
        let agent = UserAgent::new(original);
        assert_eq!(agent.version, "156");
        assert!(!agent.text.contains("Headless"), "{}", agent.text);
    }
}
