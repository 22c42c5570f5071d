//! Conducts one run: the interpreter says what comes next, the browser does it, the session moves.

use std::{sync::Arc, time::Duration};

use domain::{
    error_code::ErrorCode,
    id::SessionId,
    request::Attestation,
    session::{Ask, Event, Lease, Pinned, Session},
    workflow::{AskKind, Command, Definition, End, News, Run, SharedField, Shown, Turn},
};
use ports::{
    browser::{Browser, BrowserError},
    driving::Prompt,
};
use serde_json::{Map, Value};

use super::{nodes::Nodes, room::Room};
use crate::advance::{ALIVE, Core, RENEW_EVERY, Stuck};

/// How long the applicant may be away: a reload, a lost network, the way to the phone.
const GRACE: Duration = Duration::from_secs(90);
/// How long the answer to the question for consent is waited for before time is checked.
const ANSWER_PACE: Duration = Duration::from_secs(1);

/// One run and all that it needs.
pub(crate) struct Conductor {
    pub(crate) core: Arc<Core>,
    pub(crate) id: SessionId,
    pub(crate) lease: Lease,
    pub(crate) browser: Arc<dyn Browser>,
    pub(crate) room: Arc<Room>,
    pub(crate) workflow: Pinned,
    pub(crate) definition: Arc<Definition>,
    /// Is told of each node; dropped with the run.
    pub(crate) nodes: Nodes,
}

/// Where the session stands, as this run has moved it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Running,
    Collecting,
    Awaiting(AskKind, Before),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    Running,
    Collecting,
}

/// Runs until the session or its browser has ended. Whatever ends it, the room is cleared.
pub(crate) async fn conduct(conductor: Conductor) {
    conductor.room.inside.send_modify(|inside| {
        inside.browser = Some(conductor.browser.clone());
        inside.place = None;
    });
    let ended = tokio::select! {
        ended = conductor.perform() => ended,
        () = conductor.loss() => conductor.say(Event::BrowserLost).await.map(drop),
        () = conductor.absence() => {
            conductor.say(conductor.failed(ErrorCode::UserInputTimeout)).await.map(drop)
        }
        () = conductor.keep_lease() => Ok(()),
    };
    match ended {
        // Late news of a session that has ended or gone on without us.
        Ok(()) | Err(Stuck::Rejected(_)) => (),
        Err(error) => {
            let error: &dyn std::error::Error = &error;
            tracing::error!(session.id = %conductor.id, error, "a run broke off");
        }
    }
    conductor.room.inside.send_modify(|inside| {
        inside.browser = None;
        inside.prompt = None;
    });
    conductor.core.rooms.leave(conductor.id);
}

impl Conductor {
    pub(super) async fn say(&self, event: Event) -> Result<Session, Stuck> {
        self.core.advance(self.id, Some(self.lease.browser), event).await
    }

    async fn perform(&self) -> Result<(), Stuck> {
        let mut run = Run::new(self.definition.clone(), self.core.clock.now());
        let first = run.next(News::Begin, self.core.clock.now());
        self.nodes.note(&run, 0);
        // A page that is loaded while the session's moves are saved is there sooner.
        let going = async {
            let Command::Goto { .. } = &first.command else { return Ok(None) };
            self.here().await;
            Ok(Some(self.command(first.command.clone()).await))
        };
        let ((), news) = tokio::try_join!(self.open(), going)?;
        self.run(run, first, news).await
    }

    /// Moves the session to where its workflow runs.
    async fn open(&self) -> Result<(), Stuck> {
        self.say(Event::BrowserStarted).await?;
        self.here().await;
        self.say(Event::ApplicantConnected).await?;
        self.say(Event::WorkflowOpened).await?;
        self.say(Event::WorkflowLoaded { workflow: self.workflow.clone() }).await.map(drop)
    }

    /// Comes back when the applicant is there.
    async fn here(&self) {
        let mut inside = self.room.inside.subscribe();
        // An error means that the room is gone, and with it this run.
        let _ = inside.wait_for(|inside| inside.present).await;
    }

    fn failed(&self, why: ErrorCode) -> Event {
        Event::Failed { why, node: self.nodes.last() }
    }

    /// Goes on from the first turn, which is done already where there is news of it.
    async fn run(&self, mut run: Run, first: Turn, mut done: Option<News>) -> Result<(), Stuck> {
        let mut noted = run.path().len();
        let (mut turn, mut mode) = (first, Mode::Running);
        let mut watched = false;
        loop {
            let Turn { shown, command } = turn;
            noted = self.nodes.note(&run, noted);
            if command != Command::End(End::Declined) {
                mode = self.show(mode, &shown, &command, &self.definition).await?;
            }
            if watched && command == Command::Watch {
                self.browser.changed().await;
            }
            watched = command == Command::Watch;
            if let Command::End(end) = command {
                return self.end(end).await;
            }
            let news = match done.take() {
                Some(news) => news,
                None => self.command(command).await,
            };
            turn = run.next(news, self.core.clock.now());
        }
    }

    async fn end(&self, end: End) -> Result<(), Stuck> {
        let (event, collected) = match end {
            End::Done(collected) => {
                (Event::DataCollected { collected: collected.clone() }, Some(collected))
            }
            End::Declined => (Event::ConsentDeclined, None),
            End::Failed(why) => (self.failed(why), None),
        };
        let session = self.say(event).await?;
        match collected {
            Some(collected) if !session.state.is_closed() => self.attest(&collected).await,
            _ => Ok(()),
        }
    }

    /// Has the browser do something, and puts what came of it into words.
    async fn command(&self, command: Command) -> News {
        let done = match command {
            Command::Goto { url } => match self.browser.navigate(&url).await {
                Err(BrowserError::Refused(_) | BrowserError::TimedOut) => Ok(News::Unreachable),
                arrived => arrived.map(|()| News::Arrived),
            },
            Command::Watch => self.browser.observe().await.map(News::Seen),
            Command::Fetch { url, expect_status, max_bytes } => {
                self.browser.fetch(&url, max_bytes).await.map(|fetched| {
                    let value = serde_json::from_str(&fetched.body).ok();
                    let read = value.filter(|_| fetched.status == expect_status);
                    read.map_or(News::Unreadable, News::Read)
                })
            }
            Command::ReadResponse { url } => self.browser.response(&url).await.map(|body| {
                let value = body.and_then(|body| serde_json::from_str(&body).ok());
                value.map_or(News::Unreadable, News::Read)
            }),
            Command::ReadDom { selectors } => self.browser.texts(&selectors).await.map(|texts| {
                let found = selectors.into_iter().zip(texts);
                let found = found.filter_map(|(s, text)| Some((s, Value::from(text?))));
                News::Read(Value::Object(found.collect::<Map<_, _>>()))
            }),
            Command::Consent { .. } => Ok(self.answer().await),
            Command::End(_) => Ok(News::Waited),
        };
        done.unwrap_or_else(|error| match error {
            // The end of the browser ends this run in another place.
            BrowserError::Gone | BrowserError::TimedOut => News::Waited,
            BrowserError::Refused(_) => News::Unreadable,
        })
    }

    /// Moves the session to where the run is, and the page with it.
    async fn show(
        &self,
        mode: Mode,
        shown: &Shown,
        command: &Command,
        definition: &Definition,
    ) -> Result<Mode, Stuck> {
        let mut mode = mode;
        if let (Mode::Awaiting(kind, before), shown) = (mode, shown) {
            let same = matches!(shown, Shown::Awaiting(ask) if ask.kind == kind);
            if !same {
                self.say(Event::InputGiven).await?;
                mode = match before {
                    Before::Running => Mode::Running,
                    Before::Collecting => Mode::Collecting,
                };
            }
        }
        match (mode, shown) {
            (Mode::Running, Shown::Collecting) => {
                self.say(Event::CollectionStarted).await?;
                Ok(Mode::Collecting)
            }
            (Mode::Running | Mode::Collecting, Shown::Awaiting(ask)) => {
                self.say(Event::InputNeeded { ask: ask.clone() }).await?;
                self.prompt(ask, command, definition);
                let before =
                    if mode == Mode::Running { Before::Running } else { Before::Collecting };
                Ok(Mode::Awaiting(ask.kind, before))
            }
            (Mode::Awaiting(..), Shown::Awaiting(ask)) => {
                self.prompt(ask, command, definition);
                Ok(mode)
            }
            (mode, _) => Ok(mode),
        }
    }

    fn prompt(&self, ask: &Ask, command: &Command, definition: &Definition) {
        self.room.inside.send_if_modified(|inside| {
            let language = inside.language.as_deref();
            let wanted = inside.session.as_ref().map(|session| session.order.attestation);
            let witnessed = matches!(command, Command::Consent { .. })
                && wanted == Some(Attestation::Wanted)
                && definition.opens_all();
            let share = if let Command::Consent { fields } = command {
                fields.iter().map(|field| labelled(field, definition, language)).collect()
            } else {
                vec![]
            };
            let text = definition.text(language, &ask.text_key).to_owned();
            let (kind, deadline) = (ask.kind, ask.deadline);
            inside.ask(Prompt { number: 0, kind, text, deadline, share, witnessed })
        });
    }

    async fn answer(&self) -> News {
        let mut changes = self.room.inside.subscribe();
        let answered = changes.wait_for(|inside| inside.consent().is_some());
        match tokio::time::timeout(ANSWER_PACE, answered).await {
            Ok(Ok(inside)) => {
                inside.consent().map_or(News::Waited, |share| News::Answered { share })
            }
            Ok(Err(_)) | Err(_) => News::Waited,
        }
    }

    /// Comes back when the applicant has been away for too long, and is still needed.
    async fn absence(&self) {
        let mut inside = self.room.inside.subscribe();
        loop {
            let _ = inside.wait_for(|inside| !inside.present).await;
            let back = inside.wait_for(|inside| inside.present);
            if tokio::time::timeout(GRACE, back).await.is_err() && !self.is_verifying() {
                return;
            }
        }
    }

    /// Comes back when the session has another browser, or none.
    async fn keep_lease(&self) {
        loop {
            let until = self.core.clock.now() + ALIVE;
            match self.core.sessions.renew(self.id, self.lease.browser, until).await {
                Ok(true) => (),
                Ok(false) => return,
                Err(error) => {
                    let error: &dyn std::error::Error = &error;
                    tracing::warn!(session.id = %self.id, error, "a lease was not renewed");
                }
            }
            tokio::time::sleep(RENEW_EVERY).await;
        }
    }
}

fn labelled(
    field: &SharedField,
    definition: &Definition,
    language: Option<&str>,
) -> (String, String) {
    let value = field.value.as_str().map_or_else(|| field.value.to_string(), str::to_owned);
    (definition.text(language, &field.label_key).to_owned(), value)
}
