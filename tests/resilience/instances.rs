//! Several instances behind a load balancer without sticky sessions: every one of them serves every
//! applicant.

use std::time::{Duration, Instant};

use acceptance::{
    applicant::Applicant,
    cluster::Cluster,
    database::Kind,
    eventually,
    portal_page::{enter, heading, sign_in},
    portal_user::{base, user},
    processes::processes_with,
    service::Deployment,
    studio_page::{EMBED, StudioPage},
    viewer::{Viewer, secret},
};
use serde_json::{Value, json};
use testkit::redis::RedisServer;

const TIMEOUT: Duration = Duration::from_secs(60);
const PICTURE: &str = "document.querySelector('canvas').dataset.pictures > 0";
/// More connections than instances: each instance is reached at least twice.
const CONNECTIONS: usize = 6;

/// Three instances with these numbers of browsers, on PostgreSQL and Redis.
async fn three(browsers: [u32; 3]) -> (Cluster, RedisServer) {
    let redis = RedisServer::start();
    let mut deployment = Deployment::prepare(Kind::Postgres).await;
    deployment.set("AVOUCH_REDIS_URL", redis.url());
    (Cluster::start(deployment, &browsers, true).await, redis)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_applicant_is_served_whichever_instance_is_reached() {
    let (cluster, _redis) = three([0, 4, 4]).await;
    let deployment = &cluster.deployment;
    let session = deployment.create(&json!({})).await;
    let applicant = Applicant::visit(text(&session, "embedUrl")).await;
    let page = applicant.top_level();
    page.click("[data-testid=start]").await;
    page.until_prompted("Sign in").await;
    for _ in 0..CONNECTIONS {
        applicant.reload().await;
        page.until("the page", "document.readyState === 'complete'").await;
        page.until("a frame", PICTURE).await;
    }
    page.until_prompted("Sign in").await;
    page.sign_in("ok", "any").await;
    page.click("[data-testid=consent-approve]").await;
    assert_eq!(page.until_outcome().await, "COMPLETED");
    let id = text(&session, "sessionId");
    let completed = deployment.until(id, "COMPLETED", TIMEOUT).await;
    assert!(completed["extractedData"].is_object(), "{completed}");
    eventually("the webhook", TIMEOUT, async || {
        (!deployment.deliveries(id).await.is_empty()).then_some(())
    })
    .await;
    applicant.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_devices_and_observers_are_connected_to_the_session_as_well() {
    let (cluster, _redis) = three([2, 2, 2]).await;
    let deployment = &cluster.deployment;
    let session = deployment.create(&json!({})).await;
    let (id, link) = (text(&session, "sessionId"), text(&session, "embedUrl"));
    let mut first = Viewer::open(link, &secret('a')).await;
    first.until("state", |state| state["status"] == "AWAITING_USER").await;
    // Each device takes the session over from the one before, wherever it is connected.
    let mut owner = first;
    for letter in ['b', 'c', 'd'] {
        owner.send(&json!({ "t": "handover" })).await;
        let code = owner.until("code", |_| true).await;
        let mut guest = Viewer::open(link, &secret(letter)).await;
        guest.until("guest", |_| true).await;
        guest.send(&json!({ "t": "code", "code": code["code"] })).await;
        guest.until("admitted", |_| true).await;
        let mut next = Viewer::open(link, &secret(letter)).await;
        let state = next.until("state", |state| state["status"] == "AWAITING_USER").await;
        assert!(state["outcome"].is_null(), "{state}");
        next.until("scene", |_| true).await;
        owner.until("replaced", |_| true).await;
        owner = next;
    }
    let stream = deployment.session(id).await["streamUrl"].clone();
    for _ in 0..3 {
        let observer = Applicant::visit(stream.as_str().expect("a stream")).await;
        let status = "document.querySelector('canvas').dataset.status === 'AWAITING_USER'";
        observer.top_level().until("the status", status).await;
        observer.close().await;
    }
    // Another device asks to be let in, and is.
    let mut guest = Viewer::open(link, &secret('g')).await;
    guest.until("guest", |_| true).await;
    guest.send(&json!({ "t": "ask" })).await;
    let asked = owner.until("state", |state| !state["guest"].is_null()).await;
    owner.send(&json!({ "t": "admit", "number": asked["guest"], "allow": true })).await;
    guest.until("admitted", |_| true).await;

    let mut last = Viewer::open(link, &secret('g')).await;
    last.until("state", |state| state["status"] == "AWAITING_USER").await;
    let deleted = Instant::now();
    assert_eq!(deployment.partner.delete(&format!("browser-session/{id}")).await.status, 200);
    last.until("state", |state| state["status"] == "TERMINATED").await;
    eventually("the browser to end", Duration::from_secs(5), async || {
        processes_with(&deployment.browsers()).is_empty().then_some(())
    })
    .await;
    let took = deleted.elapsed();
    println!("DELETE reached the applicant's page and the browser within {took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_instance_sends_applicants_to_one_with_room() {
    let (cluster, _redis) = three([1, 0, 3]).await;
    let deployment = &cluster.deployment;
    let mut viewers = Vec::new();
    for _ in 0..4 {
        let session = deployment.create(&json!({})).await;
        viewers.push(asked_to_sign_in(text(&session, "embedUrl")).await);
    }
    // All browsers are in use: the next one waits.
    let session = deployment.create(&json!({})).await;
    let mut waiting = Viewer::open(text(&session, "embedUrl"), &secret('a')).await;
    let place = waiting.until("state", |state| !state["place"].is_null()).await;
    assert_eq!(place["place"], 1, "{place}");
    drop(viewers.pop());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_waits_gets_a_browser_that_another_instance_has_free() {
    let (cluster, _redis) = three([0, 1, 1]).await;
    let deployment = &cluster.deployment;
    let mut running = Vec::new();
    for _ in 0..2 {
        let session = deployment.create(&json!({})).await;
        let viewer = asked_to_sign_in(text(&session, "embedUrl")).await;
        running.push((text(&session, "sessionId").to_owned(), viewer));
    }
    // One more waits at each of the two instances.
    let mut waiting = Vec::new();
    for _ in 0..2 {
        let session = deployment.create(&json!({})).await;
        let applicant = Applicant::visit(text(&session, "embedUrl")).await;
        applicant.top_level().click("[data-testid=start]").await;
        let id = text(&session, "sessionId").to_owned();
        deployment.until(&id, "INITIALIZING", TIMEOUT).await;
        waiting.push((id, applicant));
        tokio::time::sleep(Duration::from_secs(3)).await;
    }
    let end = async |id: &str| {
        let ended = deployment.partner.delete(&format!("browser-session/{id}")).await;
        assert_eq!(ended.status, 200, "{ended:?}");
    };
    end(&running[0].0).await;
    let next = eventually("one of them to get the browser", TIMEOUT, async || {
        for (index, (id, _)) in waiting.iter().enumerate() {
            if deployment.session(id).await["status"] == "AWAITING_USER" {
                return Some(index);
            }
        }
        None
    })
    .await;
    // The browser that is free now is of the same instance; the other session waits at the other one.
    let (next, first) = waiting.remove(next);
    end(&next).await;
    first.close().await;
    let (last, applicant) = waiting.remove(0);
    deployment.until(&last, "AWAITING_USER", TIMEOUT).await;
    applicant.top_level().until("a frame", PICTURE).await;
    assert_eq!(deployment.session(&running[1].0).await["status"], "AWAITING_USER");
    let timeline = deployment.partner.timeline(&last).await;
    assert!(timeline.iter().any(|(event, _)| event == "WaitMoved"), "{timeline:?}");
    applicant.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_region_uses_browsers_of_another_if_the_team_allows_it() {
    let deployment = Deployment::prepare(Kind::Postgres).await;
    let regions = [(1, "us-west"), (2, "europe-west")];
    let cluster = Cluster::in_regions(deployment, &regions).await;
    let deployment = &cluster.deployment;
    let west = json!({ "preferredRegion": "us-west" });
    let region = async |id: &str| deployment.session(id).await["preferredRegion"].clone();

    let first = deployment.create(&west).await;
    let link = text(&first, "embedUrl");
    assert!(link.contains(cluster.address(0)), "{link}");
    let _first = asked_to_sign_in(link).await;
    assert_eq!(region(text(&first, "sessionId")).await, "us-west");
    // Without permission, the next one waits in its region.
    let second = deployment.create(&west).await;
    let mut waiting = Viewer::open(text(&second, "embedUrl"), &secret('a')).await;
    waiting.until("state", |state| state["place"] == 1).await;
    // Its page stays there: it answers the server.
    let waiting =
        tokio::spawn(async move { while waiting.next_message(TIMEOUT).await.is_some() {} });
    // Its instance has asked whether it may leave.
    cluster.until_reported(0).await;

    let allow = "UPDATE teams SET other_regions = true RETURNING 'done'";
    assert_eq!(deployment.database.value(allow).await, "done");
    let third = deployment.create(&west).await;
    let (third, link) = (text(&third, "sessionId"), text(&third, "embedUrl"));
    assert!(link.contains(cluster.address(0)), "{link}");
    let applicant = Applicant::visit(link).await;
    let page = applicant.top_level();
    page.click("[data-testid=start]").await;
    page.until_prompted("Sign in").await;
    assert_eq!(region(third).await, "europe-west", "the region in use");
    assert_eq!(deployment.session(third).await["embedUrl"], link, "the link stays");
    applicant.reload().await;
    page.until_prompted("Sign in").await;
    let stream = deployment.session(third).await["streamUrl"].clone();
    let observer = Applicant::visit(stream.as_str().expect("a stream")).await;
    let status = "document.querySelector('canvas').dataset.status === 'AWAITING_USER'";
    observer.top_level().until("the status", status).await;
    observer.close().await;

    // One that waits moves there as well.
    let fourth = deployment.create(&west).await;
    let _fourth = asked_to_sign_in(text(&fourth, "embedUrl")).await;
    eventually("both to be reported", TIMEOUT, async || {
        (cluster.sessions().await[1] == 2).then_some(())
    })
    .await;
    cluster.until_reported(0).await;
    let fifth = deployment.create(&west).await;
    let link = text(&fifth, "embedUrl");
    Viewer::open(link, &secret('a')).await.until("state", |state| state["place"] == 2).await;
    let fifth = text(&fifth, "sessionId");
    let (_fifth, ()) = tokio::join!(asked_to_sign_in(link), async {
        page.sign_in("ok", "any").await;
        page.click("[data-testid=consent-approve]").await;
        assert_eq!(page.until_outcome().await, "COMPLETED");
    });
    assert_eq!(region(fifth).await, "europe-west");
    assert_eq!(region(third).await, "europe-west", "also when it has ended");
    let second = deployment.session(text(&second, "sessionId")).await;
    assert_eq!(second["status"], "INITIALIZING", "it began to wait without permission");
    waiting.abort();
    applicant.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_of_an_instance_that_was_killed_begins_again_at_another() {
    let (mut cluster, _redis) = three([0, 4, 0]).await;
    let session = cluster.deployment.create(&json!({})).await;
    let applicant = Applicant::visit(text(&session, "embedUrl")).await;
    let page = applicant.top_level();
    page.click("[data-testid=start]").await;
    page.until_prompted("Sign in").await;
    page.until("a frame", PICTURE).await;
    cluster.kill(1);
    cluster.run(1).await;
    let id = text(&session, "sessionId");
    let lost = async || {
        let timeline = cluster.deployment.partner.timeline(id).await;
        timeline.iter().any(|(event, _)| event == "BrowserLost").then_some(())
    };
    eventually("the loss to be noticed", TIMEOUT, lost).await;
    page.until("another frame", PICTURE).await;
    page.until_prompted("Sign in").await;
    cluster.deployment.until(id, "AWAITING_USER", TIMEOUT).await;
    page.sign_in_again("ok", "any").await;
    page.click("[data-testid=consent-approve]").await;
    assert_eq!(page.until_outcome().await, "COMPLETED");
    applicant.close().await;
}

/// Signs an author in, creates a draft of the sandbox's site, and opens its studio.
async fn open_studio(deployment: &Deployment) -> StudioPage {
    let email = "anna@avouch.example";
    let password = user(deployment, &deployment.team, email, "author");
    let studio = StudioPage {
        page: Applicant::visit(&format!("{}/portal/sign-in", base(deployment))).await,
    };
    let page = studio.page.top_level();
    sign_in(&page, email, &password).await;
    let link = "nav a[href='/portal/platforms']";
    page.until("the portal", &format!("document.querySelector({link:?}) !== null")).await;
    page.click(link).await;
    heading(&page, "Platforms").await;
    enter(&page, "name", "Acme Points").await;
    enter(&page, "login_url", "http://sandbox.localhost/login").await;
    page.click("section[aria-labelledby=add] button.primary").await;
    enter_studio(&studio).await;
    studio
}

/// Opens the studio on the page of its draft.
async fn enter_studio(studio: &StudioPage) {
    let page = studio.page.top_level();
    heading(&page, "Draft of Acme Points").await;
    page.click("form[action$='/open'] button").await;
    page.until("the studio", "location.pathname.startsWith('/studio/')").await;
}

/// Returns the status of this many requests of a studio's page.
async fn statuses(studio: &StudioPage, count: usize) -> Vec<u64> {
    let mut statuses = Vec::new();
    for _ in 0..count {
        let status = studio.page.evaluate("fetch('api/state').then((r) => r.status)").await;
        statuses.push(status.as_u64().expect("a status"));
    }
    statuses
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_studio_is_used_whichever_instance_is_reached_until_its_own_has_stopped() {
    let (mut cluster, _redis) = three([0, 4, 4]).await;
    let studio = open_studio(&cluster.deployment).await;
    studio.begin().await;
    studio.mark("signIn").await;
    studio.sign_in("ok").await;
    studio.until_at("/account").await;
    studio.mark("signedIn").await;
    studio.add_field("gold", "dd").await;
    eventually("the field", TIMEOUT, async || {
        (studio.state().await["outline"]["fields"][0]["name"] == "tier").then_some(())
    })
    .await;
    studio.press("Save").await;
    eventually("the draft to be stored", TIMEOUT, async || {
        (studio.state().await["saved"]["definition"] == true).then_some(())
    })
    .await;
    assert_eq!(statuses(&studio, CONNECTIONS).await, [200; CONNECTIONS]);
    // The frame connects again, to the instance of the studio.
    studio.page.devtools("Page.reload", json!({})).await;
    studio.until_at("/account").await;
    let frame = format!("{EMBED}?.querySelector('canvas')?.dataset.pictures > 0");
    studio.until("a frame", &frame).await;

    let own = eventually("the session to be reported", TIMEOUT, async || {
        cluster.sessions().await.iter().position(|sessions| *sessions == 1)
    })
    .await;
    assert_ne!(own, 0, "it has no browsers");
    cluster.kill(own);
    let page = studio.page.top_level();
    eventually("the studio to have ended", 2 * TIMEOUT, async || {
        let answered = statuses(&studio, 1).await;
        assert_ne!(answered, [200], "it was killed");
        (answered == [410]).then_some(())
    })
    .await;
    page.until("what is said of it", "document.body.textContent.includes('has ended')").await;

    // What was saved is there, at the other instance.
    let drafts = format!("{}/portal/platforms", base(&cluster.deployment));
    studio.page.devtools("Page.navigate", json!({ "url": drafts })).await;
    heading(&page, "Platforms").await;
    page.click("a[href^='/portal/drafts/']").await;
    enter_studio(&studio).await;
    assert_eq!(studio.state().await["outline"]["fields"][0]["name"], "tier");
    studio.begin().await;
    studio.page.close().await;
}

/// Connects to a session until it asks for the sign-in: again, as a page does, where it waited at an instance
/// and was moved to another one.
async fn asked_to_sign_in(link: &str) -> Viewer {
    let ends = Instant::now() + 3 * TIMEOUT;
    while Instant::now() < ends {
        let mut viewer = Viewer::open(link, &secret('a')).await;
        while let Some(told) = viewer.next_message(Duration::from_secs(20)).await {
            if told["t"] == "state" && told["status"] == "AWAITING_USER" {
                return viewer;
            }
        }
    }
    panic!("the session asked for nothing");
}

fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value[member].as_str().expect("a text")
}
