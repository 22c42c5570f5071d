//! The contract of [`ports::template_store::TemplateStore`].

use chrono::TimeDelta;
use domain::{
    id::{TeamId, TemplateId},
    language::Language,
    template::{Draft, ReviewStep, TemplateStatus},
};
use ports::template_store::{StoredTemplate, TemplateRevision};

use super::{Backend, CLAIMERS, ROUNDS, household};
use crate::sample::noon;

const FIRST: TemplateRevision = TemplateRevision(1);

fn draft(name: &str, language: &str) -> Draft {
    Draft::new(name, language.parse().unwrap(), "Hello", "{{ link }}\n\nBye").unwrap()
}

async fn kept(backend: &Backend, team: TeamId, id: TemplateId) -> StoredTemplate {
    backend.templates.template(team, id).await.unwrap().unwrap()
}

/// Does a step, and answers whether it was done.
async fn does(
    backend: &Backend,
    what: (TeamId, TemplateId, TemplateRevision),
    step: ReviewStep,
) -> bool {
    backend.templates.step_template(what, step, "", noon()).await.unwrap()
}

async fn approved(backend: &Backend, team: TeamId, draft: &Draft) -> TemplateId {
    let id = backend.templates.add_template(team, draft, noon()).await.unwrap();
    assert!(does(backend, (team, id, FIRST), ReviewStep::Submit).await);
    assert!(does(backend, (team, id, FIRST), ReviewStep::Approve).await);
    id
}

pub async fn keeps_a_teams_templates_for_that_team(backend: &Backend) {
    let store = &backend.templates;
    let (home, other) = (household(backend).await.team, household(backend).await.team);
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
    assert!(!does(backend, (other, first, FIRST), ReviewStep::Submit).await);
    assert!(!store.set_default_template(other, first, true).await.unwrap());
    assert!(!store.remove_template(other, first).await.unwrap());
    assert_eq!(kept(backend, home, first).await, as_kept, "as before");

    assert!(store.remove_template(home, first).await.unwrap());
    assert!(!store.remove_template(home, first).await.unwrap());
    let third = store.add_template(home, &draft("Three", "en"), noon()).await.unwrap();
    assert!(third > second && third != first, "a number stands for one template alone");
}

pub async fn takes_each_template_its_way(backend: &Backend) {
    let store = &backend.templates;
    let home = household(backend).await.team;
    let id = store.add_template(home, &draft("One", "en"), noon()).await.unwrap();
    let at = |revision| (home, id, TemplateRevision(revision));
    for step in [ReviewStep::Withdraw, ReviewStep::Approve, ReviewStep::Reject] {
        assert!(!does(backend, at(1), step).await, "{step:?} of a draft");
    }
    assert!(does(backend, at(1), ReviewStep::Submit).await);
    assert!(!does(backend, at(1), ReviewStep::Submit).await, "twice");
    assert!(!store.edit_template(home, id, &draft("Other", "en"), noon()).await.unwrap());
    assert!(does(backend, at(1), ReviewStep::Withdraw).await);
    let later = noon() + TimeDelta::minutes(1);
    assert!(store.edit_template(home, id, &draft("Other", "de"), later).await.unwrap());
    assert!(!does(backend, at(1), ReviewStep::Submit).await, "not what was read");
    assert!(does(backend, at(2), ReviewStep::Submit).await);
    let waiting = store.submitted_templates(10).await.unwrap();
    let waiting: Vec<_> = waiting.iter().map(|(kept, team)| (kept.id, team.as_str())).collect();
    assert_eq!(waiting, [(id, "Lender")]);

    assert!(!does(backend, at(1), ReviewStep::Approve).await, "not what was read");
    assert!(store.step_template(at(2), ReviewStep::Reject, "No.", noon()).await.unwrap());
    assert_eq!(kept(backend, home, id).await.reason, "No.");
    assert!(store.submitted_templates(10).await.unwrap().is_empty());
    assert!(store.edit_template(home, id, &draft("Third", "de"), noon()).await.unwrap());
    let again = kept(backend, home, id).await;
    assert_eq!((again.status, again.reason.as_str()), (TemplateStatus::Draft, ""));
    assert!(
        does(backend, at(3), ReviewStep::Submit).await
            && does(backend, at(3), ReviewStep::Approve).await
    );
    for step in [ReviewStep::Submit, ReviewStep::Withdraw, ReviewStep::Approve, ReviewStep::Reject]
    {
        assert!(!does(backend, at(3), step).await, "{step:?} of one that is approved");
    }
    assert!(!store.edit_template(home, id, &draft("Late", "de"), noon()).await.unwrap());
}

pub async fn has_one_default_template_in_a_language(backend: &Backend) {
    let store = &backend.templates;
    let (home, other) = (household(backend).await.team, household(backend).await.team);
    let default = async |team, language: &str| {
        let language: Language = language.parse().unwrap();
        store.default_template(team, language).await.unwrap().map(|kept| kept.id)
    };
    let open = store.add_template(home, &draft("Open", "en"), noon()).await.unwrap();
    assert!(!store.set_default_template(home, open, true).await.unwrap(), "it is a draft");
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

/// Many would make theirs the default at once: one is, and each was told the truth.
pub async fn settles_on_one_default_template(backend: &Backend) {
    let home = household(backend).await.team;
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
