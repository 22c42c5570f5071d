//! The steps of a review.

use std::str::FromStr as _;

use domain::{
    account::Email,
    audit::AuditEvent,
    branding::Brand,
    id::TemplateId,
    language::Language,
    template::{Draft, ReviewStep, TemplateStatus, TemplateText},
};
use ports::{
    audit_log::AuditLog as _,
    notifier::{MailRenderer, RenderedMail},
    template_store::{StoredTemplate, TemplateStore as _},
};
use testkit::sample::noon;

use super::{Actor, TemplateReview, TemplateReviewError};
use crate::testing::World;

#[tokio::test]
async fn a_template_is_submitted_rejected_and_approved() {
    let world = World::new().await;
    let id = added(&world, "Follow {{ link }}").await;
    let review = review(&world);
    assert!(matches!(review.waiting(id).await, Err(TemplateReviewError::NotThere)));
    step(&world, id, ReviewStep::Submit, "").await.unwrap();
    assert_eq!(review.waiting(id).await.unwrap().id, id);
    for reason in ["", " \n ", "\u{7}", &"a".repeat(501)] {
        let refused = step(&world, id, ReviewStep::Reject, reason).await;
        assert!(matches!(refused, Err(TemplateReviewError::Reason)), "{reason:?}");
    }
    step(&world, id, ReviewStep::Reject, " Too long. ").await.unwrap();
    let stored = read(&world, id).await;
    assert_eq!((stored.status, stored.reason.as_str()), (TemplateStatus::Rejected, "Too long."));
    step(&world, id, ReviewStep::Submit, "").await.unwrap();
    step(&world, id, ReviewStep::Approve, "ignored").await.unwrap();
    let stored = read(&world, id).await;
    assert_eq!((stored.status, stored.reason.as_str()), (TemplateStatus::Approved, ""));
    let log = world.store.entries(world.team, None, 10).await.unwrap();
    let actions: Vec<_> = log.iter().map(|entry| entry.event.action.as_str()).collect();
    let expected = ["template.approve", "template.submit", "template.reject", "template.submit"];
    assert_eq!(actions, expected, "the newest first");
}

#[tokio::test]
async fn a_template_that_cannot_be_rendered_is_not_submitted() {
    let world = World::new().await;
    let id = added(&world, "broken").await;
    let refused = step(&world, id, ReviewStep::Submit, "").await;
    let Err(TemplateReviewError::Unsendable(findings)) = refused else { panic!("{refused:?}") };
    assert_eq!(findings, "no link; no text");
    assert_eq!(read(&world, id).await.status, TemplateStatus::Draft);
}

#[tokio::test]
async fn a_template_that_was_edited_meanwhile_is_not_approved() {
    let world = World::new().await;
    let id = added(&world, "Follow {{ link }}").await;
    step(&world, id, ReviewStep::Submit, "").await.unwrap();
    let seen = read(&world, id).await;
    step(&world, id, ReviewStep::Reject, "Too short.").await.unwrap();
    let draft = draft("Follow quickly {{ link }}");
    assert!(world.store.edit_template(world.team, id, &draft, noon()).await.unwrap());
    step(&world, id, ReviewStep::Submit, "").await.unwrap();
    let stale = take(&world, &seen, ReviewStep::Approve, "").await;
    assert!(matches!(stale, Err(TemplateReviewError::Changed)));
    assert_eq!(read(&world, id).await.status, TemplateStatus::Submitted);
}

async fn added(world: &World, body: &str) -> TemplateId {
    world.store.add_template(world.team, &draft(body), noon()).await.unwrap()
}

fn draft(body: &str) -> Draft {
    Draft::new("Ours", Language::of(None), "Your link", body).unwrap()
}

async fn read(world: &World, id: TemplateId) -> StoredTemplate {
    world.store.template(world.team, id).await.unwrap().unwrap()
}

fn review(world: &World) -> TemplateReview<'_> {
    let store = world.store.as_ref();
    TemplateReview { templates: store, renderer: &NeedsLink, audit: store }
}

async fn step(
    world: &World,
    id: TemplateId,
    step: ReviewStep,
    reason: &str,
) -> Result<(), TemplateReviewError> {
    take(world, &read(world, id).await, step, reason).await
}

async fn take(
    world: &World,
    seen: &StoredTemplate,
    step: ReviewStep,
    reason: &str,
) -> Result<(), TemplateReviewError> {
    let email = Email::from_str("grace@lender.example").unwrap();
    let audit_event =
        |action: &str, subject: &str| AuditEvent::new(noon(), email.as_str(), action, subject);
    let actor = Actor { now: noon(), audit_event: &audit_event };
    review(world).step(seen, seen.revision, (step, reason), actor).await
}

/// Renders each template that has the link.
struct NeedsLink;

impl MailRenderer for NeedsLink {
    fn preview(
        &self,
        wording: &TemplateText,
        _: &str,
        _: &Brand,
    ) -> Result<RenderedMail, Vec<String>> {
        if !wording.body.contains("{{ link }}") {
            return Err(vec!["no link".into(), "no text".into()]);
        }
        let text = || wording.body.clone();
        Ok(RenderedMail { subject: wording.subject.clone(), text: text(), html: text() })
    }
}
