//! A platform made by an author in the portal, from the login URL to a verified session.

use std::time::Duration;

use acceptance::{
    applicant::{Applicant, Embed},
    database::Kind,
    eventually,
    platform::write as write_platform,
    portal_page::{assert_accessible, enter, heading, sign_in},
    portal_user::{PortalUser, base, signed_in, user},
    service::Deployment,
    studio_page::{EMBED, StudioPage},
};
use serde_json::{Value, json};

const ANNA: &str = "anna@avouch.example";
const TIMEOUT: Duration = Duration::from_secs(60);

/// Signs an author in, and opens the list of platforms.
async fn platforms(deployment: &Deployment, email: &str, password: &str) -> Applicant {
    let address = format!("{}/portal/sign-in", base(deployment));
    let browser = Applicant::visit(&address).await;
    let page = browser.top_level();
    sign_in(&page, email, password).await;
    page.until(
        "the portal",
        "document.querySelector('nav a[href=\"/portal/platforms\"]') !== null",
    )
    .await;
    page.click("nav a[href='/portal/platforms']").await;
    heading(&page, "Platforms").await;
    browser
}

/// Creates a draft of the sandbox's site under another name, and opens its studio.
async fn open_studio(page: &Embed<'_>) {
    enter(page, "name", "Acme Points").await;
    enter(page, "login_url", "http://sandbox.localhost/login").await;
    page.click("section[aria-labelledby=add] button.primary").await;
    heading(page, "Draft of Acme Points").await;
    assert_accessible(page, "a draft").await;
    page.click("form[action$='/open'] button").await;
    page.until("the studio", "location.pathname.startsWith('/studio/')").await;
}

/// Marks the pages, adds a field, and records a run.
async fn write(studio: &StudioPage) {
    studio.begin().await;
    studio.mark("signIn").await;
    studio.sign_in("ok").await;
    studio.until_at("/account").await;
    studio.mark("signedIn").await;
    studio.add_field("gold", "dd").await;
    let saved = studio.state().await["saved"].clone();
    assert_eq!(saved["obstacle"], "record a run from the beginning first");
    studio.press("Run").await;
    studio.press("Record from the beginning").await;
    let new = format!("{EMBED}?.querySelector('[data-testid=start]')?.checkVisibility() === true");
    studio.until("the new browser", &new).await;
    studio.begin().await;
    studio.sign_in("ok").await;
    studio.click("[data-testid=consent-approve]").await;
    eventually("the fixture", TIMEOUT, async || {
        (studio.state().await["fixture"]["matches"] == true).then_some(())
    })
    .await;
}

/// Publishes for all new sessions.
async fn publish(studio: &StudioPage) {
    studio.press("Publish").await;
    let publish = "(() => { const b = document.querySelector('dialog button.primary'); b?.click(); return !!b; })()";
    studio.until("the question", publish).await;
}

/// Re-authenticates on the page that the studio leads to, which leads back to it.
async fn confirm(studio: &StudioPage, password: &str) {
    let page = studio.page.top_level();
    heading(&page, "Confirm your identity").await;
    enter(&page, "password", password).await;
    page.click("form.card button.primary").await;
    page.until("the studio", "location.pathname.startsWith('/studio/')").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_author_publishes_a_platform_without_writing_json() {
    let deployment = Deployment::start(Kind::Postgres).await;
    let password = user(&deployment, &deployment.team, ANNA, "author");
    let browser = platforms(&deployment, ANNA, &password).await;
    open_studio(&browser.top_level()).await;
    let studio = StudioPage { page: browser };
    write(&studio).await;
    let sql = "UPDATE sign_ins SET created_at = created_at - interval '1 hour'";
    deployment.database.execute(sql).await;
    publish(&studio).await;
    confirm(&studio, &password).await;
    publish(&studio).await;
    eventually("the publication", TIMEOUT, async || {
        let saved = studio.state().await["saved"].clone();
        (saved["published"] == "1.0.0" && saved["definition"] == true).then_some(saved)
    })
    .await;
    let again = studio.state().await["saved"]["obstacle"].clone();
    assert!(again.as_str().unwrap().starts_with("this version is published"), "{again}");

    // Nothing of the author's sessions is in the lists of partners or in the figures.
    let listed = deployment.partner.get("browser-platforms").await;
    let listed = listed.at("/data").as_array().unwrap().clone();
    let found = listed.iter().find(|platform| platform["displayName"] == "Acme Points");
    let platform = found.expect("the platform").clone();
    assert!(listed.iter().all(|platform| platform["id"].as_i64().unwrap() > 0), "{listed:?}");
    let created = deployment.create(&json!({ "platformId": platform["id"] })).await;
    let applicant = Applicant::visit(created["embedUrl"].as_str().unwrap()).await;
    let embed = applicant.top_level();
    embed.click("[data-testid=start]").await;
    embed.sign_in("ok", "any").await;
    embed.click("[data-testid=consent-approve]").await;
    assert_eq!(embed.until_outcome().await, "COMPLETED");
    let ended = deployment.session(created["sessionId"].as_str().unwrap()).await;
    assert_eq!(ended["extractedData"]["tier"], "gold", "{ended}");
    applicant.close().await;
    studio.page.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_authors_write_drafts_and_each_opens_their_own_studio() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let anna = signed_in(&deployment, ANNA, "author").await;
    let bert = signed_in(&deployment, "bert@avouch.example", "author").await;
    let fields = [
        ("name", "Shop"),
        ("login_url", "https://shop.example/login"),
        ("environment", "production"),
    ];
    let made = anna.fill("/portal/platforms", "/portal/drafts", &fields).await;
    assert_eq!(made.status, 303);
    let draft = made.header("location").to_owned();
    assert!(bert.get("/portal/platforms").await.text.contains("Shop"), "of the same team");
    let wrong = [("name", "Shop"), ("login_url", "ftp://shop.example")];
    let refused = anna.fill("/portal/platforms", "/portal/drafts", &wrong).await;
    assert_eq!(refused.status, 422, "{}", refused.text);

    let opened = anna.fill(&draft, &format!("{draft}/open"), &[("country", "US")]).await;
    assert_eq!(opened.status, 303);
    let studio = opened.header("location").to_owned();
    assert_eq!(anna.get(&studio).await.status, 200);
    assert_eq!(anna.get(&format!("{studio}api/state")).await.status, 200);
    assert_eq!(bert.get(&format!("{studio}api/state")).await.status, 401, "another author");
    let stranger = PortalUser::new(&base(&deployment));
    assert_eq!(stranger.get(&studio).await.status, 401);
    let again = anna.fill(&draft, &format!("{draft}/open"), &[("country", "US")]).await;
    assert_eq!(again.header("location"), studio, "it is open already");
    let nowhere = anna.fill(&draft, &format!("{draft}/open"), &[("country", "XX")]).await;
    assert_eq!(nowhere.status, 422);

    for role in ["viewer", "member", "owner"] {
        let email = format!("{role}@avouch.example");
        let other = signed_in(&deployment, &email, role).await;
        assert_eq!(other.get(&draft).await.status, 403, "{role}");
        let page = other.get("/portal/platforms").await;
        assert!(page.status == 200 && !page.text.contains("/portal/drafts"), "{role}");
        let sent = other.fill("/portal/platforms", "/portal/drafts", &fields).await;
        assert_eq!(sent.status, 403, "{role}");
        assert_eq!(other.get(&format!("{studio}api/state")).await.status, 401, "{role}");
    }
    // Authors publish for all teams, so that no owner makes one.
    let owner = signed_in(&deployment, "olga@avouch.example", "owner").await;
    let invited = [("email", "new@avouch.example"), ("role", "author")];
    assert_eq!(owner.fill("/portal/members", "/portal/members", &invited).await.status, 403);
    let operator = signed_in(&deployment, "otto@avouch.example", "operator").await;
    assert_eq!(operator.fill("/portal/members", "/portal/members", &invited).await.status, 303);

    let other_team = deployment.admin(&["create-team", "Other"])["teamId"].clone();
    let password = user(&deployment, other_team.as_str().unwrap(), "ines@other.example", "author");
    let ines = PortalUser::new(&base(&deployment));
    ines.sign_in("ines@other.example", &password).await;
    assert_eq!(ines.get(&draft).await.status, 404, "of another team");
    for form in ["open", "delete"] {
        let path = format!("{draft}/{form}");
        let sent = ines.fill("/portal/platforms", &path, &[("country", "US")]).await;
        assert_eq!(sent.status, 404, "{form}");
    }
    // It does not lead to a studio of another author.
    let confirm = format!("{draft}/studio");
    assert_eq!(ines.get(&confirm).await.header("location"), draft);
    assert_eq!(bert.get(&confirm).await.header("location"), draft);
    assert_eq!(anna.get(&confirm).await.header("location"), studio);

    assert_eq!(anna.fill(&draft, &format!("{draft}/delete"), &[]).await.status, 303);
    assert_eq!(anna.get(&draft).await.status, 404);
}

/// Publishes a version of a platform; returns the platform's path in the portal.
fn version(deployment: &Deployment, version: &str, percent: Option<&str>) -> String {
    let file = write_platform(deployment, "acme-versions", |definition| {
        definition["version"] = version.into();
    });
    let mut command = vec!["publish-platform", file.to_str().unwrap()];
    command.extend(percent.iter().flat_map(|percent| ["--canary-percent", percent]));
    format!("/portal/platforms/{}", deployment.admin(&command)["platformId"])
}

/// Returns what new sessions of a platform run.
fn active(deployment: &Deployment, path: &str) -> (Value, Value) {
    let id = path.rsplit('/').next().unwrap();
    let listed = deployment.admin(&["list-platform-versions", id]);
    (listed["version"].clone(), listed["canary"]["version"].clone())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn authors_roll_back_and_end_shares_of_versions() {
    let deployment = Deployment::start(Kind::Postgres).await;
    let path = version(&deployment, "1.0.0", None);
    version(&deployment, "1.1.0", None);
    version(&deployment, "1.2.0", Some("10"));
    let versions = format!("{path}/versions");
    let anna = signed_in(&deployment, ANNA, "author").await;
    let list = anna.get("/portal/platforms").await.text.replace("&#x2f;", "/");
    assert!(list.contains(&versions), "{list}");
    let page = anna.get(&versions).await;
    for text in ["1.0.0", "<td>90 %</td>", "<td>10 %</td>", "Roll back to version 1.0.0"] {
        assert!(page.text.contains(text), "{text}: {}", page.text);
    }
    assert_eq!(page.text.matches("Roll back to version").count(), 1, "what runs already");
    let seen = [("seen_version", "1.1.0"), ("seen_canary", "1.2.0"), ("seen_percent", "10")];
    let choose = async |user: &PortalUser, version: &str, seen: &[(&str, &str)]| {
        let fields = [seen, &[("version", version)]].concat();
        user.fill("/portal/platforms", &versions, &fields).await
    };

    // Whoever is no author neither sees nor changes versions.
    for role in ["viewer", "member", "owner"] {
        let other = signed_in(&deployment, &format!("{role}@avouch.example"), role).await;
        assert_eq!(other.get(&versions).await.status, 403, "{role}");
        assert_eq!(choose(&other, "1.0.0", &seen).await.status, 403, "{role}");
    }
    // An old sign-in is not sufficient.
    let sql = "UPDATE sign_ins SET created_at = created_at - interval '1 hour'";
    deployment.database.execute(sql).await;
    let fields = [&seen[..], &[("version", "1.2.0")]].concat();
    let held = anna.fill_once("/portal/platforms", &versions, &fields).await;
    assert_eq!((held.status, held.header("location")), (303, "/portal/confirm"));
    let purpose = anna.get("/portal/confirm").await.text;
    assert!(purpose.contains("To change what new sessions run"), "{purpose}");
    assert_eq!(active(&deployment, &path), (json!("1.1.0"), json!("1.2.0")));

    assert_eq!(choose(&anna, "1.2.0", &seen).await.status, 303);
    assert_eq!(active(&deployment, &path), (json!("1.2.0"), Value::Null));
    let stale = choose(&anna, "1.1.0", &seen).await;
    assert!(stale.status == 422 && stale.text.contains("Another author"), "{}", stale.text);
    let rolled_back = choose(&anna, "1.0.0", &[("seen_version", "1.2.0")]).await;
    let notice = anna.get(rolled_back.header("location")).await.text;
    assert!(notice.contains("New sessions run the version that you chose."), "{notice}");
    assert_eq!(active(&deployment, &path), (json!("1.0.0"), Value::Null));
    let unknown = choose(&anna, "7.0.0", &[("seen_version", "1.0.0")]).await;
    assert_eq!(unknown.status, 404);
    assert_eq!(anna.get("/portal/platforms/99/versions").await.status, 404);

    // Platforms belong to no team; the entries are in the log of the author's own.
    let other_team = deployment.admin(&["create-team", "Other"])["teamId"].clone();
    let password = user(&deployment, other_team.as_str().unwrap(), "ines@other.example", "author");
    let ines = PortalUser::new(&base(&deployment));
    ines.sign_in("ines@other.example", &password).await;
    assert_eq!(choose(&ines, "1.1.0", &[("seen_version", "1.0.0")]).await.status, 303);
    let owner = signed_in(&deployment, "olga@avouch.example", "owner").await;
    let log = owner.get("/portal/audit/entries.jsonl").await.text;
    let entries: Vec<_> = log.lines().filter(|line| line.contains("choose-version")).collect();
    assert_eq!(entries.len(), 2, "{log}");
    let [back, all] = [0, 1].map(|index| entries[index]);
    assert!(all.contains("acme-versions 1.2.0, before 1.1.0 and 1.2.0 for 10 %"), "{all}");
    assert!(back.contains("acme-versions 1.0.0, before 1.2.0\""), "{back}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn owners_remove_authors_of_their_team() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let anna = signed_in(&deployment, ANNA, "author").await;
    let owner = signed_in(&deployment, "olga@avouch.example", "owner").await;
    let page = owner.get("/portal/members").await;
    let member = page.after("action=\"/portal/members/").replace("&#x2f;", "/");
    let member = member.split('/').next().unwrap();
    let role = format!("/portal/members/{member}/role");
    let appointed = owner.fill("/portal/members", &role, &[("role", "member")]).await;
    assert_eq!(appointed.status, 403);
    let remove = format!("/portal/members/{member}/remove");
    assert_eq!(owner.fill("/portal/members", &remove, &[]).await.status, 303);
    assert_eq!(anna.get("/portal/platforms").await.status, 303, "signed out");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn partners_cannot_choose_the_platform_of_drafts() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    for id in [-1, -2] {
        let answer = deployment.partner.create(&json!({ "platformId": id })).await;
        assert_eq!(answer.status, 400, "{}", answer.body);
    }
}
