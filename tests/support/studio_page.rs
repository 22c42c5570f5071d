//! The page of an authoring studio, used as an author does.

use std::time::Duration;

use serde_json::Value;

use crate::{
    applicant::{Applicant, IN_NO_PASSWORD_FIELD, IN_PASSWORD_FIELD, IN_TEXT_FIELD},
    eventually,
};

const TIMEOUT: Duration = Duration::from_secs(60);
/// The document of the page with the remote browser.
pub const EMBED: &str = "document.querySelector('iframe')?.contentDocument";

/// How long the remote page may take to report that a field has the focus, before input counts as dropped.
const FOCUS_TIMEOUT: Duration = Duration::from_secs(10);

/// Returns a condition on the page with the remote browser, as one on the page of the studio.
fn in_embed(condition: &str) -> String {
    format!(
        "((document) => !!document && {condition})(document.querySelector('iframe')?.contentDocument)"
    )
}

/// The open page of a studio.
pub struct StudioPage {
    pub page: Applicant,
}

impl StudioPage {
    pub async fn until(&self, what: &str, condition: &str) {
        eventually(what, TIMEOUT, async || {
            (self.page.evaluate(condition).await == true).then_some(())
        })
        .await;
    }

    pub async fn state(&self) -> Value {
        self.page.evaluate("fetch('api/state').then((r) => r.json())").await
    }

    /// Presses the button with this text, once it can be pressed.
    pub async fn press(&self, text: &str) {
        let press = format!(
            "(() => {{ const b = [...document.querySelectorAll('main button, header button, [role=tab]')] \
             .find((b) => b.textContent.trim().startsWith({text:?}) && b.checkVisibility() \
             && !b.disabled && b.getAttribute('aria-disabled') !== 'true'); b?.click(); return !!b; }})()"
        );
        self.until(&format!("the button {text}"), &press).await;
    }

    /// Clicks in the middle of an element of the page with the remote browser.
    pub async fn click(&self, selector: &str) {
        let place = format!(
            "(() => {{ const f = document.querySelector('iframe'), e = f?.contentDocument?.querySelector({selector:?}); \
             if (!e?.getClientRects().length) return null; const o = f.getBoundingClientRect(), r = e.getBoundingClientRect(); \
             return [o.left + f.clientLeft + r.left + r.width / 2, o.top + f.clientTop + r.top + r.height / 2]; }})()"
        );
        let at = eventually(selector, TIMEOUT, async || {
            Some(self.page.evaluate(&place).await).filter(Value::is_array)
        })
        .await;
        self.page.top_level().until_drawn().await;
        self.page.click_at(at[0].as_f64().unwrap(), at[1].as_f64().unwrap()).await;
    }

    /// Passes the introduction of a new browser.
    pub async fn begin(&self) {
        self.click("[data-testid=start]").await;
        let shown = format!("{EMBED}.querySelector('canvas').dataset.pictures > 0");
        self.until("a picture", &shown).await;
        self.until_at("/login").await;
    }

    pub async fn until_at(&self, path: &str) {
        eventually(path, TIMEOUT, async || {
            let page = self.state().await["page"].clone();
            let at = page["url"].as_str().is_some_and(|url| url.ends_with(path));
            (at && page["settled"] == true).then_some(())
        })
        .await;
    }

    /// Signs in on the remote page by keyboard. Chromium drops the input of a page that it has not drawn yet.
    pub async fn sign_in(&self, user: &str) {
        eventually("the first field to have the focus", TIMEOUT, async || {
            eventually("the keyboard focus", TIMEOUT, async || {
                self.click("[data-testid=screen]").await;
                let ours = format!("{EMBED}.activeElement?.id === 'writer'");
                (self.page.evaluate(&ours).await == true).then_some(())
            })
            .await;
            self.page.press("Tab").await;
            let focused = async || {
                while self.page.evaluate(&in_embed(IN_TEXT_FIELD)).await != true {
                    tokio::time::sleep(Duration::from_millis(30)).await;
                }
            };
            tokio::time::timeout(FOCUS_TIMEOUT, focused()).await.ok()
        })
        .await;
        self.page.write(user).await;
        self.page.press("Tab").await;
        self.until("the field of the password", &in_embed(IN_PASSWORD_FIELD)).await;
        self.page.write("any").await;
        self.page.press("Enter").await;
    }

    /// Waits until the remote page is another one than that on which a password was sent.
    pub async fn until_password_sent(&self) {
        self.until("the page after the password was sent", &in_embed(IN_NO_PASSWORD_FIELD)).await;
    }

    /// Marks the page shown now by what is proposed first, and returns the condition.
    pub async fn mark(&self, kind: &str) -> Value {
        self.press("Pages").await;
        self.press("Mark the page shown now as").await;
        let choose = format!(
            "(() => {{ const s = document.querySelector('#panel select'); if (!s) return false; \
             s.value = {kind:?}; s.dispatchEvent(new Event('change', {{ bubbles: true }})); return true; }})()"
        );
        self.until("the kinds of pages", &choose).await;
        let proposed = "!!document.querySelector('#panel input[type=radio]:checked')";
        self.until("a proposal", proposed).await;
        self.press("Mark page").await;
        eventually("the page to be known", TIMEOUT, async || {
            let outline = self.state().await["outline"]["pages"].clone();
            let page = outline.as_array()?.iter().find(|page| page["name"] == kind)?.clone();
            (page["holds"] == true).then(|| page["conditions"][0].clone())
        })
        .await
    }

    /// Selects the element with this text in the picture of the page, and adds it as a field.
    pub async fn add_field(&self, text: &str, tag: &str) {
        self.press("Fields").await;
        self.press("Add from the page").await;
        self.choose_element(text, tag).await;
        self.press("Add field").await;
    }

    /// Enters a text or a selector into the filter of the elements in the picture of the page.
    pub async fn filter_elements(&self, text: &str) {
        let filter = format!(
            "(() => {{ const f = [...document.querySelectorAll('label')].find((l) => l.textContent === 'Filter elements')?.control; \
             if (!f) return false; f.value = {text:?}; f.dispatchEvent(new Event('input', {{ bubbles: true }})); return true; }})()"
        );
        self.until("the elements", &filter).await;
    }

    /// Selects the element with this text in the picture of the page, and waits for what it can be used
    /// as.
    pub async fn choose_element(&self, text: &str, tag: &str) {
        self.filter_elements(text).await;
        let choose = format!(
            "(() => {{ const e = [...document.querySelectorAll('[role=treeitem]')].find((e) => e.textContent.startsWith({tag:?})); \
             e?.click(); return !!e; }})()"
        );
        self.until("the element", &choose).await;
        let read = format!(
            "document.querySelector('.card .selected')?.textContent.includes({text:?}) === true \
             && !!document.getElementById('card-steps')"
        );
        self.until("what the element can be used as", &read).await;
    }

    /// Enters a text into the newest control of the panel with a label, or chooses it there.
    pub async fn enter(&self, label: &str, text: &str) {
        let enter = format!(
            "(() => {{ const c = [...document.querySelectorAll('#panel label')] \
             .findLast((l) => l.textContent === {label:?} && l.checkVisibility())?.control; \
             if (!c) return false; c.value = {text:?}; \
             for (const kind of ['input', 'change']) c.dispatchEvent(new Event(kind, {{ bubbles: true }})); return true; }})()"
        );
        self.until(&format!("the control {label}"), &enter).await;
    }

    pub async fn accessibility_violations(&self) -> Value {
        self.page.top_level().accessibility_violations().await
    }
}
