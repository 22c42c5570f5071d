//! Plays the steps of a `journey.json`: an applicant who looks at the picture of the remote page,
//! chooses its fields by mouse or finger, and types.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use ring::hmac;
use serde_json::{Value, json};

use crate::{
    applicant::{Applicant, Embed},
    eventually,
};

const TIMEOUT: Duration = Duration::from_secs(90);
/// For this long the fields of a page have to stay where they are before one is chosen.
const STILL: Duration = Duration::from_millis(600);
/// Keeps the newest message about the fields of the remote page.
const KEEP_SCENE: &str = "(() => { const Socket = WebSocket; window.WebSocket = class extends Socket { \
    constructor(...all) { super(...all); this.addEventListener('message', ({ data }) => { \
    if (typeof data !== 'string') return; const told = JSON.parse(data); \
    if (told.t === 'scene') window.scene = told; }); } }; })()";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Screen {
    Desktop,
    Phone,
}

/// Opens the page of a session so that its journey can be played.
pub async fn visit(url: &str, screen: Screen) -> Applicant {
    let applicant = match screen {
        Screen::Desktop => Applicant::visit("about:blank").await,
        Screen::Phone => Applicant::visit_with_a_phone("about:blank").await,
    };
    let script = json!({ "source": KEEP_SCENE });
    applicant.devtools("Page.addScriptToEvaluateOnNewDocument", script).await;
    applicant.navigate(url).await;
    applicant
}

/// Plays the steps up to the request to share.
pub async fn play(embed: &Embed<'_>, screen: Screen, steps: &Value) {
    embed.click("[data-testid=start]").await;
    go_on(embed, screen, steps).await;
}

/// Plays further steps of a session that was started.
pub async fn go_on(embed: &Embed<'_>, screen: Screen, steps: &Value) {
    for step in steps.as_array().expect("steps") {
        println!("{screen:?}: {step}");
        let text = |name: &str| step[name].as_str();
        if let Some(prompt) = text("prompt") {
            embed.until_prompted(prompt).await;
        }
        if let Some(field) = text("field") {
            choose(embed, screen, field).await;
        }
        if let Some(letters) = step["erase"].as_u64() {
            erase(embed.applicant, letters).await;
        }
        if let Some(typed) = text("write") {
            write(embed.applicant, screen, typed).await;
        }
        if let Some(secret) = text("totp") {
            write(embed.applicant, screen, &fresh_code(secret).await).await;
        }
        if let Some(key) = text("press") {
            embed.applicant.press(key).await;
        }
        if let Some(name) = text("activate") {
            activate(embed, name).await;
        }
    }
}

/// Clicks or taps a field until it has the focus. It is known by its accessible name or its type.
async fn choose(embed: &Embed<'_>, screen: Screen, field: &str) {
    eventually(&format!("the field {field:?} to have the focus"), TIMEOUT, async || {
        let before = embed.evaluate("JSON.stringify(window.scene ?? null)").await;
        tokio::time::sleep(STILL).await;
        if embed.evaluate("JSON.stringify(window.scene ?? null)").await != before {
            return None;
        }
        let is_it = format!(
            "([place, kind, , , name]) => place[2] > 0 && [kind, name].includes({field:?})"
        );
        let place = format!("(window.scene?.fields ?? []).find({is_it})?.[0] ?? null");
        let place = embed.evaluate(&place).await;
        let edge = |at: usize| place[at].as_f64();
        let (x, y) = (edge(0)? + edge(2)? / 2.0, edge(1)? + edge(3)? / 2.0);
        let (x, y) = embed.on_screen(x, y).await;
        match screen {
            Screen::Desktop => embed.applicant.click_at(x, y).await,
            Screen::Phone => embed.applicant.tap((x, y)).await,
        }
        tokio::time::sleep(STILL).await;
        let focused = format!("[scene.fields[scene.focused] ?? [[0, 0, 0, 0]]].some({is_it})");
        (embed.evaluate(&focused).await == true).then_some(())
    })
    .await;
}

/// Deletes what a page has kept in the focused field.
async fn erase(applicant: &Applicant, letters: u64) {
    applicant.press_key("End", "End", 35, None).await;
    for _ in 0..letters {
        applicant.press("Backspace").await;
    }
}

async fn write(applicant: &Applicant, screen: Screen, text: &str) {
    match screen {
        Screen::Desktop => applicant.write(text).await,
        Screen::Phone => {
            applicant.devtools("Input.insertText", json!({ "text": text })).await;
        }
    }
    // What was typed reaches the page before a key that is pressed next.
    tokio::time::sleep(STILL).await;
}

/// Chooses a control of the page as text by its name: a button or a link, or a field in a frame, which
/// has no known place in the picture.
async fn activate(embed: &Embed<'_>, name: &str) {
    let open = "document.getElementById('text').getClientRects().length > 0";
    if embed.evaluate(open).await != true {
        embed.click("[data-testid=page-as-text]").await;
    }
    let found = format!(
        "(() => {{ const all = [...document.querySelectorAll('#text-list button')]; \
         const found = all.find((one) => one.firstChild.textContent === {name:?}); \
         found?.click(); return !!found; }})()"
    );
    embed.until(&format!("the control {name:?}"), &found).await;
    embed.evaluate("document.getElementById('text-close').click()").await;
    tokio::time::sleep(STILL).await;
}

/// Returns the code that an authenticator app shows (RFC 6238) for a secret in base32, as soon as it is
/// one that was not returned before, since a site accepts none twice (section 5.2), and stays valid for
/// long enough to be typed.
async fn fresh_code(secret: &str) -> String {
    static LAST: AtomicU64 = AtomicU64::new(0);
    const STEP_SECONDS: u64 = 30;
    const TYPING_SECONDS: u64 = 8;
    let step = eventually("a fresh code", TIMEOUT, async || {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let now = now.expect("a time after 1970").as_secs();
        let (step, left) = (now / STEP_SECONDS, STEP_SECONDS - now % STEP_SECONDS);
        (left > TYPING_SECONDS && step > LAST.load(Ordering::Relaxed)).then_some(step)
    })
    .await;
    LAST.store(step, Ordering::Relaxed);
    code_at(secret, step)
}

fn code_at(secret: &str, step: u64) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &base32(secret));
    let tag = hmac::sign(&key, &step.to_be_bytes());
    let tag = tag.as_ref();
    let at = usize::from(tag[tag.len() - 1] & 15);
    let bytes: [u8; 4] = tag[at..at + 4].try_into().expect("four bytes");
    format!("{:06}", (u32::from_be_bytes(bytes) & 0x7fff_ffff) % 1_000_000)
}

fn base32(text: &str) -> Vec<u8> {
    const LETTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let (mut bytes, mut bits, mut value) = (vec![], 0, 0_u32);
    for letter in text.trim_end_matches('=').chars() {
        let at = LETTERS.find(letter).expect("a letter of base32");
        value = value << 5 | u32::try_from(at).expect("up to 31");
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from(value >> bits & 0xff).expect("a byte"));
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::code_at;

    #[test]
    fn codes_are_those_of_rfc_6238() {
        let secret = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ";
        let codes = [1, 37_037_036, 41_152_263, 66_666_666].map(|step| code_at(secret, step));
        assert_eq!(codes, ["287082", "081804", "005924", "279037"]);
    }
}
