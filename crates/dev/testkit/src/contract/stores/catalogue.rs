//! The contract of [`ports::catalogue::Catalogue`].

use chrono::TimeDelta;
use domain::{
    api_key::Environment,
    definition_health::{Count, CountedItem, Counts},
    id::{PlatformId, SessionId},
    platform::{ActiveVersions, Canary, CanaryShare, VersionChange},
    session::Session,
};
use ports::{
    catalogue::{ChooseVersionError, PublishError},
    definition_statistics::HourCounts,
};

use super::{Backend, hash, team_fixture};
use crate::sample::{self, definition, noon};

pub async fn publishes_a_definition(backend: &Backend) {
    let sample = definition("sample", "1.0.0");
    let (id, published) = backend.catalogue.publish(&sample, None, noon()).await.unwrap();
    let (found, read) = backend.catalogue.definition(id).await.unwrap().unwrap();
    assert_eq!((found, read), (published, sample));
    let platforms = backend.catalogue.platforms(Environment::Development).await.unwrap();
    assert_eq!(platforms.len(), 1);
    assert_eq!(platforms[0].name, "sample");
    assert_eq!(backend.catalogue.platform(id).await.unwrap().as_ref(), Some(&platforms[0]));
    assert_eq!(backend.catalogue.platforms(Environment::Production).await.unwrap(), []);
    assert_eq!(backend.catalogue.platform(PlatformId(9999)).await.unwrap(), None);
}

pub async fn publishes_the_same_definition_idempotently(backend: &Backend) {
    let sample = definition("sample", "1.0.0");
    let first = backend.catalogue.publish(&sample, None, noon()).await.unwrap();
    assert_eq!(backend.catalogue.publish(&sample, None, noon()).await.unwrap(), first);
}

/// Publishing a version again that was taken back would seem to have brought it back.
pub async fn refuses_a_published_version_that_was_taken_back(backend: &Backend) {
    let catalogue = &backend.catalogue;
    let share = CanaryShare::percent(10).unwrap();
    let [old, new] = ["1.0.0", "1.1.0"].map(|version| definition("sample", version));
    let refused = async |definition: &_, canary| {
        let published = catalogue.publish(definition, canary, noon()).await;
        matches!(published, Err(PublishError::AlreadyPublished(_)))
    };
    let (id, _) = catalogue.publish(&old, None, noon()).await.unwrap();
    assert!(refused(&old, Some(share)).await, "all sessions run it");
    catalogue.publish(&new, Some(share), noon()).await.unwrap();
    catalogue.publish(&new, Some(share), noon()).await.unwrap();
    catalogue.publish(&old, None, noon()).await.unwrap();
    assert!(refused(&new, None).await, "a share of sessions runs it");
    assert!(refused(&new, CanaryShare::percent(11)).await, "another share");
    let before = catalogue.platform(id).await.unwrap();
    catalogue.choose_version(id, &change("1.0.0", None), noon()).await.unwrap();
    assert!(refused(&new, Some(share)).await && refused(&new, None).await, "it was taken back");
    catalogue.choose_version(id, &change("1.1.0", None), noon()).await.unwrap();
    catalogue.publish(&new, None, noon()).await.unwrap();
    assert!(refused(&old, None).await, "new sessions run a later one");
    assert_eq!(before.unwrap().canary, Some(Canary { version: "1.1.0".to_owned(), share }));
}

pub async fn refuses_other_content_under_a_published_version(backend: &Backend) {
    let mut sample = definition("sample", "1.0.0");
    backend.catalogue.publish(&sample, None, noon()).await.unwrap();
    "Other".clone_into(&mut sample.display_name);
    let refusal = backend.catalogue.publish(&sample, None, noon()).await.unwrap_err();
    assert!(matches!(refusal, PublishError::VersionTaken(_)), "{refusal:?}");
}

pub async fn returns_the_newest_version(backend: &Backend) {
    let (old, new) = (definition("sample", "1.0.0"), definition("sample", "1.1.0"));
    let (id, _) = backend.catalogue.publish(&old, None, noon()).await.unwrap();
    let (same, _) = backend.catalogue.publish(&new, None, noon()).await.unwrap();
    assert_eq!(same, id);
    let (published, _) = backend.catalogue.definition(id).await.unwrap().unwrap();
    assert_eq!(published.version, "1.1.0");
}

/// A session that has not begun runs the current version, or the one that its share tries; one that
/// has begun keeps its version, whatever is published or chosen afterwards.
pub async fn sessions_run_a_chosen_version_or_that_of_their_share(backend: &Backend) {
    let home = team_fixture(backend).await;
    let share = CanaryShare::percent(30).unwrap();
    let tried = definition("sample", "1.1.0");
    let (id, _) = backend.catalogue.publish(&tried, Some(share), noon()).await.unwrap();
    assert_eq!(id, home.platform);
    let platform = backend.catalogue.platform(id).await.unwrap().unwrap();
    assert_eq!(platform.version, "1.0.0");
    assert_eq!(platform.canary, Some(Canary { version: "1.1.0".to_owned(), share }));

    let mut session = sample::opening(home.owner, id).session;
    let version = async |session: &Session| {
        backend.catalogue.definition_of(session).await.unwrap().unwrap().0
    };
    let mut counts = [0, 0];
    for number in 0..100 {
        session.id = SessionId::from_u128(number);
        let found = version(&session).await.version;
        assert_eq!(found == "1.1.0", share.includes(session.id), "{number}");
        counts[usize::from(found == "1.1.0")] += 1;
    }
    assert_eq!(counts, [70, 30]);

    session.id = SessionId::from_u128(0);
    session.workflow = Some(version(&session).await);
    let canary = Canary { version: "1.0.0".to_owned(), share: CanaryShare::percent(1).unwrap() };
    let choose = async |version: &str, canary: Option<Canary>| {
        backend.catalogue.choose_version(id, &change(version, canary), noon()).await
    };
    choose("1.1.0", Some(canary.clone())).await.unwrap();
    assert_eq!(backend.catalogue.platform(id).await.unwrap().unwrap().canary, Some(canary));
    choose("1.0.0", None).await.unwrap();
    let platform = backend.catalogue.platform(id).await.unwrap().unwrap();
    assert_eq!((platform.version.as_str(), platform.canary), ("1.0.0", None));
    assert_eq!(version(&session).await.version, "1.1.0", "it has begun");
    session.workflow = None;
    assert_eq!(version(&session).await.version, "1.0.0");

    let unknown = choose("7.0.0", None).await.unwrap_err();
    assert!(matches!(unknown, ChooseVersionError::NotPublished(_)), "{unknown:?}");
    let missing =
        backend.catalogue.choose_version(PlatformId(9999), &change("1.0.0", None), noon()).await;
    assert!(matches!(missing, Err(ChooseVersionError::NoPlatform(_))), "{missing:?}");
}

/// An author who has looked at the versions before a colleague changed them undoes nothing.
pub async fn changes_only_the_versions_that_were_seen(backend: &Backend) {
    let catalogue = &backend.catalogue;
    let versions = ["1.0.0", "1.1.0", "1.2.0"];
    let [first, second, third] = versions.map(|version| definition("sample", version));
    let share = CanaryShare::percent(10).unwrap();
    let (id, _) = catalogue.publish(&first, None, noon()).await.unwrap();
    let active = async || catalogue.platform(id).await.unwrap().unwrap().active_versions();
    let seen = [active().await, {
        catalogue.publish(&second, Some(share), noon()).await.unwrap();
        active().await
    }];
    catalogue.publish(&third, Some(CanaryShare::percent(20).unwrap()), noon()).await.unwrap();
    let now = active().await;
    let other_share = ActiveVersions {
        canary: Some(Canary { version: "1.2.0".to_owned(), share }),
        ..now.clone()
    };
    let choose = async |from: &ActiveVersions| {
        let change = VersionChange { from: Some(from.clone()), ..change("1.1.0", None) };
        catalogue.choose_version(id, &change, noon()).await
    };
    for from in seen.iter().chain([&other_share]) {
        let refused = choose(from).await;
        assert!(matches!(refused, Err(ChooseVersionError::Changed)), "{from:?}: {refused:?}");
        assert_eq!(active().await, now);
    }
    choose(&now).await.unwrap();
    let chosen = active().await;
    assert_eq!((chosen.version.as_str(), &chosen.canary), ("1.1.0", &None));
    choose(&chosen).await.unwrap();
}

/// Returns a change from any version.
fn change(version: &str, canary: Option<Canary>) -> VersionChange {
    VersionChange { from: None, to: ActiveVersions { version: version.to_owned(), canary } }
}

pub async fn lists_the_published_versions(backend: &Backend) {
    let catalogue = &backend.catalogue;
    let (id, _) = catalogue.publish(&definition("sample", "1.0.0"), None, noon()).await.unwrap();
    let later = noon() + TimeDelta::hours(1);
    catalogue.publish(&definition("sample", "1.1.0"), None, later).await.unwrap();
    let versions = catalogue.versions(id).await.unwrap();
    let listed: Vec<_> =
        versions.iter().map(|one| (one.definition.version.as_str(), one.published_at)).collect();
    assert_eq!(listed, [("1.1.0", later), ("1.0.0", noon())]);
    assert!(versions.iter().all(|one| one.definition.sha256.len() == 64));
    assert_eq!(catalogue.versions(PlatformId(9999)).await.unwrap(), []);
}

pub async fn changes_the_revision_with_each_change(backend: &Backend) {
    let home = team_fixture(backend).await;
    let mine = hash();
    backend.keys.add_key(&sample::key(home.team), &mine, "Backend", noon()).await.unwrap();
    let revision = async || backend.key_verification.key_by_hash(&mine).await.unwrap().unwrap().1;
    let first = revision().await;
    assert_eq!(revision().await, first, "nothing changed");
    backend.catalogue.publish(&definition("sample", "1.1.0"), None, noon()).await.unwrap();
    let second = revision().await;
    assert_ne!(second, first, "a new version");
    backend.catalogue.publish(&definition("other", "1.0.0"), None, noon()).await.unwrap();
    assert_ne!(revision().await, second, "a new platform");
}

pub async fn adds_the_statistics_of_versions_up(backend: &Backend) {
    let home = team_fixture(backend).await;
    let platform = home.platform;
    let count = |runs, matches| Count { runs, matches };
    let hour = |version: &str, hours, signal| HourCounts {
        platform,
        version: version.to_owned(),
        hour: noon() + TimeDelta::hours(hours),
        counts: [
            (CountedItem::Succeeded, count(1, 1)),
            (CountedItem::Signal("signed in".to_owned()), signal),
        ]
        .into(),
    };
    let add = async |counts: &[HourCounts]| backend.statistics.add_counts(counts).await.unwrap();
    add(&[]).await;
    add(&[hour("1.0.0", 0, count(1, 0)), hour("1.0.0", 2, count(1, 1))]).await;
    add(&[hour("1.0.0", 2, count(1, 1)), hour("1.1.0", 3, count(1, 0))]).await;
    let counts = async |since| {
        let since = noon() + TimeDelta::hours(since);
        let recent = noon() + TimeDelta::hours(2);
        backend.statistics.counts(platform, since, recent).await.unwrap()
    };
    let found = counts(0).await;
    let versions: Vec<_> = found.iter().map(|one| one.version.as_str()).collect();
    assert_eq!(versions, ["1.0.0", "1.1.0"]);
    let signal = CountedItem::Signal("signed in".to_owned());
    assert_eq!(found[0].earlier[&signal], count(1, 0));
    assert_eq!(found[0].recent[&signal], count(2, 2));
    assert_eq!(found[0].recent[&CountedItem::Succeeded], count(2, 2));
    assert_eq!((&found[1].earlier, found[1].recent[&signal]), (&Counts::new(), count(1, 0)));
    assert_eq!(counts(1).await[0].earlier, Counts::new());
    backend.statistics.remove_counts(noon() + TimeDelta::hours(3)).await.unwrap();
    assert_eq!(counts(0).await.len(), 1);
}
