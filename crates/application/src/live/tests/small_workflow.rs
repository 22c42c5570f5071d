//! A run of a small workflow: sign in, read a name, agree to share it.

use std::sync::{Arc, Mutex, atomic::AtomicBool};

use chrono::{DateTime, Utc};
use domain::{
    error_code::ErrorCode,
    id::SessionId,
    request::AttestationRequest,
    session::{DefinitionVersion, Event, Status},
    workflow::{Definition, PromptKind},
};
use ports::{browser::Fetched, driving::Prompt, workflow_trace::MockWorkflowTrace};
use serde_json::{Value, json};
use testkit::sample;
use tokio::{sync::mpsc, task::JoinHandle, time::Instant};

use super::pass;
use crate::{
    advance::BROWSER_FENCE,
    live::{AuthorTools, FixtureCapture, WorkflowRunner, hub::LiveSession, nodes, run_workflow},
    testing::{FakeBrowser, World},
};

/// A run whose browser is up; its applicant has not come yet.
pub(super) struct Run {
    pub(super) world: World,
    pub(super) id: SessionId,
    pub(super) browser: Arc<FakeBrowser>,
    pub(super) live: Arc<LiveSession>,
    task: JoinHandle<()>,
    entered: Mutex<mpsc::Receiver<String>>,
}

impl Run {
    pub(super) async fn new(definition: Definition) -> Self {
        Self::of_author(definition, None).await
    }

    /// Begins a run of which a fixture is recorded, by the returned tools.
    pub(super) async fn recorded(definition: Definition) -> (Self, Arc<AuthorTools>) {
        let mut trace = MockWorkflowTrace::new();
        trace.expect_record().return_const(());
        let author = Arc::new(AuthorTools {
            trace: Arc::new(trace),
            capture: Some(FixtureCapture::default()),
            reloads: None,
            browser: None,
        });
        (Self::of_author(definition, Some(author.clone())).await, author)
    }

    async fn of_author(definition: Definition, author: Option<Arc<AuthorTools>>) -> Self {
        let world = World::with_definition(definition.clone()).await;
        let wanted = if definition.attest.is_some() {
            AttestationRequest::Wanted
        } else {
            AttestationRequest::NotWanted
        };
        let id = world.insert(|session| session.terms.attestation = wanted).await;
        let lease = sample::lease();
        world.apply(id, [Event::BrowserRequested { lease }]).await;
        let live = world.engine.hub.find_or_create(id);
        live.publish(&world.read(id).await);
        let browser = Arc::new(FakeBrowser::default());
        let (nodes, entered) = nodes(None);
        let runner = WorkflowRunner {
            engine: world.engine.clone(),
            attestations: world.attestations(),
            id,
            lease,
            fence: Instant::now() + BROWSER_FENCE,
            browser: browser.clone(),
            live: live.clone(),
            workflow: DefinitionVersion { version: "1.0.0".into(), sha256: "00".repeat(32) },
            definition: Arc::new(definition),
            platform: world.platform,
            custom_url: None,
            began: sample::noon(),
            is_complete: AtomicBool::new(false),
            statistics: Arc::default(),
            nodes,
            author,
        };
        let task = tokio::spawn(run_workflow(runner));
        pass(1).await;
        Self { world, id, browser, live, task, entered: entered.into() }
    }

    pub(super) fn come(&self) {
        self.live.state.send_modify(|state| state.present = true);
    }

    pub(super) fn leave(&self) {
        self.live.state.send_modify(|state| state.present = false);
    }

    /// Goes on until the applicant is asked for consent.
    pub(super) async fn to_consent(&self) {
        self.browser.bodies.push(Ok(body(200, r#"{"name":"Ada"}"#)));
        self.come();
        self.browser.show("#in");
        pass(2).await;
        assert_eq!(self.prompt().kind, PromptKind::Consent);
    }

    /// Answers the current prompt; the answer counts as recorded.
    pub(super) fn answer(&self, agreed: bool) {
        self.live.state.send_modify(|state| {
            let prompt = state.prompts;
            assert!(state.answer_consent(prompt, agreed));
            state.consent_recorded(prompt, true);
        });
    }

    pub(super) fn prompt(&self) -> Prompt {
        self.live.state.borrow().prompt.clone().unwrap()
    }

    pub(super) async fn status(&self) -> Status {
        self.world.read(self.id).await.status()
    }

    /// Returns the deadline that the session states.
    pub(super) async fn deadline(&self) -> DateTime<Utc> {
        self.world.read(self.id).await.state.ask().unwrap().deadline
    }

    pub(super) async fn code(&self) -> Option<ErrorCode> {
        self.world.read(self.id).await.state.error_code()
    }

    pub(super) async fn is_over(&self) {
        pass(1).await;
        assert!(self.task.is_finished());
    }

    /// The nodes that the recorder was told.
    pub(super) fn nodes(&self) -> Vec<String> {
        let mut entered = self.entered.lock().unwrap();
        std::iter::from_fn(|| entered.try_recv().ok()).collect()
    }
}

pub(super) fn body(status: u16, body: &str) -> Fetched {
    Fetched { status, body: body.to_owned() }
}

/// The small workflow, with other members of its nodes `signIn` and `read`, or another plan for an
/// attestation.
pub(super) fn definition(changes: &Value) -> Definition {
    let mut read = json!({
        "type": "collect", "via": { "fetch": "me" }, "fields": { "name": "/name" }, "retries": 1,
        "onMissing": { "fail": "EXTRACTION_FAILED" }, "next": "review",
    });
    let mut sign_in = json!({
        "type": "awaitUser", "kind": "login", "textKey": "signIn", "timeoutSeconds": 60,
        "until": ["in"], "next": "read", "onTimeout": { "fail": "USER_INPUT_TIMEOUT" },
    });
    let mut attest = Value::Null;
    for (member, value) in changes.as_object().unwrap().clone() {
        match member.as_str() {
            "timeoutSeconds" => sign_in[member] = value,
            "attest" => attest = value,
            _ => read[member] = value,
        }
    }
    let mut document = serde_json::to_value(sample::definition("sample", "1.0.0")).unwrap();
    document["budgets"]["totalSeconds"] = json!(7200);
    document["signals"] = json!({ "in": { "selector": "#in" } });
    document["start"] = json!("open");
    document["nodes"] = json!({
        "open": {
            "type": "goto", "url": "https://sample.example/login", "next": "signIn",
            "onFail": { "fail": "PLATFORM_UNAVAILABLE" },
        },
        "signIn": sign_in,
        "read": read,
        "review": { "type": "review", "textKey": "share", "timeoutSeconds": 120, "next": "end" },
        "end": { "type": "done" },
    });
    document["requests"] = json!({
        "me": { "url": "https://sample.example/me", "expectStatus": 200, "maxBytes": 1000 },
    });
    document["output"] =
        json!({ "name": { "type": "string", "required": true, "labelKey": "name" } });
    document["texts"] =
        json!({ "en": { "signIn": "Sign in", "share": "Share?", "name": "Your name" } });
    if !attest.is_null() {
        document["attest"] = attest;
    }
    serde_json::from_value(document).unwrap()
}
