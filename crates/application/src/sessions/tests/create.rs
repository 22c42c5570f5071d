//! Creating a session.

use std::str::FromStr as _;

use domain::{
    account::Email,
    frame_ancestors::FrameAncestor,
    https_url::HttpsUrl,
    language::Language,
    notification::Channel,
    request::{Contact, NewSession, RequestedLocation},
    session::Status,
    template::{Draft, ReviewStep},
    worker_region::WorkerRegion,
};
use ports::{
    contact_store::{ContactStore as _, StoredContact},
    driving::{CreateError, IdempotentRequest, SessionService as _},
    key_store::TeamStore as _,
    notifier::NotificationQueue as _,
    template_store::TemplateStore as _,
};
use testkit::sample::noon;

use super::{mailed, request, use_cases};
use crate::{contacts::register, testing::World};

#[tokio::test]
async fn everything_that_the_lookups_do_not_know_is_found_at_once() {
    let world = World::new().await;
    let wrong = NewSession {
        platform: domain::id::PlatformId(99),
        location: RequestedLocation {
            country: "XX".into(),
            state: Some("YY".into()),
            ..RequestedLocation::default()
        },
        channel: Some(Channel::Whatsapp.id()),
        email_template: Some(7),
        receiver_id: Some("0190a0a0-0000-7000-8000-000000000000".into()),
        custom_url: Some("https://platform.example".into()),
        ..request(&world)
    };
    let error = use_cases(&world).create(&world.key, wrong, None).await.unwrap_err();
    let CreateError::Invalid(findings) = error else { panic!("{error}") };
    assert_eq!(
        findings.0,
        [
            "platformId must be an active platform of the lookup",
            "location.country must be a supported country",
            "location.state must be a region of the country",
            "notificationPlatformId must be one of the lookup",
            "emailTemplateId must be one of the lookup",
            "receiverId must be a registered receiver of the team",
            "customUrl must be left out for this platform",
        ]
    );
}

#[tokio::test]
async fn a_return_url_is_on_one_of_the_teams_origins() {
    let world = World::new().await;
    let partners = use_cases(&world);
    let returning = || NewSession {
        purpose: Some("To check your income".into()),
        return_url: HttpsUrl::new("https://www.lender.example/apply?step=3"),
        ..request(&world)
    };
    for origins in [&[][..], &["https://lender.example"][..]] {
        let origins: Vec<FrameAncestor> =
            origins.iter().map(|origin| origin.parse().unwrap()).collect();
        world.store.set_frame_ancestors(world.key.team, &origins).await.unwrap();
        let error = partners.create(&world.key, returning(), None).await.unwrap_err();
        let CreateError::Invalid(findings) = error else { panic!("{error}") };
        assert_eq!(findings.0, ["returnUrl must be on one of the team's embed origins"]);
    }
    let origins = ["https://*.lender.example".parse().unwrap()];
    world.store.set_frame_ancestors(world.key.team, &origins).await.unwrap();
    let created = partners.create(&world.key, returning(), None).await.unwrap();
    let terms = created.view.session.terms;
    assert_eq!(terms.purpose.as_deref(), Some("To check your income"));
    assert_eq!(terms.return_url, returning().return_url);
}

#[tokio::test]
async fn a_channel_needs_an_address_and_only_mails_have_templates() {
    let world = World::new().await;
    let partners = use_cases(&world);
    let sms = NewSession { channel: Some(Channel::Sms.id()), ..mailed(&world, "ada@example.com") };
    let error = partners.create(&world.key, sms, None).await.unwrap_err();
    let CreateError::Invalid(findings) = error else { panic!("{error}") };
    assert_eq!(findings.0, ["receiverData.phone must be given with this channel"]);

    let phone = Contact { phone: Some("+15550100".into()), ..Contact::default() };
    let template = approved_template(&world).await;
    let sms = NewSession {
        channel: Some(Channel::Sms.id()),
        receiver: Some(phone),
        email_template: Some(template),
        ..request(&world)
    };
    let error = partners.create(&world.key, sms, None).await.unwrap_err();
    let CreateError::Invalid(findings) = error else { panic!("{error}") };
    assert_eq!(findings.0, ["emailTemplateId must be left out with a channel that is not email"]);
}

#[tokio::test]
async fn a_session_takes_the_words_of_the_lookups() {
    let world = World::new().await;
    let location = RequestedLocation {
        country: "US".into(),
        state: Some("california".into()),
        region: Some("US-CA".into()),
        city: Some("sao josé".into()),
    };
    let wanted = NewSession { location, ..request(&world) };
    let created = use_cases(&world).create(&world.key, wanted, None).await.unwrap();
    let session = &created.view.session;
    assert_eq!(session.terms.location.region.as_deref(), Some("California"));
    assert_eq!(session.terms.location.city.as_deref(), Some("São José"));
    assert_eq!(session.terms.worker_region, WorkerRegion::UsWest);
    assert_eq!((session.status(), created.replayed), (Status::Created, false));
    assert_eq!(
        created.view.embed_url,
        format!("https://avouch.test/embed/{0}?token=embed-{0}", session.id)
    );
    assert_eq!(created.view.stream_url, None, "it has no browser yet");
}

#[tokio::test]
async fn a_city_must_be_in_the_region_and_two_names_of_the_region_must_agree() {
    let world = World::new().await;
    let table = [
        ("US", Some("CA"), None, Some("Austin"), "location.city must be a city of the region"),
        ("US", None, None, Some("Nowhereville"), "location.city must be a city of the country"),
        (
            "US",
            Some("CA"),
            Some("US-TX"),
            None,
            "location.state and location.region must be the same",
        ),
        ("US", None, Some("Atlantis"), None, "location.region must be a region of the country"),
    ];
    for (country, state, region, city, finding) in table {
        let [state, region, city] = [state, region, city].map(|name| name.map(str::to_owned));
        let location = RequestedLocation { country: country.into(), state, region, city };
        let wanted = NewSession { location, ..request(&world) };
        let error = use_cases(&world).create(&world.key, wanted, None).await.unwrap_err();
        let CreateError::Invalid(findings) = error else { panic!("{error}") };
        assert_eq!(findings.0, [finding]);
    }
}

#[tokio::test]
async fn a_city_is_found_without_its_region_and_free_where_the_lookup_has_none() {
    let world = World::new().await;
    for (country, city, echoed) in [("US", "AUSTIN", "Austin"), ("DE", "Hamburg", "Hamburg")] {
        let location = RequestedLocation {
            country: country.into(),
            city: Some(city.into()),
            ..RequestedLocation::default()
        };
        let wanted = NewSession { location, ..request(&world) };
        let created = use_cases(&world).create(&world.key, wanted, None).await.unwrap();
        assert_eq!(created.view.session.terms.location.city.as_deref(), Some(echoed));
    }
}

#[tokio::test]
async fn a_registered_contact_fills_in_what_the_request_leaves_out() {
    let world = World::new().await;
    let stored = registered(&world).await;
    let contact = Contact { name: Some("Ada L.".into()), ..Contact::default() };
    let wanted = NewSession {
        receiver_id: Some(stored.id.to_string()),
        receiver: Some(contact),
        channel: Some(Channel::Email.id()),
        ..request(&world)
    };
    let created = use_cases(&world).create(&world.key, wanted, None).await.unwrap();
    let terms = created.view.session.terms;
    let receiver = terms.receiver.unwrap();
    assert_eq!(receiver.name.as_deref(), Some("Ada L."));
    assert_eq!(receiver.email.as_deref(), Some("ada@example.com"));
    assert_eq!(terms.receiver_id, Some(stored.id));
    let queued = world.store.claim_notifications(
        noon() + chrono::TimeDelta::minutes(1),
        chrono::TimeDelta::minutes(1),
        8,
        None,
    );
    assert_eq!(queued.await.unwrap().len(), 1, "the link is sent");
}

#[tokio::test]
async fn a_template_has_to_be_approved() {
    let world = World::new().await;
    let partners = use_cases(&world);
    let template = world.store.add_template(world.team, &draft(), noon()).await.unwrap();
    let wanted =
        NewSession { email_template: Some(template.0.into()), ..mailed(&world, "ada@example.com") };
    let refused = partners.create(&world.key, wanted.clone(), None).await;
    assert!(matches!(refused, Err(CreateError::Invalid(_))));
    let template = approved_template(&world).await;
    let wanted = NewSession { email_template: Some(template), ..wanted };
    let created = partners.create(&world.key, wanted, None).await.unwrap();
    let invitation = created.view.session.terms.invitation.unwrap();
    assert_eq!(invitation.template.map(|id| i64::from(id.0)), Some(template));
}

#[tokio::test]
async fn a_repeated_request_returns_the_first_session() {
    let world = World::new().await;
    let partners = use_cases(&world);
    let key = |request| Some(IdempotentRequest { key: "once".into(), request: [request; 32] });
    let first = partners.create(&world.key, request(&world), key(1)).await.unwrap();
    let second = partners.create(&world.key, request(&world), key(1)).await.unwrap();
    assert!(!first.replayed && second.replayed);
    assert_eq!(first.view, second.view);
    let other = partners.create(&world.key, request(&world), key(2)).await;
    assert!(matches!(other, Err(CreateError::OtherRequest)));
    world.clock.forward(chrono::TimeDelta::hours(25));
    let later = partners.create(&world.key, request(&world), key(2)).await.unwrap();
    assert_ne!(later.view.session.id, first.view.session.id, "a key stands for a day");
}

#[tokio::test]
async fn one_address_is_sent_so_many_links() {
    let world = World::new().await;
    let partners = use_cases(&world);
    for _ in 0..2 {
        partners.create(&world.key, mailed(&world, "Ada@example.com"), None).await.unwrap();
    }
    let third = partners.create(&world.key, mailed(&world, "ada@example.com"), None).await;
    assert!(matches!(third, Err(CreateError::TooManyLinks { retry_after: 3600 })));
    partners.create(&world.key, mailed(&world, "eve@example.com"), None).await.unwrap();
    partners.create(&world.key, request(&world), None).await.unwrap();
}

async fn registered(world: &World) -> StoredContact {
    let contact = Contact {
        name: Some("Ada".into()),
        email: Some(Email::from_str("ada@example.com").unwrap().as_str().into()),
        ..Contact::default()
    };
    let sources: (&dyn ports::clock::Clock, &dyn ports::random::RandomSource) =
        (&*world.clock, &*world.random);
    let stored = register(world.store.as_ref(), sources, world.team, contact).await.unwrap();
    assert_eq!(world.store.contacts(world.team).await.unwrap(), std::slice::from_ref(&stored));
    stored
}

fn draft() -> Draft {
    Draft::new("Ours", Language::of(None), "Your link", "Follow {{ link }}").unwrap()
}

async fn approved_template(world: &World) -> i64 {
    let id = world.store.add_template(world.team, &draft(), noon()).await.unwrap();
    for step in [ReviewStep::Submit, ReviewStep::Approve] {
        let stored = world.store.template(world.team, id).await.unwrap().unwrap();
        let what = (world.team, id, stored.revision);
        assert!(world.store.step_template(what, step, "", noon()).await.unwrap());
    }
    id.0.into()
}
