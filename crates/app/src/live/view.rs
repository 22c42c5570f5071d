//! The applicant's driving port: joining a session and viewing it.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{
    error_code::ErrorCode,
    id::SessionId,
    language::Language,
    session::{Event, Lease, Session, State},
    workflow::Definition,
};
use ports::{
    StoreError,
    brand_store::BrandStore,
    browser::{Device, Input},
    driving::{
        Act, ApplicantError, ApplicantService, Guise, Outcome, SharedItem, Show, View, Viewing,
    },
};
use uuid::Uuid;

use super::room::{Inside, Room};
use crate::{
    advance::{Core, Stuck},
    whole::whole,
};

/// How often the store is asked for what other processes did to the session.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Lets applicants in.
pub(crate) struct Applicants {
    pub(crate) core: Arc<Core>,
    pub(crate) brands: Arc<dyn BrandStore>,
}

#[async_trait]
impl ApplicantService for Applicants {
    async fn join(
        &self,
        id: SessionId,
        token: &str,
        device: Device,
        language: Option<&str>,
    ) -> Result<Arc<dyn Viewing>, ApplicantError> {
        if !self.core.tokens.fits(id, token) {
            return Err(ApplicantError::NotFound);
        }
        let session = self.core.sessions.open(id).await?.ok_or(ApplicantError::NotFound)?;
        let link = self.core.embed_url(&session);
        let region = session.order.worker_region;
        if !session.state.is_closed() && self.core.addresses.elsewhere(region).is_some() {
            // Its browser would run in another region than the one that was asked for.
            return Err(ApplicantError::Elsewhere(link));
        }
        let definition = self.core.catalogue.definition(session.order.platform).await?;
        let room = self.core.rooms.enter(id);
        room.tell(&session);
        let mut me = 0;
        room.inside.send_modify(|inside| {
            inside.viewer = inside.viewer.saturating_add(1);
            me = inside.viewer;
            inside.present = true;
            inside.device = device;
            inside.language = language.map(|tag| tag.chars().take(35).collect());
            inside.definition = definition.map(|(_, definition)| Arc::new(definition));
            // Who goes on on another device has another size.
            if let Some(browser) = &inside.browser {
                browser.input(Input::Resize(device.viewport));
            }
        });
        begin(&self.core, &session).await;
        let core = self.core.clone();
        Ok(Arc::new(OneView { core, id, link, room, me, seen: Mutex::default() }))
    }

    async fn guise(&self, id: SessionId, token: &str) -> Result<Guise, StoreError> {
        if !self.core.tokens.fits(id, token) {
            return Ok(Guise::default());
        }
        let session = self.core.sessions.open(id).await?;
        let locale = session.and_then(|session| session.order.receiver?.locale);
        Ok(Guise {
            ancestors: self.core.sessions.ancestors(id).await?,
            brand: self.brands.brand_of(id).await?,
            language: locale.map(|locale| Language::of(Some(&locale))),
        })
    }
}

/// One applicant's view.
struct OneView {
    core: Arc<Core>,
    id: SessionId,
    link: String,
    room: Arc<Room>,
    me: u64,
    seen: Mutex<Seen>,
}

/// What this view has shown already.
#[derive(Default, Clone)]
struct Seen {
    view: Option<View>,
    frame: u64,
    scene: u64,
}

impl OneView {
    /// What happened elsewhere: another process, or a browser that was lost.
    async fn look(&self) {
        let (core, room, id) = (self.core.clone(), self.room.clone(), self.id);
        let look = async move {
            if let Ok(Some(session)) = core.sessions.open(id).await {
                room.tell(&session);
                begin(&core, &session).await;
            }
        };
        whole(&self.core.runtime, look).await;
    }

    fn seen(&self) -> Seen {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn remember(&self, change: impl FnOnce(&mut Seen)) {
        change(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Starts a session that waits for its applicant.
async fn begin(core: &Core, session: &Session) {
    if !matches!(session.state, State::Created { .. }) {
        return;
    }
    let browser = domain::id::BrowserId::from_uuid(Uuid::from_u128(core.chance.id()));
    let lease = Lease { browser, node: core.node };
    match core.advance(session.id, None, Event::BrowserRequested { lease }).await {
        // Somebody else began it at the same moment.
        Ok(_) | Err(Stuck::Rejected(_)) => (),
        Err(error) => {
            let error: &dyn std::error::Error = &error;
            tracing::error!(session.id = %session.id, error, "a session could not be started");
        }
    }
}

#[async_trait]
impl Viewing for OneView {
    async fn next(&self, pictures: bool) -> Option<Show> {
        let mut changes = self.room.inside.subscribe();
        loop {
            let seen = self.seen();
            if seen.view.as_ref().is_some_and(|view| view.outcome.is_some()) {
                return None;
            }
            let inside = changes.borrow_and_update().clone();
            if inside.viewer != self.me {
                return Some(Show::Replaced);
            }
            if let Some(view) = view_of(&inside).filter(|view| seen.view.as_ref() != Some(view)) {
                self.remember(|seen| seen.view = Some(view.clone()));
                return Some(Show::View(view));
            }
            let frame = async {
                match &inside.browser {
                    Some(browser) if pictures => browser.frame(seen.frame).await,
                    Some(_) | None => None,
                }
            };
            let scene = async {
                match &inside.browser {
                    Some(browser) => browser.scene(seen.scene).await,
                    None => None,
                }
            };
            tokio::select! {
                news = changes.changed() => news.ok()?,
                Some(scene) = scene => {
                    self.remember(|seen| seen.scene = scene.seq);
                    return Some(Show::Scene(scene));
                }
                Some(frame) = frame => {
                    self.remember(|seen| seen.frame = frame.seq);
                    return Some(Show::Frame(frame));
                }
                () = tokio::time::sleep(LOOK_EVERY) => self.look().await,
            }
        }
    }

    fn now(&self) -> DateTime<Utc> {
        self.core.clock.now()
    }

    fn link(&self) -> String {
        self.link.clone()
    }

    async fn act(&self, act: Act) {
        let inside = self.room.inside.borrow().clone();
        if inside.viewer != self.me {
            return;
        }
        match act {
            Act::Input(input) => {
                if let Input::Resize(viewport) = input {
                    self.room.inside.send_if_modified(|inside| {
                        inside.device.viewport = viewport;
                        false
                    });
                }
                if input.writes() {
                    self.room.written.send_replace(());
                }
                let closed = inside.session.is_none_or(|session| session.state.is_closed());
                if let Some(browser) = inside.browser.filter(|_| !closed) {
                    browser.input(input);
                }
            }
            Act::Share(share) => {
                // A full channel holds an answer already.
                let _ = self.room.answers.try_send(share);
            }
            Act::Cancel => {
                let (core, id) = (self.core.clone(), self.id);
                let cancel = async move { core.advance(id, None, Event::ApplicantCancelled).await };
                match whole(&self.core.runtime, cancel).await {
                    Ok(_) | Err(Stuck::Rejected(_)) => (),
                    Err(error) => {
                        let error: &dyn std::error::Error = &error;
                        tracing::error!(session.id = %self.id, error, "a cancel was not saved");
                    }
                }
            }
        }
    }
}

impl Drop for OneView {
    fn drop(&mut self) {
        self.room.inside.send_if_modified(|inside| {
            let mine = inside.viewer == self.me && inside.present;
            if mine {
                inside.present = false;
            }
            mine
        });
        self.core.rooms.leave(self.id);
    }
}

fn view_of(inside: &Inside) -> Option<View> {
    let session = inside.session.as_ref()?;
    let definition = inside.definition.as_deref();
    Some(View {
        status: session.status(),
        progress: session.progress.percent(),
        platform: definition.map(|d| d.display_name.clone()).unwrap_or_default(),
        queued: inside.queued,
        prompt: inside.prompt.clone(),
        outcome: outcome(session, definition, inside.language.as_deref()),
    })
}

fn outcome(
    session: &Session,
    definition: Option<&Definition>,
    language: Option<&str>,
) -> Option<Outcome> {
    let outcome = session.state.outcome()?;
    let text = match outcome.error_code() {
        Some(code) => ErrorCode::applicant_text(code),
        None if outcome.data().is_some() => "Your data was shared. You can close this page.",
        None => "This verification was ended. You can close this page.",
    };
    let label = |name: &String| {
        let field = definition.and_then(|d| Some((d, d.output.get(name)?)));
        field.map_or_else(|| name.clone(), |(d, field)| d.text(language, &field.label_key).into())
    };
    let attestation = outcome.attestation();
    let item = |name: &String| SharedItem {
        label: label(name),
        attested: attestation.map(|attestation| attestation.fields.contains(name)),
    };
    let shared = outcome.data().map(|data| data.keys().map(item).collect());
    let code = outcome.error_code();
    Some(Outcome { text: text.to_owned(), code, shared: shared.unwrap_or_default() })
}
