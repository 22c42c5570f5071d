//! The contact sheet: how a state is looked at, where its pictures go, and the faults that were found.

use std::{
    cell::RefCell, collections::BTreeMap, fmt::Write as _, fs, path::PathBuf, time::Duration,
};

use acceptance::{
    applicant::{Applicant, Embed, SIZED},
    root,
};
use serde_json::{Value, json};

use super::Language;

/// A window and a colour scheme.
#[derive(Clone, Copy)]
pub(super) struct Look {
    device: &'static str,
    scheme: &'static str,
    width: u16,
    height: u16,
    /// Device pixels for each CSS pixel.
    ratio: u8,
    is_mobile: bool,
}

const fn desktop(scheme: &'static str) -> Look {
    Look { device: "desktop", scheme, width: 1280, height: 800, ratio: 1, is_mobile: false }
}

const fn phone(scheme: &'static str) -> Look {
    Look { device: "phone", scheme, width: 390, height: 844, ratio: 2, is_mobile: true }
}

pub(super) const LOOKS: [Look; 4] =
    [desktop("light"), desktop("dark"), phone("light"), phone("dark")];
pub(super) const PHONE_LOOKS: [Look; 2] = [phone("light"), phone("dark")];
/// WCAG 2.2, success criterion 1.4.10: the width of 320 CSS pixels, and a window of 1280 × 800 pixels
/// enlarged to 400 %.
pub(super) const REFLOW_LOOKS: [Look; 2] = [
    Look { device: "narrow", scheme: "light", width: 320, height: 800, ratio: 1, is_mobile: false },
    Look { device: "zoomed", scheme: "light", width: 320, height: 200, ratio: 4, is_mobile: false },
];

impl Look {
    async fn apply(&self, applicant: &Applicant) {
        let metrics = json!({ "width": self.width, "height": self.height,
            "deviceScaleFactor": self.ratio, "mobile": self.is_mobile });
        applicant.devtools("Emulation.setDeviceMetricsOverride", metrics).await;
        // Without transitions: colours would be measured while they change.
        let media = json!({ "features": [
            { "name": "prefers-color-scheme", "value": self.scheme },
            { "name": "prefers-reduced-motion", "value": "reduce" },
        ] });
        applicant.devtools("Emulation.setEmulatedMedia", media).await;
    }
}

pub(super) struct Sheet {
    language: &'static str,
    looks: Vec<Look>,
    /// The folder of the pictures, if they are taken.
    folder: Option<PathBuf>,
    /// The journeys to make; empty for all.
    journeys: String,
    faults: RefCell<Vec<String>>,
    checked: RefCell<usize>,
}

impl Sheet {
    pub(super) fn without_pictures((_, language): Language, looks: &[Look]) -> Self {
        let (looks, journeys) = (looks.to_vec(), String::new());
        let (faults, checked) = (RefCell::default(), RefCell::default());
        Self { language, looks, folder: None, journeys, faults, checked }
    }

    /// `CONTACT_SHEET` names the journeys to make, separated by commas, where not all are wanted.
    pub(super) fn with_pictures(language: Language, looks: &[Look]) -> Self {
        let folder = root().join("target/contact-sheet");
        fs::create_dir_all(&folder).expect("a folder");
        let journeys = std::env::var("CONTACT_SHEET").unwrap_or_default();
        Self { folder: Some(folder), journeys, ..Self::without_pictures(language, looks) }
    }

    pub(super) fn language(&self) -> &'static str {
        self.language
    }

    pub(super) fn wants(&self, journey: &str) -> bool {
        self.journeys.is_empty() || self.journeys.split(',').any(|wanted| wanted == journey)
    }

    /// Waits until the page shows a state, looks at it in each window, and returns to the first one.
    pub(super) async fn take(&self, page: &Embed<'_>, state: &str, shown: &str) {
        page.until(state, shown).await;
        for look in &self.looks {
            let name = format!("{state}-{}-{}-{}", look.device, look.scheme, self.language);
            look.apply(page.applicant).await;
            settled(page).await;
            if let Some(folder) = &self.folder {
                let picture = page.applicant.screenshot().await;
                fs::write(folder.join(format!("{name}.png")), picture).expect("a picture");
            }
            for found in [page.layout_faults().await, page.accessibility_violations().await] {
                let faults = found.as_array().cloned();
                let faults = faults.unwrap_or_else(|| vec![json!("the check did not end")]);
                self.faults.borrow_mut().extend(faults.iter().map(|fault| match fault {
                    Value::String(fault) => format!("{name}: {fault}"),
                    other => format!("{name}: {other}"),
                }));
            }
            *self.checked.borrow_mut() += 1;
        }
        if page.evaluate(shown).await != true {
            self.faults.borrow_mut().push(format!("{state}: ended before all pictures were taken"));
        }
        desktop("light").apply(page.applicant).await;
        settled(page).await;
    }

    /// Writes the index of the pictures, and fails where a check found a fault.
    pub(super) fn assert_faultless(&self) {
        if let Some(folder) = &self.folder {
            fs::write(folder.join("index.html"), index(&pictures(folder))).expect("an index");
        }
        let faults = self.faults.borrow();
        println!("{} looks in {:?}, {} faults", self.checked.borrow(), self.language, faults.len());
        assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
    }
}

/// Waits until the page is drawn, and a while for the remote page to have its size: one that asks a
/// question or cannot be loaded draws nothing.
async fn settled(page: &Embed<'_>) {
    const ATTEMPTS: usize = 20;
    let drawn = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))";
    page.evaluate(drawn).await;
    let fits = format!("document.querySelector('canvas').hidden || {SIZED}");
    for _ in 0..ATTEMPTS {
        if page.evaluate(&fits).await == true {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    page.evaluate(drawn).await;
}

/// Returns the names of the pictures by the state that they show.
fn pictures(folder: &PathBuf) -> BTreeMap<String, Vec<String>> {
    let mut pictures: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("the folder").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(stem) = name.strip_suffix(".png") else { continue };
        // State, device, scheme and language, of which only the state contains hyphens.
        let Some(state) = stem.rsplitn(4, '-').nth(3) else { continue };
        pictures.entry(state.to_owned()).or_default().push(stem.to_owned());
    }
    for names in pictures.values_mut() {
        names.sort();
    }
    pictures
}

fn index(pictures: &BTreeMap<String, Vec<String>>) -> String {
    let mut page = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Contact sheet</title>\
        <style>body{font:14px system-ui,sans-serif}section>div{display:flex;flex-wrap:wrap;gap:12px}\
        figure{margin:0}img{height:360px;border:1px solid #999}</style>\n<h1>Contact sheet</h1>\n"
        .to_owned();
    for (state, names) in pictures {
        // Writing to a string does not fail.
        let _ = writeln!(page, "<section><h2>{state}</h2><div>");
        for name in names {
            let _ = writeln!(
                page,
                "<figure><a href=\"{name}.png\"><img src=\"{name}.png\" alt=\"\" loading=\"lazy\"></a>\
                 <figcaption>{name}</figcaption></figure>"
            );
        }
        page.push_str("</div></section>\n");
    }
    page
}
