//! `avouch workflow studio`: a definition made by choosing, from the login URL to a fixture.

use std::{
    io::{BufRead as _, BufReader},
    ops::Deref,
    process::{Child, Command, Stdio},
    time::Duration,
};

use acceptance::{
    applicant::Applicant,
    database::Kind,
    eventually,
    service::Deployment,
    studio_page::{EMBED, StudioPage},
};
use serde_json::{Value, json};

const LINK: &str = "open the studio: ";
const TIMEOUT: Duration = Duration::from_secs(60);

/// A process that is ended also where a test fails.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
    }
}

/// A running studio, and its page.
struct Studio {
    process: Process,
    link: String,
    page: StudioPage,
}

impl Deref for Studio {
    type Target = StudioPage;

    fn deref(&self) -> &StudioPage {
        &self.page
    }
}

impl Studio {
    async fn start(deployment: &Deployment, file: &str) -> Self {
        let mut command = deployment.command();
        command.env_remove("AVOUCH_LOG").current_dir(deployment.folder.path());
        command.args(["workflow", "studio", file]);
        command.args(["--login-url", "http://sandbox.localhost/login", "--name", "Acme Shop"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let mut seen = Vec::new();
        let link = lines.by_ref().map(Result::unwrap).find_map(|line| {
            let link = line.strip_prefix(LINK).map(str::to_owned);
            seen.push(line);
            link
        });
        let link = link.unwrap_or_else(|| panic!("a link: {seen:#?}"));
        let is_usual = |line: &&String| line.contains(" INFO ") || line.contains(" DEBUG ");
        let usual: Vec<_> = seen.iter().filter(is_usual).collect();
        assert!(usual.is_empty(), "an author sees the link and warnings alone: {usual:#?}");
        // What follows is read, so that the process can write it.
        std::thread::spawn(move || lines.for_each(drop));
        let page = StudioPage { page: Applicant::visit(&link).await };
        Self { process: Process(process), link, page }
    }

    /// Sends a signal, and returns the exit code.
    async fn stop(mut self) -> Option<i32> {
        let id = self.process.0.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        let ended = eventually("the end of the studio", TIMEOUT, async || {
            self.process.0.try_wait().unwrap()
        });
        let code = ended.await.code();
        self.page.page.close().await;
        code
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_definition_is_made_by_choosing_what_to_read() {
    let deployment = Deployment::prepare(Kind::Sqlite).await;
    let studio = Studio::start(&deployment, "acme.json").await;
    studio.begin().await;
    assert_eq!(studio.mark("signIn").await, "The element `input[name=\"password\"]` is visible");
    studio.sign_in("nobody").await;
    studio.until_password_sent().await;
    studio.until_at("/login").await;
    assert_eq!(studio.mark("wrongPassword").await, "The element `#error` is visible");
    studio.sign_in("ok").await;
    studio.until_at("/account").await;
    assert_eq!(studio.mark("signedIn").await, "The element `#account` is visible");
    assert_eq!(studio.state().await["findings"], json!([]));
    add_a_field(&studio).await;
    let address = studio.state().await["outline"]["fields"][0]["address"]["url"].clone();
    assert!(address.as_str().is_some_and(|url| url.ends_with("/account")), "{address}");
    correct_a_field(&studio).await;
    rename_a_field(&studio).await;
    for tab in ["Pages", "Fields", "Responses", "Run", "Definition"] {
        studio.press(tab).await;
        // Buttons change their colours within 150 ms.
        tokio::time::sleep(Duration::from_millis(400)).await;
        assert_eq!(studio.accessibility_violations().await, json!([]), "{tab}");
    }

    studio.press("Run").await;
    studio.press("Record from the beginning").await;
    // The frame of the new browser takes the place of the other one.
    let new = format!("{EMBED}?.querySelector('[data-testid=start]')?.checkVisibility() === true");
    studio.until("the new browser", &new).await;
    watch_the_frame(&studio).await;
    studio.begin().await;
    studio.sign_in("ok").await;
    let title = format!("{EMBED}?.getElementById('consent-title')?.textContent");
    studio.until("the consent", &format!("{title}?.includes('Preview') === true")).await;
    studio.click("[data-testid=consent-approve]").await;
    let places = studio.page.page.evaluate("window.places.size").await;
    assert_eq!(places, 1, "the browser does not move while the author clicks in it");
    let state = eventually("the fixture", TIMEOUT, async || {
        let state = studio.state().await;
        state["fixture"].is_object().then_some(state)
    })
    .await;
    assert_eq!(state["run"]["data"], json!({ "tier": "gold" }));
    assert_eq!(state["fixture"]["matches"], true, "{}", state["fixture"]);
    // A change is checked with the fixture at once.
    let edit = "fetch('api/edit', { method: 'POST', headers: { 'content-type': 'application/json' }, \
        body: JSON.stringify({ op: 'editField', name: 'tier', newName: 'level', label: 'Level', \
        required: true, pii: false }) }).then((r) => r.status)";
    assert_eq!(studio.page.page.evaluate(edit).await, 200);
    let fixture = studio.state().await["fixture"].clone();
    assert_eq!(fixture["matches"], false);
    assert_eq!(
        fixture["differences"],
        json!([
            "level: expected missing, but it was \"gold\"",
            "tier: expected \"gold\", but it was missing"
        ])
    );
    let back = edit.replace("'tier'", "'level'").replace("newName: 'level'", "newName: 'tier'");
    assert_eq!(studio.page.page.evaluate(&back).await, 200);
    studio.press("Save").await;
    eventually("the files", TIMEOUT, async || {
        let saved = studio.state().await["saved"].clone();
        (saved["definition"] == true && saved["fixture"] == true).then_some(())
    })
    .await;
    let browsers = deployment.browsers();
    assert_eq!(studio.stop().await, Some(0));
    let left = std::fs::read_dir(deployment.folder.path().join("var"));
    assert!(left.is_err(), "it has its data in a folder of its own");
    assert_eq!(std::fs::read_dir(browsers).unwrap().count(), 0, "nothing is left behind");

    for arguments in [
        &["check", "acme.json", "--strict"][..],
        &["run", "acme.json", "--replay", "acme.fixture.json"],
    ] {
        let mut command = deployment.command();
        command.current_dir(deployment.folder.path()).arg("workflow").args(arguments);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    let fixture = std::fs::read_to_string(deployment.folder.path().join("acme.fixture.json"));
    assert!(!fixture.unwrap().contains("\"any\""), "what was typed is not in it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_browser_is_replaced() {
    let deployment = Deployment::prepare(Kind::Sqlite).await;
    let studio = Studio::start(&deployment, "acme.json").await;
    studio.begin().await;
    studio.click("[data-testid=cancel]").await;
    studio.click("[data-testid=cancel-confirm]").await;
    eventually("the browser to end", TIMEOUT, async || {
        studio.state().await["page"].is_null().then_some(())
    })
    .await;
    studio.press("New browser").await;
    let new = format!("{EMBED}?.querySelector('[data-testid=start]')?.checkVisibility() === true");
    studio.until("the new browser", &new).await;
    studio.begin().await;
    studio.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_its_own_page_uses_a_studio() {
    let deployment = Deployment::prepare(Kind::Sqlite).await;
    let studio = Studio::start(&deployment, "acme.json").await;
    let (base, token) = studio.link.trim_end_matches('/').rsplit_once('/').unwrap();
    assert_eq!(token.len(), 64);
    let wrong = "0".repeat(64);
    let statuses = format!(
        "Promise.all([fetch('{base}/{wrong}/'), fetch('{base}/{wrong}/api/state'), \
         fetch('api/state'), fetch('api/edit', {{ method: 'POST', body: '{{' }}), \
         fetch('api/element', {{ method: 'POST', headers: {{ 'content-type': 'application/json' }}, \
         body: '{{\"inspection\":1,\"node\":1}}' }})]).then((all) => all.map((r) => r.status))"
    );
    assert_eq!(studio.page.page.evaluate(&statuses).await, json!([404, 404, 200, 400, 422]));
    // Another page that knows the address can do nothing with it.
    let elsewhere = Applicant::visit("about:blank").await;
    let sent = format!(
        "fetch('{}api/save', {{ method: 'POST', mode: 'no-cors' }}).then(() => 1, () => 1)",
        studio.link
    );
    elsewhere.evaluate(&sent).await;
    elsewhere.close().await;
    assert!(!deployment.folder.path().join("acme.json").exists());
    studio.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_author_reads_what_a_choice_means() {
    let deployment = Deployment::prepare(Kind::Sqlite).await;
    let studio = Studio::start(&deployment, "acme.json").await;
    studio.begin().await;
    studio.press("Definition").await;
    studio.until("the icon", &shows("#tab-panel .notice", "has no icon of its own")).await;
    studio.press("Pages").await;
    studio.press("Mark the page shown now as").await;
    studio.enter("Page", "signIn").await;
    studio
        .until("the first page", &shows("#condition-hint", "none was marked since the studio"))
        .await;
    studio.page.page.press("Escape").await;

    studio.press("Fields").await;
    studio.press("Add from the page").await;
    // A small picture, scrolled to its end.
    let choose = "(() => { const e = [...document.querySelectorAll('[role=treeitem]')] \
        .find((e) => e.textContent.startsWith('button')); if (!e) return false; \
        const p = document.querySelector('.picture'); p.style.maxHeight = '100px'; p.scrollTop = p.scrollHeight; \
        window.scrolled = p.scrollTop; e.click(); return true; })()";
    studio.until("the button", choose).await;
    let shown = "(() => { const [p, e] = ['.picture', '.outline.chosen'] \
        .map((one) => document.querySelector(one).getBoundingClientRect()); \
        return window.scrolled > 0 && e.height > 0 && e.top >= p.top - 1 && e.bottom <= p.bottom + 1; })()";
    studio.until("the button in the picture", shown).await;
    let use_as =
        "(() => { const e = document.querySelector('#use-variable'); e?.click(); return !!e; })()";
    studio.until("a value for addresses", use_as).await;
    studio.until("its name", &shows("#card-name-hint", "How addresses and requests refer")).await;
    studio.press("Back to the browser").await;

    add_list(&studio).await;
    studio.press("Add column").await;
    studio.enter("Label", "State").await;
    studio.enter("Name", "state").await;
    studio.enter("Selector", "td.state").await;
    let required = shows("#edit-required-hint", "in every row");
    studio.until("what a column requires", &required).await;
    studio.press("Add column").await;
    studio.until("the column", &shows("#announcements", "Column State added to Orders")).await;
    studio.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_browser_reads_that_the_studio_is_open() {
    let deployment = Deployment::prepare(Kind::Sqlite).await;
    let studio = Studio::start(&deployment, "acme.json").await;
    studio.begin().await;
    let second = StudioPage { page: Applicant::visit(&studio.link).await };
    let title = format!("{EMBED}?.querySelector('#guest-title')");
    let shown =
        format!("{title}?.checkVisibility() && {title}.textContent.includes('studio is open')");
    second.until("the studio to be open elsewhere", &shown).await;
    second.page.close().await;
    studio.stop().await;
}

/// Returns a condition: an element of the page contains a text.
fn shows(selector: &str, text: &str) -> String {
    format!("document.querySelector({selector:?})?.textContent.includes({text:?}) === true")
}

/// Adds a list in the page after the sign-in to the definition, as text.
async fn add_list(studio: &StudioPage) {
    let state = studio.state().await;
    let mut definition: Value = serde_json::from_str(state["document"].as_str().unwrap()).unwrap();
    let text = |key: &str, text: &str| (key.to_owned(), json!(text));
    let english = definition["texts"]["en"].as_object_mut().unwrap();
    english.extend([text("orders", "Orders"), text("number", "Number")]);
    let number = json!({ "type": "string", "labelKey": "number" });
    definition["output"] = json!({ "orders": { "type": "list", "labelKey": "orders", "members": { "number": number } } });
    definition["nodes"]["readOrders"] = json!({
        "type": "collect", "via": { "dom": {} },
        "fields": { "orders": { "at": "#orders", "each": "tr", "members": { "number": "td" } } },
        "onMissing": { "fail": "EXTRACTION_FAILED" }, "next": "review",
    });
    definition["nodes"]["route"]["cases"][0]["next"] = "readOrders".into();
    let edit = json!({ "op": "replace", "document": definition.to_string() });
    let body = json!(edit.to_string());
    let sent = format!(
        "fetch('api/edit', {{ method: 'POST', headers: {{ 'content-type': 'application/json' }}, \
         body: {body} }}).then((r) => r.status)"
    );
    assert_eq!(studio.page.evaluate(&sent).await, 200);
}

/// Remembers where the browser is shown from now on, in each animation frame.
async fn watch_the_frame(studio: &StudioPage) {
    let watch = "(() => { window.places = new Set(); const look = () => { \
        const { top, height } = document.querySelector('iframe')?.getBoundingClientRect() ?? {}; \
        window.places.add(`${top} ${height}`); requestAnimationFrame(look); }; look(); return true; })()";
    assert_eq!(studio.page.evaluate(watch).await, true);
}

/// Adds a field, after a look at the conversion of another one.
async fn add_a_field(studio: &StudioPage) {
    studio.press("Fields").await;
    studio.press("Add from the page").await;
    studio.filter_elements("main[id=account] > dl > dt + dd").await;
    let found = "(() => { const all = [...document.querySelectorAll('[role=treeitem]')]; \
        return all.length > 0 && all.every((row) => row.textContent.startsWith('dd')); })()";
    studio.until("the elements that a selector matches", found).await;
    studio.choose_element("1289", "dd").await;
    let steps = "document.getElementById('card-steps').textContent";
    assert_eq!(studio.page.evaluate(steps).await, "Steps: Read a number .");
    studio.choose_element("gold", "dd").await;
    assert_eq!(studio.page.evaluate(steps).await, "The value is used as it is.");
    studio.press("Add field").await;
    eventually("the field", TIMEOUT, async || {
        let fields = studio.state().await["outline"]["fields"].clone();
        (fields[0]["name"] == "tier").then_some(())
    })
    .await;
}

/// Changes the conversion of the first field by controls, and cancels another change.
async fn correct_a_field(studio: &StudioPage) {
    let convert =
        async || studio.state().await["outline"]["fields"][0]["reading"]["convert"].clone();
    assert_eq!(convert().await, json!([]));
    studio.press("Back to the browser").await;
    studio.press("Edit").await;
    studio.press("Add step").await;
    studio.enter("Step 1", "match").await;
    studio.enter("Regular expression", "((").await;
    studio.press("Save field").await;
    let finding = "document.querySelector('#panel [role=alert]')?.textContent.includes('convert[0]') === true";
    studio.until("the finding of the check", finding).await;
    let is_sentence = "document.querySelector('#panel [role=alert]').textContent.endsWith('.')";
    assert_eq!(studio.page.evaluate(is_sentence).await, true);
    // Buttons change their colours within 150 ms.
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(studio.accessibility_violations().await, json!([]));
    assert_eq!(convert().await, json!([]), "what is wrong is not applied");
    studio.enter("Regular expression", "(\\w+)").await;
    studio.press("Test on this page").await;
    let tried = "!!document.querySelector('.trial dd.sample')";
    studio.until("what is read", tried).await;
    studio.press("Save field").await;
    eventually("the converter", TIMEOUT, async || {
        (convert().await == json!([{ "match": "(\\w+)" }])).then_some(())
    })
    .await;
    // What was begun is cancelled by the keyboard.
    studio.press("Edit").await;
    studio.enter("Label", "Another").await;
    studio.page.press("Escape").await;
    studio.until("the form to close", "!document.querySelector('#edit-label')").await;
    // Nothing on the page tells the currency.
    studio.press("Edit").await;
    studio.enter("Type", "money").await;
    let empty = "document.getElementById('edit-currency')?.value === ''";
    studio.until("the empty currency", empty).await;
    studio.press("Save field").await;
    let missing = "document.querySelector('#panel [role=alert]')?.textContent === 'Enter the currency of the amount.'";
    studio.until("that the currency is missing", missing).await;
    studio.page.press("Escape").await;
    studio.until("the form to close again", "!document.querySelector('#edit-label')").await;
}

/// Gives the first field another name, and its name back: the focus is on the button that edits it.
async fn rename_a_field(studio: &StudioPage) {
    for name in ["level", "tier"] {
        studio.press("Edit").await;
        studio.enter("Name", name).await;
        studio.press("Save field").await;
        let focused = format!("document.activeElement?.id === 'edit-{name}'");
        studio.until("the focus on the button of the renamed field", &focused).await;
    }
}
