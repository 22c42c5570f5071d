//! The embed page: languages, keyboard operation, accessibility, several devices, and the module
//! that shows it in a partner's page.

use std::time::Duration;

use acceptance::{
    applicant::{Applicant, Embed, SIZED},
    database::Kind,
    eventually,
    partner::Partner,
    platform::publish,
    processes::process_ids_with,
    qr_code::scanned,
    service::Deployment,
};
use hyper::Method;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

const TIMEOUT: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_is_completed_by_keyboard_and_each_of_its_pages_is_accessible() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let session = deployment.create(&json!({})).await;
    let applicant = Applicant::visit(session["embedUrl"].as_str().unwrap()).await;
    let embed = applicant.top_level();
    embed.until("the start", "document.getElementById('start')?.hidden === false").await;
    let compressed = "performance.getEntriesByType('resource') \
        .filter((file) => file.name.includes('/assets/')) \
        .every((file) => file.encodedBodySize < file.decodedBodySize)";
    assert_eq!(embed.evaluate(compressed).await, true);
    assert_accessible(&embed, "before the start").await;
    focus_by_tab(&embed, "start").await;
    applicant.press("Enter").await;
    embed.until_prompted("Sign in").await;
    embed.until("a frame", "document.querySelector('canvas').dataset.pictures > 0").await;
    assert_accessible(&embed, "at the sign-in").await;
    focus_by_tab(&embed, "writer").await;
    for text in ["ok", "any"] {
        applicant.press("Tab").await;
        applicant.write(text).await;
    }
    // F6 leaves the remote page, which takes the Tab key; Tab returns to it.
    applicant.press("F6").await;
    embed
        .until("the cancel button to have the focus", "document.activeElement.id === 'cancel'")
        .await;
    focus_by_tab(&embed, "writer").await;
    applicant.press("Enter").await;
    embed.until("the question", "document.activeElement.id === 'consent'").await;
    assert_accessible(&embed, "at the question for consent").await;
    focus_by_tab(&embed, "approve").await;
    applicant.press("Enter").await;
    assert_eq!(embed.until_outcome().await, "COMPLETED");
    embed.until("the outcome to be read", "document.activeElement.id === 'outcome'").await;
    assert_accessible(&embed, "at the end").await;
    applicant.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_browser_without_image_decoder_shows_the_same_picture() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let mut looks = vec![];
    for (script, has) in [("", true), ("delete globalThis.ImageDecoder", false)] {
        let session = deployment.create(&json!({})).await;
        let applicant = Applicant::visit("about:blank").await;
        let script = json!({ "source": script });
        applicant.devtools("Page.addScriptToEvaluateOnNewDocument", script).await;
        applicant.navigate(session["embedUrl"].as_str().unwrap()).await;
        let embed = applicant.top_level();
        embed.click("[data-testid=start]").await;
        embed.until_prompted("Sign in").await;
        embed.until("a frame", "document.querySelector('canvas').dataset.pictures > 0").await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(embed.evaluate("'ImageDecoder' in globalThis").await, has);
        let look = embed.evaluate("(() => { const c = new OffscreenCanvas(8, 8).getContext('2d'); \
            c.drawImage(document.querySelector('canvas'), 0, 0, 8, 8); return [...c.getImageData(0, 0, 8, 8).data]; })()").await;
        looks.push(serde_json::from_value::<Vec<u8>>(look).unwrap());
        applicant.close().await;
    }
    let [one, other] = [&looks[0], &looks[1]];
    assert!(one.iter().any(|part| part.abs_diff(one[0]) > 20 && *part != 255), "{one:?}");
    assert!(one.iter().zip(other).all(|(one, other)| one.abs_diff(*other) < 8), "{looks:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_languages_are_translated_completely() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let session = deployment.create(&json!({})).await;
    let applicant = Applicant::visit("about:blank").await;
    let embed = applicant.top_level();
    let mut titles = vec![];
    for tag in ["en-GB", "ar-EG", "de-AT", "es-MX", "fr-CA", "it", "nl", "pl", "pt-BR", "tr"] {
        let agent = embed.evaluate("navigator.userAgent").await;
        let speaks = json!({ "userAgent": agent, "acceptLanguage": tag });
        applicant.devtools("Emulation.setUserAgentOverride", speaks).await;
        applicant.navigate(session["embedUrl"].as_str().unwrap()).await;
        let language = tag.split('-').next().unwrap();
        embed.until(tag, &format!("document.documentElement.lang === '{language}' && !document.getElementById('start').hidden")).await;
        let direction = embed.evaluate("document.documentElement.dir").await;
        assert_eq!(direction, if language == "ar" { "rtl" } else { "ltr" }, "{tag}");
        let empty = "[...document.querySelectorAll('[data-word],[data-label]')].filter((e) => \
            !(e.dataset.word ? e.textContent : e.ariaLabel)).length";
        assert_eq!(embed.evaluate(empty).await, 0, "{tag}");
        titles.push(embed.evaluate("document.title").await);
    }
    let all = titles.len();
    titles.sort_by_key(Value::to_string);
    titles.dedup();
    assert_eq!(titles.len(), all, "each language has its own texts: {titles:?}");

    // The outcome is shown in the applicant's language, too.
    let german = json!({ "userAgent": "any", "acceptLanguage": "de" });
    applicant.devtools("Emulation.setUserAgentOverride", german).await;
    applicant.navigate(session["embedUrl"].as_str().unwrap()).await;
    embed.until("German", "document.documentElement.lang === 'de'").await;
    embed.click("[data-testid=start]").await;
    embed.until_prompted("anmelden").await;
    embed.cancel().await;
    embed.until_outcome().await;
    let told = embed.evaluate("document.getElementById('outcome').textContent").await;
    assert!(told.as_str().unwrap().contains("Sie haben abgebrochen"), "{told}");

    // The definition has no Arabic texts; the page's own stand in for its instructions.
    let session = deployment.create(&json!({})).await;
    let arabic = json!({ "userAgent": "any", "acceptLanguage": "ar" });
    applicant.devtools("Emulation.setUserAgentOverride", arabic).await;
    applicant.navigate(session["embedUrl"].as_str().unwrap()).await;
    embed.until("Arabic", "document.documentElement.lang === 'ar'").await;
    embed.click("[data-testid=start]").await;
    embed.until_prompted("سجّل الدخول إلى").await;
    embed.until("a frame", "document.querySelector('canvas').dataset.pictures > 0").await;
    embed.sign_in_again("ok", "any").await;
    embed.until("consent", "document.getElementById('consent').hidden === false").await;
    assert_accessible(&embed, "consent in Arabic").await;
    applicant.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_applicant_reads_who_asks_and_why_and_keeps_a_receipt() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let team = deployment.team.as_str();
    deployment.admin(&["set-frame-ancestors", "--team", team, "https://lender.example"]);
    let asked = json!({ "purpose": "To check {brand} & <your> income",
        "returnUrl": "https://lender.example/applications/7" });
    let session = deployment.create(&asked).await;
    let (id, link) =
        (session["sessionId"].as_str().unwrap(), session["embedUrl"].as_str().unwrap());
    let applicant = Applicant::visit(link).await;
    let embed = applicant.top_level();
    embed.until("the introduction", "!document.getElementById('intro').hidden").await;
    let text = async |id: &str| {
        let text = embed.evaluate(&format!("document.getElementById({id:?}).innerText")).await;
        text.as_str().unwrap_or_default().replace(['\u{2068}', '\u{2069}'], "")
    };
    let introduction = text("intro").await;
    for part in [
        "asks you to verify your Acme (sandbox) account",
        "To check {brand} & <your> income",
        "Account number",
        "Your password goes to Acme (sandbox) only.",
    ] {
        assert!(introduction.contains(part), "{part}: {introduction}");
    }
    embed.click("[data-testid=start]").await;
    embed.until_prompted("Sign in").await;
    embed.until("a frame", "document.querySelector('canvas').dataset.pictures > 0").await;
    embed.sign_in_again("partial", "any").await;
    embed.until("consent", "!document.getElementById('consent').hidden").await;
    // In the definition's order, as people write it.
    let asked = text("consent").await;
    for part in ["Share with ", "Ada Example", "acme-partial-4711", "April 1, 2019", "Gold"] {
        assert!(asked.contains(part), "{part}: {asked}");
    }
    assert!(asked.find("Ada Example") < asked.find("acme-partial-4711"), "{asked}");
    embed.click("[data-testid=consent-approve]").await;
    assert_eq!(embed.until_outcome().await, "PARTIAL_COMPLETE");
    let receipt = text("outcome").await;
    for part in
        ["Partially complete", "April 1, 2019", "Could not be read", "Followers", "Reference"]
    {
        assert!(receipt.contains(part), "{part}: {receipt}");
    }
    assert!(!receipt.contains(id) && !receipt.contains(&id[..8]), "{receipt}");
    let back = embed.evaluate("document.querySelector('[data-testid=return]').href").await;
    assert_eq!(back, "https://lender.example/applications/7");
    assert_accessible(&embed, "the receipt").await;

    // A link of a session that is over shows the outcome, without values, and offers no start.
    let other = Applicant::visit(link).await;
    let page = other.top_level();
    assert_eq!(page.until_outcome().await, "PARTIAL_COMPLETE");
    let shown = page.evaluate("document.body.innerText").await;
    let shown = shown.as_str().unwrap();
    assert!(shown.contains("Member since") && !shown.contains("2019"), "{shown}");
    let offered = "document.getElementById('start').getClientRects().length > 0";
    assert_eq!(page.evaluate(offered).await, false);
    // A link that is not valid offers nothing either.
    let wrong = link.replace("token=", "token=x");
    other.navigate(&wrong).await;
    page.until("the refusal", "document.body.innerText.includes('does not work')").await;
    assert_eq!(page.evaluate(offered).await, false);
    other.close().await;
    applicant.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelling_is_confirmed_and_keeps_the_session_by_default() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let session = deployment.create(&json!({})).await;
    let id = session["sessionId"].as_str().unwrap();
    let applicant = Applicant::visit(session["embedUrl"].as_str().unwrap()).await;
    let embed = applicant.top_level();
    embed.click("[data-testid=start]").await;
    embed.until_prompted("Sign in").await;
    embed.until("a frame", "document.querySelector('canvas').dataset.pictures > 0").await;
    embed.focus_remote_page().await;
    for answer in ["Enter", "Escape"] {
        applicant.press("F6").await;
        embed.until("the button", "document.activeElement.id === 'cancel'").await;
        applicant.press("Enter").await;
        embed.until("the question", "document.activeElement.id === 'leave-keep'").await;
        assert_accessible(&embed, "the question").await;
        applicant.press(answer).await;
        embed.until("no question", "!document.getElementById('leave').open").await;
        embed.until("the page", "document.activeElement.id === 'writer'").await;
    }
    assert_eq!(deployment.session(id).await["status"], "AWAITING_USER");
    embed.cancel().await;
    assert_eq!(embed.until_outcome().await, "CANCELLED");
    applicant.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_moves_to_another_device_and_back() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let session = deployment.create(&json!({})).await;
    let (id, url) = (session["sessionId"].as_str().unwrap(), session["embedUrl"].as_str().unwrap());
    let desk = Applicant::visit(&deployment.demo).await;
    let first = desk.show(url).await;
    first.until_prompted("Sign in").await;
    first.until("a frame", "document.querySelector('canvas').dataset.pictures > 0").await;
    first.focus_first_field().await;
    desk.write("ok").await;
    first.click("#phone").await;
    first.until("the code", "!!document.querySelector('#code path')").await;
    let path = first.evaluate("document.querySelector('#code path').getAttribute('d')").await;
    let scanned = scanned(path.as_str().unwrap());
    let code = scanned.strip_prefix(url).and_then(|rest| rest.strip_prefix("#code=")).unwrap();
    assert_eq!(code.len(), 43, "{scanned}");

    let phone = Applicant::visit_with_a_phone(&scanned).await;
    let second = phone.top_level();
    second.until("a frame", "document.querySelector('canvas').dataset.pictures > 0").await;
    second.until("the page to have the phone's size", SIZED).await;
    first
        .until(
            "the first device to be notified",
            "document.getElementById('note').innerText.includes('in another window')",
        )
        .await;
    // The page on the first device is replaced and sends nothing any more.
    let hidden = first.evaluate("document.querySelector('canvas').hidden").await;
    assert_eq!(hidden, true);
    assert_eq!(deployment.session(id).await["status"], "AWAITING_USER");
    phone.close().await;
    first.click("[data-testid=start]").await;
    let again = desk.embed().await;
    again.until_prompted("Sign in").await;
    again.until("a frame", "document.querySelector('canvas').dataset.pictures > 0").await;
    again.until("the page to have its size again", SIZED).await;
    // It is the same remote page, with the text that was typed in it.
    let (x, y) = again.on_screen(450.0, 350.0).await;
    desk.click_at(x, y).await;
    desk.write("any").await;
    desk.press("Enter").await;
    again.click("[data-testid=consent-approve]").await;
    assert_eq!(again.until_outcome().await, "COMPLETED");
    desk.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_embedding_page_receives_status_messages_and_frame_ancestors_are_enforced() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let applicant = Applicant::visit(&deployment.demo).await;
    let listen =
        "window.heard = []; addEventListener('message', (event) => heard.push(event.data))";
    applicant.evaluate(listen).await;
    let embed = applicant.start_session().await;
    embed.sign_in("ok", "any").await;
    embed.click("[data-testid=consent-approve]").await;
    embed.until_outcome().await;
    let told = eventually("the final status message", TIMEOUT, async || {
        let told = applicant.evaluate("document.getElementById('told').textContent").await;
        (told == "COMPLETED (100 %)").then_some(told)
    });
    told.await;
    let heard = applicant.evaluate("heard").await;
    let heard = heard.as_array().unwrap();
    for message in heard {
        let mut keys: Vec<_> = message.as_object().unwrap().keys().cloned().collect();
        // The step, the kind of the prompt and the code of the end are names of fixed lists.
        keys.retain(|key| !["code", "kind", "step"].contains(&key.as_str()));
        assert_eq!(keys, ["progress", "sessionId", "status", "type", "v"], "{message}");
        assert_eq!(message["v"], 1);
    }
    // The data is read before the consent, and may be seen in that state once more after it.
    let steps = heard.iter().filter_map(|message| message["step"].as_str());
    let steps: Vec<_> = steps.filter(|step| *step != "reading").collect();
    assert!(steps.starts_with(&["starting"]) && steps.ends_with(&["consent", "done"]), "{steps:?}");
    let kinds: Vec<_> = heard.iter().filter_map(|message| message["kind"].as_str()).collect();
    assert_eq!(kinds, ["login", "consent"]);
    assert_eq!(heard.iter().filter(|message| message["type"] == "open").count(), 1);
    let ends = heard.iter().filter(|message| message["type"] == "ended").count();
    assert_eq!(ends, 1, "{heard:?}");

    // A page that requests messages for every origin (`*`) gets none.
    let session = deployment.create(&json!({})).await;
    let url = format!("{}#parent=*", session["embedUrl"].as_str().unwrap());
    applicant.evaluate("heard.length = 0").await;
    let other = applicant.show(&url).await;
    other.until_prompted("Sign in").await;
    assert_eq!(applicant.evaluate("heard").await, json!([]));

    // From now on only one other page may show sessions of this team.
    let team = deployment.team.as_str();
    deployment.admin(&["set-frame-ancestors", "--team", team, "https://pages.example"]);
    let session = deployment.create(&json!({})).await;
    let url = session["embedUrl"].as_str().unwrap();
    assert_eq!(ancestors(url).await, "https://pages.example");
    assert_eq!(
        ancestors(url.split('?').next().unwrap()).await,
        "*",
        "without a token the team's policy is not revealed"
    );
    applicant.evaluate(&format!("document.body.innerHTML = '<iframe src={url:?}></iframe>'")).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let status = deployment.session(session["sessionId"].as_str().unwrap()).await["status"].clone();
    assert_eq!(status, "CREATED", "the frame was blocked");
    applicant.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiting_applicant_sees_the_deadline_and_the_queue() {
    let mut deployment = Deployment::prepare(Kind::Sqlite).await;
    deployment.set("AVOUCH_BROWSERS", "1");
    deployment.run().await;
    let hasty = publish(&deployment, "acme-hasty", |definition| {
        definition["nodes"]["login"]["timeoutSeconds"] = json!(36);
    });
    let applicant = Applicant::visit(&deployment.demo).await;
    let first = deployment.create(&json!({ "platformId": hasty })).await;
    let embed = applicant.show(first["embedUrl"].as_str().unwrap()).await;
    embed.until_prompted("Sign in").await;
    // A step announces its deadline: a minute before, or twenty seconds before if it is short.
    let said = "document.getElementById('said').textContent";
    assert_eq!(embed.evaluate(said).await, "", "not at the start");
    embed.until("the warning", &format!("{said}.includes('20 seconds')")).await;
    // The next step begins without it.
    embed.sign_in_again("ok", "any").await;
    embed.until("consent", "document.getElementById('consent').hidden === false").await;
    assert_eq!(embed.evaluate(said).await, "");

    let other = Applicant::visit(&deployment.demo).await;
    let second = deployment.create(&json!({})).await;
    let waiting = other.show(second["embedUrl"].as_str().unwrap()).await;
    waiting
        .until("the wait", "document.getElementById('note').textContent.includes('are in use')")
        .await;
    deployment
        .partner
        .delete(&format!("browser-session/{}", first["sessionId"].as_str().unwrap()))
        .await;
    waiting.until_prompted("Sign in").await;
    // A browser that is lost later is replaced without the message that all browsers are in use.
    waiting.evaluate("window.notes = []; new MutationObserver(() => notes.push(document.getElementById('note').textContent)) \
        .observe(document.getElementById('note'), { subtree: true, childList: true, characterData: true, attributes: true })").await;
    for pid in process_ids_with(&deployment.browsers()) {
        let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
        let _ = kill_process(pid, Signal::KILL);
    }
    waiting.until("another browser", "notes.some((note) => note.includes('Starting'))").await;
    waiting.until_prompted("Sign in").await;
    let queued = waiting.evaluate("notes.some((note) => note.includes('are in use'))").await;
    assert_eq!(queued, false);
    applicant.close().await;
    other.close().await;
}

/// Asserts that axe-core finds no violation of WCAG 2.2 on a page.
async fn assert_accessible(embed: &Embed<'_>, when: &str) {
    assert_eq!(embed.accessibility_violations().await, json!([]), "{when}");
}

/// Presses Tab until an element has the focus.
async fn focus_by_tab(embed: &Embed<'_>, id: &str) {
    embed.until_drawn().await;
    for _ in 0..12 {
        if embed.evaluate(&format!("document.activeElement.id === {id:?}")).await == true {
            return;
        }
        embed.applicant.press("Tab").await;
    }
    panic!("{id} is not reached by Tab");
}

/// Returns the origins that may frame the page at an address.
async fn ancestors(url: &str) -> String {
    let (base, path) = url.split_at(url.find("/embed/").unwrap());
    let answer = Partner::new(base, None).send(Method::GET, path, String::new()).await;
    let policy = answer.headers["content-security-policy"].to_str().unwrap().to_owned();
    policy.split("frame-ancestors ").nth(1).unwrap().to_owned()
}
