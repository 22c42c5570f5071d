//! The journeys that lead to each state of the page.

use std::{sync::Arc, time::Duration};

use acceptance::{
    applicant::{Applicant, Embed, IN_NO_FIELD},
    database::Kind,
    eventually,
    platform::publish,
    playground::Playground,
    service::{Deployment, binary},
    viewer::{Viewer, secret},
};
use app::{Overrides, Service, config::Config};
use chrono::TimeDelta;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use testkit::{clock::FakeClock, sample};

use super::{long_platform, sheet::Sheet};

const TIMEOUT: Duration = Duration::from_secs(60);
/// An attestation takes every core.
const ATTESTATION_TIMEOUT: Duration = Duration::from_secs(180);
/// The platform's page is shown, and nothing before it.
const STREAM: &str = "(() => { const c = document.querySelector('canvas'); \
    return !c.hidden && c.dataset.pictures > 0 && c.dataset.status === 'AWAITING_USER' \
    && ![...document.querySelectorAll('.card')].some((card) => !card.hidden); })()";
const INTRODUCTION: &str = "!document.getElementById('intro').hidden";
const CONSENT: &str = "!document.getElementById('consent').hidden";
const OUTCOME: &str = "!document.getElementById('outcome').hidden";
const TEXT: &str = "!document.getElementById('text').hidden && document.querySelectorAll('#text-list li').length > 2";
/// The end, or the end of an attempt.
const FAILURE: &str = "[...document.querySelectorAll('#outcome, [data-testid=failure]')].some((card) => !card.hidden)";
const OFFER: &str = "!document.querySelector('[data-testid=failure]').hidden";
const NOTE: &str = "!document.getElementById('note').hidden";
const GUEST: &str = "!document.getElementById('guest').hidden";
const SAID: &str = "document.getElementById('said').textContent !== ''";
const INSTRUCTION: &str = "document.querySelector('header').textContent";
const LOADED: &str = "document.readyState === 'complete' && document.documentElement.lang !== ''";
/// Keeps short messages, which disappear after eight seconds.
const LASTING: &str = "{ const later = setTimeout; window.setTimeout = \
    (act, wait, ...more) => wait === 8000 ? 0 : later(act, wait, ...more); }";

pub(super) struct Stage<'a> {
    pub(super) sheet: &'a Sheet,
    pub(super) deployment: &'a Deployment,
    pub(super) applicant: &'a Applicant,
}

/// A session and the page that shows it.
struct Journey<'a> {
    stage: &'a Stage<'a>,
    page: Embed<'a>,
    id: String,
    link: String,
}

impl Stage<'_> {
    /// The steps of a session that succeeds.
    pub(super) async fn steps(&self) {
        let journey = self.begin(&self.asked()).await;
        journey.take("introduction", INTRODUCTION).await;
        journey.start().await;
        journey.take("sign-in", STREAM).await;
        journey.page.click("[data-testid=page-as-text]").await;
        journey.take("page-as-text", TEXT).await;
        journey.page.click("#text-close").await;
        journey.sign_in("otp").await;
        journey.until_asked("otp").await;
        journey.take("second-factor", STREAM).await;
        journey.page.answer("123456").await;
        journey.take("consent", CONSENT).await;
        journey.page.click("[data-testid=consent-approve]").await;
        journey.take("done", OUTCOME).await;
    }

    pub(super) async fn all(&self, playground: &Playground) {
        if self.sheet.wants("steps") {
            self.steps().await;
        }
        if self.sheet.wants("devices") {
            self.other_devices().await;
            self.guest().await;
            self.replaced().await;
        }
        if self.sheet.wants("long") {
            self.long_texts().await;
        }
        if self.sheet.wants("queue") {
            self.queue().await;
        }
        if self.sheet.wants("platform") {
            self.trouble_on_the_platform(playground).await;
        }
        if self.sheet.wants("failures") {
            self.refused_credentials().await;
            self.refused_codes().await;
            self.failures().await;
        }
        if self.sheet.wants("refusals") {
            self.cancelled_and_declined().await;
        }
        if self.sheet.wants("partial") {
            self.partial().await;
        }
        if self.sheet.wants("time") {
            self.timed_out().await;
            self.expired().await;
        }
        if self.sheet.wants("attestation") {
            self.revealed().await;
            self.attested().await;
        }
        if self.sheet.wants("links") {
            self.links().await;
        }
        if self.sheet.wants("lost") {
            self.connection_lost().await;
        }
    }

    /// The connection to a service that is gone, which it is from then on.
    async fn connection_lost(&self) {
        let journey = self.begin(&json!({})).await;
        journey.start().await;
        self.signal(Signal::KILL);
        journey.take("connection-lost", NOTE).await;
    }

    /// Questions about other devices on the one that has the session, and the question before it is
    /// cancelled.
    async fn other_devices(&self) {
        let journey = self.begin(&json!({})).await;
        let Journey { page, link, .. } = &journey;
        journey.start().await;
        page.click("[data-testid=cancel]").await;
        journey.take("cancel-question", "document.getElementById('leave').open").await;
        page.click("[data-testid=cancel-keep]").await;
        page.click("#phone").await;
        journey.take("code-for-phone", "!!document.querySelector('#handover[open] path')").await;
        self.applicant.press("Escape").await;
        let mut guest = Viewer::open(link, &secret('g')).await;
        guest.until("guest", |_| true).await;
        guest.send(&json!({ "t": "ask" })).await;
        journey.take("other-device-asks", "document.getElementById('admit').open").await;
        page.click("[data-testid=admit-deny]").await;
        journey.end().await;
    }

    /// The page of a device that the session does not belong to.
    async fn guest(&self) {
        let asked = json!({ "notificationPlatformId": 1,
            "receiverData": { "email": "ada@example.com" } });
        let session = self.deployment.create(&asked).await;
        let mut owner = Viewer::open(&text(&session, "embedUrl"), &secret('o')).await;
        owner.until("state", |state| state["status"] == "AWAITING_USER").await;
        let journey = self.open(&session).await;
        journey.take("guest", GUEST).await;
        let answered = "document.getElementById('guest-answer').textContent !== ''";
        journey.page.click("[data-testid=guest-code]").await;
        self.applicant.write("00000000").await;
        self.applicant.press("Enter").await;
        journey.take("guest-wrong-code", answered).await;
        let before = journey.evaluate("document.getElementById('guest-answer').textContent").await;
        journey.page.click("[data-testid=guest-ask]").await;
        let asking = format!("document.getElementById('guest-answer').textContent !== {before}");
        journey.take("guest-asks", &format!("{answered} && {asking}")).await;
        journey.end().await;
    }

    /// A page that another connection of the same device has replaced.
    async fn replaced(&self) {
        let journey = self.begin(&json!({})).await;
        journey.start().await;
        let own = "localStorage.getItem('avouch-device-' + location.pathname.split('/').pop())";
        let own = journey.evaluate(own).await;
        let _other = Viewer::open(&journey.link, own.as_str().expect("a secret")).await;
        journey.take("replaced", NOTE).await;
        journey.end().await;
    }

    /// Long names, instructions, labels and lists.
    async fn long_texts(&self) {
        let team = "Northern Lights Mortgages & Building Society of 1848";
        let team = text(&self.deployment.admin(&["create-team", team]), "teamId");
        allow_return(self.deployment, &team);
        let key = ["create-key", "--team", &team, "--environment", "development"];
        let key = text(&self.deployment.admin(&key), "apiKey");
        let platform = long_platform::publish(self.deployment);
        let mut asked = self.asked();
        asked["platformId"] = platform;
        let session = self.deployment.partner.with_key(Some(&key)).create(&asked).await;
        let journey = self.open(session.at("/data")).await;
        journey.take("introduction-long", INTRODUCTION).await;
        journey.start().await;
        journey.take("sign-in-long", STREAM).await;
        if journey.evaluate("!document.getElementById('more').hidden").await == true {
            journey.page.click("#more").await;
            let open =
                format!("{STREAM} && document.getElementById('step').className === 'step open'");
            journey.take("instruction-in-full", &open).await;
            journey.page.click("#more").await;
        }
        journey.sign_in("ok").await;
        journey.take("consent-long", CONSENT).await;
        let last = "document.querySelector('#consent-fields dd:last-child').scrollIntoView()";
        journey.evaluate(last).await;
        journey.take("consent-long-scrolled", CONSENT).await;
        journey.page.click("[data-testid=consent-approve]").await;
        journey.take("done-long", OUTCOME).await;
    }

    /// A session that waits for a browser, and is then terminated by the partner.
    async fn queue(&self) {
        let first = self.deployment.create(&json!({})).await;
        let mut holder = Viewer::open(&text(&first, "embedUrl"), &secret('h')).await;
        holder.until("state", |state| state["status"] == "AWAITING_USER").await;
        let journey = self.begin(&json!({})).await;
        journey.page.click("[data-testid=start]").await;
        let place = format!(
            "{NOTE} && /\\p{{Nd}}/u.test(document.getElementById('note-text').textContent)"
        );
        journey.take("queue", &place).await;
        journey.end().await;
        journey.take("terminated", OUTCOME).await;
        self.delete(&text(&first, "sessionId")).await;
    }

    /// A question of the platform's page, and a platform that does not respond.
    async fn trouble_on_the_platform(&self, playground: &Playground) {
        let platform = playground.publish(self.deployment);
        let journey = self.begin(&json!({ "platformId": platform })).await;
        let page = &journey.page;
        journey.start().await;
        // The page has two columns and rows of 48 pixels.
        let width = page.evaluate("Number(document.querySelector('canvas').dataset.width)").await;
        let (x, y) = page.on_screen(width.as_f64().expect("a width") / 4.0, 220.0).await;
        self.applicant.click_at(x, y).await;
        journey.take("question", "document.getElementById('ask').open").await;
        page.click("#ask-no").await;
        playground.set_down(true);
        page.click("#reload").await;
        journey.take("unreachable", "!document.getElementById('down').hidden").await;
        playground.set_down(false);
        journey.end().await;
    }

    async fn refused_credentials(&self) {
        let journey = self.begin(&json!({})).await;
        journey.start().await;
        journey.repeat(async || journey.sign_in("nobody").await).await;
        journey.take("sign-in-refused", STREAM).await;
        journey.fail(async || journey.sign_in("nobody").await).await;
        journey.take_failure("failed-credentials").await;
        journey.end().await;
    }

    async fn refused_codes(&self) {
        let journey = self.begin(&json!({})).await;
        journey.start().await;
        journey.sign_in("otp").await;
        journey.until_asked("otp").await;
        let code = async || journey.page.answer("000000").await;
        journey.repeat(code).await;
        journey.take("second-factor-refused", STREAM).await;
        journey.fail(code).await;
        journey.take_failure("failed-second-factor").await;
        journey.end().await;
    }

    async fn failures(&self) {
        for (user, state) in [
            ("locked", "failed-account-locked"),
            ("no_data", "failed-no-data"),
            ("site_down", "failed-platform-unavailable"),
        ] {
            let journey = self.begin(&json!({})).await;
            journey.start().await;
            journey.sign_in(user).await;
            journey.take_failure(state).await;
            journey.end().await;
        }
    }

    async fn cancelled_and_declined(&self) {
        let journey = self.begin(&self.asked()).await;
        journey.start().await;
        journey.page.cancel().await;
        journey.take("cancelled", OUTCOME).await;
        let journey = self.begin(&json!({})).await;
        journey.start().await;
        journey.sign_in("ok").await;
        journey.page.click("[data-testid=consent-decline]").await;
        journey.take("declined", OUTCOME).await;
    }

    async fn partial(&self) {
        let journey = self.begin(&self.asked()).await;
        journey.start().await;
        journey.sign_in("partial").await;
        journey.page.click("[data-testid=consent-approve]").await;
        journey.take("partial", OUTCOME).await;
    }

    /// A step with a warning one minute before its end, and its end.
    async fn timed_out(&self) {
        let platform = publish(self.deployment, "acme-hasty", |definition| {
            definition["nodes"]["login"]["timeoutSeconds"] = json!(95);
        });
        let lasting = json!({ "source": LASTING });
        let added = self.applicant.devtools("Page.addScriptToEvaluateOnNewDocument", lasting).await;
        let journey = self.begin(&json!({ "platformId": platform })).await;
        journey.start().await;
        eventually("the warning", TIMEOUT, async || {
            (journey.evaluate(SAID).await == true).then_some(())
        })
        .await;
        journey.take("time-left", SAID).await;
        eventually("the end of the step", TIMEOUT, async || {
            (journey.evaluate(FAILURE).await == true).then_some(())
        })
        .await;
        journey.take_failure("failed-timeout").await;
        journey.end().await;
        self.applicant.devtools("Page.removeScriptToEvaluateOnNewDocument", added).await;
    }

    /// A session that expires while it is open: in a service in this process, with a clock that is set.
    async fn expired(&self) {
        let deployment = Deployment::prepare(Kind::Sqlite).await;
        let config = Config::load(None, |name| deployment.setting(name)).expect("a configuration");
        let clock = Arc::new(FakeClock::at(sample::noon()));
        let parts =
            Overrides { clock: Some(clock.clone()), program: binary(), ..Overrides::default() };
        let service = Service::start(&config, parts).await.expect("a service");
        allow_return(&deployment, &deployment.team);
        let Self { sheet, applicant, .. } = *self;
        let stage = Stage { sheet, applicant, deployment: &deployment };
        let journey = stage.begin(&self.asked()).await;
        journey.start().await;
        clock.forward(TimeDelta::hours(200));
        journey.take("expired", OUTCOME).await;
        service.stop().await;
    }

    /// An attestation whose attestor sees everything, which the applicant is told, and which fails,
    /// because the attestor inside the service does not know the platform.
    async fn revealed(&self) {
        let platform = publish(self.deployment, "acme-open", |definition| {
            definition["attest"]["modes"] = json!(["full-reveal"]);
        });
        let asked = json!({ "platformId": platform, "generateAttestation": true });
        let journey = self.begin(&asked).await;
        journey.start().await;
        journey.sign_in("ok").await;
        let told = format!("{CONSENT} && !document.getElementById('consent-witnessed').hidden");
        journey.take("consent-revealed", &told).await;
        journey.page.click("[data-testid=consent-approve]").await;
        journey.take("failed-attestation", OUTCOME).await;
    }

    async fn attested(&self) {
        let mut asked = self.asked();
        asked["generateAttestation"] = true.into();
        let journey = self.begin(&asked).await;
        journey.start().await;
        journey.sign_in("ok").await;
        journey.take("consent-attested", CONSENT).await;
        journey.page.click("[data-testid=consent-approve]").await;
        let verifying = "document.querySelector('canvas').dataset.status === 'VERIFYING'";
        let certifying = format!("{NOTE} && {verifying}");
        journey.page.until("the attestation", &certifying).await;
        self.halt(async || journey.take("certifying", &certifying).await).await;
        eventually("the receipt", ATTESTATION_TIMEOUT, async || {
            (journey.evaluate(OUTCOME).await == true).then_some(())
        })
        .await;
        journey.take("done-attested", OUTCOME).await;
    }

    /// A link of a session that is over, and one that is not valid.
    async fn links(&self) {
        let journey = self.begin(&self.asked()).await;
        journey.start().await;
        journey.sign_in("partial").await;
        journey.page.click("[data-testid=consent-approve]").await;
        journey.page.until_outcome().await;
        journey.visit(&journey.link).await;
        journey.take("link-of-ended-session", OUTCOME).await;
        journey.visit(&journey.link.replace("token=", "token=x")).await;
        journey.take("invalid-link", NOTE).await;
    }

    /// What a partner asks with a purpose, in the applicant's language, and a way back.
    fn asked(&self) -> Value {
        let purpose = match self.sheet.language() {
            "de" => {
                "Wir prüfen Ihr Konto, damit wir Ihren Kreditantrag vom 3. März bearbeiten können."
            }
            "ar" => "نتحقق من حسابك لنتمكن من معالجة طلب القرض الذي قدمته في 3 مارس.",
            _ => "We check your account so that we can process your loan application of 3 March.",
        };
        json!({ "purpose": purpose, "returnUrl": "https://lender.example/applications/7" })
    }

    async fn begin(&self, asked: &Value) -> Journey<'_> {
        self.open(&self.deployment.create(asked).await).await
    }

    async fn open(&self, session: &Value) -> Journey<'_> {
        let (id, link) = (text(session, "sessionId"), text(session, "embedUrl"));
        let journey = Journey { stage: self, page: self.applicant.top_level(), id, link };
        journey.visit(&journey.link).await;
        journey
    }

    /// Halts the service meanwhile, so that a state which ends by itself does not.
    async fn halt(&self, meanwhile: impl AsyncFn()) {
        self.signal(Signal::STOP);
        meanwhile().await;
        self.signal(Signal::CONT);
    }

    /// Sends a signal to the service.
    fn signal(&self, signal: Signal) {
        let service = i32::try_from(self.deployment.process()).ok().and_then(Pid::from_raw);
        kill_process(service.expect("a process"), signal).expect("a signal");
    }

    async fn delete(&self, id: &str) {
        self.deployment.partner.delete(&format!("browser-session/{id}")).await;
    }
}

impl Journey<'_> {
    async fn visit(&self, link: &str) {
        self.stage.applicant.navigate(link).await;
        self.page.until("the page", LOADED).await;
    }

    async fn evaluate(&self, expression: &str) -> Value {
        self.page.evaluate(expression).await
    }

    async fn take(&self, state: &str, shown: &str) {
        self.stage.sheet.take(&self.page, state, shown).await;
    }

    /// Takes the offer of another attempt, if there is one, declines it, and takes the end.
    async fn take_failure(&self, state: &str) {
        self.page.until("a failure", FAILURE).await;
        if self.evaluate(OFFER).await == true {
            self.take(&format!("{state}-retry"), OFFER).await;
            // Taking the pictures may have outlasted the offer.
            if self.evaluate(OFFER).await == true {
                self.page.click("[data-testid=retry-decline]").await;
            }
        }
        self.take(state, OUTCOME).await;
    }

    /// Starts the session, and waits for the platform's page.
    async fn start(&self) {
        self.page.click("[data-testid=start]").await;
        self.page.until("the platform's page", STREAM).await;
    }

    async fn sign_in(&self, user: &str) {
        self.page.sign_in_again(user, "any").await;
    }

    /// Waits until the applicant is asked for something; the instruction may not say so in every
    /// language.
    async fn until_asked(&self, kind: &str) {
        eventually(kind, TIMEOUT, async || {
            let session = self.stage.deployment.session(&self.id).await;
            (session["nextAction"]["kind"] == kind).then_some(())
        })
        .await;
        self.page.until("the page for it", STREAM).await;
    }

    /// Does something once, and waits until the instruction says what was wrong with it.
    async fn repeat(&self, act: impl AsyncFn()) {
        let before = self.evaluate(INSTRUCTION).await;
        act().await;
        // The number of pictures tells nothing: several keys may share one.
        self.page.until("another instruction", &format!("{INSTRUCTION} !== {before}")).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
    }

    /// Does something until the session has failed because of it.
    async fn fail(&self, act: impl AsyncFn()) {
        const MAX_ATTEMPTS: usize = 4;
        let failed = async || {
            while self.evaluate(FAILURE).await != true {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        for _ in 0..MAX_ATTEMPTS {
            // The page for it goes away when the session fails.
            tokio::select! {
                () = act() => (),
                () = failed() => return,
            }
            self.page.until("an answer", &format!("{FAILURE} || {IN_NO_FIELD}")).await;
            if tokio::time::timeout(Duration::from_secs(2), failed()).await.is_ok() {
                return;
            }
        }
    }

    /// Terminates the session as the partner.
    async fn end(&self) {
        self.stage.delete(&self.id).await;
    }
}

/// Permits the URL to which the page offers a way back.
pub(super) fn allow_return(deployment: &Deployment, team: &str) {
    deployment.admin(&["set-frame-ancestors", "--team", team, "https://lender.example"]);
}

fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_else(|| panic!("no {name} in {value}")).to_owned()
}
