//! Mails to members of teams: both queues share one loop.

use std::{str::FromStr as _, sync::Arc};

use chrono::TimeDelta;
use domain::{
    account::{Email, LinkPurpose, Role},
    id::{AccountLinkId, NoticeId, UserId},
    notice::{AccountEvent, MAX_NOTICE_AGE},
    notification::NotificationFailure,
};
use ports::{
    account_links::{AccountLink, AccountLinkStore as _, Mailed},
    account_store::{RequestOrigin, User, UserStore as _},
    clock::Clock as _,
    notice_store::{Notice, NoticeStore as _},
    notifier::SendError,
};
use testkit::sample::noon;
use uuid::Uuid;

use super::{run_for, seconds};
use crate::{
    testing::{FakeMailer, World},
    workers::{AccountLinkMails, AccountNoticeMails, RetryPolicy, Worker as _},
};

#[tokio::test(start_paused = true)]
async fn a_link_to_choose_a_password_is_mailed_once() {
    let setup = Setup::new().await;
    let link = setup.link().await;
    setup.run_links(600).await;
    let expected = format!("https://avouch.test/portal/password?link=link-{}", link.id);
    assert_eq!(setup.links(), [expected]);
    assert_eq!(setup.mailed().await, Mailed::Sent);
    assert_eq!(setup.account_links().name(), "portal mails");
}

#[tokio::test(start_paused = true)]
async fn a_link_that_cannot_be_mailed_is_retried_or_failed() {
    let setup = Setup::new().await;
    setup.link().await;
    setup.mailer.results.push(Err(SendError::Transient("busy".into())));
    let why = NotificationFailure::MailboxFull;
    setup.mailer.results.push(Err(SendError::Permanent { why, detail: "552".into() }));
    setup.run_links(60).await;
    assert_eq!(setup.links().len(), 2);
    assert_eq!(setup.mailed().await, Mailed::Failed("mailbox_full".into()));
}

#[tokio::test(start_paused = true)]
async fn many_mails_are_sent_in_batches() {
    let setup = Setup::new().await;
    for _ in 0..20 {
        setup.notice().await;
    }
    setup.run_notices(1).await;
    assert_eq!(setup.links().len(), 20);
}

#[tokio::test(start_paused = true)]
async fn a_notice_is_mailed_and_forgotten() {
    let setup = Setup::new().await;
    setup.notice().await;
    setup.mailer.results.push(Err(SendError::Transient("busy".into())));
    setup.run_notices(60).await;
    assert_eq!(setup.links(), ["https://avouch.test/portal/account"; 2]);
    assert!(setup.is_forgotten().await);
    assert_eq!(setup.account_notices().name(), "notification mails");
}

#[tokio::test(start_paused = true)]
async fn a_notice_that_cannot_be_delivered_is_forgotten() {
    let setup = Setup::new().await;
    setup.notice().await;
    let why = NotificationFailure::Rejected;
    setup.mailer.results.push(Err(SendError::Permanent { why, detail: "550".into() }));
    setup.run_notices(60).await;
    assert_eq!(setup.links().len(), 1);
    assert!(setup.is_forgotten().await);
}

#[tokio::test(start_paused = true)]
async fn a_notice_is_given_up_when_it_is_old() {
    let setup = Setup::new().await;
    setup.notice().await;
    setup.world.clock.forward(MAX_NOTICE_AGE);
    setup.mailer.results.push(Err(SendError::Transient("busy".into())));
    setup.run_notices(60).await;
    assert_eq!(setup.links().len(), 1);
    assert!(setup.is_forgotten().await);
}

struct Setup {
    world: World,
    mailer: Arc<FakeMailer>,
    user: User,
}

impl Setup {
    async fn new() -> Self {
        let world = World::new().await;
        let user = User {
            id: UserId::from_u128(1),
            team: world.team,
            email: Email::from_str("grace@lender.example").unwrap(),
            role: Role::Owner,
            has_password: false,
            has_second_factor: false,
            created_at: noon(),
        };
        assert!(world.store.add_user(&user, None, noon()).await.unwrap());
        Self { world, mailer: Arc::default(), user }
    }

    async fn link(&self) -> AccountLink {
        let link = AccountLink {
            id: AccountLinkId::from_uuid(Uuid::new_v4()),
            user: self.user.id,
            purpose: LinkPurpose::Invitation,
            created_at: noon(),
            expires_at: noon() + LinkPurpose::Invitation.ttl(),
        };
        self.world.store.enqueue_link(&link).await.unwrap();
        link
    }

    async fn notice(&self) {
        let notice = Notice {
            id: NoticeId::from_uuid(Uuid::new_v4()),
            user: self.user.id,
            event: AccountEvent::PasskeyAdded,
            at: noon(),
            from: RequestOrigin { address: [192, 0, 2, 1].into(), agent: "a browser".into() },
        };
        self.world.store.enqueue_notice(&notice).await.unwrap();
    }

    fn retries(&self) -> RetryPolicy {
        RetryPolicy {
            backoff: "5x6".parse().unwrap(),
            random: self.world.random.clone(),
            clock: self.world.clock.clone(),
        }
    }

    fn account_links(&self) -> AccountLinkMails {
        AccountLinkMails {
            links: self.world.store.clone(),
            mailer: self.mailer.clone(),
            tokens: self.world.tokens.clone(),
            retries: self.retries(),
            origin: "https://avouch.test".into(),
        }
    }

    fn account_notices(&self) -> AccountNoticeMails {
        AccountNoticeMails {
            notices: self.world.store.clone(),
            mailer: self.mailer.clone(),
            retries: self.retries(),
            origin: "https://avouch.test".into(),
        }
    }

    async fn run_links(&self, time: u64) {
        run_for(&self.account_links(), seconds(time)).await;
    }

    async fn run_notices(&self, time: u64) {
        run_for(&self.account_notices(), seconds(time)).await;
    }

    fn links(&self) -> Vec<String> {
        self.mailer.links.lock().unwrap().clone()
    }

    async fn mailed(&self) -> Mailed {
        self.world.store.links(self.world.team).await.unwrap().remove(0).1
    }

    async fn is_forgotten(&self) -> bool {
        let later = self.world.clock.now() + TimeDelta::days(1);
        self.world.store.claim_notices(later, TimeDelta::minutes(1), 8).await.unwrap().is_empty()
    }
}
