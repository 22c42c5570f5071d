//! Teams' own templates of the mails with links: from a draft to the mail that an applicant reads.

use acceptance::{
    applicant::Applicant,
    database::Kind,
    portal_page::{assert_accessible, enter, heading, sign_in},
    portal_user::{PortalUser, base, mail_with, signed_in, user},
    service::Deployment,
};
use serde_json::{Value, json};

const TEMPLATES: &str = "/portal/templates";
const SUBJECT: &str = "{{ sender }} asks about {{ platform }}";
const BODY: &str = "# Good day{% if name %} {{ name }}{% endif %}\r\n\r\nWe are **curious**: \
    [Show us]({{ link }})\r\n\r\n- until {{ expires }}";

fn fields<'a>(name: &'a str, body: &'a str) -> [(&'a str, &'a str); 4] {
    [("name", name), ("language", "en"), ("subject", SUBJECT), ("body", body)]
}

/// Creates a draft; returns the path of its page.
async fn create_draft(member: &PortalUser, name: &str, body: &str) -> String {
    let answer = member.fill(TEMPLATES, TEMPLATES, &fields(name, body)).await;
    assert_eq!(answer.status, 303, "{}", answer.text);
    answer.header("location").to_owned()
}

/// Submits a step's form with the revision that the page shows; returns the status.
async fn submit_step(person: &PortalUser, page: &str, step: &str) -> u16 {
    let shown = person.get(page).await.text;
    let before = "name=\"revision\" value=\"";
    let revision = shown.split_once(before).map(|(_, rest)| rest.split('"').next().unwrap());
    let revision = ("revision", revision.unwrap_or_default());
    person.fill(page, &format!("{page}/{step}"), &[revision]).await.status
}

/// Signs in an operator who belongs to another team.
async fn operator(deployment: &Deployment) -> PortalUser {
    let team = deployment.admin(&["create-team", "Operators"])["teamId"].clone();
    let password = user(deployment, team.as_str().unwrap(), "op@avouch.example", "operator");
    let operator = PortalUser::new(&base(deployment));
    operator.sign_in("op@avouch.example", &password).await;
    operator
}

fn number(page: &str) -> i64 {
    page.rsplit('/').next().unwrap().parse().unwrap()
}

async fn lookup(deployment: &Deployment) -> Value {
    deployment.partner.get("email-templates").await.at("/data").clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approved_template_is_used_for_mail() {
    let deployment = Deployment::start(Kind::Postgres).await;
    let member = signed_in(&deployment, "bob@lender.example", "member").await;
    let operator = operator(&deployment).await;
    let page = create_draft(&member, "Curious", "Nothing to click, {{ password }}").await;
    let id = number(&page);
    let refused = member.get(&page).await;
    assert!(refused.text.contains("`password` isn&#x27;t supported"), "{}", refused.text);
    assert_eq!(submit_step(&member, &page, "submit").await, 422, "the draft has errors");
    assert_eq!(member.fill(&page, &page, &fields("Curious", BODY)).await.status, 303);
    assert_eq!(submit_step(&member, &page, "submit").await, 303);
    assert_eq!(member.fill(&page, &page, &fields("Other", BODY)).await.status, 422);
    assert_eq!(lookup(&deployment).await, json!([]), "a submitted template is not listed");
    let named = |id: i64, address: &str| {
        json!({ "emailTemplateId": id, "notificationPlatformId": 1, "senderName": "Lender",
            "receiverData": { "email": address, "name": "<b>Ada</b>" } })
    };
    let create = async |order: &Value| deployment.partner.create(order).await;
    let said = create(&named(id, "ada@lender.example")).await;
    let message = said.body["message"].as_str().unwrap_or_default();
    assert!(said.status == 400 && message.contains("emailTemplateId"), "{}", said.body);

    // The revision that is approved is the one that was read.
    let read = operator.get(&page).await;
    assert!(read.text.contains("We are **curious**"), "{}", read.text);
    assert_eq!(submit_step(&member, &page, "withdraw").await, 303);
    let other = BODY.replace("curious", "greedy");
    assert_eq!(member.fill(&page, &page, &fields("Curious", &other)).await.status, 303);
    assert_eq!(submit_step(&member, &page, "submit").await, 303);
    let old = [("revision", "2")];
    let approve = format!("{page}/approve");
    assert_eq!(operator.fill("/portal/approvals", &approve, &old).await.status, 422);
    assert_eq!(lookup(&deployment).await, json!([]));
    assert!(operator.get("/portal/approvals").await.text.contains("Curious"));
    assert_eq!(submit_step(&operator, &page, "approve").await, 303);
    let expected = json!([{ "id": id, "type": "SESSION_LINK", "name": "Curious",
        "subject": SUBJECT, "status": "APPROVED" }]);
    assert_eq!(lookup(&deployment).await, expected);

    assert_eq!(create(&named(id, "ada@lender.example")).await.status, 201);
    let mail = mail_with(&deployment, "ada@lender.example", "greedy").await;
    assert!(mail.contains("Subject: Lender asks about Acme"), "{mail}");
    assert!(mail.contains("<strong>greedy</strong>"), "{mail}");
    assert!(mail.contains("Good day &lt;b&gt;Ada&lt;/b&gt;</h1>"), "{mail}");
    assert!(mail.contains("Show us: http://127.0.0.1"), "{mail}");
    falls_back(&deployment, &member, &page, &named).await;
    let log = std::fs::read_to_string(deployment.log()).unwrap();
    assert!(log.contains("DEBUG"), "{log}");
    assert!(
        !log.contains("with parameters"),
        "statement parameters, which contain contacts and hashes, are not logged"
    );
}

/// Without a named template, the team's default in the recipient's language is used, and otherwise
/// the built-in mail.
async fn falls_back(
    deployment: &Deployment,
    member: &PortalUser,
    page: &str,
    named: &impl Fn(i64, &str) -> Value,
) {
    let (id, ours) = (number(page), "you to confirm");
    let send = async |address: &str, locale: &str, template: Option<i64>| {
        let mut order = named(template.unwrap_or(id), address);
        if template.is_none() {
            order.as_object_mut().unwrap().remove("emailTemplateId");
        }
        order["receiverData"]["locale"] = locale.into();
        deployment.partner.create(&order).await.status
    };
    assert_eq!(send("one@lender.example", "en", None).await, 201);
    mail_with(deployment, "one@lender.example", ours).await;
    let default = format!("{page}/default");
    assert_eq!(member.fill(page, &default, &[("on", "on")]).await.status, 303);
    assert_eq!(send("two@lender.example", "en-GB", None).await, 201);
    mail_with(deployment, "two@lender.example", "greedy").await;
    assert_eq!(send("three@lender.example", "de", None).await, 201);
    mail_with(deployment, "three@lender.example", "<html lang=\"de\"").await;
    assert_eq!(send("four@lender.example", "de", Some(id)).await, 201);
    mail_with(deployment, "four@lender.example", "greedy").await;
    assert_eq!(member.fill(page, &default, &[]).await.status, 303);
    assert_eq!(send("five@lender.example", "en", None).await, 201);
    mail_with(deployment, "five@lender.example", ours).await;

    // A named template has no substitute: one of another team, or a removed one, is refused.
    let team = deployment.admin(&["create-team", "Another"])["teamId"].clone();
    let key = ["create-key", "--team", team.as_str().unwrap(), "--environment", "development"];
    let key = deployment.admin(&key)["apiKey"].as_str().unwrap().to_owned();
    let another = deployment.partner.with_key(Some(&key));
    assert_eq!(another.create(&named(id, "six@lender.example")).await.status, 400);
    assert_eq!(*another.get("email-templates").await.at("/data"), json!([]));
    assert_eq!(member.fill(page, &format!("{page}/remove"), &[]).await.status, 303);
    assert_eq!(send("seven@lender.example", "en", Some(id)).await, 400);
    assert_eq!(lookup(deployment).await, json!([]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn templates_belong_to_their_team_and_approval_to_operators() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let member = signed_in(&deployment, "bob@lender.example", "member").await;
    let operator = operator(&deployment).await;
    let viewer = signed_in(&deployment, "vic@lender.example", "viewer").await;
    let team = deployment.admin(&["create-team", "Another"])["teamId"].clone();
    let password = user(&deployment, team.as_str().unwrap(), "mal@other.example", "owner");
    let stranger = PortalUser::new(&base(&deployment));
    stranger.sign_in("mal@other.example", &password).await;
    let page = create_draft(&member, "<b>Curious</b>", BODY).await;
    let list = member.get(TEMPLATES).await.text;
    assert!(list.contains("&lt;b&gt;Curious") && !list.contains("<b>"), "{list}");
    assert_eq!(viewer.get(&page).await.status, 200);
    let paths = ["submit", "withdraw", "default", "remove", "approve", "reject"];
    let paths = paths.map(|step| format!("{page}/{step}"));
    let change = [&fields("Mine", BODY)[..], &[("revision", "1"), ("on", "on"), ("reason", "x")]];
    let change = change.concat();
    for path in paths.iter().chain([&page]) {
        let decides = path.ends_with("approve") || path.ends_with("reject");
        let status = viewer.fill("/portal/account", path, &change).await.status;
        assert_eq!(status, 403, "{path}");
        let status = stranger.fill("/portal/account", path, &change).await.status;
        assert_eq!(status, if decides { 403 } else { 404 }, "{path}");
        // Operators read submitted templates, and change none.
        assert_eq!(operator.fill("/portal/account", path, &change).await.status, 404, "{path}");
    }
    assert_eq!(viewer.fill("/portal/account", TEMPLATES, &change).await.status, 403);
    for path in [page.clone(), format!("{page}/preview")] {
        assert_eq!(stranger.get(&path).await.status, 404);
        assert_eq!(operator.get(&path).await.status, 404, "only its team sees a draft");
    }
    assert_eq!(stranger.get("/portal/approvals").await.status, 403);
    assert_eq!(submit_step(&member, &page, "submit").await, 303);
    assert_eq!(operator.get(&page).await.status, 200);
    for step in ["approve", "reject"] {
        assert_eq!(
            submit_step(&member, &page, step).await,
            403,
            "a team does not approve its own templates"
        );
    }
    by_commands(&deployment, &member, &page).await;
    let owner = signed_in(&deployment, "olga@lender.example", "owner").await;
    let log = owner.get("/portal/audit/entries.jsonl").await.text;
    for action in ["add", "submit", "reject", "write", "approve"] {
        assert!(log.contains(&format!("template.{action}")), "{action}: {log}");
    }
}

/// An operator makes the same decisions by commands.
async fn by_commands(deployment: &Deployment, member: &PortalUser, page: &str) {
    let id = number(page).to_string();
    let waiting = deployment.admin(&["list-templates"]);
    assert_eq!(waiting["templates"][0]["templateId"].to_string(), id);
    let reject = ["reject-template", &id, "--revision", "1", "--reason", "Too curious."];
    deployment.admin(&reject);
    assert!(member.get(page).await.text.contains("Too curious."));
    assert_eq!(member.fill(page, page, &fields("Calm", BODY)).await.status, 303);
    assert_eq!(submit_step(member, page, "submit").await, 303);
    deployment.admin(&["approve-template", &id, "--revision", "2"]);
    let listed = deployment.admin(&["list-templates", "--team", &deployment.team]);
    assert_eq!(listed["templates"][0]["status"], "APPROVED", "{listed}");
}

/// The pages work in a browser, and the mail in its frame executes and fetches nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_template_is_previewed_before_it_is_submitted() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let email = "olga@lender.example";
    let password = user(&deployment, &deployment.team, email, "operator");
    let browser = Applicant::visit(&format!("{}{TEMPLATES}", base(&deployment))).await;
    let page = browser.top_level();
    sign_in(&page, email, &password).await;
    heading(&page, "Email templates").await;
    assert_accessible(&page, "no templates").await;
    enter(&page, "name", "Spring").await;
    page.click("main .primary").await;
    heading(&page, "Email template").await;
    let framed = "document.querySelector('iframe.mail').getBoundingClientRect().height > 200";
    page.until("the mail in its frame", framed).await;
    assert_accessible(&page, "a template").await;
    page.click("form[action$='/submit'] button").await;
    page.until(
        "the template to be submitted",
        "document.querySelector('.state.submitted') !== null",
    )
    .await;
    assert_accessible(&page, "a submitted template").await;
    page.click("nav a[href='/portal/approvals']").await;
    heading(&page, "Template approvals").await;
    assert_accessible(&page, "approvals").await;
    page.click("tbody a").await;
    heading(&page, "Email template").await;
    page.click("form[action$='/approve'] button").await;
    heading(&page, "Template approvals").await;
    page.click("nav a[href='/portal/templates']").await;
    heading(&page, "Email templates").await;
    assert_accessible(&page, "templates").await;
    let source = page.evaluate("document.querySelector('tbody a').getAttribute('href')").await;
    let person = PortalUser::new(&base(&deployment));
    person.sign_in(email, &password).await;
    let mail = person.get(&format!("{}/preview", source.as_str().unwrap())).await;
    let policy = mail.header("content-security-policy");
    assert!(policy.contains("default-src 'none'") && policy.ends_with("sandbox"), "{policy}");
    assert!(mail.text.contains("<h1>Hello Ada Lovelace</h1>"), "{}", mail.text);
    browser.close().await;
}
