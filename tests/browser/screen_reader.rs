//! A whole session by the accessibility tree alone: what to do next is read from the roles, names and
//! live regions that Chromium tells a screen reader, and nothing else; the remote page is read and used
//! as text.

use std::time::Duration;

use acceptance::{
    applicant::{AccessibleNode, Applicant, Embed},
    database::Kind,
    eventually,
    service::Deployment,
};
use serde_json::json;

const TIMEOUT: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_is_completed_by_the_accessibility_tree_alone() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let session = deployment.create(&json!({})).await;
    let applicant = Applicant::visit(session["embedUrl"].as_str().unwrap()).await;
    let reader = ScreenReader { embed: applicant.top_level() };
    reader.until("heading", "asks you to verify your Acme (sandbox) account").await;
    reader.press("button", "Start").await;
    reader.until_announced("Sign in to Acme").await;

    reader.press("button", "Page as text").await;
    reader.until_focused("region", "Page as text").await;
    reader.until("heading", "Sign in").await;
    reader.write("User name text field, required", "User name", "otp").await;
    reader.write("Password password field, required", "Password", "any").await;
    applicant.press("Enter").await;

    reader.until_announced("Enter the code that Acme sent you").await;
    reader.until("StaticText", "We sent a code to a number that ends in 56.").await;
    reader.write("Code text field, required", "Code", "000000").await;
    applicant.press("Enter").await;
    // The error is in the list, is announced, and belongs to the field.
    reader.until_announced("That was not the code").await;
    reader.until_announced("That is not the code.").await;
    reader.write("Code text field, required, not accepted", "Code", "").await;
    reader.until_announced("Code, text, That is not the code.").await;
    let field = reader.until_focused("textbox", "Code").await;
    assert!(field.is_invalid, "{field:?}");
    applicant.write("123456").await;
    // What was typed is in no list: neither the wrong code nor the right one.
    applicant.press("F6").await;
    reader.until_focused("button", "Code text field").await;
    let told = reader.embed.accessible_nodes().await;
    for typed in ["000000", "123456", "otp"] {
        assert!(told.iter().all(|node| !node.name.contains(typed)), "{typed}: {told:?}");
    }
    reader.press("button", "Continue").await;

    reader.until_announced("Review what you'll share").await;
    reader.until_focused("region", "Share with ").await;
    for part in ["Name", "Ada Example", "Account number", "acme-otp-4711", "April 1, 2019"] {
        reader.until("StaticText", part).await;
    }
    reader.press("button", "Share").await;
    reader.until_focused("region", "Verification complete").await;
    reader.until_announced("Your data was shared with ").await;
    deployment.until(session["sessionId"].as_str().unwrap(), "COMPLETED", TIMEOUT).await;
    applicant.close().await;
}

/// Someone who perceives the page by its accessibility tree.
struct ScreenReader<'a> {
    embed: Embed<'a>,
}

impl ScreenReader<'_> {
    /// Waits for a node with this role whose name is this, or else contains it.
    async fn until(&self, role: &str, name: &str) -> AccessibleNode {
        self.find(&format!("{role} {name:?}"), |node| node.role == role, name).await
    }

    async fn until_focused(&self, role: &str, name: &str) -> AccessibleNode {
        let what = format!("the focus on {role} {name:?}");
        self.find(&what, |node| node.role == role && node.is_focused, name).await
    }

    async fn find(
        &self,
        what: &str,
        fits: impl Fn(&AccessibleNode) -> bool,
        name: &str,
    ) -> AccessibleNode {
        let mut last = vec![];
        let ends = tokio::time::Instant::now() + TIMEOUT;
        while tokio::time::Instant::now() < ends {
            last = self.embed.accessible_nodes().await;
            let fitting: Vec<_> = last.iter().filter(|node| fits(node)).collect();
            let same = fitting.iter().find(|node| node.name == name);
            if let Some(found) = same.or(fitting.iter().find(|node| node.name.contains(name))) {
                return (*found).clone();
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let all = last.iter().map(|node| format!("{} {:?}", node.role, node.name));
        panic!("no {what}: {}", all.collect::<Vec<_>>().join("\n"));
    }

    /// Waits until a live region says this.
    async fn until_announced(&self, text: &str) {
        eventually(&format!("{text:?} to be announced"), TIMEOUT, async || {
            let nodes = self.embed.accessible_nodes().await;
            let mut regions = nodes.iter().filter_map(|node| node.announced.as_deref());
            regions.any(|said| said.contains(text)).then_some(())
        })
        .await;
    }

    /// Focuses a control and presses Enter.
    async fn press(&self, role: &str, name: &str) {
        eventually(&format!("{role} {name:?} to take the focus"), TIMEOUT, async || {
            let node = self.until(role, name).await;
            self.embed.focus_node(&node).await.then_some(())
        })
        .await;
        self.until_focused(role, name).await;
        self.embed.applicant.press("Enter").await;
    }

    /// Chooses a field of the list, waits until it has the focus under its own name, and types.
    async fn write(&self, entry: &str, field: &str, text: &str) {
        self.press("button", entry).await;
        self.until_focused("textbox", field).await;
        self.until_announced(&format!("{field}, ")).await;
        self.embed.applicant.write(text).await;
    }
}
