//! Carries each use case out to its end, even when whoever asked for it hangs up half-way.
//!
//! The server drops the work on a request whose connection breaks. A use case that was dropped
//! between two steps would leave the second to a sweeper; one dropped in the middle of a statement
//! would leave its connection to the database in doubt. So each runs as a task of its own.

use std::sync::Arc;

use adapters::http::Readiness;
pub(crate) use application::detached::detached as whole;
use async_trait::async_trait;
use domain::{
    api_key::Environment,
    id::{SessionId, TeamId},
    notification::Channel,
    platform::Platform,
    request::{GivenData, ListQuery, NewSession},
    session::{ProofHash, Session},
};
use ports::{
    StoreError,
    driving::{
        Admission, ApplicantError, ApplicantService, Caller, Comparison, CreateError, Creation,
        Gate, Guise, Joining, Knock, Lookups, MailChoice, MailService, NotifyError, Once,
        PolledFace, PortableAttestation, Recording, SessionError, SessionFace, SessionService,
        Viewing, WatchError, WatchService, Watching,
    },
    places::Country,
    session_store::{Entry, Summary},
    template_store::KeptTemplate,
};
use tokio::runtime::Handle;

/// A driving port whose every use case is carried out whole.
pub(crate) struct Whole<S: ?Sized> {
    pub(crate) runtime: Handle,
    pub(crate) inner: Arc<S>,
}

impl<S: ?Sized> Whole<S> {
    pub(crate) fn new(runtime: &Handle, inner: Arc<S>) -> Arc<Self> {
        Arc::new(Self { runtime: runtime.clone(), inner })
    }
}

#[async_trait]
impl<S: Gate + 'static> Gate for Whole<S> {
    async fn admit(&self, knock: Knock) -> Result<Admission, StoreError> {
        let inner = self.inner.clone();
        whole(&self.runtime, async move { inner.admit(knock).await }).await
    }

    async fn poll(
        &self,
        knock: Knock,
        id: Option<SessionId>,
    ) -> Result<(Admission, Option<PolledFace>), StoreError> {
        let inner = self.inner.clone();
        whole(&self.runtime, async move { inner.poll(knock, id).await }).await
    }
}

#[async_trait]
impl<S: SessionService + 'static> SessionService for Whole<S> {
    async fn create(
        &self,
        caller: &Caller,
        request: NewSession,
        once: Option<Once>,
    ) -> Result<Creation, CreateError> {
        let (inner, caller) = (self.inner.clone(), caller.clone());
        whole(&self.runtime, async move { inner.create(&caller, request, once).await }).await
    }

    async fn read(&self, caller: &Caller, id: SessionId) -> Result<SessionFace, SessionError> {
        let (inner, caller) = (self.inner.clone(), caller.clone());
        whole(&self.runtime, async move { inner.read(&caller, id).await }).await
    }

    async fn recording(&self, caller: &Caller, id: SessionId) -> Result<Recording, SessionError> {
        let (inner, caller) = (self.inner.clone(), caller.clone());
        whole(&self.runtime, async move { inner.recording(&caller, id).await }).await
    }

    async fn timeline(&self, caller: &Caller, id: SessionId) -> Result<Vec<Entry>, SessionError> {
        let (inner, caller) = (self.inner.clone(), caller.clone());
        whole(&self.runtime, async move { inner.timeline(&caller, id).await }).await
    }

    async fn list(
        &self,
        caller: &Caller,
        query: ListQuery,
    ) -> Result<(Vec<Summary>, i64), SessionError> {
        let (inner, caller) = (self.inner.clone(), caller.clone());
        whole(&self.runtime, async move { inner.list(&caller, query).await }).await
    }

    async fn terminate(&self, caller: &Caller, id: SessionId) -> Result<Session, SessionError> {
        let (inner, caller) = (self.inner.clone(), caller.clone());
        whole(&self.runtime, async move { inner.terminate(&caller, id).await }).await
    }

    async fn compare(
        &self,
        caller: &Caller,
        proof: &ProofHash,
        data: &GivenData,
    ) -> Result<Comparison, SessionError> {
        let (inner, caller) = (self.inner.clone(), caller.clone());
        let (proof, data) = (proof.clone(), data.clone());
        whole(&self.runtime, async move { inner.compare(&caller, &proof, &data).await }).await
    }

    async fn attestation(
        &self,
        caller: &Caller,
        id: SessionId,
    ) -> Result<Option<PortableAttestation>, SessionError> {
        let (inner, caller) = (self.inner.clone(), caller.clone());
        whole(&self.runtime, async move { inner.attestation(&caller, id).await }).await
    }

    async fn notify_again(&self, caller: &Caller, id: SessionId) -> Result<(), NotifyError> {
        let (inner, caller) = (self.inner.clone(), caller.clone());
        whole(&self.runtime, async move { inner.notify_again(&caller, id).await }).await
    }

    async fn erase(&self, caller: &Caller, id: SessionId) -> Result<Session, SessionError> {
        let (inner, caller) = (self.inner.clone(), caller.clone());
        whole(&self.runtime, async move { inner.erase(&caller, id).await }).await
    }
}

#[async_trait]
impl<S: Lookups + 'static> Lookups for Whole<S> {
    async fn platforms(&self, environment: Environment) -> Result<Vec<Platform>, StoreError> {
        let inner = self.inner.clone();
        whole(&self.runtime, async move { inner.platforms(environment).await }).await
    }

    async fn email_templates(&self, team: TeamId) -> Result<Vec<KeptTemplate>, StoreError> {
        let inner = self.inner.clone();
        whole(&self.runtime, async move { inner.email_templates(team).await }).await
    }

    fn channels(&self) -> &[Channel] {
        self.inner.channels()
    }

    fn countries(&self) -> &'static [Country] {
        self.inner.countries()
    }

    fn country(&self, code: &str) -> Option<&'static Country> {
        self.inner.country(code)
    }
}

#[async_trait]
impl<S: ApplicantService + 'static> ApplicantService for Whole<S> {
    async fn join(
        &self,
        id: SessionId,
        joining: Joining,
    ) -> Result<Arc<dyn Viewing>, ApplicantError> {
        let inner = self.inner.clone();
        whole(&self.runtime, async move { inner.join(id, joining).await }).await
    }

    async fn guise(&self, id: SessionId, token: &str) -> Result<Guise, StoreError> {
        let (inner, token) = (self.inner.clone(), token.to_owned());
        whole(&self.runtime, async move { inner.guise(id, &token).await }).await
    }
}

#[async_trait]
impl<S: WatchService + 'static> WatchService for Whole<S> {
    async fn watch(&self, id: SessionId, pass: &str) -> Result<Arc<dyn Watching>, WatchError> {
        let (inner, pass) = (self.inner.clone(), pass.to_owned());
        whole(&self.runtime, async move { inner.watch(id, &pass).await }).await
    }
}

#[async_trait]
impl<S: Readiness + 'static> Readiness for Whole<S> {
    async fn ready(&self) -> bool {
        let inner = self.inner.clone();
        whole(&self.runtime, async move { inner.ready().await }).await
    }
}

#[async_trait]
impl<S: MailService + 'static> MailService for Whole<S> {
    async fn mails(&self, token: &str) -> Result<Option<MailChoice>, StoreError> {
        let (inner, token) = (self.inner.clone(), token.to_owned());
        whole(&self.runtime, async move { inner.mails(&token).await }).await
    }

    async fn choose_mails(
        &self,
        token: &str,
        wanted: bool,
    ) -> Result<Option<MailChoice>, StoreError> {
        let (inner, token) = (self.inner.clone(), token.to_owned());
        whole(&self.runtime, async move { inner.choose_mails(&token, wanted).await }).await
    }
}
