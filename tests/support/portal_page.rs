//! Pages of the portal in a browser, by mouse and keyboard.

use std::path::Path;

use serde_json::json;

use crate::applicant::Embed;

/// Enters a text into a field, by the keyboard.
pub async fn enter(page: &Embed<'_>, id: &str, text: &str) {
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

/// Confirms by a password who they are, and goes on to what waits for it.
pub async fn confirm(page: &Embed<'_>, password: &str) {
    heading(page, "Confirm it is you").await;
    enter(page, "password", password).await;
    page.click("main form:not([data-passkey]) button").await;
}

/// No barrier that a machine finds, in light and in dark; prints when the page was first painted.
/// With `AVOUCH_SHOTS`, a picture of each page goes into that folder, for the documentation.
pub async fn assert_accessible(page: &Embed<'_>, when: &str) {
    let painted = "performance.getEntriesByName('first-paint')[0]?.startTime ?? null";
    println!("{when}: first paint after {} ms", page.evaluate(painted).await);
    for scheme in ["light", "dark"] {
        // Without motion: colours would be measured on their way from one scheme to the other.
        let media = json!({ "features": [
            { "name": "prefers-color-scheme", "value": scheme },
            { "name": "prefers-reduced-motion", "value": "reduce" },
        ] });
        page.applicant.devtools("Emulation.setEmulatedMedia", media).await;
        assert_eq!(page.accessibility_violations().await, json!([]), "{when}, {scheme}");
        if let Some(folder) = std::env::var_os("AVOUCH_SHOTS").filter(|folder| !folder.is_empty()) {
            let file = Path::new(&folder).join(format!("{} {scheme}.png", when.replace(' ', "-")));
            std::fs::write(file, page.applicant.screenshot().await).expect("a picture");
        }
    }
}

pub async fn text(page: &Embed<'_>, expression: &str) -> String {
    page.evaluate(expression).await.as_str().unwrap_or_default().to_owned()
}
