//! The list of sessions: filters, pages, and the CSV file.

use acceptance::{
    database::Kind,
    portal_user::{PortalUser, base, signed_in, user},
    service::Deployment,
};
use serde_json::json;

const LIST: &str = "/portal/sessions";

/// Creates a session with a reference; returns its identifier.
async fn create(deployment: &Deployment, reference: &str) -> String {
    let created = deployment.create(&json!({ "externalReferenceId": reference })).await;
    created["sessionId"].as_str().unwrap().to_owned()
}

/// Returns the link of a page with this text, with its query.
fn link(text: &str, page: &str) -> Option<String> {
    let before = page.split_once(&format!("\">{text}</a>"))?.0;
    let href = before.rsplit_once("href=\"")?.1;
    Some(href.replace("&#x2f;", "/").replace("&amp;", "&"))
}

async fn filters_find_sessions(kind: Kind) {
    let deployment = Deployment::start(kind).await;
    let member = signed_in(&deployment, "bob@lender.example", "member").await;
    let [first, second] =
        [create(&deployment, "Loan-41").await, create(&deployment, "<b>Lease</b>-7").await];
    deployment.partner.delete(&format!("browser-session/{first}")).await;
    for (query, finds_first, finds_second) in [
        ("", true, true),
        ("?status=TERMINATED", true, false),
        ("?status=CREATED", false, true),
        ("?error=ACCOUNT_LOCKED", false, false),
        ("?platform=1&environment=development", true, true),
        ("?environment=production", false, false),
        ("?from=2020-01-01&to=2020-12-31", false, false),
        ("?from=2020-01-01", true, true),
        ("?find=Loan-41", true, false),
        ("?find=lease", false, true),
        ("?find=nothing+like+this", false, false),
        (&format!("?find={}", &second[..18]), false, true),
    ] {
        let page = member.get(&format!("{LIST}{query}")).await;
        let row = |id: &str| page.text.contains(&format!("/portal/sessions/{id}\""));
        assert_eq!((row(&first), row(&second)), (finds_first, finds_second), "{query}");
        assert!(!page.text.contains("<b>Lease"), "{}", page.text);
    }
    let page = member.get(&format!("{LIST}?status=TERMINATED&find=loan&from=2020-01-01")).await;
    for part in [
        "value=\"TERMINATED\" selected",
        "value=\"loan\"",
        "value=\"2020-01-01\"",
        "status=TERMINATED&amp;from=2020-01-01&amp;find=loan",
    ] {
        assert!(page.text.contains(part), "{part}: {}", page.text);
    }
    let found = member.get(&format!("{LIST}?find={first}")).await;
    assert_eq!(found.header("location"), format!("{LIST}/{first}"), "an identifier opens its page");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn filters_find_sessions_in_postgresql() {
    filters_find_sessions(Kind::Postgres).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn filters_find_sessions_in_sqlite() {
    filters_find_sessions(Kind::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_are_paged_and_exported() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let viewer = signed_in(&deployment, "eve@lender.example", "viewer").await;
    let mut created = vec![];
    for number in 0..53 {
        created.push(create(&deployment, &format!("=1+{number}")).await);
    }
    let newest = viewer.get(LIST).await.text;
    assert!(newest.contains(&created[52]) && !newest.contains(&created[2]), "{newest}");
    let older = link("Older", &newest).unwrap();
    // A session that is created meanwhile shifts no page.
    create(&deployment, "late").await;
    let page = viewer.get(&older).await.text;
    for id in &created[..3] {
        assert!(page.contains(id), "{page}");
    }
    let rows = page.split_once("<tbody>").unwrap().1.split_once("</tbody>").unwrap().0;
    assert!(!rows.contains(&created[3]), "each is on one page");
    assert_eq!((link("Older", &page), link("Newest", &page).as_deref()), (None, Some(LIST)));
    for odd in ["x", "1.2", "9223372036854775807.x", &"9".repeat(500)] {
        assert_eq!(viewer.get(&format!("{LIST}?after={odd}")).await.status, 200, "{odd}");
    }

    let file = viewer.get(&format!("{LIST}.csv")).await;
    assert_eq!((file.status, file.header("content-type")), (200, "text/csv; charset=utf-8"));
    assert_eq!(file.header("content-disposition"), "attachment; filename=\"sessions.csv\"");
    let lines: Vec<_> = file.text.lines().collect();
    assert_eq!(lines.len(), 55, "a heading, and each session once");
    assert!(lines[0].starts_with("sessionId,externalReferenceId,status,errorCode,platform"));
    assert!(lines[1].contains(",late,CREATED,,Acme (sandbox),development,"), "{}", lines[1]);
    let formula = format!("{},'=1+0,CREATED,", created[0]);
    assert!(lines[54].starts_with(&formula), "no cell is a formula: {}", lines[54]);
    let file = viewer.get(&format!("{LIST}.csv?find=late")).await;
    assert_eq!(file.text.lines().count(), 2, "the filters apply: {}", file.text);

    let team = deployment.admin(&["create-team", "Another"])["teamId"].clone();
    let password = user(&deployment, team.as_str().unwrap(), "mal@other.example", "owner");
    let stranger = PortalUser::new(&base(&deployment));
    stranger.sign_in("mal@other.example", &password).await;
    assert_eq!(stranger.get(&format!("{LIST}.csv")).await.text.lines().count(), 1);
    assert_eq!(PortalUser::new(&base(&deployment)).get(&format!("{LIST}.csv")).await.status, 303);
}
