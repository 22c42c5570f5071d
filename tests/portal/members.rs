//! Members of a team, and the links by which users choose a password.

use std::time::Duration;

use acceptance::{
    database::Kind,
    eventually,
    portal_user::{PortalUser, base, mail_with, mailed_link, signed_in, user},
    service::Deployment,
};

const ADA: &str = "ada@lender.example";
const EVE: &str = "eve@lender.example";
const PASSPHRASE: &str = "nine teapots under glass";
const TIMEOUT: Duration = Duration::from_secs(60);

/// Invitation links expire, roles change and members are removed; no user acts above their own
/// role.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn owners_invite_change_and_remove_members() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let owner = signed_in(&deployment, "olga@lender.example", "owner").await;
    let member = signed_in(&deployment, "bob@lender.example", "member").await;
    let (members, fields) = ("/portal/members", [("email", ADA), ("role", "owner")]);
    assert_eq!(member.fill(members, members, &fields).await.status, 403);
    let mighty = [("email", ADA), ("role", "operator")];
    assert_eq!(owner.fill(members, members, &mighty).await.status, 403, "a role above their own");
    for odd in ["", "ada", "ada@lender", "a@b.c\r\nBcc: all@example.org", "bob@lender.example"] {
        let fields = [("email", odd), ("role", "member")];
        assert_eq!(owner.fill(members, members, &fields).await.status, 422, "{odd}");
    }
    assert_eq!(owner.fill(members, members, &fields).await.status, 303);
    let first = mailed_link(&deployment, ADA).await;
    let path = |link: &str| link.strip_prefix(&base(&deployment)).unwrap().to_owned();
    // Mail scanners that open the link change nothing.
    for _ in 0..20 {
        assert_eq!(member.get(&path(&first)).await.status, 200);
    }
    let again = owner.get(members).await.after("action=\"/portal/members/");
    let (id, what) = again.split_once('/').unwrap();
    assert_eq!(what, "invite");
    let act = async |who: &PortalUser, what: &str, role: &str| {
        who.fill(members, &format!("{members}/{id}/{what}"), &[("role", role)]).await.status
    };
    assert_eq!(act(&owner, "invite", "").await, 303);
    let second = eventually("another link", TIMEOUT, async || {
        Some(mailed_link(&deployment, ADA).await).filter(|link| *link != first)
    })
    .await;
    assert_eq!(member.get(&path(&first)).await.status, 404, "the earlier one");
    let token = second.split_once("link=").unwrap().1;
    let choose = async |link: &str, new: &str| {
        let fields = [("link", link), ("new", new)];
        PortalUser::new(&base(&deployment)).post("/portal/password", &fields).await
    };
    assert_eq!(choose(token, "short").await.status, 422);
    assert_eq!(choose("made.up", PASSPHRASE).await.status, 404);
    assert_eq!(choose(token, PASSPHRASE).await.status, 200);
    assert_eq!(choose(token, PASSPHRASE).await.status, 404, "once");
    let ada = PortalUser::new(&base(&deployment));
    assert_eq!(ada.sign_in(ADA, PASSPHRASE).await.status, 303);

    assert_eq!(act(&member, "role", "viewer").await, 403);
    assert_eq!(act(&owner, "role", "operator").await, 403);
    assert_eq!(act(&owner, "role", "viewer").await, 303);
    assert_eq!(ada.get("/portal/audit").await.status, 403, "with the next request");
    assert_eq!(act(&owner, "remove", "").await, 303);
    assert_eq!(ada.get("/portal/keys").await.status, 303, "signed out at once");
    assert_eq!(ada.sign_in(ADA, PASSPHRASE).await.status, 422);
    let text = owner.get(members).await.text;
    let own = text.rsplit("/portal/members/").find(|part| part.contains("olga@")).unwrap();
    let own = format!("{members}/{}/remove", own.split('/').next().unwrap());
    assert_eq!(
        owner.fill(members, &own, &[]).await.status,
        422,
        "the last owner cannot be removed"
    );
}

/// A user who forgot the password gets a link; the response does not reveal whether an address has
/// an account.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forgotten_password_is_reset_by_a_mailed_link() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let before = signed_in(&deployment, ADA, "member").await;
    let anonymous = PortalUser::new(&base(&deployment));
    assert!(anonymous.get("/portal/sign-in").await.text.contains("/portal/forgot"));
    let ask = async |email: &str| anonymous.post("/portal/forgot", &[("email", email)]).await;
    let known = ask(ADA).await;
    let unknown = ask("eve@lender.example").await;
    assert_eq!((known.status, unknown.status), (200, 200));
    assert_eq!(known.text.replace(ADA, ""), unknown.text.replace("eve@lender.example", ""));
    let link = mailed_link(&deployment, ADA).await;
    let outbox = deployment.data().join("outbox");
    assert_eq!(std::fs::read_dir(&outbox).unwrap().count(), 1, "no mail to an unknown address");
    // Links lead to the deployment's own address whatever host a request names.
    let ours = base(&deployment);
    let headers = [("origin", ours.as_str()), ("sec-fetch-site", "same-origin")];
    let poisoned = [&headers[..], &[("x-forwarded-host", "evil.example")]].concat();
    let fields = [("email", ADA)];
    assert_eq!(anonymous.post_from("/portal/forgot", &fields, &poisoned).await.status, 200);
    let second = eventually("another link", TIMEOUT, async || {
        Some(mailed_link(&deployment, ADA).await).filter(|second| *second != link)
    })
    .await;
    assert!(second.starts_with(&ours), "{second}");
    let statuses = async |email: &str| {
        let mut all = vec![];
        for _ in 0..6 {
            all.push(ask(email).await.status);
        }
        all
    };
    assert_eq!(statuses("mal@lender.example").await, [200, 200, 200, 200, 200, 429]);
    let token = second.split_once("link=").unwrap().1;
    let fields = [("link", token), ("new", PASSPHRASE)];
    assert_eq!(anonymous.post("/portal/password", &fields).await.status, 200);
    assert_eq!(before.get("/portal/keys").await.status, 303, "signed out");
    assert_eq!(anonymous.sign_in(ADA, PASSPHRASE).await.status, 303);
    let log = std::fs::read_to_string(deployment.log()).unwrap();
    assert!(!log.contains(token), "a link is in no log");
}

/// An owner invites an address that belongs to another team, and one that has no account.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invitation_reveals_nothing_about_other_teams() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let ada = signed_in(&deployment, ADA, "member").await;
    let theirs = deployment.admin(&["create-team", "Another"])["teamId"].clone();
    let password = user(&deployment, theirs.as_str().unwrap(), "mal@other.example", "owner");
    let mal = PortalUser::new(&base(&deployment));
    mal.sign_in("mal@other.example", &password).await;
    let members = "/portal/members";
    let invite = async |email: &str| {
        let answer = mal.fill(members, members, &[("email", email), ("role", "member")]).await;
        (answer.status, answer.header("location").to_owned(), answer.text)
    };
    let (taken, free) = (invite(ADA).await, invite(EVE).await);
    assert_eq!(taken, free);
    assert_eq!(taken.0, 303);
    // The row of the list about each of the two, without their names.
    let row = async |email: &str| {
        let page = mal.get(members).await.text;
        let row = page.split("<tr>").find(|row| row.contains(email)).unwrap().to_owned();
        let id = row.split("/portal/members/").nth(1).unwrap().split('/').next().unwrap();
        (timeless(&row).replace(id, "ID").replace(email, "EMAIL"), id.to_owned())
    };
    let (told, known) = (mail_with(&deployment, ADA, "account in another team").await, ADA);
    assert!(!told.contains("/portal/password"), "{told}");
    mailed_link(&deployment, EVE).await;
    let same = eventually("the same", TIMEOUT, async || {
        let (one, other) = (row(known).await, row(EVE).await);
        (one.0 == other.0 && one.0.contains("Invitation sent;")).then_some((one.1, other.1))
    });
    let (shadow, eve) = same.await;
    let again = async |email: &str| {
        let (status, location, text) = invite(email).await;
        (status, location, timeless(&text.replace(EVE, ADA)))
    };
    assert_eq!(again(ADA).await, again(EVE).await);
    for (what, role) in [("invite", ""), ("role", "owner"), ("role", "member")] {
        let act = async |id: &str| {
            let path = format!("{members}/{id}/{what}");
            let answer = mal.fill(members, &path, &[("role", role)]).await;
            (answer.status, answer.header("location").to_owned())
        };
        assert_eq!(act(&shadow).await, act(&eve).await, "{what}");
    }
    // Ada stays in her team; once she is removed from it, the invitation becomes valid.
    assert_eq!(ada.get("/portal/keys").await.status, 200);
    let owner = signed_in(&deployment, "olga@lender.example", "owner").await;
    let page = owner.get(members).await.text;
    let own = page.split("/portal/members/").find(|part| part.contains(&format!("Remove {ADA}")));
    let remove = format!("{members}/{}/remove", own.unwrap().split('/').next().unwrap());
    assert_eq!(owner.fill(members, &remove, &[]).await.status, 303);
    let again = format!("{members}/{shadow}/invite");
    assert_eq!(mal.fill(members, &again, &[]).await.status, 303);
    let link = mailed_link(&deployment, ADA).await;
    let fields = [("link", link.split_once("link=").unwrap().1), ("new", PASSPHRASE)];
    assert_eq!(ada.post("/portal/password", &fields).await.status, 200);
    assert_eq!(ada.sign_in(ADA, PASSPHRASE).await.status, 303);
    assert!(ada.get("/portal/overview").await.text.contains("Another"));
}

/// Removes the times from a page.
fn timeless(page: &str) -> String {
    page.split("<time")
        .map(|part| part.split_once("</time>").map_or(part, |(_, rest)| rest))
        .collect()
}
