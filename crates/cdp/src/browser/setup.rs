//! What a page is told before its first script runs.

use ports::browser::{BrowserSpec, Device, Viewport};
use serde_json::{Value, json};

use super::{
    WORLD,
    scripts::{FIELDS, PICKERS, TELL},
};

/// Bytes of answers that Chromium keeps for the workflow to read.
const KEPT: u32 = 8 * 1024 * 1024;

/// What is sent on is never finer than this.
const JPEG_QUALITY: u8 = 80;
const FRAMES_IN_FLIGHT: u8 = 3;

/// Who Chromium says it is, without the word that it runs without a window. Nothing else is hidden:
/// how far to go is for the operator's lawyers, not a default.
pub(super) struct Agent {
    text: String,
    version: String,
}

impl Agent {
    pub(super) fn new(told: &str) -> Self {
        let text = told.replace("HeadlessChrome", "Chrome");
        let version = text.split_once("Chrome/").map(|(_, rest)| rest);
        let version = version.and_then(|rest| rest.split([' ', '.']).next()).unwrap_or_default();
        Self { version: version.to_owned(), text }
    }

    fn claims(&self, spec: &BrowserSpec) -> Value {
        let mobile = spec.device.touch;
        let text = if mobile {
            // As Chrome for Android says it of every device (its reduced user agent).
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
            "acceptLanguage": languages(&spec.locale.language),
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

/// The language of a place, without its country, and English behind it (RFC 9110, section 12.5.4;
/// Chromium adds the weights).
fn languages(tag: &str) -> String {
    let plain = tag.split('-').next().unwrap_or_default();
    match plain {
        "" | "en" => [tag, "en"].into_iter().filter(|tag| !tag.is_empty()).collect::<Vec<_>>(),
        plain => vec![tag, plain, "en"],
    }
    .join(",")
}

/// What every page is told, in this order, while it waits to be let run.
pub(super) fn commands() -> Vec<(&'static str, Value)> {
    let documents = json!([{ "resourceType": "Document", "requestStage": "Request" }]);
    let script = |source| json!({ "source": source, "worldName": WORLD, "runImmediately": true });
    vec![
        ("Page.enable", json!({})),
        ("Network.enable", json!({ "maxTotalBufferSize": KEPT })),
        ("Fetch.enable", json!({ "patterns": documents })),
        ("Emulation.setFocusEmulationEnabled", json!({ "enabled": true })),
        ("Page.setInterceptFileChooserDialog", json!({ "enabled": true })),
        ("Runtime.enable", json!({})),
        ("Runtime.addBinding", json!({ "name": TELL, "executionContextName": WORLD })),
        ("Page.addScriptToEvaluateOnNewDocument", script(PICKERS)),
        ("Page.addScriptToEvaluateOnNewDocument", script(FIELDS)),
    ]
}

/// What a page is told of the session that it is for.
pub(super) fn of_session(spec: &BrowserSpec, agent: &Agent) -> Vec<(&'static str, Value)> {
    let device = spec.device;
    let mut commands = vec![
        ("Emulation.setEmulatedMedia", preferences(device)),
        ("Emulation.setUserAgentOverride", agent.claims(spec)),
    ];
    if device.touch {
        let fingers = json!({ "enabled": true, "maxTouchPoints": 5 });
        commands.push(("Emulation.setTouchEmulationEnabled", fingers));
    }
    if !spec.locale.language.is_empty() {
        let locale = json!({ "locale": spec.locale.language.replace('-', "_") });
        commands.push(("Emulation.setLocaleOverride", locale));
    }
    if let Some(zone) = &spec.locale.time_zone {
        commands.push(("Emulation.setTimezoneOverride", json!({ "timezoneId": zone })));
    }
    commands
}

/// How large a page is, and how its pictures are.
pub(super) fn sizes(device: Device) -> [(&'static str, Value); 2] {
    let (Viewport { width, height }, times) = (device.viewport, device.scale.times());
    let metrics = json!({
        "width": width, "height": height, "deviceScaleFactor": times, "mobile": device.touch,
        "screenWidth": width, "screenHeight": height,
    });
    let cast = json!({
        "format": "jpeg", "quality": JPEG_QUALITY, "everyNthFrame": 1, "sendLastFrame": true,
        "maxWidth": width * times, "maxHeight": height * times,
        "maxFramesInFlight": FRAMES_IN_FLIGHT,
    });
    [("Emulation.setDeviceMetricsOverride", metrics), ("Page.startScreencast", cast)]
}

fn preferences(device: Device) -> Value {
    let feature = |name, on, value| json!({ "name": name, "value": if on { value } else { "" } });
    json!({ "features": [
        feature("prefers-color-scheme", device.dark, "dark"),
        feature("prefers-reduced-motion", device.reduced_motion, "reduce"),
    ] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_asks_for_its_language_and_then_for_english() {
        assert_eq!(languages("de-DE"), "de-DE,de,en");
        assert_eq!(languages("en-US"), "en-US,en");
        assert_eq!(languages(""), "en");
    }

    #[test]
    fn the_agent_is_itself_without_the_word_headless() {
        let told = "Mozilla/5.0 (X11; Linux x86_64) HeadlessChrome/156.0.0.0 Safari/537.36";
        let agent = Agent::new(told);
        assert_eq!(agent.version, "156");
        assert!(!agent.text.contains("Headless"), "{}", agent.text);
    }
}
