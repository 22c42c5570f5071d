//! The contract of [`ports::template_store::TemplateStore`].

use chrono::TimeDelta;
use domain::{
    id::{TeamId, TemplateId},
    language::Language,
    template::{Draft, ReviewStep, TemplateStatus},
};
use ports::template_store::{StoredTemplate, TemplateRevision};

use super::{Backend, CLAIMERS, ROUNDS, team_fixture};
use crate::sample::noon;

const FIRST: TemplateRevision = TemplateRevision(1);

fn draft(name: &str, language: &str) -> Draft {
    Draft::new(name, language.parse().unwrap(), "Hello", "{{ link }}\n\nBye").unwrap()
}

async fn kept(backend: &Backend, team: TeamId, id: TemplateId) -> StoredTemplate {
    backend.templates.template(team, id).await.unwrap().unwrap()
}

/// Takes a review step, and returns whether it was allowed.
async fn take_step(
    backend: &Backend,
    template: (TeamId, TemplateId, TemplateRevision),
    step: ReviewStep,
) -> bool {
    backend.templates.step_template(template, step, "", noon()).await.unwrap()
}

async fn approved(backend: &Backend, team: TeamId, draft: &Draft) -> TemplateId {
    let id = backend.templates.add_template(team, draft, noon()).await.unwrap();
    assert!(take_step(backend, (team, id, FIRST), ReviewStep::Submit).await);
    assert!(take_step(backend, (team, id, FIRST), ReviewStep::Approve).await);
    id
}

/// A store may answer concurrent reads in one batch; each caller still gets the templates of its team.
pub async fn lists_the_templates_of_concurrent_teams(backend: &Backend) {
    let mut teams = Vec::new();
    for number in 0..CLAIMERS {
        let team = team_fixture(backend).await.team;
        let mut ids = Vec::new();
        for name in ["First", "Second", "Third"].iter().take(number % 4) {
            let draft = draft(name, "en");
            ids.insert(0, backend.templates.add_template(team, &draft, noon()).await.unwrap());
        }
        teams.push((team, ids));
    }
    for _ in 0..ROUNDS {
        let mut asking = tokio::task::JoinSet::new();
        for (team, ids) in teams.iter().cloned() {
            let store = backend.templates.clone();
            asking.spawn(async move {
                let listed = store.templates(team).await.unwrap();
                assert!(listed.iter().all(|template| template.team == team));
                let listed: Vec<_> = listed.iter().map(|template| template.id).collect();
                assert_eq!(listed, ids, "newest first");
            });
        }
        asking.join_all().await;
    }
}

pub async fn keeps_the_templates_of_each_team_separate(backend: &Backend) {
    let store = &backend.templates;
    let (home, other) = (team_fixture(backend).await.team, team_fixture(backend).await.team);
    let first = store.add_template(home, &draft("One", "en"), noon()).await.unwrap();
    let second = store.add_template(home, &draft("Two", "pt"), noon()).await.unwrap();
    let listed = store.templates(home).await.unwrap();
    assert_eq!(listed.iter().map(|kept| kept.id).collect::<Vec<_>>(), [second, first]);
    let as_kept = StoredTemplate {
        id: first,
        team: home,
        draft: draft("One", "en"),
        status: TemplateStatus::Draft,
        reason: String::new(),
        is_default: false,
        revision: FIRST,
        updated_at: noon(),
    };
    assert_eq!(kept(backend, home, first).await, as_kept);

    assert!(store.templates(other).await.unwrap().is_empty());
    assert_eq!(store.template(other, first).await.unwrap(), None);
    assert!(!store.edit_template(other, first, &draft("Mine", "en"), noon()).await.unwrap());
    assert!(!take_step(backend, (other, first, FIRST), ReviewStep::Submit).await);
    assert!(!store.set_default_template(other, first, true).await.unwrap());
    assert!(!store.remove_template(other, first).await.unwrap());
    assert_eq!(kept(backend, home, first).await, as_kept, "unchanged");

    assert!(store.remove_template(home, first).await.unwrap());
    assert!(!store.remove_template(home, first).await.unwrap());
    let third = store.add_template(home, &draft("Three", "en"), noon()).await.unwrap();
    assert!(third > second && third != first, "an identifier is never reused");
}

pub async fn allows_only_the_steps_of_the_review(backend: &Backend) {
    let store = &backend.templates;
    let home = team_fixture(backend).await.team;
    let id = store.add_template(home, &draft("One", "en"), noon()).await.unwrap();
    let at = |revision| (home, id, TemplateRevision(revision));
    for step in [ReviewStep::Withdraw, ReviewStep::Approve, ReviewStep::Reject] {
        assert!(!take_step(backend, at(1), step).await, "{step:?} of a draft");
    }
    assert!(take_step(backend, at(1), ReviewStep::Submit).await);
    assert!(!take_step(backend, at(1), ReviewStep::Submit).await, "twice");
    assert!(!store.edit_template(home, id, &draft("Other", "en"), noon()).await.unwrap());
    assert!(take_step(backend, at(1), ReviewStep::Withdraw).await);
    let later = noon() + TimeDelta::minutes(1);
    assert!(store.edit_template(home, id, &draft("Other", "de"), later).await.unwrap());
    assert!(!take_step(backend, at(1), ReviewStep::Submit).await, "not the revision that was read");
    assert!(take_step(backend, at(2), ReviewStep::Submit).await);
    let waiting = store.submitted_templates(10).await.unwrap();
    let waiting: Vec<_> = waiting.iter().map(|(kept, team)| (kept.id, team.as_str())).collect();
    assert_eq!(waiting, [(id, "Lender")]);

    assert!(
        !take_step(backend, at(1), ReviewStep::Approve).await,
        "not the revision that was read"
    );
    assert!(store.step_template(at(2), ReviewStep::Reject, "No.", noon()).await.unwrap());
    assert_eq!(kept(backend, home, id).await.reason, "No.");
    assert!(store.submitted_templates(10).await.unwrap().is_empty());
    assert!(store.edit_template(home, id, &draft("Third", "de"), noon()).await.unwrap());
    let again = kept(backend, home, id).await;
    assert_eq!((again.status, again.reason.as_str()), (TemplateStatus::Draft, ""));
    assert!(
        take_step(backend, at(3), ReviewStep::Submit).await
            && take_step(backend, at(3), ReviewStep::Approve).await
    );
    for step in [ReviewStep::Submit, ReviewStep::Withdraw, ReviewStep::Approve, ReviewStep::Reject]
    {
        assert!(!take_step(backend, at(3), step).await, "{step:?} of an approved template");
    }
    assert!(!store.edit_template(home, id, &draft("Late", "de"), noon()).await.unwrap());
}

pub async fn has_one_default_template_per_language(backend: &Backend) {
    let store = &backend.templates;
    let (home, other) = (team_fixture(backend).await.team, team_fixture(backend).await.team);
    let default = async |team, language: &str| {
        let language: Language = language.parse().unwrap();
        store.default_template(team, language).await.unwrap().map(|kept| kept.id)
    };
    let open = store.add_template(home, &draft("Open", "en"), noon()).await.unwrap();
    assert!(
        !store.set_default_template(home, open, true).await.unwrap(),
        "the template is a draft"
    );
    let one = approved(backend, home, &draft("One", "en")).await;
    let two = approved(backend, home, &draft("Two", "en")).await;
    let german = approved(backend, home, &draft("Drei", "de")).await;
    assert_eq!(default(home, "en").await, None);
    for id in [one, german, two] {
        assert!(store.set_default_template(home, id, true).await.unwrap());
    }
    assert_eq!((default(home, "en").await, default(home, "de").await), (Some(two), Some(german)));
    assert_eq!((default(other, "en").await, default(home, "fr").await), (None, None));
    assert!(!kept(backend, home, one).await.is_default);
    assert!(store.set_default_template(home, two, false).await.unwrap());
    assert!(store.remove_template(home, german).await.unwrap());
    assert_eq!((default(home, "en").await, default(home, "de").await), (None, None));
}

/// Concurrent calls each set their template as the default: all succeed, and one default remains.
pub async fn has_one_default_template_after_concurrent_changes(backend: &Backend) {
    let home = team_fixture(backend).await.team;
    let mut ids = vec![];
    for at in 0..CLAIMERS {
        ids.push(approved(backend, home, &draft(&format!("Number {at}"), "en")).await);
    }
    for round in 0..ROUNDS {
        let mut tasks = vec![];
        for id in ids.clone() {
            let store = backend.templates.clone();
            tasks.push(tokio::spawn(
                async move { store.set_default_template(home, id, true).await },
            ));
        }
        for task in tasks {
            assert!(task.await.unwrap().unwrap(), "round {round}");
        }
        let all = backend.templates.templates(home).await.unwrap();
        assert_eq!(all.iter().filter(|kept| kept.is_default).count(), 1, "round {round}");
    }
}
