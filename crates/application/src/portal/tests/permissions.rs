//! Which role may call which use case, whatever else becomes of the call.

use chrono::TimeDelta;
use domain::{
    account::Role,
    api_key::Environment,
    id::{ApiKeyId, ContactId, SessionId, UserId, WebhookId},
    request::Contact,
};
use ports::{
    clock::Clock as _,
    driving::{
        AuditService as _, BrandingService as _, ContactService as _, EmbeddingService as _,
        KeyService as _, MockSessionService, NewKey, NewMember, TeamService as _,
        TeamSessionService as _, TeamWebhookService as _, TemplateService as _,
    },
};
use uuid::Uuid;

use super::fixture::{EVERYONE, Fixture, MEMBERS, OPERATORS, OWNERS, permitted};

fn id() -> Uuid {
    Uuid::from_u128(77)
}

fn contact() -> Contact {
    Contact::parse("Ada", "ada@example.com", "", "").unwrap()
}

#[tokio::test]
async fn every_role_reads_what_belongs_to_its_team() {
    let fixture = Fixture::new().await;
    let keys = permitted(&fixture, async |user| fixture.api_keys().keys(&user).await).await;
    assert_eq!(keys, EVERYONE);
    let brand = permitted(&fixture, async |user| fixture.branding().brand(&user).await).await;
    assert_eq!(brand, EVERYONE);
    let origins =
        permitted(&fixture, async |user| fixture.embedding().embed_origins(&user).await).await;
    assert_eq!(origins, EVERYONE);
    let contacts =
        permitted(&fixture, async |user| fixture.contacts().receivers(&user).await).await;
    assert_eq!(contacts, EVERYONE);
    let webhooks = permitted(&fixture, async |user| fixture.webhooks().webhooks(&user).await).await;
    assert_eq!(webhooks, EVERYONE);
    let members = permitted(&fixture, async |user| fixture.members().members(&user).await).await;
    assert_eq!(members, EVERYONE);
    let templates =
        permitted(&fixture, async |user| fixture.templates().templates(&user).await).await;
    assert_eq!(templates, EVERYONE);
    let quotas = permitted(&fixture, async |user| {
        fixture.sessions(MockSessionService::new()).quotas(&user).await
    });
    assert_eq!(quotas.await, EVERYONE);
}

#[tokio::test]
async fn members_change_keys_contacts_and_webhooks() {
    let fixture = Fixture::new().await;
    let made = permitted(&fixture, async |user| {
        let order = NewKey {
            label: "Backend".to_owned(),
            environment: Environment::Development,
            expires_at: Some(fixture.clock.now() + TimeDelta::days(30)),
        };
        fixture.api_keys().make_key(&user, order).await
    });
    assert_eq!(made.await, MEMBERS);
    let revoked = permitted(&fixture, async |user| {
        fixture.api_keys().revoke_key(&user, ApiKeyId::from_uuid(id())).await
    });
    assert_eq!(revoked.await, MEMBERS);
    let registered =
        permitted(&fixture, async |user| fixture.contacts().register(&user, contact()).await);
    assert_eq!(registered.await, MEMBERS);
    let removed = permitted(&fixture, async |user| {
        fixture.contacts().remove_receiver(&user, ContactId::from_uuid(id())).await
    });
    assert_eq!(removed.await, MEMBERS);
    let switched = permitted(&fixture, async |user| {
        fixture.webhooks().switch_webhook(&user, WebhookId::from_uuid(id()), false).await
    });
    assert_eq!(switched.await, MEMBERS);
    let terminated = permitted(&fixture, async |user| {
        let sessions = fixture.sessions(MockSessionService::new());
        sessions.end_session(&user, SessionId::from_uuid(id())).await
    });
    assert_eq!(terminated.await, MEMBERS);
}

#[tokio::test]
async fn owners_govern_the_team() {
    let fixture = Fixture::new().await;
    let framed = permitted(&fixture, async |user| {
        fixture.embedding().set_embed_origins(&user, vec![]).await
    });
    assert_eq!(framed.await, OWNERS);
    let branded = permitted(&fixture, async |user| {
        fixture.branding().set_brand(&user, None, None, None).await
    });
    assert_eq!(branded.await, OWNERS);
    let bare = permitted(&fixture, async |user| fixture.branding().set_logo(&user, None).await);
    assert_eq!(bare.await, OWNERS);
    let audited =
        permitted(&fixture, async |user| fixture.audit_logs().audit(&user, None, 10).await);
    assert_eq!(audited.await, OWNERS);
    let verified = permitted(&fixture, async |user| fixture.audit_logs().verify_audit(&user).await);
    assert_eq!(verified.await, OWNERS);
    let invited = permitted(&fixture, async |user| {
        let email = format!("new-{}@lender.example", user.user);
        fixture.members().invite(&user, NewMember { email, role: Role::Viewer }).await
    });
    assert_eq!(invited.await, OWNERS);
    let appointed = permitted(&fixture, async |user| {
        fixture.members().appoint(&user, UserId::from_uuid(id()), Role::Member).await
    });
    assert_eq!(appointed.await, OWNERS);
    let removed = permitted(&fixture, async |user| {
        fixture.members().remove(&user, UserId::from_uuid(id())).await
    });
    assert_eq!(removed.await, OWNERS);
    let strict = permitted(&fixture, async |user| {
        fixture.members().require_second_factor(&user, false).await
    });
    assert_eq!(strict.await, OWNERS);
    let spread =
        permitted(&fixture, async |user| fixture.members().allow_other_regions(&user, true).await);
    assert_eq!(spread.await, OWNERS);
}

#[tokio::test]
async fn operators_review_templates() {
    let fixture = Fixture::new().await;
    let waiting =
        permitted(&fixture, async |user| fixture.templates().submitted_templates(&user).await)
            .await;
    assert_eq!(waiting, OPERATORS);
}
