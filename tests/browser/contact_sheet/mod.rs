//! Every state of the applicant's page, in the sizes, colours and languages that applicants have: a
//! check for parts that are cut off, covered or too small, a check for accessibility, and a contact
//! sheet, which is a picture of each in `target/contact-sheet`.

mod journeys;
mod long_platform;
mod sheet;

use acceptance::{
    applicant::Applicant, database::Kind, playground::Playground, portal_user::signed_in,
    service::Deployment,
};

use self::{
    journeys::{Stage, allow_return},
    sheet::{LOOKS, PHONE_LOOKS, REFLOW_LOOKS, Sheet},
};

/// A language of applicants: the tag that their browser sends, and that of the page.
type Language = (&'static str, &'static str);

const ENGLISH: Language = ("en-GB", "en");
const GERMAN: Language = ("de-DE", "de");
const ARABIC: Language = ("ar-EG", "ar");

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_phones_each_step_of_a_session_is_shown_whole_and_accessible() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    allow_return(&deployment, &deployment.team);
    set_brand(&deployment).await;
    for language in [ENGLISH, ARABIC] {
        let sheet = Sheet::without_pictures(language, &PHONE_LOOKS);
        let applicant = speaking(language).await;
        Stage { sheet: &sheet, deployment: &deployment, applicant: &applicant }.steps().await;
        applicant.close().await;
        sheet.assert_faultless();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes; `just contact-sheet`"]
async fn every_state_in_english() {
    draw(ENGLISH).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes; `just contact-sheet`"]
async fn every_state_in_german() {
    draw(GERMAN).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes; `just contact-sheet`"]
async fn every_state_in_arabic() {
    draw(ARABIC).await;
}

/// Reaches every state in one language; takes pictures of each, and checks it.
async fn draw(language: Language) {
    let mut deployment = Deployment::prepare(Kind::Sqlite).await;
    // With one browser a second session waits for it.
    deployment.set("AVOUCH_BROWSERS", "1");
    let playground = Playground::start().await;
    playground.allow(&mut deployment);
    deployment.run().await;
    allow_return(&deployment, &deployment.team);
    set_brand(&deployment).await;
    let sheet = Sheet::with_pictures(language, &[&LOOKS[..], &REFLOW_LOOKS].concat());
    let applicant = speaking(language).await;
    let stage = Stage { sheet: &sheet, deployment: &deployment, applicant: &applicant };
    stage.all(&playground).await;
    applicant.close().await;
    sheet.assert_faultless();
}

/// Gives the team a brand with a link to its privacy policy.
async fn set_brand(deployment: &Deployment) {
    const BRANDING: &str = "/portal/branding";
    let owner = signed_in(deployment, "olga@lender.example", "owner").await;
    let brand = [
        ("name", "Lender Bank"),
        ("colour", "#1f4fd8"),
        ("privacy_url", "https://lender.example/privacy"),
    ];
    assert_eq!(owner.fill(BRANDING, BRANDING, &brand).await.status, 303);
}

/// Opens an applicant's browser whose language is the given one.
async fn speaking((tag, _): Language) -> Applicant {
    let applicant = Applicant::visit("about:blank").await;
    let agent = applicant.evaluate("navigator.userAgent").await;
    let speaks = serde_json::json!({ "userAgent": agent, "acceptLanguage": tag });
    applicant.devtools("Emulation.setUserAgentOverride", speaks).await;
    applicant
}
