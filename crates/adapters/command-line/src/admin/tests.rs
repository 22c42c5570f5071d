//! Which service a command calls, and what it prints.

use std::{fs, time::Duration};

use chrono::TimeDelta;
use clap::Parser as _;
use domain::{
    id::{ContactId, DeliveryId, PlatformId, TemplateId, UserId, WebhookId},
    request::Contact,
    secret::Secret,
    session::{DefinitionVersion, ProofHash},
    template::ReviewStep,
    webhook::EndpointHealth,
    workflow::AttestMode,
};
use ports::{
    contact_store::StoredContact,
    delivery_log::{DeliveryScope, DeliveryState, StoredAttempt, StoredDelivery},
    driving::{
        AdministrationError, ExportedAttestation, ExportedFile, GeneratedPassword,
        MockApiKeyAdminService, MockAttestationExportService, MockContactAdminService,
        MockDefinitionService, MockEncryptionAdminService, MockPlatformAdminService,
        MockTeamAdminService, MockTemplateAdminService, MockUserAdminService, MockWebhookService,
        ReencryptionCounts, Rotated,
    },
    secret_key::RotatedFingerprints,
    template_store::TemplateRevision,
    webhook_store::StoredWebhook,
};
use testkit::{
    clock::FakeClock,
    sample::{self, noon},
};
use uuid::Uuid;

use super::*;
use crate::{Cli, Command};

const TEAM: TeamId = TeamId::from_uuid(Uuid::from_u128(0xA));
const ID: Uuid = Uuid::from_u128(1);

#[tokio::test]
async fn teams_are_created_and_their_frame_ancestors_set() {
    let mut mocks = Mocks::default();
    mocks.teams.expect_create().withf(|name| name == "Lender").returning(|_| Ok(TEAM));
    mocks
        .teams
        .expect_set_frame_ancestors()
        .withf(|team, _| *team == TEAM)
        .returning(|_, _| Ok(()));
    let services = mocks.services();
    assert_eq!(run(&["create-team", "Lender"], &services).await, json!({ "teamId": TEAM }));
    let arguments = ["set-frame-ancestors", "--team", &TEAM.to_string(), "https://a.example"];
    let output = run(&arguments, &services).await;
    assert_eq!(output, json!({ "teamId": TEAM, "origins": ["https://a.example"] }));
}

#[tokio::test]
async fn a_key_is_shown_when_it_is_created_or_rotated() {
    let id = ApiKeyId::from_uuid(ID);
    let issued = move || Ok(IssuedApiKey { id, text: Secret::new("avk_dev_x".into()) });
    let mut mocks = Mocks::default();
    let expected = NewApiKey {
        team: TEAM,
        environment: Environment::Development,
        expires_in: Some(TimeDelta::days(90)),
        label: String::new(),
    };
    let created = mocks.api_keys.expect_create();
    created.withf(move |key| *key == expected).returning(move |_| issued());
    mocks.api_keys.expect_rotate().withf(move |key| *key == id).returning(move |_| issued());
    mocks.api_keys.expect_revoke().withf(move |key| *key == id).returning(|_| Ok(()));
    let services = mocks.services();
    let shown = json!({ "keyId": id, "apiKey": "avk_dev_x" });
    let team = TEAM.to_string();
    let arguments = ["create-key", "--team", &team, "--environment", "development"];
    let with_expiry = [&arguments[..], &["--expires-in-days", "90"]].concat();
    assert_eq!(run(&with_expiry, &services).await, shown);
    assert_eq!(run(&["rotate-key", &id.to_string()], &services).await, shown);
    let revoked = run(&["revoke-key", &id.to_string()], &services).await;
    assert_eq!(revoked, json!({ "keyId": id }));
    let other_expiry = [&arguments[..], &["--expires-in-days", "91"]].concat();
    assert!(parse(&other_expiry).is_err());
}

#[tokio::test]
async fn a_generated_password_is_shown() {
    let user = UserId::from_uuid(ID);
    let generated =
        move || GeneratedPassword { user, password: Secret::new("aaaaaa-bbbbbb".into()) };
    let mut mocks = Mocks::default();
    let created = mocks.users.expect_create();
    created.withf(|team, email, role| {
        *team == TEAM && email.as_str() == "ada@lender.example" && *role == Role::Owner
    });
    created.returning(move |_, _, _| Ok(generated()));
    mocks.users.expect_reset_password().returning(move |_| Ok((generated(), 2)));
    mocks.users.expect_drop_second_factor().returning(move |_| Ok((user, 1)));
    let services = mocks.services();
    let (team, email) = (TEAM.to_string(), ["--email", "ada@lender.example"]);
    let arguments = [&["create-user", "--team", &team, "--role", "owner"], &email[..]].concat();
    let output = run(&arguments, &services).await;
    assert_eq!(output, json!({ "userId": user, "password": "aaaaaa-bbbbbb" }));
    let output = run(&[&["reset-password"], &email[..]].concat(), &services).await;
    let reset = json!({ "userId": user, "password": "aaaaaa-bbbbbb", "signInsEnded": 2 });
    assert_eq!(output, reset);
    let output = run(&[&["drop-second-factor"], &email[..]].concat(), &services).await;
    assert_eq!(output, json!({ "userId": user, "signInsEnded": 1 }));
}

#[tokio::test]
async fn receivers_are_registered_listed_and_removed() {
    let id = ContactId::from_uuid(ID);
    let contact = || Contact::parse("Ada", "ada@example.com", "", "de").unwrap();
    let mut mocks = Mocks::default();
    let registered = mocks.contacts.expect_register();
    registered.withf(move |team, given| *team == TEAM && *given == contact());
    registered.returning(move |_, _| Ok(id));
    mocks.contacts.expect_contacts().returning(move |team| {
        Ok(vec![StoredContact { id, team, contact: contact(), created_at: noon() }])
    });
    mocks.contacts.expect_remove().times(1).returning(|_, _| Ok(()));
    let services = mocks.services();
    let team = ["--team", &TEAM.to_string()];
    let contact = ["--name", "Ada", "--email", "ada@example.com", "--locale", "de"];
    let output = run(&[&["create-receiver"], &team[..], &contact].concat(), &services).await;
    assert_eq!(output, json!({ "receiverId": id }));
    let output = run(&[&["list-receivers"], &team[..]].concat(), &services).await;
    let receiver = &output["receivers"][0];
    assert_eq!((&receiver["receiverId"], &receiver["locale"]), (&json!(id), &json!("de")));
    assert_eq!(receiver["createdAt"], "2026-01-01T12:00:00.123Z");
    let id_text = id.to_string();
    let output = run(&[&["remove-receiver", &id_text], &team[..]].concat(), &services).await;
    assert_eq!(output, json!({ "receiverId": id }));
    // A receiver without an address is refused before a service is called.
    let parsed = parse(&[&["create-receiver"], &team[..]].concat()).unwrap();
    assert!(parsed.run(&services).await.is_err());
}

#[tokio::test]
async fn a_template_is_reviewed_with_the_revision_that_was_read() {
    let mut mocks = Mocks::default();
    mocks.templates.expect_templates().withf(Option::is_none).returning(|_| Ok(vec![]));
    for (expected, expected_reason) in [(ReviewStep::Approve, ""), (ReviewStep::Reject, "unclear")]
    {
        let review = mocks.templates.expect_review().times(1);
        review.withf(move |template, step, reason| {
            let is_template = *template == (TemplateId(7), TemplateRevision(2));
            is_template && *step == expected && reason == expected_reason
        });
        review.returning(|_, _, _| Ok(()));
    }
    let services = mocks.services();
    assert_eq!(run(&["list-templates"], &services).await, json!({ "templates": [] }));
    let revision = ["7", "--revision", "2"];
    let output = run(&[&["approve-template"], &revision[..]].concat(), &services).await;
    assert_eq!(output, json!({ "templateId": 7, "status": "APPROVED" }));
    let reason = ["--reason", "unclear"];
    let output = run(&[&["reject-template"], &revision[..], &reason].concat(), &services).await;
    assert_eq!(output, json!({ "templateId": 7, "status": "REJECTED" }));
}

#[tokio::test]
async fn webhooks_are_created_with_defaults_and_listed_without_secrets() {
    let webhook = sample::webhook(TEAM);
    let stored = StoredWebhook {
        webhook: webhook.clone(),
        keys: vec![],
        health: EndpointHealth::default(),
        created_at: noon(),
    };
    let (created, listed) = (stored.clone(), stored);
    let mut mocks = Mocks::default();
    let create = mocks.webhooks.expect_create();
    create.withf(|new| {
        let header = new.header.as_ref().map(|header| header.name.as_str());
        new.team == TEAM && new.active && new.retries == 3 && header == Some("x-partner")
    });
    create.returning(move |_| Ok(created.clone()));
    mocks.webhooks.expect_list().returning(move |_| Ok(vec![listed.clone()]));
    let until = noon() + TimeDelta::hours(24);
    let rotate = mocks.webhooks.expect_rotate_secret();
    rotate.withf(|_, overlap| *overlap == Duration::from_secs(24 * 3600));
    let secret = || Secret::new("whsec_new".into());
    rotate.returning(move |_, _| Ok(Rotated { secret: secret(), old_until: until }));
    let services = mocks.services();
    let (team, id) = (TEAM.to_string(), webhook.id.to_string());
    let new = ["--team", &team, "--url", &webhook.url, "--header", "x-partner: value"];
    let output = run(&[&["create-webhook"], &new[..]].concat(), &services).await;
    let shown = json!({ "webhookId": webhook.id, "secret": webhook.secret.expose() });
    assert_eq!(output, shown);
    let output = run(&["list-webhooks", "--team", &team], &services).await;
    assert_eq!(output["webhooks"][0]["header"], "x-partner");
    assert_eq!(output["webhooks"][0]["failing"], false);
    let text = output.to_string();
    assert!(!text.contains("whsec") && !text.contains("header value"), "{text}");
    let output = run(&["rotate-webhook-secret", &id], &services).await;
    assert_eq!(output["secret"], "whsec_new");
    assert_eq!(output["oldSecretUntil"], "2026-01-02T12:00:00.123Z");
}

#[tokio::test(start_paused = true)]
async fn a_test_delivery_is_waited_for() {
    let id = DeliveryId::from_uuid(ID);
    let mut mocks = Mocks::default();
    mocks.webhooks.expect_test().returning(move |_| Ok(id));
    mocks.webhooks.expect_delivery().times(2).returning(|id| Ok((pending(id), vec![])));
    mocks.webhooks.expect_delivery().times(1).returning(|id| {
        let delivery = StoredDelivery { state: DeliveryState::Delivered, ..pending(id) };
        Ok((delivery, vec![attempt()]))
    });
    let output = run(&["test-webhook", &ID.to_string()], &mocks.services()).await;
    assert_eq!((&output["state"], &output["test"]), (&json!("delivered"), &json!(true)));
    assert_eq!(output["attempts"][0]["status"], 204);
    assert_eq!(output["attempts"][0]["sent"], json!(["one", "two"]));
}

#[tokio::test(start_paused = true)]
async fn a_test_delivery_that_nobody_sends_is_given_up() {
    let mut mocks = Mocks::default();
    mocks.webhooks.expect_test().returning(|_| Ok(DeliveryId::from_uuid(ID)));
    mocks.webhooks.expect_delivery().returning(|id| Ok((pending(id), vec![])));
    let error = fails(&["test-webhook", &ID.to_string()], &mocks.services()).await;
    assert_eq!(error, format!("the test {ID} was not sent: does the service run?"));
}

#[tokio::test]
async fn deliveries_are_listed_by_webhook_or_session() {
    let mut mocks = Mocks::default();
    let listed = mocks.webhooks.expect_deliveries();
    listed.withf(|filter| {
        let of_webhook = matches!(filter.of, DeliveryScope::Webhook(id) if *id.as_uuid() == ID);
        of_webhook && filter.state == Some(DeliveryState::Exhausted) && filter.limit == 100
    });
    listed.returning(|_| Ok(vec![pending(DeliveryId::from_uuid(ID))]));
    mocks.webhooks.expect_send_again().times(1).returning(|_| Ok(()));
    mocks.webhooks.expect_send_exhausted_again().times(1).returning(|_, _| Ok(5));
    let (services, id) = (mocks.services(), ID.to_string());
    let arguments = ["list-deliveries", "--webhook", &id, "--state", "exhausted"];
    let output = run(&arguments, &services).await;
    assert_eq!(output["deliveries"][0]["deliveryId"], json!(ID));
    assert_eq!(run(&["resend", &id], &services).await, json!({ "deliveryId": ID }));
    let range = ["--from", "2026-01-31T08:00:00Z", "--to", "2026-01-31T12:00:00Z"];
    let arguments = [&["resend-exhausted", "--webhook", &id], &range[..]].concat();
    assert_eq!(run(&arguments, &services).await, json!({ "webhookId": ID, "sent": 5 }));
    assert!(parse(&["list-deliveries"]).is_err(), "a webhook or a session is required");
    assert!(parse(&["list-deliveries", "--webhook", &id, "--session", &id]).is_err());
}

#[tokio::test]
async fn an_attestation_is_written_to_a_private_folder() {
    use std::os::unix::fs::PermissionsExt as _;
    let proof = ProofHash::new(&"ab".repeat(32)).unwrap();
    let exported = ExportedAttestation {
        proof,
        mode: AttestMode::FullReveal,
        files: vec![ExportedFile { name: "attestation.cbor", content: vec![1] }],
    };
    let mut mocks = Mocks::default();
    mocks.attestations.expect_export().times(1).returning(move |_| Ok(exported.clone()));
    mocks
        .attestations
        .expect_export()
        .times(1)
        .returning(|session| Err(AdministrationError::NoAttestation(session)));
    let (services, parent) = (mocks.services(), tempfile::tempdir().unwrap());
    let [one, two] = ["one", "two"].map(|name| parent.path().join(name));
    let arguments = |folder: &std::path::Path| {
        let folder = folder.to_str().unwrap().to_owned();
        ["export-attestation".to_owned(), ID.to_string(), "--out".to_owned(), folder]
    };
    let written = arguments(&one);
    let output = run(&written.each_ref().map(String::as_str), &services).await;
    let mode = AttestMode::FullReveal.as_str();
    assert_eq!(output, json!({ "proofHash": "ab".repeat(32), "mode": mode }));
    assert_eq!(fs::read(one.join("attestation.cbor")).unwrap(), [1]);
    assert_eq!(fs::metadata(&one).unwrap().permissions().mode() & 0o777, 0o700);
    let refused = arguments(&two);
    fails(&refused.each_ref().map(String::as_str), &services).await;
    assert!(!two.exists());
}

#[tokio::test]
async fn resealing_prints_counts_and_rotation_prints_fingerprints() {
    let done = ReencryptionCounts { reencrypted: 1, rewrapped: 2, encrypted: 3 };
    let mut mocks = Mocks::default();
    for expected in [DataKeys::Keep, DataKeys::Replace] {
        let reencrypt = mocks.encryption.expect_reencrypt().times(1);
        reencrypt.withf(move |data_keys| *data_keys == expected);
        reencrypt.returning(move |_| Ok((done, 4)));
    }
    mocks
        .encryption
        .expect_rotate_secret_key()
        .returning(|| Ok(RotatedFingerprints { current: "b".into(), earlier: "a".into() }));
    let services = mocks.services();
    let counts = json!({ "resealed": 1, "rewrapped": 2, "encrypted": 3, "destroyed": 4 });
    assert_eq!(run(&["reseal"], &services).await, counts);
    assert_eq!(run(&["reseal", "--new-data-keys"], &services).await, counts);
    let rotated = run(&["rotate-secret-key"], &services).await;
    assert_eq!(rotated, json!({ "fingerprint": "b", "earlier": "a" }));
}

#[tokio::test]
async fn a_definition_is_validated_before_it_is_published() {
    let mut mocks = Mocks::default();
    let report = |findings| {
        let definition = Some(sample::definition("sample", "1.0.0"));
        ports::driving::DefinitionReport { definition, findings }
    };
    mocks.definitions.expect_validate().times(1).returning(move |_| report(vec![]));
    let error = ports::driving::Finding {
        severity: domain::workflow::Severity::Error,
        path: domain::workflow::JsonPath::root().member("nodes"),
        position: None,
        message: "no end".into(),
    };
    let errors = vec![error];
    mocks.definitions.expect_validate().times(1).returning(move |_| report(errors.clone()));
    mocks.platforms.expect_publish().times(1).returning(|definition, _| {
        let version = definition.version.clone();
        Ok((PlatformId(3), DefinitionVersion { version, sha256: String::new() }))
    });
    let (services, folder) = (mocks.services(), tempfile::tempdir().unwrap());
    let file = folder.path().join("definition.json");
    fs::write(&file, "{}").unwrap();
    let arguments = ["publish-platform", file.to_str().unwrap()];
    let output = run(&arguments, &services).await;
    assert_eq!(output, json!({ "platformId": 3, "version": "1.0.0" }));
    let error = fails(&arguments, &services).await;
    assert_eq!(error, format!("{} cannot be published: $.nodes: no end", file.display()));
}

fn parse(arguments: &[&str]) -> Result<AdminCommand, clap::Error> {
    let cli = Cli::try_parse_from([&["avouch", "admin"], arguments].concat())?;
    let Command::Admin(command) = cli.command else { panic!("another command") };
    Ok(command)
}

async fn run(arguments: &[&str], services: &AdminServices) -> Value {
    parse(arguments).unwrap().run(services).await.unwrap()
}

async fn fails(arguments: &[&str], services: &AdminServices) -> String {
    parse(arguments).unwrap().run(services).await.unwrap_err().to_string()
}

fn pending(id: DeliveryId) -> StoredDelivery {
    StoredDelivery {
        id,
        webhook: WebhookId::from_uuid(ID),
        session: SessionId::from_uuid(ID),
        test: true,
        state: DeliveryState::Pending,
        created_at: noon(),
        due: None,
    }
}

fn attempt() -> StoredAttempt {
    StoredAttempt {
        number: 1,
        at: noon(),
        took_ms: 5,
        status: Some(204),
        error: None,
        answer: String::new(),
        sent: "one\ntwo".into(),
    }
}

/// The services; a call that a test does not expect fails it.
#[derive(Default)]
struct Mocks {
    teams: MockTeamAdminService,
    api_keys: MockApiKeyAdminService,
    users: MockUserAdminService,
    contacts: MockContactAdminService,
    templates: MockTemplateAdminService,
    webhooks: MockWebhookService,
    attestations: MockAttestationExportService,
    encryption: MockEncryptionAdminService,
    definitions: MockDefinitionService,
    platforms: MockPlatformAdminService,
}

impl Mocks {
    fn services(self) -> AdminServices {
        AdminServices {
            teams: Arc::new(self.teams),
            api_keys: Arc::new(self.api_keys),
            users: Arc::new(self.users),
            contacts: Arc::new(self.contacts),
            templates: Arc::new(self.templates),
            webhooks: Arc::new(self.webhooks),
            attestations: Arc::new(self.attestations),
            encryption: Arc::new(self.encryption),
            definitions: Arc::new(self.definitions),
            platforms: Arc::new(self.platforms),
            clock: Arc::new(FakeClock::at(noon())),
        }
    }
}
