//! The e-mail templates of a team, and their review by operators.

use domain::{
    account::Role,
    branding::BrandName,
    id::{TeamId, TemplateId},
    language::Language,
    template::{Draft, MAX_TEMPLATES, ReviewStep, TemplateStatus},
};
use ports::{
    audit_log::AuditLog as _,
    driving::{BrandingService as _, PortalError, SignedInUser, TemplateService as _},
    template_store::{TemplateRevision, TemplateStore as _},
};
use testkit::sample::noon;

use super::fixture::{Fixture, OTHER_TEAM, TEAM, error, refusal};

const NONE: &str = "template not found";

#[tokio::test]
async fn a_template_is_written_submitted_approved_and_preferred() {
    let fixture = Fixture::new().await;
    let (member, operator) = (fixture.user(Role::Member).await, operator(&fixture).await);
    let templates = fixture.templates();
    let id = templates.add_template(&member, draft("First")).await.unwrap();
    templates.write_template(&member, id, draft("Second")).await.unwrap();
    let refused = templates.prefer_template(&member, id, true).await;
    assert_eq!(refusal(refused), "only an approved template can be the default");
    step(&fixture, &member, id, ReviewStep::Submit).await.unwrap();
    let submitted = templates.submitted_templates(&operator).await.unwrap();
    assert_eq!((submitted.len(), submitted[0].0.id), (1, id));
    assert_eq!(submitted[0].1, "Lender");
    step(&fixture, &operator, id, ReviewStep::Approve).await.unwrap();
    templates.prefer_template(&member, id, true).await.unwrap();
    let stored = templates.one_template(&member, id).await.unwrap();
    assert_eq!((stored.status, stored.is_default), (TemplateStatus::Approved, true));
    assert_eq!(stored.draft, draft("Second"));
    templates.prefer_template(&member, id, false).await.unwrap();
    assert!(!templates.one_template(&member, id).await.unwrap().is_default);
    templates.remove_template(&member, id).await.unwrap();
    assert_eq!(templates.templates(&member).await.unwrap(), []);
    let entries = fixture.store.entries(TEAM, None, 100).await.unwrap();
    let mut actions: Vec<_> = entries.into_iter().rev().map(|entry| entry.event).collect();
    actions.retain(|event| event.action.starts_with("template."));
    let texts: Vec<_> = actions.iter().map(|event| event.action.as_str()).collect();
    let expected =
        ["add", "write", "prefer", "submit", "approve", "prefer", "prefer-no-more", "remove"];
    assert_eq!(texts, expected.map(|action| format!("template.{action}")));
    assert_eq!(actions[4].actor, operator.email, "in the log of the template's team");
}

#[tokio::test]
async fn a_submitted_or_approved_template_stays_as_it_is() {
    let fixture = Fixture::new().await;
    let (member, operator) = (fixture.user(Role::Member).await, operator(&fixture).await);
    let templates = fixture.templates();
    let id = templates.add_template(&member, draft("First")).await.unwrap();
    let why = "submitted and approved templates can't be edited. Withdraw it or create another one";
    step(&fixture, &member, id, ReviewStep::Submit).await.unwrap();
    assert_eq!(refusal(templates.write_template(&member, id, draft("Second")).await), why);
    step(&fixture, &member, id, ReviewStep::Withdraw).await.unwrap();
    templates.write_template(&member, id, draft("Second")).await.unwrap();
    step(&fixture, &member, id, ReviewStep::Submit).await.unwrap();
    step(&fixture, &operator, id, ReviewStep::Approve).await.unwrap();
    assert_eq!(refusal(templates.write_template(&member, id, draft("Third")).await), why);
    assert_eq!(templates.one_template(&member, id).await.unwrap().draft, draft("Second"));
}

#[tokio::test]
async fn a_step_is_taken_with_the_revision_that_was_read() {
    let fixture = Fixture::new().await;
    let member = fixture.user(Role::Member).await;
    let templates = fixture.templates();
    let id = templates.add_template(&member, draft("First")).await.unwrap();
    let read = templates.one_template(&member, id).await.unwrap().revision;
    templates.write_template(&member, id, draft("Second")).await.unwrap();
    let refused = templates.step_template(&member, (id, read), ReviewStep::Submit, String::new());
    let why = "the template was changed. Review it again";
    assert_eq!(refusal(refused.await), why);
    assert_eq!(templates.one_template(&member, id).await.unwrap().status, TemplateStatus::Draft);
}

#[tokio::test]
async fn only_operators_approve_and_reject() {
    let fixture = Fixture::new().await;
    let (owner, operator) = (fixture.user(Role::Owner).await, operator(&fixture).await);
    let templates = fixture.templates();
    let id = templates.add_template(&owner, draft("First")).await.unwrap();
    step(&fixture, &owner, id, ReviewStep::Submit).await.unwrap();
    for review in [ReviewStep::Approve, ReviewStep::Reject] {
        let refused = error(step(&fixture, &owner, id, review).await);
        assert!(matches!(refused, PortalError::Forbidden), "{review:?}");
    }
    let viewer = fixture.user(Role::Viewer).await;
    let refused = error(step(&fixture, &viewer, id, ReviewStep::Withdraw).await);
    assert!(matches!(refused, PortalError::Forbidden));
    step(&fixture, &operator, id, ReviewStep::Reject).await.unwrap();
    let stored = templates.one_template(&owner, id).await.unwrap();
    assert_eq!((stored.status, stored.reason.as_str()), (TemplateStatus::Rejected, "Why"));
    let gone = step(&fixture, &operator, id, ReviewStep::Approve).await;
    assert_eq!(refusal(gone), NONE, "it no longer waits for a review");
}

#[tokio::test]
async fn a_template_that_cannot_be_rendered_is_not_submitted() {
    let fixture = Fixture::new().await;
    let member = fixture.user(Role::Member).await;
    let id = fixture.templates().add_template(&member, draft("broken")).await.unwrap();
    let refused = step(&fixture, &member, id, ReviewStep::Submit).await;
    assert_eq!(refusal(refused), "the template has problems: the body is broken");
}

#[tokio::test]
async fn an_operator_reads_templates_of_other_teams_while_they_wait_for_review() {
    let fixture = Fixture::new().await;
    let (member, operator) = (fixture.user(Role::Member).await, operator(&fixture).await);
    let templates = fixture.templates();
    let id = templates.add_template(&member, draft("First")).await.unwrap();
    assert_eq!(refusal(templates.one_template(&operator, id).await), NONE);
    step(&fixture, &member, id, ReviewStep::Submit).await.unwrap();
    assert_eq!(templates.one_template(&operator, id).await.unwrap().team, TEAM);
    let other = fixture.user_in(OTHER_TEAM, Role::Owner).await;
    assert_eq!(refusal(templates.one_template(&other, id).await), NONE);
}

#[tokio::test]
async fn templates_of_another_team_are_as_if_they_were_not_there() {
    let fixture = Fixture::new().await;
    let owner = fixture.user(Role::Owner).await;
    let id = add_template(&fixture, OTHER_TEAM).await;
    let templates = fixture.templates();
    let refusals = [
        templates.one_template(&owner, id).await.map(drop),
        templates.write_template(&owner, id, draft("Second")).await,
        templates.prefer_template(&owner, id, true).await,
        templates.remove_template(&owner, id).await,
        templates.step_template(&owner, (id, FIRST), ReviewStep::Submit, String::new()).await,
        templates.step_template(&owner, (id, FIRST), ReviewStep::Withdraw, String::new()).await,
    ];
    for refused in refusals {
        assert_eq!(refusal(refused), NONE);
    }
    assert_eq!(templates.templates(&owner).await.unwrap(), []);
    let stored = fixture.store.template(OTHER_TEAM, id).await.unwrap().expect("a template");
    assert_eq!((stored.draft, stored.status), (draft("First"), TemplateStatus::Draft));
    assert_eq!(fixture.actions().await, <[&str; 0]>::default());
}

#[tokio::test]
async fn a_team_has_a_limited_number_of_templates() {
    let fixture = Fixture::new().await;
    let member = fixture.user(Role::Member).await;
    for _ in 1..MAX_TEMPLATES {
        add_template(&fixture, TEAM).await;
    }
    add_template(&fixture, OTHER_TEAM).await;
    let templates = fixture.templates();
    templates.add_template(&member, draft("The last")).await.unwrap();
    let refused = templates.add_template(&member, draft("One more")).await;
    assert_eq!(refusal(refused), "a team can have up to 100 templates");
}

#[tokio::test]
async fn a_preview_names_the_sender_that_applicants_would_see() {
    let fixture = Fixture::new().await;
    let (owner, operator) = (fixture.user(Role::Owner).await, operator(&fixture).await);
    let templates = fixture.templates();
    let id = templates.add_template(&owner, draft("First")).await.unwrap();
    let stored = templates.one_template(&owner, id).await.unwrap();
    let subject = async |user: &SignedInUser| {
        templates.preview(user, stored.clone()).await.unwrap().unwrap().subject
    };
    assert_eq!(subject(&owner).await, "Lender: Subject");
    assert_eq!(subject(&operator).await, "The team: Subject");
    let name: BrandName = "Lend & Co".parse().unwrap();
    fixture.branding().set_brand(&owner, Some(name), None, None).await.unwrap();
    assert_eq!(subject(&owner).await, "Lend & Co: Subject");
    assert_eq!(subject(&operator).await, "Lend & Co: Subject");
    let other = fixture.user_in(OTHER_TEAM, Role::Owner).await;
    let refused = error(templates.preview(&other, stored).await);
    assert!(matches!(refused, PortalError::Forbidden));
}

#[tokio::test]
async fn a_template_changes_only_once_the_change_is_recorded() {
    let fixture = Fixture::new().await;
    let member = fixture.user(Role::Member).await;
    let id = add_template(&fixture, TEAM).await;
    let fixture = fixture.with_broken_audit_log();
    let templates = fixture.templates();
    let failures = [
        templates.add_template(&member, draft("Second")).await.map(drop),
        templates.write_template(&member, id, draft("Second")).await,
        step(&fixture, &member, id, ReviewStep::Submit).await,
        templates.remove_template(&member, id).await,
    ];
    for failed in failures {
        assert!(matches!(error(failed), PortalError::Store(_)));
    }
    let stored = templates.templates(&member).await.unwrap();
    assert_eq!((stored.len(), stored[0].status), (1, TemplateStatus::Draft));
    assert_eq!(stored[0].draft, draft("First"));
}

const FIRST: TemplateRevision = TemplateRevision(0);

fn draft(body: &str) -> Draft {
    Draft::new("Reminder", Language::ENGLISH, "Subject", body).unwrap()
}

/// Adds an operator, who is in the other team.
async fn operator(fixture: &Fixture) -> SignedInUser {
    fixture.user_in(OTHER_TEAM, Role::Operator).await
}

async fn add_template(fixture: &Fixture, team: TeamId) -> TemplateId {
    fixture.store.add_template(team, &draft("First"), noon()).await.unwrap()
}

/// Takes a step with the revision that is stored.
async fn step(
    fixture: &Fixture,
    user: &SignedInUser,
    id: TemplateId,
    step: ReviewStep,
) -> Result<(), PortalError> {
    let stored = fixture.store.template(TEAM, id).await.unwrap().expect("a template");
    let reason = "Why".to_owned();
    fixture.templates().step_template(user, (id, stored.revision), step, reason).await
}
