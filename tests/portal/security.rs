//! Security of the portal: authorization between teams and roles, output escaping and headers,
//! throttled guessing, and password changes.

use acceptance::{
    database::Kind,
    portal_user::{PortalUser, base, code_at, made_up, now, signed_in, status_with, user},
    service::Deployment,
};

const ADA: &str = "ada@lender.example";
const PASSPHRASE: &str = "nine teapots under glass";

/// Resources of other teams, other roles, planted tokens, and redirects to other sites.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_are_confined_to_their_team_and_role() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let owner = signed_in(&deployment, ADA, "owner").await;
    let team = deployment.admin(&["create-team", "Another"])["teamId"].clone();
    let make = ["create-key", "--team", team.as_str().unwrap(), "--environment", "development"];
    let theirs = deployment.admin(&make);
    let (id, key) = (theirs["keyId"].as_str().unwrap(), theirs["apiKey"].as_str().unwrap());
    for what in ["rotate", "revoke"] {
        for id in [id, "nonsense", "00000000-0000-0000-0000-000000000000"] {
            let path = format!("/portal/keys/{id}/{what}");
            assert_eq!(owner.fill("/portal/keys", &path, &[]).await.status, 404, "{path}");
        }
    }
    assert_eq!(status_with(&deployment, key).await, 200);
    assert!(!owner.get("/portal/keys").await.text.contains(id));

    // A user cannot end another user's sign-in.
    let viewer = signed_in(&deployment, "eve@lender.example", "viewer").await;
    let again = PortalUser::new(&base(&deployment));
    let password = user(&deployment, &deployment.team, "bob@lender.example", "member");
    again.sign_in("bob@lender.example", &password).await;
    let second = PortalUser::new(&base(&deployment));
    second.sign_in("bob@lender.example", &password).await;
    let listed = second.get("/portal/account").await;
    let bobs = listed.after("action=\"/portal/account/sign-ins/");
    let path = format!("/portal/account/sign-ins/{bobs}");
    assert_eq!(viewer.fill("/portal/account", &path, &[]).await.status, 404);
    assert_eq!(again.get("/portal/keys").await.status, 200);
    assert_eq!(second.fill("/portal/account", &path, &[]).await.status, 303);
    assert_eq!(again.get("/portal/keys").await.status, 303, "signed out");

    // Viewers only read, members change keys, and neither sees the audit log.
    let key = owner.get("/portal/keys").await.after("action=\"/portal/keys/");
    let fields = [("label", "x"), ("environment", "production"), ("expiry", "never")];
    let rotate = format!("/portal/keys/{key}");
    for (path, fields) in
        [("/portal/keys", &fields[..]), (&rotate, &[]), (&rotate.replace("rotate", "revoke"), &[])]
    {
        assert_eq!(viewer.fill("/portal/keys", path, fields).await.status, 403, "{path}");
    }
    assert_eq!(viewer.get("/portal/audit").await.status, 403);
    assert_eq!(second.get("/portal/audit").await.status, 403);
    assert_eq!(second.fill("/portal/keys", "/portal/keys", &fields).await.status, 200);

    // A token from before the sign-in is replaced, and `next` leads to no other site.
    let planted = PortalUser::new(&base(&deployment));
    planted.set_cookie(&made_up());
    assert_eq!(planted.get("/portal/keys").await.status, 303);
    let fields =
        [("email", "bob@lender.example"), ("password", &password), ("next", "//evil.example")];
    let answer = planted.post("/portal/sign-in", &fields).await;
    assert_eq!((answer.status, answer.header("location")), (303, "/portal/overview"));
    assert_ne!(planted.cookie(), Some(made_up()));
    let old = planted.cookie().unwrap();
    let out = planted.fill("/portal/keys", "/portal/sign-out", &[]).await;
    // Only the cache is cleared: the origin's storage also has the secrets of applicants' devices.
    assert_eq!((out.status, out.header("clear-site-data")), (303, "\"cache\""));
    planted.set_cookie(&old);
    assert_eq!(planted.get("/portal/keys").await.status, 303, "the ended sign-in stays ended");
    assert_eq!(
        planted.sign_in("bob@lender.example", &password).await.status,
        303,
        "and can sign in again"
    );
}

/// User input is shown as text on every page, and no page can be framed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_escape_user_input_and_send_security_headers() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let person = signed_in(&deployment, ADA, "owner").await;
    let markup = "\"><script>alert(1)</script><img src=x onerror=alert(2)>{{ 7 * 7 }}";
    let fields = [("label", markup), ("environment", "development"), ("expiry", "never")];
    assert_eq!(person.fill("/portal/keys", "/portal/keys", &fields).await.status, 422, "too long");
    let short = "\"><script>alert(1)</script>{{ 7 * 7 }}";
    let fields = [("label", short), ("environment", "development"), ("expiry", "never")];
    assert_eq!(person.fill("/portal/keys", "/portal/keys", &fields).await.status, 200);
    let url = format!("https://hooks.lender.example/\"><script>alert(1)</script>?{markup}");
    let fields = [
        ("url", url.as_str()),
        ("header-name", markup),
        ("header-value", markup),
        ("timeout", markup),
        ("retries", markup),
        ("email", markup),
        ("role", markup),
    ];
    for path in ["/portal/webhooks", "/portal/members", "/portal/forgot", "/portal/password"] {
        let page = person.fill("/portal/keys", path, &fields).await;
        let shown = page.text.contains("<script>") || page.text.contains("<img");
        assert!(!shown && page.status < 500, "{path}: {}", page.text);
    }
    let fields = [("url", url.as_str()), ("timeout", "9"), ("retries", "1")];
    assert_eq!(person.fill("/portal/keys", "/portal/webhooks", &fields).await.status, 200);
    for path in ["/portal/keys", "/portal/audit", "/portal/account", "/portal/webhooks"] {
        let page = person.get(path).await;
        assert!(!page.text.contains("<script>"), "{path}");
        let policy = page.header("content-security-policy");
        for part in [
            "default-src 'none'",
            "script-src 'self';",
            "frame-ancestors 'none'",
            "form-action 'self'",
            "base-uri 'none'",
        ] {
            assert!(policy.contains(part), "{policy}");
        }
        assert_eq!(page.header("x-frame-options"), "DENY");
        assert_eq!(page.header("cache-control"), "no-store");
        assert_eq!(page.header("x-content-type-options"), "nosniff");
    }
    let page = person.get("/portal/keys").await.text;
    assert!(page.contains("&lt;script&gt;") && page.contains("{{ 7 * 7 }}"), "{page}");
    let anonymous = PortalUser::new(&base(&deployment));
    let fields = [("email", markup), ("password", markup), ("next", markup)];
    let page = anonymous.post("/portal/sign-in", &fields).await;
    assert!(page.status == 422 && !page.text.contains("<script>"), "{}", page.text);
    let page = anonymous.get("/portal/sign-in?next=%22%3E%3Cscript%3Ealert(1)%3C/script%3E").await;
    assert!(page.status == 200 && !page.text.contains("<script>alert"));
}

/// Few guesses are accepted from any client, and a stolen password alone signs nobody in.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn guessing_passwords_and_codes_is_throttled() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let password = user(&deployment, &deployment.team, ADA, "owner");
    let person = PortalUser::new(&base(&deployment));
    assert_eq!(person.sign_in(ADA, &password).await.status, 303);
    person.confirm(&[]).await;
    let page = person.get("/portal/account/second-factor").await;
    let secret = page.text.split_once("<code class=\"secret\">").unwrap().1;
    let secret = secret.split('<').next().unwrap().to_owned();
    let (offer, code) = (page.after("name=\"offer\" value=\""), code_at(&secret, now()));
    let fields = [("offer", offer.as_str()), ("code", &code)];
    let path = "/portal/account/second-factor";
    assert_eq!(person.fill(path, path, &fields).await.status, 200);

    let thief = PortalUser::new(&base(&deployment));
    let answer = thief.sign_in(ADA, &password).await;
    assert_eq!(answer.header("location").split('?').next(), Some("/portal/sign-in/code"));
    for path in ["/portal/keys", "/portal/account", "/portal/audit"] {
        let answer = thief.get(path).await;
        assert_eq!((answer.status, answer.header("location")), (303, "/portal/sign-in/code"));
    }
    let mut refused = 0;
    let late = loop {
        let answer = thief.post("/portal/sign-in/code", &[("code", "000000")]).await;
        if answer.status != 422 {
            break answer;
        }
        refused += 1;
    };
    assert!(late.status == 429 && !late.header("retry-after").is_empty(), "{}", late.status);
    assert!(refused <= 6, "{refused} codes");
    let answer = thief.sign_in(ADA, &password).await;
    assert_eq!(answer.status, 429, "even with the password");
    assert_eq!(person.get("/portal/keys").await.status, 200, "an existing sign-in stays valid");
    let again = person.sign_in(ADA, &password).await;
    assert_eq!(again.status, 303, "a known browser can sign in again");
    assert!(again.header("location").starts_with("/portal/sign-in/code"));

    // An unknown address is throttled in the same way as a known one.
    let statuses = async |email: &str| {
        let guesser = PortalUser::new(&base(&deployment));
        let mut all = vec![];
        for _ in 0..12 {
            all.push(guesser.sign_in(email, "wrong wrong wrong").await.status);
        }
        all
    };
    user(&deployment, &deployment.team, "bob@lender.example", "member");
    let known = statuses("bob@lender.example").await;
    assert_eq!(known, statuses("nobody@lender.example").await);
    assert_eq!(known, [&[422; 6][..], &[429; 6]].concat());
}

/// A new password must not be easy to guess, and ends the user's other sign-ins.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_password_change_requires_a_strong_password_and_ends_other_sign_ins() {
    let deployment = Deployment::start(Kind::Postgres).await;
    let password = user(&deployment, &deployment.team, ADA, "owner");
    let (one, two) = (PortalUser::new(&base(&deployment)), PortalUser::new(&base(&deployment)));
    one.sign_in(ADA, &password).await;
    two.sign_in(ADA, &password).await;
    let path = "/portal/account/password";
    for new in ["short", "passwordpassword", "ada@lender.example"] {
        let answer = one.fill("/portal/account", path, &[("new", new)]).await;
        assert_eq!(answer.status, 422, "{new}");
    }
    for breached in ["girlsjustwannahavefun", "GirlsJustWannaHaveFun"] {
        let answer = one.fill("/portal/account", path, &[("new", breached)]).await;
        assert!(answer.status == 422 && answer.text.contains("common and leaked passwords"));
    }
    let fields = [("new", PASSPHRASE)];
    assert_eq!(one.fill("/portal/account", path, &fields).await.status, 200);
    assert_eq!(one.get("/portal/keys").await.status, 200);
    assert_eq!(two.get("/portal/keys").await.status, 303, "signed out");
    assert_eq!(two.sign_in(ADA, &password).await.status, 422);
    assert_eq!(two.sign_in(" ADA@Lender.Example ", PASSPHRASE).await.status, 303);
    // No secret of these is in the log.
    let log = std::fs::read_to_string(deployment.log()).unwrap();
    for secret in [password.as_str(), PASSPHRASE, &one.cookie().unwrap()] {
        assert!(!log.contains(secret));
    }
}
