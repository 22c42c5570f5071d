//! Pages of the portal in a browser, used by mouse and keyboard.

use std::path::Path;

use serde_json::json;

use crate::applicant::Embed;

/// Types a text into a field.
pub async fn enter(page: &Embed<'_>, id: &str, text: &str) {
    page.until_drawn().await;
    page.evaluate(&format!("document.getElementById({id:?}).focus()")).await;
    page.applicant.write(text).await;
}

/// Waits until a page has this heading.
pub async fn heading(page: &Embed<'_>, text: &str) {
    let there = format!(
        "document.readyState === 'complete' && document.querySelector('h1')?.textContent === {text:?}"
    );
    page.until(text, &there).await;
}

pub async fn sign_in(page: &Embed<'_>, email: &str, password: &str) {
    heading(page, "Sign in").await;
    enter(page, "email", email).await;
    enter(page, "password", password).await;
    page.click("button.primary").await;
}

/// Reauthenticates with a password, and continues to the form that was held.
pub async fn confirm(page: &Embed<'_>, password: &str) {
    heading(page, "Confirm your identity").await;
    enter(page, "password", password).await;
    page.click("main form:not([data-passkey]) button").await;
}

/// Asserts that axe-core finds no violation, in light and dark mode; prints the time of the first
/// paint. Where `AVOUCH_SHOTS` names a folder, a screenshot of each page goes there, for the
/// documentation.
pub async fn assert_accessible(page: &Embed<'_>, when: &str) {
    let painted = "performance.getEntriesByName('first-paint')[0]?.startTime ?? null";
    println!("{when}: first paint after {} ms", page.evaluate(painted).await);
    for scheme in ["light", "dark"] {
        // Without transitions: colours would be measured while they change from one scheme to the
        // other.
        let media = json!({ "features": [
            { "name": "prefers-color-scheme", "value": scheme },
            { "name": "prefers-reduced-motion", "value": "reduce" },
        ] });
        page.applicant.devtools("Emulation.setEmulatedMedia", media).await;
        assert_eq!(page.accessibility_violations().await, json!([]), "{when}, {scheme}");
        if let Some(folder) = std::env::var_os("AVOUCH_SHOTS").filter(|folder| !folder.is_empty()) {
            let file = Path::new(&folder).join(format!("{} {scheme}.png", when.replace(' ', "-")));
            std::fs::write(file, page.applicant.screenshot().await).expect("a frame");
        }
    }
}

pub async fn text(page: &Embed<'_>, expression: &str) -> String {
    page.evaluate(expression).await.as_str().unwrap_or_default().to_owned()
}
