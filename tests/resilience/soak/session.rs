//! One session: what its applicant is going to do, and how it went.

use std::{
    collections::BTreeMap,
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use acceptance::partner::{Answer, Partner};
use hyper::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use super::applicant::{Page, Shown, View};

/// A session whose applicant has not come to an end after this time is stuck.
pub(crate) const SESSION_TIMEOUT: Duration = Duration::from_secs(240);
/// A request of the partner is repeated for this time.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// A page that shows nothing for this time is loaded again, as a person would.
const BLANK_TIMEOUT: Duration = Duration::from_secs(15);
const LOOK_INTERVAL: Duration = Duration::from_millis(200);

/// What all applicants need.
pub(crate) struct Context {
    pub(crate) partner: Partner,
    pub(crate) sandbox: Value,
    /// The sandbox under another name, whose runs are short.
    pub(crate) abandoned: Value,
}

/// What the applicant and the partner do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Script {
    Completes,
    TypesACode,
    WrongPassword,
    LockedAccount,
    /// Closes the page at the sign-in.
    Abandons,
    /// The partner terminates the session at the sign-in.
    Terminated,
    Cancels,
}

/// The order in which scripts are played, the usual ones more often.
const SCRIPTS: [Script; 9] = [
    Script::Completes,
    Script::WrongPassword,
    Script::Terminated,
    Script::TypesACode,
    Script::Abandons,
    Script::Completes,
    Script::Cancels,
    Script::TypesACode,
    Script::LockedAccount,
];

impl Script {
    fn user(self) -> &'static str {
        match self {
            Self::TypesACode => "otp",
            Self::WrongPassword => "wrong_password",
            Self::LockedAccount => "locked",
            Self::Completes | Self::Abandons | Self::Terminated | Self::Cancels => "ok",
        }
    }

    /// Whether a session that ended so ended as expected.
    pub(crate) fn expects(self, status: &str, code: Option<&str>) -> bool {
        match self {
            Self::Completes | Self::TypesACode => status == "COMPLETED" && code.is_none(),
            Self::WrongPassword => status == "ERROR" && code == Some("CREDENTIALS_INVALID"),
            Self::LockedAccount => status == "ERROR" && code == Some("ACCOUNT_LOCKED"),
            // The browser may be lost after the applicant has left: then the session waits until it expires.
            Self::Abandons => {
                status == "ERROR" && matches!(code, Some("USER_INPUT_TIMEOUT" | "SESSION_EXPIRED"))
            }
            Self::Terminated => status == "TERMINATED",
            Self::Cancels => status == "CANCELLED",
        }
    }
}

/// A session that was played.
pub(crate) struct Visit {
    pub(crate) script: Script,
    /// `None` if no session could be created.
    pub(crate) id: Option<String>,
    /// Why the applicant came to no end.
    pub(crate) stuck: Option<String>,
    /// Whether the applicant's own browser failed: then the session was left as it was.
    pub(crate) broken: bool,
    pub(crate) reloads: u32,
    /// When the page lost its connection, and when it showed a frame again, in milliseconds since 1970.
    pub(crate) gaps: BTreeMap<u64, u64>,
    pub(crate) took: Duration,
}

impl Visit {
    fn new(script: Script) -> Self {
        Self {
            script,
            id: None,
            stuck: None,
            broken: false,
            reloads: 0,
            gaps: BTreeMap::new(),
            took: Duration::ZERO,
        }
    }
}

impl fmt::Display for Visit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.id.as_deref().unwrap_or("no session");
        write!(f, "{id}: {:?} in {:.1?}", self.script, self.took)?;
        self.stuck.iter().try_for_each(|why| write!(f, ", stuck: {why}"))
    }
}

/// Plays a session from its creation to its end.
pub(crate) async fn play(turn: u64, context: &Arc<Context>) -> Visit {
    let began = Instant::now();
    let at = usize::try_from(turn).unwrap_or_default() % SCRIPTS.len();
    let script = SCRIPTS[at];
    let visit = Visit::new(script);
    let mut visit = match create(script, context).await {
        Ok(created) => {
            let text = |name: &str| created[name].as_str().unwrap_or_default().to_owned();
            let visit = Visit { id: Some(text("sessionId")), ..visit };
            let (id, context) = (visit.id.clone(), Arc::clone(context));
            // The applicant's browser may fail on a busy machine, which is no fault of the service.
            let played = tokio::spawn(visiting(visit, text("embedUrl"), context)).await;
            played.unwrap_or_else(|_| Visit { id, broken: true, ..Visit::new(script) })
        }
        Err(why) => Visit { stuck: Some(why), ..visit },
    };
    visit.took = began.elapsed();
    visit
}

async fn visiting(mut visit: Visit, url: String, context: Arc<Context>) -> Visit {
    let page = Page::open(&url).await;
    let played = run(&page, &mut visit, &context);
    if tokio::time::timeout(SESSION_TIMEOUT, played).await.is_err() {
        visit.stuck = Some(page.evidence().await);
    }
    page.close().await;
    visit
}

/// Reacts to what the page shows, until the session has ended.
async fn run(page: &Page, visit: &mut Visit, context: &Context) {
    let mut blank_since = Instant::now();
    loop {
        tokio::time::sleep(LOOK_INTERVAL).await;
        let view = page.look().await;
        visit.gaps.extend(view.gaps.iter().copied());
        if view.shown != Shown::Nothing {
            blank_since = Instant::now();
        } else if blank_since.elapsed() > BLANK_TIMEOUT {
            visit.reloads += 1;
            page.reload().await;
            blank_since = Instant::now();
        }
        if view.shown == Shown::Outcome || react(page, visit, context, &view).await {
            return;
        }
    }
}

/// Does what comes next, and returns whether the applicant leaves.
async fn react(page: &Page, visit: &Visit, context: &Context, view: &View) -> bool {
    match view.shown {
        Shown::Introduction => page.click("[data-testid=start]").await,
        Shown::Attempt => page.click("[data-testid=retry-decline]").await,
        Shown::Session => return answer(page, visit, context, view).await,
        Shown::Outcome | Shown::Nothing => (),
    }
    false
}

/// Answers what the applicant is asked for.
async fn answer(page: &Page, visit: &Visit, context: &Context, view: &View) -> bool {
    match (view.prompt.as_deref(), visit.script) {
        (Some("consent"), _) => page.click("[data-testid=consent-approve]").await,
        (Some("login"), Script::Abandons) => {
            page.fill("text", visit.script.user()).await;
            return true;
        }
        (Some("login"), Script::Terminated) => {
            let path = format!("browser-session/{}", visit.id.as_deref().unwrap_or_default());
            let path = format!("/v1/partner/{path}");
            let _ = insist(&context.partner, Method::DELETE, &path, &Value::Null, &[], 200).await;
        }
        (Some("login"), Script::Cancels) => {
            page.click("[data-testid=cancel]").await;
            page.click("[data-testid=cancel-confirm]").await;
        }
        (Some("login"), script) => page.sign_in(view, script.user()).await,
        (Some("otp"), _) => page.type_code(view, "123456").await,
        (Some(_) | None, _) => (),
    }
    false
}

async fn create(script: Script, context: &Context) -> Result<Value, String> {
    let abandons = script == Script::Abandons;
    let platform = if abandons { &context.abandoned } else { &context.sandbox };
    let body = json!({
        "platformId": platform, "location": { "country": "US" }, "maxAttempts": 1,
        "externalReferenceId": format!("{script:?}"),
    });
    // A response may be lost although the session was created.
    let key = Uuid::new_v4().to_string();
    let headers = [("idempotency-key", key.as_str())];
    let path = "/v1/partner/browser-session";
    let created = insist(&context.partner, Method::POST, path, &body, &headers, 201).await?;
    Ok(created.at("/data").clone())
}

/// Repeats a request until it has the wanted status.
pub(crate) async fn insist(
    partner: &Partner,
    method: Method,
    path: &str,
    body: &Value,
    headers: &[(&str, &str)],
    wanted: u16,
) -> Result<Answer, String> {
    let ends = Instant::now() + REQUEST_TIMEOUT;
    let body = if body.is_null() { String::new() } else { body.to_string() };
    loop {
        let sent = partner.try_send(method.clone(), path, body.clone(), headers);
        let answer = tokio::time::timeout(Duration::from_secs(10), sent).await;
        let last = match answer {
            Ok(Ok(answer)) if answer.status == wanted => return Ok(answer),
            Ok(Ok(answer)) => format!("{} {}", answer.status, answer.body),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "no answer in 10 s".to_owned(),
        };
        if Instant::now() >= ends {
            return Err(format!("{method} {path} did not succeed in {REQUEST_TIMEOUT:?}: {last}"));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
