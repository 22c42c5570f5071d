//! A whole session by keyboard alone: the focus is visible at each stop, and never lost.

use acceptance::{
    applicant::{Applicant, Embed},
    database::Kind,
    service::Deployment,
};
use serde_json::json;

/// Notes each frame in which nothing has the focus although something had it before.
const WATCH_FOCUS: &str = "(() => { window.lost = []; let last = ''; const watch = () => { \
    const e = document.activeElement; \
    if (e && e !== document.body) last = e.id; else if (last) lost.push(last); \
    requestAnimationFrame(watch); }; watch(); })()";
/// The focused element, and whether its focus can be seen. The field over the remote page is invisible;
/// the frame around the picture, or the entry in the text, stands for it.
const STOP: &str = "(() => { const e = document.activeElement, list = document.getElementById('text'); \
    const shown = e.id !== 'writer' ? e : list.hidden ? document.getElementById('screen') \
      : list.querySelector('[aria-current=true]'); \
    if (!shown) return { id: e.id, ring: false }; \
    const s = getComputedStyle(shown), r = shown.getBoundingClientRect(); \
    const ring = shown.id === 'screen' ? s.boxShadow !== 'none' : s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 2; \
    return { id: e.id, ring: ring && r.width > 0 && r.bottom > 0 && r.top < innerHeight && r.left < innerWidth }; })()";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_with_a_code_is_completed_by_keyboard_alone() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let session = deployment.create(&json!({})).await;
    let applicant = Applicant::visit(session["embedUrl"].as_str().unwrap()).await;
    let embed = applicant.top_level();
    embed.until("the introduction", "document.getElementById('start')?.hidden === false").await;
    embed.until_drawn().await;
    embed.evaluate(WATCH_FOCUS).await;
    applicant.press("Tab").await;
    stop(&embed, "start").await;
    applicant.press("Enter").await;
    embed.until_prompted("Sign in").await;
    stop(&embed, "writer").await;
    the_controls_of_the_page(&embed).await;
    the_text_of_the_page(&embed).await;

    // The sign-in, with a letter that was left out.
    applicant.press("Tab").await;
    embed.until("the field", &spoken("User name")).await;
    applicant.write("op").await;
    applicant.press("ArrowLeft").await;
    applicant.write("t").await;
    applicant.press("Tab").await;
    embed.until("the next field", &spoken("Password")).await;
    applicant.press_back_tab().await;
    embed.until("the field before", &spoken("User name")).await;
    applicant.press("Tab").await;
    embed.until("the next field", &spoken("Password")).await;
    applicant.write("any").await;
    applicant.press("Tab").await;
    stop(&embed, "writer").await;
    applicant.press("Space").await;

    embed.until_prompted("Enter the code").await;
    stop(&embed, "writer").await;
    applicant.press("Tab").await;
    embed.until("the code's field", &spoken("Code")).await;
    applicant.write("123456").await;
    applicant.press("Enter").await;

    stop(&embed, "consent").await;
    stops_until(&embed, "approve").await;
    applicant.press_back_tab().await;
    stop(&embed, "decline").await;
    applicant.press("Tab").await;
    stop(&embed, "approve").await;
    applicant.press("Space").await;
    assert_eq!(embed.until_outcome().await, "COMPLETED");
    stop(&embed, "outcome").await;
    applicant.press("Tab").await;
    stop(&embed, "print").await;
    assert_eq!(embed.evaluate("lost").await, json!([]), "the focus is never lost");
    applicant.close().await;
}

/// F6 leads to the controls around the remote page, and Tab back into it.
async fn the_controls_of_the_page(embed: &Embed<'_>) {
    let applicant = embed.applicant;
    applicant.press("F6").await;
    stop(embed, "cancel").await;
    for id in ["phone", "read", "reload", "back"] {
        applicant.press_back_tab().await;
        stop(embed, id).await;
    }
    stops_until(embed, "cancel").await;
    applicant.press("Enter").await;
    stop(embed, "leave-keep").await;
    applicant.press_back_tab().await;
    applicant.press("Escape").await;
    stop(embed, "writer").await;
}

/// The page as text: its list is reached, used and left by keyboard.
async fn the_text_of_the_page(embed: &Embed<'_>) {
    let applicant = embed.applicant;
    applicant.press("F6").await;
    applicant.press_back_tab().await;
    applicant.press_back_tab().await;
    stop(embed, "read").await;
    applicant.press("Space").await;
    stop(embed, "text").await;
    embed.until("the list", "document.querySelectorAll('#text-list button').length > 2").await;
    applicant.press("Tab").await;
    let first = "document.activeElement === document.querySelector('#text-list button')";
    embed.until("the first control", first).await;
    assert_eq!(embed.evaluate(STOP).await["ring"], true);
    applicant.press("Enter").await;
    stop(embed, "writer").await;
    embed.until("the field", &spoken("User name")).await;
    applicant.press("F6").await;
    embed.until("the entry of the field", first).await;
    applicant.press("Escape").await;
    stop(embed, "writer").await;
}

/// Holds when a screen reader was told that this field of the remote page has the focus.
fn spoken(field: &str) -> String {
    format!("document.getElementById('spoken').textContent.startsWith({field:?})")
}

/// Waits until an element has the focus, and asserts that this can be seen.
async fn stop(embed: &Embed<'_>, id: &str) {
    embed
        .until(&format!("the focus on {id}"), &format!("document.activeElement.id === {id:?}"))
        .await;
    let stop = embed.evaluate(STOP).await;
    assert_eq!(stop, json!({ "id": id, "ring": true }), "the focus on {id} is visible");
}

/// Presses Tab until an element has the focus, and asserts that each stop can be seen.
async fn stops_until(embed: &Embed<'_>, id: &str) {
    for _ in 0..12 {
        embed.applicant.press("Tab").await;
        let stop = embed.evaluate(STOP).await;
        assert_eq!(stop["ring"], true, "{stop}");
        if stop["id"] == id {
            return;
        }
    }
    panic!("{id} is not reached by Tab");
}
