//! The contract of [`ports::authoring::DraftStore`].

use chrono::TimeDelta;
use domain::{
    api_key::Environment,
    id::{DraftId, PlatformId, TeamId},
};
use ports::authoring::{Draft, DraftContent, MAX_DRAFTS};
use uuid::Uuid;

use super::{Backend, team_fixture};
use crate::sample::{self, noon};

fn draft(team: TeamId, minutes: i64) -> Draft {
    Draft {
        id: DraftId::from_uuid(Uuid::new_v4()),
        team,
        name: "Shop".to_owned(),
        version: "1.0.0".to_owned(),
        revision: 1,
        updated_by: "ada@example.com".to_owned(),
        updated_at: noon() + TimeDelta::minutes(minutes),
    }
}

fn content(document: &str, fixture: Option<&str>) -> DraftContent {
    DraftContent { document: document.to_owned(), fixture: fixture.map(str::to_owned) }
}

pub async fn replaces_only_the_revision_before(backend: &Backend) {
    let store = &backend.drafts;
    let team = team_fixture(backend).await.team;
    let first = draft(team, 0);
    let empty = content("{", None);
    assert!(store.add_draft(&first, &empty).await.unwrap());
    assert!(store.add_draft(&first, &empty).await.is_err(), "the same number");
    assert_eq!(store.draft(team, first.id).await.unwrap(), Some((first.clone(), empty)));

    let second = Draft {
        name: "The shop".to_owned(),
        version: "1.0.1".to_owned(),
        revision: 2,
        updated_by: "bob@example.com".to_owned(),
        updated_at: noon() + TimeDelta::minutes(5),
        ..first.clone()
    };
    let recorded = content("{}", Some("{\"events\":[]}"));
    assert!(store.replace_draft(&second, &recorded).await.unwrap());
    let found = store.draft(team, first.id).await.unwrap();
    assert_eq!(found, Some((second.clone(), recorded.clone())));
    assert!(!store.replace_draft(&second, &content("[]", None)).await.unwrap(), "it is newer");
    assert_eq!(store.drafts(team).await.unwrap(), std::slice::from_ref(&second));

    let third = Draft { revision: 3, ..second };
    assert!(store.replace_draft(&third, &content("{}", None)).await.unwrap());
    let found = store.draft(team, first.id).await.unwrap();
    assert_eq!(found, Some((third.clone(), content("{}", None))), "the fixture is gone");
    assert!(store.delete_draft(team, first.id).await.unwrap());
    assert!(!store.delete_draft(team, first.id).await.unwrap());
    let fourth = Draft { revision: 4, ..third };
    assert!(!store.replace_draft(&fourth, &recorded).await.unwrap(), "it was deleted");
    assert_eq!(store.draft(team, first.id).await.unwrap(), None);
}

pub async fn keeps_the_drafts_of_each_team_separate(backend: &Backend) {
    let store = &backend.drafts;
    let (home, other) = (team_fixture(backend).await.team, team_fixture(backend).await.team);
    let (older, newer) = (draft(home, 0), draft(home, 1));
    for one in [&older, &newer] {
        assert!(store.add_draft(one, &content("{}", None)).await.unwrap());
    }
    assert_eq!(store.drafts(home).await.unwrap(), [newer, older.clone()]);
    assert!(store.drafts(other).await.unwrap().is_empty());
    assert_eq!(store.draft(other, older.id).await.unwrap(), None);
    assert!(!store.delete_draft(other, older.id).await.unwrap());
    let theirs = Draft { team: other, revision: 2, ..older };
    assert!(!store.replace_draft(&theirs, &content("{}", None)).await.unwrap());
}

pub async fn stores_a_bounded_number_of_drafts(backend: &Backend) {
    let store = &backend.drafts;
    let (home, other) = (team_fixture(backend).await.team, team_fixture(backend).await.team);
    for _ in 0..MAX_DRAFTS {
        assert!(store.add_draft(&draft(home, 0), &content("{}", None)).await.unwrap());
    }
    assert!(!store.add_draft(&draft(home, 0), &content("{}", None)).await.unwrap());
    assert!(store.add_draft(&draft(other, 0), &content("{}", None)).await.unwrap());
    assert_eq!(store.drafts(home).await.unwrap().len(), MAX_DRAFTS);
}

pub async fn hides_the_platform_of_drafts(backend: &Backend) {
    for environment in [Environment::Development, Environment::Production] {
        let listed = backend.catalogue.platforms(environment).await.unwrap();
        for _ in 0..2 {
            backend.drafts.prepare_platform_of_drafts(environment).await.unwrap();
        }
        assert_eq!(backend.catalogue.platforms(environment).await.unwrap(), listed);
        let id = PlatformId::of_drafts(environment);
        assert_eq!(backend.catalogue.platform(id).await.unwrap(), None);
        assert_eq!(backend.catalogue.definition(id).await.unwrap(), None);
        // Sessions may belong to it.
        let team = team_fixture(backend).await;
        let change = sample::opening(team.owner, id);
        backend.sessions.insert(&change, None).await.unwrap();
        assert!(backend.sessions.find_unscoped(change.session.id).await.unwrap().is_some());
    }
}
