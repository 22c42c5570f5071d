//! Input in the embed page arrives on the remote page: every kind, once and in order. What frames
//! cannot show (dialogs, pickers, refusals) is shown by the embed page itself.

use std::time::Duration;

use acceptance::{
    applicant::{Applicant, Embed, IN_TEXT_FIELD, SIZED},
    database::Kind,
    eventually,
    playground::Playground,
    service::Deployment,
};
use serde_json::{Value, json};

/// The length is 53, so that lost or repeated text does not match again.
const LETTERS: &str = "The quick brown fox jumps over the lazy dog, 123 456.";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn input_from_a_desktop_reaches_the_remote_page() {
    let (deployment, playground) = deployed().await;
    let applicant = Applicant::visit(&deployment.demo).await;
    let embed = open(&deployment, &playground, &applicant).await;
    surroundings(&playground).await;
    writing(&playground, &embed).await;
    choosing(&playground, &embed).await;
    dialogs(&playground, &embed).await;
    refusals(&playground, &embed).await;
    windows(&playground, &embed).await;
    scrolling(&playground, &embed).await;
    applicant.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn input_from_a_phone_reaches_the_remote_page() {
    let (deployment, playground) = deployed().await;
    let session = deployment.create(&order(&deployment, &playground)).await;
    let applicant = Applicant::visit_with_a_phone(session["embedUrl"].as_str().unwrap()).await;
    let embed = applicant.top_level();
    embed.click("[data-testid=start]").await;
    embed.until("a frame", "document.querySelector('canvas').dataset.pictures > 0").await;
    let seen = playground.until("a report", Value::is_object).await;
    assert_eq!((&seen["coarse"], &seen["ratio"]), (&json!(true), &json!(2)));
    assert_eq!(seen["width"], 390);
    assert!(seen["agent"].as_str().unwrap().contains("Mobile"), "{}", seen["agent"]);
    let sharp = "document.querySelector('canvas').width === 780";
    embed.until("two pixels for one", sharp).await;

    // Positions change until the prompt is shown and takes its space.
    embed.until_prompted("Enter the code").await;
    embed.until("the page to fit", SIZED).await;
    // The phone's keyboard opens for fields of the remote page, with their type, and closes.
    embed.until("fields", "document.querySelector('canvas').dataset.fields > 4").await;
    for (column, row, kind, mode, complete) in [
        (0, 0, "text", "", "off"),
        (0, 1, "text", "numeric", "one-time-code"),
        (1, 1, "email", "", "off"),
    ] {
        applicant.tap(place(&embed, column, row).await).await;
        let ours = format!(
            "(() => {{ const w = document.getElementById('writer'); return document.activeElement === w \
             && w.type === '{kind}' && w.inputMode === '{mode}' && w.autocomplete === '{complete}'; }})()"
        );
        embed.until(&format!("the keyboard for {kind} {mode}"), &ours).await;
    }
    playground.until_is("focus", "mail").await;
    // A phone's keyboard inserts text without key events.
    applicant.devtools("Input.insertText", json!({ "text": "ada@" })).await;
    applicant.devtools("Input.insertText", json!({ "text": "b.test" })).await;
    playground.until_is("mail", "ada@b.test").await;
    applicant.press("Backspace").await;
    playground.until_is("mail", "ada@b.tes").await;
    applicant.tap(place(&embed, 1, 6).await).await;
    embed.until("no keyboard", "document.activeElement?.id !== 'writer'").await;
    playground.until("the tap", |seen| ends_with(seen, "ask")).await;

    let (x, y) = place(&embed, 0, 9).await;
    applicant.drag((x, y), (x, y - 250.0)).await;
    playground.until("the page to scroll", |seen| seen["scroll"].as_i64() > Some(150)).await;
    applicant.close().await;
}

async fn surroundings(playground: &Playground) {
    let seen = playground.until("a report", |seen| seen["geolocation"] == "denied").await;
    assert_eq!(seen["zone"], "Europe/Berlin");
    assert_eq!(seen["languages"], json!(["de-DE", "de", "en"]));
    assert_eq!((&seen["coarse"], &seen["ratio"]), (&json!(false), &json!(1)));
    assert!(!seen["agent"].as_str().unwrap().contains("Headless"), "{}", seen["agent"]);
    assert_eq!(seen["ours"], "undefined", "the page cannot see the service's binding");
}

/// Keys, an input method, an emoji and a long paste arrive once each and in order.
async fn writing(playground: &Playground, embed: &Embed<'_>) {
    let applicant = embed.applicant;
    let has_focus = async || playground.reported()["focus"] == "name";
    click_until(embed, (0, 0), "the first field to have the focus", has_focus).await;
    // A screen reader reads the remote field's name, not one name for all fields.
    let named = "document.getElementById('writer').ariaLabel === 'name' && \
        document.getElementById('spoken').textContent === 'name, text'";
    embed.until("the name of the field", named).await;
    applicant.write("ada").await;
    // AltGr produces such a key: it inserts a character and is no shortcut.
    for sign in ['@', '€', 'ß', '{'] {
        applicant.press_key(&sign.to_string(), "KeyQ", 81, Some(sign)).await;
    }
    playground.until_is("name", "ada@€ß{").await;
    for undecided in ["に", "にほ", "にほん"] {
        let end = undecided.chars().count();
        let composing = json!({ "text": undecided, "selectionStart": end, "selectionEnd": end });
        applicant.devtools("Input.imeSetComposition", composing).await;
    }
    playground.until_is("name", "ada@€ß{にほん").await;
    applicant.devtools("Input.insertText", json!({ "text": "日本" })).await;
    playground.until_is("name", "ada@€ß{日本").await;
    assert_eq!(playground.reported()["composed"], 1);
    applicant.devtools("Input.insertText", json!({ "text": "👩‍👩‍👧" })).await;
    playground.until_is("name", "ada@€ß{日本👩‍👩‍👧").await;

    click(embed, 1, 0).await;
    playground.until_is("focus", "text").await;
    let long = LETTERS.repeat(200).chars().take(10_000).collect::<String>();
    paste(embed, &long).await;
    playground.until_is("text", long.clone()).await;
    for _ in 0..3 {
        applicant.press("Backspace").await;
    }
    applicant.write("end").await;
    playground.until_is("text", format!("{}end", &long[..long.len() - 3])).await;
    let kept = embed.evaluate("document.getElementById('writer').value.length").await;
    assert_eq!(kept, 1, "the embed page's field keeps no typed text");
}

/// A list of options, and a date field with the embed page's own picker.
async fn choosing(playground: &Playground, embed: &Embed<'_>) {
    click(embed, 1, 2).await;
    for key in ["ArrowDown", "ArrowDown", "Enter"] {
        embed.applicant.press(key).await;
    }
    playground.until_is("list", "three").await;
    click(embed, 0, 2).await;
    playground.until_is("focus", "day").await;
    embed.until("a picker", "!document.getElementById('picker').hidden").await;
    let pick = "(() => { const p = document.getElementById('picker'); p.value = '2026-11-21'; \
         p.dispatchEvent(new Event('change')); return p.type; })()";
    assert_eq!(embed.evaluate(pick).await, "date");
    playground.until_is("day", "2026-11-21").await;
}

async fn dialogs(playground: &Playground, embed: &Embed<'_>) {
    let applicant = embed.applicant;
    click(embed, 0, 3).await;
    until_asked(embed, "Mind the gap").await;
    embed.click("#ask-yes").await;
    playground.until_is("alerted", "done").await;

    click(embed, 1, 3).await;
    until_asked(embed, "Really?").await;
    embed.click("#ask-no").await;
    playground.until_is("confirmed", false).await;

    click(embed, 0, 4).await;
    until_asked(embed, "Who is there?").await;
    embed.click("#ask-answer").await;
    applicant.write("ada").await;
    embed.click("#ask-yes").await;
    playground.until_is("prompted", "ada").await;
}

async fn refusals(playground: &Playground, embed: &Embed<'_>) {
    // Messages are shown for a moment only.
    let observe = "(() => { const said = document.getElementById('said'); window.messages = []; \
        const observer = new MutationObserver(() => window.messages.push(said.textContent)); \
        observer.observe(said, { childList: true, characterData: true, subtree: true }); return 1; })()";
    embed.evaluate(observe).await;
    for (x, y, said) in [(0, 5, "sent"), (1, 5, "saved"), (0, 6, "not part")] {
        click(embed, x, y).await;
        let shown = format!("window.messages.some((message) => message.includes('{said}'))");
        embed.until(&format!("the message about a refused action: {said}"), &shown).await;
    }
    click(embed, 1, 6).await;
    playground.until("the page to be still there", |seen| ends_with(seen, "ask")).await;
}

async fn windows(playground: &Playground, embed: &Embed<'_>) {
    click(embed, 1, 4).await;
    embed.until("a second window", "!document.getElementById('close').hidden").await;
    // Its page has one field, and the first one has more.
    let loaded = "document.querySelector('canvas').dataset.fields === '1'";
    embed.until("its page", loaded).await;
    let has_focus = async || embed.evaluate(IN_TEXT_FIELD).await == true;
    click_until(embed, (0, 0), "its field to have the focus", has_focus).await;
    embed.applicant.write("hi").await;
    playground.until_is("told", "hi").await;
    embed.click("#close").await;
    embed.until("the first window", "document.getElementById('close').hidden").await;
    click(embed, 1, 6).await;
    playground.until("the first window to react", |seen| ends_with(seen, "ask")).await;
}

async fn scrolling(playground: &Playground, embed: &Embed<'_>) {
    let (x, y) = place(embed, 0, 7).await;
    let wheel = json!({ "type": "mouseWheel", "x": x, "y": y, "deltaX": 0, "deltaY": 400 });
    embed.applicant.devtools("Input.dispatchMouseEvent", wheel).await;
    playground.until("the page to scroll", |seen| seen["scroll"].as_i64() == Some(400)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_site_that_goes_down_is_named_and_can_be_reloaded() {
    let (deployment, playground) = deployed().await;
    let applicant = Applicant::visit(&deployment.demo).await;
    let embed = open(&deployment, &playground, &applicant).await;
    embed.until_prompted("Enter the code").await;
    click_until_seen(&embed, &playground).await;
    // F5 reloads the remote page, not the embed page.
    embed.evaluate("window.before = 1").await;
    applicant.press("F5").await;
    let is_fresh = |seen: &Value| seen["clicks"].as_array().is_some_and(Vec::is_empty);
    playground.until("the page to be loaded again", is_fresh).await;
    assert_eq!(embed.evaluate("window.before").await, 1);

    playground.set_down(true);
    embed.click("#reload").await;
    let shown = "!document.getElementById('down').hidden";
    embed.until("the message", shown).await;
    assert_eq!(embed.accessibility_violations().await, json!([]));
    let host = embed.evaluate("document.getElementById('site').textContent").await;
    assert!(host.as_str().unwrap().contains("play.localhost"), "{host}");
    playground.set_down(false);
    embed.click("#down-reload").await;
    embed.until("the page", "document.getElementById('down').hidden").await;
    click_until_seen(&embed, &playground).await;
    applicant.close().await;
}

/// Clicks until the embed page has the focus, as a user does who looks before typing: on a busy
/// machine a click may not move the focus into the frame.
async fn click_to_write(embed: &Embed<'_>, column: u32, row: u32) {
    let ours = "document.hasFocus() && document.activeElement?.id === 'writer'";
    eventually("the embed page to have the keyboard focus", Duration::from_secs(60), async || {
        click(embed, column, row).await;
        for _ in 0..20 {
            if embed.evaluate(ours).await == true {
                return Some(());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        println!("a click has not moved the focus into the frame; clicking again");
        None
    })
    .await;
}

async fn click_until_seen(embed: &Embed<'_>, playground: &Playground) {
    let is_seen = async || ends_with(&playground.reported(), "ask");
    click_until(embed, (1, 6), "the page to react", is_seen).await;
}

/// Clicks in a cell until a condition holds: Chromium drops the input of a page that it has not drawn yet.
async fn click_until(
    embed: &Embed<'_>,
    (column, row): (u32, u32),
    what: &str,
    holds: impl AsyncFn() -> bool,
) {
    eventually(what, Duration::from_secs(60), async || {
        click_to_write(embed, column, row).await;
        for _ in 0..20 {
            if holds().await {
                return Some(());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        println!("the page has not reacted to a click; clicking again");
        None
    })
    .await;
}

fn ends_with(seen: &Value, id: &str) -> bool {
    seen["clicks"].as_array().and_then(|clicks| clicks.last()) == Some(&json!(id))
}

async fn until_asked(embed: &Embed<'_>, message: &str) {
    let asked = format!(
        "document.getElementById('ask').open && document.getElementById('ask-text').textContent === {message:?}"
    );
    embed.until(&format!("the question {message:?}"), &asked).await;
}

/// Pastes through a real clipboard, as a user does.
async fn paste(embed: &Embed<'_>, text: &str) {
    let applicant = embed.applicant;
    let copied = format!(
        "(() => {{ const t = document.createElement('textarea'); t.value = {text:?}; \
         document.body.append(t); t.select(); const done = document.execCommand('copy'); t.remove(); return done; }})()"
    );
    assert_eq!(applicant.evaluate_as_person(&copied).await, true);
    click(embed, 1, 0).await;
    let key = json!({
        "type": "keyDown", "key": "v", "code": "KeyV", "windowsVirtualKeyCode": 86, "modifiers": 2,
        "commands": ["paste"],
    });
    applicant.devtools("Input.dispatchKeyEvent", key).await;
}

async fn deployed() -> (Deployment, Playground) {
    let mut deployment = Deployment::prepare(Kind::Sqlite).await;
    let playground = Playground::start().await;
    playground.allow(&mut deployment);
    deployment.run().await;
    (deployment, playground)
}

/// Shows a session of the playground in an iframe of the partner's page.
async fn open<'a>(
    deployment: &Deployment,
    playground: &Playground,
    applicant: &'a Applicant,
) -> Embed<'a> {
    let session = deployment.create(&order(deployment, playground)).await;
    let embed = applicant.show(session["embedUrl"].as_str().unwrap()).await;
    embed.until("a frame", "document.querySelector('canvas').dataset.pictures > 0").await;
    playground.until("the page", Value::is_object).await;
    embed
}

fn order(deployment: &Deployment, playground: &Playground) -> Value {
    json!({ "platformId": playground.publish(deployment), "location": { "country": "DE" } })
}

/// Clicks in a cell of the playground: two columns, rows of 48 pixels.
async fn click(embed: &Embed<'_>, column: u32, row: u32) {
    let (x, y) = place(embed, column, row).await;
    embed.applicant.click_at(x, y).await;
}

async fn place(embed: &Embed<'_>, column: u32, row: u32) -> (f64, f64) {
    let width = embed.evaluate("Number(document.querySelector('canvas').dataset.width)").await;
    let width = width.as_f64().expect("a width");
    let across = if column == 0 { width * 0.25 } else { width * 0.75 };
    embed.on_screen(across, 28.0 + 48.0 * f64::from(row)).await
}
