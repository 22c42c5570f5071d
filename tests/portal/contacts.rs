//! Contacts that a team registers, and sessions that name them.

use acceptance::{
    applicant::Applicant,
    database::Kind,
    portal_page::{assert_accessible, heading, sign_in},
    portal_user::{PortalUser, base, mail_with, signed_in, user},
    service::Deployment,
};
use serde_json::{Value, json};

const ADA: &str = "ada@lender.example";
const CONTACTS: &str = "/portal/receivers";

/// A registered contact is used in sessions of its team, and in those only.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_is_sent_to_a_registered_contact() {
    let deployment = Deployment::start(Kind::Postgres).await;
    let member = signed_in(&deployment, "bob@lender.example", "member").await;
    let id = register_contact(&member).await;
    let create = async |extra: Value| deployment.partner.create(&extra).await;
    for (unknown, receiver) in
        [("nonsense", json!({})), (&contact_of_another_team(&deployment), json!({}))]
    {
        let answer = create(json!({ "receiverId": unknown, "receiverData": receiver })).await;
        let said = answer.body["message"].as_str().unwrap_or_default();
        assert!(answer.status == 400 && said.contains("receiverId"), "{}", answer.body);
    }
    // Fields that the session leaves out are the contact's; those that it gives take precedence.
    let mailed = json!({ "receiverId": id, "notificationPlatformId": 1, "receiverData": {} });
    assert_eq!(create(mailed.clone()).await.status, 201);
    mail_with(&deployment, ADA, "<html lang=\"de\"").await;
    let mut other = mailed.clone();
    other["receiverData"] = json!({ "email": "eve@lender.example" });
    assert_eq!(create(other).await.status, 201);
    mail_with(&deployment, "eve@lender.example", "<html lang=\"de\"").await;

    let one = format!("{CONTACTS}/{id}");
    let by_phone = [("name", "Ada"), ("phone", "+15551234567")];
    assert_eq!(member.fill(&one, &one, &by_phone).await.status, 303);
    let answer = create(mailed.clone()).await;
    let said = answer.body["message"].as_str().unwrap_or_default();
    assert!(answer.status == 400 && said.contains("receiverData.email"), "{}", answer.body);
    let named = create(json!({ "receiverId": id })).await;
    assert_eq!(named.status, 201);
    assert_eq!(member.fill(&one, &format!("{one}/remove"), &[]).await.status, 303);
    assert_eq!(member.get(&one).await.status, 404);
    assert_eq!(create(json!({ "receiverId": id })).await.status, 400);
    let session = named.at("/data/sessionId").as_str().unwrap_or_default().to_owned();
    assert_eq!(
        deployment.session(&session).await["status"],
        "CREATED",
        "the session keeps the contact's data"
    );
}

/// Registers Ada as a contact; refused values change nothing.
async fn register_contact(member: &PortalUser) -> String {
    for odd in [
        &[][..],
        &[("name", "Ada")],
        &[("email", "ada")],
        &[("email", "a@b.c\r\nBcc: all@example.org")],
        &[("phone", "0123")],
        &[("email", ADA), ("locale", "x")],
        &[("email", ADA), ("name", "\0")],
    ] {
        assert_eq!(member.fill(CONTACTS, CONTACTS, odd).await.status, 422, "{odd:?}");
    }
    assert!(member.get(CONTACTS).await.text.contains("No recipients yet"));
    let fields = [("name", "<b>Ada</b>"), ("email", ADA), ("locale", "de-AT")];
    assert_eq!(member.fill(CONTACTS, CONTACTS, &fields).await.status, 303);
    let list = member.get(CONTACTS).await;
    assert!(list.text.contains("&lt;b&gt;Ada") && !list.text.contains("<b>"), "{}", list.text);
    list.after("href=\"/portal/receivers/")
}

/// Creates a contact of another team by an operator's commands, which list and remove contacts,
/// too.
fn contact_of_another_team(deployment: &Deployment) -> String {
    let team = deployment.admin(&["create-team", "Another"])["teamId"].clone();
    let team = team.as_str().unwrap();
    let order = ["create-receiver", "--team", team, "--name", "Mal", "--phone", "+4312345678"];
    let id = deployment.admin(&order)["receiverId"].as_str().unwrap().to_owned();
    let gone = ["create-receiver", "--team", team, "--email", "gone@other.example"];
    let gone = deployment.admin(&gone)["receiverId"].as_str().unwrap().to_owned();
    deployment.admin(&["remove-receiver", "--team", team, &gone]);
    let listed = deployment.admin(&["list-receivers", "--team", team]);
    assert_eq!(listed["receivers"].as_array().map(Vec::len), Some(1), "{listed}");
    assert_eq!(listed["receivers"][0]["phone"], "+4312345678");
    id
}

/// Viewers read contacts, other teams cannot see them, and the pages are accessible.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn contacts_are_visible_to_their_team_only() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let order = ["create-receiver", "--team", &deployment.team, "--name", "Ada", "--email", ADA];
    let id = deployment.admin(&order)["receiverId"].as_str().unwrap().to_owned();
    let (one, change) = (format!("{CONTACTS}/{id}"), [("email", "eve@evil.example")]);
    let viewer = signed_in(&deployment, "vic@lender.example", "viewer").await;
    assert!(viewer.get(&one).await.text.contains(ADA));
    let team = deployment.admin(&["create-team", "Another"])["teamId"].clone();
    let password = user(&deployment, team.as_str().unwrap(), "mal@other.example", "owner");
    let stranger = PortalUser::new(&base(&deployment));
    stranger.sign_in("mal@other.example", &password).await;
    assert!(!stranger.get(CONTACTS).await.text.contains(ADA));
    assert_eq!(stranger.get(&one).await.status, 404);
    for path in [one.clone(), format!("{one}/remove")] {
        assert_eq!(viewer.fill("/portal/account", &path, &change).await.status, 403, "{path}");
        assert_eq!(stranger.fill("/portal/account", &path, &change).await.status, 404, "{path}");
    }
    assert_eq!(viewer.fill("/portal/account", CONTACTS, &change).await.status, 403);
    assert!(viewer.get(&one).await.text.contains(ADA), "unchanged");

    let password = user(&deployment, &deployment.team, "olga@lender.example", "member");
    let browser = Applicant::visit(&format!("{}{CONTACTS}", base(&deployment))).await;
    let page = browser.top_level();
    sign_in(&page, "olga@lender.example", &password).await;
    heading(&page, "Recipients").await;
    assert_accessible(&page, "receivers").await;
    page.click("tbody a").await;
    heading(&page, "Recipient").await;
    assert_accessible(&page, "a receiver").await;
    browser.close().await;
}
