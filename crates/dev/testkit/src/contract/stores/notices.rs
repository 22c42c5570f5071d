//! The contract of [`ports::notice_store::NoticeStore`].

use chrono::TimeDelta;
use domain::{account::Role, id::NoticeId, notice::AccountEvent};
use ports::{account_store::RequestOrigin, notice_store::Notice};
use uuid::Uuid;

use super::{Backend, members::added, team_fixture};
use crate::sample::noon;

const LEASE: TimeDelta = TimeDelta::minutes(2);

pub async fn leases_a_notice_to_one_claimer(backend: &Backend) {
    let home = team_fixture(backend).await;
    let user = added(backend, home.team, Role::Owner).await;
    let claim = async |now| backend.notices.claim_notices(now, LEASE, 8).await.unwrap();
    assert_eq!(claim(noon()).await, []);
    let notice = Notice {
        id: NoticeId::from_uuid(Uuid::new_v4()),
        user: user.id,
        event: AccountEvent::PasskeyAdded,
        at: noon(),
        from: RequestOrigin { address: [192, 0, 2, 1].into(), agent: "a browser".into() },
    };
    backend.notices.enqueue_notice(&notice).await.unwrap();
    let claims = [claim(noon()).await, claim(noon()).await].concat();
    assert_eq!(claims.len(), 1, "one of two claims");
    let first = &claims[0];
    assert_eq!((&first.notice, &first.email, first.attempt), (&notice, &user.email, 1));
    let again = claim(noon() + LEASE).await;
    assert_eq!((again.len(), again[0].attempt), (1, 2), "the lease has expired");
    assert!(!backend.notices.settle_notice(first, None).await.unwrap(), "the claim was lost");
    let due = noon() + TimeDelta::minutes(10);
    assert!(backend.notices.settle_notice(&again[0], Some(due)).await.unwrap());
    assert_eq!(claim(due - TimeDelta::minutes(1)).await, []);
    let last = claim(due).await;
    assert!(backend.notices.settle_notice(&last[0], None).await.unwrap());
    assert_eq!(claim(due + TimeDelta::days(1)).await, []);

    let other = Notice { id: NoticeId::from_uuid(Uuid::new_v4()), ..notice };
    backend.notices.enqueue_notice(&other).await.unwrap();
    added(backend, home.team, Role::Owner).await;
    backend.members.remove_user(home.team, user.id).await.unwrap();
    assert_eq!(claim(noon()).await, [], "deleted with the member");
}
