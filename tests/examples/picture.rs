//! Plays the applicant on the demo page of a running `cargo xtask up`, and takes the README's
//! picture meanwhile: `cargo run -p acceptance --example picture -- URL FILE`.

use std::time::Duration;

use acceptance::{applicant::Applicant, eventually};

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let mut words = std::env::args().skip(1);
    let (Some(url), Some(file)) = (words.next(), words.next()) else {
        panic!("usage: picture URL FILE");
    };
    let applicant = Applicant::visit(&url).await;
    let embed = applicant.start_session().await;
    embed.until_prompted("Sign in").await;
    embed.focus_first_field().await;
    applicant.write("ok").await;
    applicant.press("Tab").await;
    applicant.write("password").await;
    // Leaves time for the last letter to be drawn remotely and shown here.
    tokio::time::sleep(Duration::from_secs(1)).await;
    std::fs::write(&file, applicant.screenshot().await).expect("a file");
    applicant.press("Enter").await;
    embed.click("[data-testid=consent-approve]").await;
    println!("outcome: {}", embed.until_outcome().await);
    let webhooks = "document.getElementById('webhooks').textContent";
    let arrived = eventually("the webhook on the page", Duration::from_secs(60), async || {
        let text = applicant.evaluate(webhooks).await;
        text.as_str().filter(|text| text.contains("COMPLETED")).map(str::to_owned)
    });
    println!("webhook: {}", arrived.await);
    applicant.close().await;
}
