//! The review of mail templates.

use domain::{
    id::TemplateId,
    language::Language,
    template::{Draft, ReviewStep, TemplateStatus},
};
use ports::{
    driving::{AdministrationError, TemplateAdminService as _},
    template_store::{StoredTemplate, TemplateStore as _},
};

use super::*;
use crate::{administration::TemplateAdministration, fakes::PlainRenderer};

#[tokio::test]
async fn submitted_templates_of_all_teams_and_all_of_one_team_are_listed() {
    let fixture = Fixture::new().await;
    let templates = fixture.templates();
    let draft = fixture.draft().await;
    assert!(templates.templates(None).await.unwrap().is_empty());
    let submitted = fixture.submitted().await;
    let ids = |templates: Vec<StoredTemplate>| -> Vec<TemplateId> {
        templates.into_iter().map(|template| template.id).collect()
    };
    assert_eq!(ids(templates.templates(None).await.unwrap()), [submitted.id]);
    assert_eq!(ids(templates.templates(Some(TEAM)).await.unwrap()), [submitted.id, draft]);
}

#[tokio::test]
async fn a_review_is_recorded_before_the_template_changes() {
    let fixture = Fixture::new().await;
    let submitted = fixture.submitted().await;
    let what = (submitted.id, submitted.revision);
    let fixture = fixture.with_broken_audit_log();
    let failed = fixture.templates().review(what, ReviewStep::Approve, "").await;
    assert!(matches!(failed, Err(AdministrationError::Store(_))), "{failed:?}");
    assert_eq!(fixture.status(submitted.id).await, TemplateStatus::Submitted);

    let audit = OperatorAudit { log: fixture.store.clone(), clock: fixture.clock.clone() };
    let fixture = Fixture { audit, ..fixture };
    fixture.templates().review(what, ReviewStep::Approve, "").await.unwrap();
    assert_eq!(fixture.status(submitted.id).await, TemplateStatus::Approved);
    let audited = format!("avouch admin: template.approve {}", submitted.id);
    assert_eq!(fixture.audited().await, [audited]);
}

#[tokio::test]
async fn only_a_waiting_template_is_reviewed_and_a_rejection_has_a_reason() {
    let fixture = Fixture::new().await;
    let templates = fixture.templates();
    let submitted = fixture.submitted().await;
    let draft = fixture.draft().await;
    let refused = templates.review((draft, submitted.revision), ReviewStep::Approve, "").await;
    assert_eq!(
        refused.unwrap_err().to_string(),
        "no template with this ID is waiting for approval"
    );
    let what = (submitted.id, submitted.revision);
    let refused = templates.review(what, ReviewStep::Reject, " ").await;
    assert!(matches!(refused, Err(AdministrationError::Invalid(_))), "{refused:?}");
    assert!(fixture.audited().await.is_empty());
    templates.review(what, ReviewStep::Reject, "too long").await.unwrap();
    assert_eq!(fixture.status(submitted.id).await, TemplateStatus::Rejected);
}

impl Fixture {
    fn templates(&self) -> TemplateAdministration {
        TemplateAdministration {
            templates: self.store.clone(),
            renderer: Arc::new(PlainRenderer),
            audit: self.audit.clone(),
        }
    }

    async fn draft(&self) -> TemplateId {
        let draft =
            Draft::new("Invitation", Language::of(None), "Subject", "Please open {{ link }}")
                .unwrap();
        self.store.add_template(TEAM, &draft, noon()).await.unwrap()
    }

    async fn submitted(&self) -> StoredTemplate {
        let id = self.draft().await;
        let draft = self.store.template(TEAM, id).await.unwrap().unwrap();
        let what = (TEAM, id, draft.revision);
        assert!(self.store.step_template(what, ReviewStep::Submit, "", noon()).await.unwrap());
        self.store.template(TEAM, id).await.unwrap().unwrap()
    }

    async fn status(&self, id: TemplateId) -> TemplateStatus {
        self.store.template(TEAM, id).await.unwrap().unwrap().status
    }
}
