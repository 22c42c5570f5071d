//! Fakes of what the service calls outside of itself. Each answers as its script says, and keeps
//! what it was given.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    id::{BrowserId, SessionId},
    rate::RateWindow,
    recording::{RecordedItem, Recording},
    session::AttestationStep,
};
use ports::{
    StoreError,
    attestor::{AttestError, AttestationOrder, Attested, Attestor, OnProgress},
    browser::Locale,
    notifier::{AccountMail, AccountNotice, Mailer, Notification, Notifier, SendError},
    places::{Country, Places, Region},
    rate_limiter::{Charge, RateLimiter, Subject},
    recording::{EncodeError, Encoder, RecordingVault},
};

/// Answers in order.
pub(crate) struct Script<T>(Mutex<VecDeque<T>>);

impl<T> Default for Script<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Script<T> {
    pub(crate) fn push(&self, answer: T) {
        lock(&self.0).push_back(answer);
    }

    pub(crate) fn next(&self) -> Option<T> {
        lock(&self.0).pop_front()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts requests in windows that do not end.
#[derive(Default)]
pub(crate) struct FakeLimiter(Mutex<HashMap<Subject, u32>>);

#[async_trait]
impl RateLimiter for FakeLimiter {
    async fn charge(&self, charges: &[Charge], now: DateTime<Utc>) -> Vec<RateWindow> {
        let mut used = lock(&self.0);
        let window = |charge: &Charge| {
            let used = used.entry(charge.subject).or_default();
            *used += 1;
            RateWindow { limit: charge.limit, used: *used, resets_at: now + charge.limit.span() }
        };
        charges.iter().map(window).collect()
    }
}

/// Two countries, one of which has regions with cities.
pub(crate) struct FakePlaces;

static COUNTRIES: [Country; 2] = [
    Country {
        code: "US",
        name: "United States",
        regions: &[
            Region { code: "US-CA", name: "California", cities: "San Francisco\nSão José" },
            Region { code: "US-TX", name: "Texas", cities: "Austin" },
        ],
    },
    Country { code: "DE", name: "Germany", regions: &[] },
];

impl Places for FakePlaces {
    fn countries(&self) -> &'static [Country] {
        &COUNTRIES
    }

    fn country(&self, code: &str) -> Option<&'static Country> {
        COUNTRIES.iter().find(|country| country.code == code)
    }

    fn locale(&self, country: &str) -> Locale {
        Locale { language: format!("en-{country}"), time_zone: None }
    }
}

/// The segments of a session, each with its number.
type Segments = Vec<(u32, Vec<RecordedItem>)>;

/// Keeps recordings in memory.
#[derive(Default)]
pub(crate) struct FakeVault {
    pub(crate) segments: Mutex<HashMap<SessionId, Segments>>,
    pub(crate) recordings: Mutex<HashMap<SessionId, Vec<u8>>>,
    /// Failures of calls that change something, in order.
    pub(crate) failures: Script<()>,
}

impl FakeVault {
    fn check(&self) -> Result<(), StoreError> {
        self.failures.next().map_or(Ok(()), |()| Err(StoreError::new("use the vault", "broken")))
    }

    pub(crate) fn items(&self, session: SessionId) -> Vec<RecordedItem> {
        let segments = lock(&self.segments).get(&session).cloned().unwrap_or_default();
        segments.into_iter().flat_map(|(_, items)| items).collect()
    }

    pub(crate) fn numbers(&self, session: SessionId) -> Vec<u32> {
        let segments = lock(&self.segments).get(&session).cloned().unwrap_or_default();
        segments.into_iter().map(|(number, _)| number).collect()
    }
}

#[async_trait]
impl RecordingVault for FakeVault {
    async fn append(
        &self,
        session: SessionId,
        _: BrowserId,
        part: u32,
        shots: &[RecordedItem],
    ) -> Result<(), StoreError> {
        self.check()?;
        lock(&self.segments).entry(session).or_default().push((part, shots.to_vec()));
        Ok(())
    }

    async fn delete_part(
        &self,
        session: SessionId,
        _: BrowserId,
        part: u32,
    ) -> Result<(), StoreError> {
        lock(&self.segments).entry(session).or_default().retain(|(number, _)| *number != part);
        Ok(())
    }

    async fn segments(&self, session: SessionId) -> Result<Vec<Vec<RecordedItem>>, StoreError> {
        let items = self.items(session);
        Ok(if items.is_empty() { vec![] } else { vec![items] })
    }

    async fn store_recording(&self, session: SessionId, mp4: Vec<u8>) -> Result<(), StoreError> {
        self.check()?;
        lock(&self.recordings).insert(session, mp4);
        Ok(())
    }

    async fn delete_segments(&self, session: SessionId) -> Result<(), StoreError> {
        lock(&self.segments).remove(&session);
        Ok(())
    }

    async fn delete_all(&self, session: SessionId) -> Result<(), StoreError> {
        self.check()?;
        lock(&self.segments).remove(&session);
        lock(&self.recordings).remove(&session);
        Ok(())
    }

    async fn link(&self, session: SessionId, lifetime: TimeDelta) -> Result<String, StoreError> {
        Ok(format!("https://vault.test/{session}?days={}", lifetime.num_days()))
    }

    async fn unfinished(&self, limit: usize) -> Result<Vec<SessionId>, StoreError> {
        Ok(lock(&self.segments).keys().take(limit).copied().collect())
    }
}

/// Encodes everything to the same bytes, unless its script says otherwise.
#[derive(Default)]
pub(crate) struct FakeEncoder {
    pub(crate) failures: Script<EncodeError>,
    /// How long an encoding takes.
    pub(crate) takes: Duration,
}

#[async_trait]
impl Encoder for FakeEncoder {
    async fn encode(&self, film: Recording) -> Result<Vec<u8>, EncodeError> {
        tokio::time::sleep(self.takes).await;
        match self.failures.next() {
            Some(error) => Err(error),
            None => Ok(format!("{} frames", film.pictures.len()).into_bytes()),
        }
    }
}

/// Sends applicants their links.
#[derive(Default)]
pub(crate) struct FakeNotifier {
    pub(crate) results: Script<Result<(), SendError>>,
    pub(crate) sent: Mutex<Vec<Notification>>,
    pub(crate) hangs: bool,
}

#[async_trait]
impl Notifier for FakeNotifier {
    async fn send(&self, letter: &Notification) -> Result<(), SendError> {
        lock(&self.sent).push(letter.clone());
        if self.hangs {
            std::future::pending::<()>().await;
        }
        self.results.next().unwrap_or(Ok(()))
    }
}

/// Mails members of teams.
#[derive(Default)]
pub(crate) struct FakeMailer {
    pub(crate) results: Script<Result<(), SendError>>,
    /// The links of all mails.
    pub(crate) links: Mutex<Vec<String>>,
}

#[async_trait]
impl Mailer for FakeMailer {
    async fn mail(&self, mail: &AccountMail) -> Result<(), SendError> {
        lock(&self.links).push(mail.link.expose().to_owned());
        self.results.next().unwrap_or(Ok(()))
    }

    async fn notify(&self, notice: &AccountNotice) -> Result<(), SendError> {
        lock(&self.links).push(notice.link.clone());
        self.results.next().unwrap_or(Ok(()))
    }
}

/// Attests nothing, unless its script says otherwise.
#[derive(Default)]
pub(crate) struct FakeAttestor {
    pub(crate) results: Script<Result<Attested, AttestError>>,
    pub(crate) orders: Mutex<Vec<AttestationOrder>>,
}

#[async_trait]
impl Attestor for FakeAttestor {
    async fn attest(
        &self,
        order: AttestationOrder,
        reached: OnProgress<'_>,
    ) -> Result<Attested, AttestError> {
        lock(&self.orders).push(order);
        for step in [AttestationStep::Recorded, AttestationStep::Proved] {
            reached(step);
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        self.results.next().unwrap_or(Err(AttestError::None))
    }
}
