//! Validating and publishing platform definitions.

use domain::{id::PlatformId, session::DefinitionVersion};
use mockall::predicate::always;
use ports::{
    attestation_descriptors::{InvalidDescriptor, MockAttestationDescriptors},
    catalogue::{MockCatalogue, PublishError},
    driving::{DefinitionService as _, InvalidDefinition, PlatformAdminService as _},
};
use testkit::sample;

use super::*;
use crate::administration::{DefinitionValidation, PlatformAdministration};

#[test]
fn a_valid_definition_is_read() {
    let definition = sample::definition("sample", "1.0.0");
    let document = serde_json::to_string(&definition).unwrap();
    let read = validation(|| Ok(None)).validate(&document).unwrap();
    assert_eq!((read.platform, read.version), (definition.platform, definition.version));
}

#[test]
fn what_is_no_definition_is_refused() {
    let refused = validation(|| Ok(None)).validate("{}").map(drop).unwrap_err();
    assert!(refused.to_string().starts_with("is no definition: "), "{refused}");
}

#[test]
fn all_errors_of_a_definition_and_of_its_descriptor_are_listed() {
    let mut definition = sample::definition("sample", "1.0.0");
    definition.start = "nowhere".into();
    let document = serde_json::to_string(&definition).unwrap();
    let descriptor = || Err(InvalidDescriptor("the host is missing".into()));
    let refused = validation(descriptor).validate(&document).map(drop).unwrap_err();
    let InvalidDefinition::Errors(errors) = &refused else { panic!("{refused:?}") };
    assert!(errors.len() >= 2 && errors[0].contains("nowhere"), "{errors:?}");
    assert_eq!(errors.last().unwrap(), "attest: the host is missing");
    assert_eq!(refused.to_string(), format!("has flaws: {}", errors.join("; ")));
}

#[test]
fn a_descriptor_is_passed_on() {
    let definition = sample::definition("sample", "1.0.0");
    let validation = validation(|| Ok(Some("{}".into())));
    assert_eq!(validation.descriptor(&definition).unwrap().as_deref(), Some("{}"));
}

#[tokio::test]
async fn a_definition_is_published_with_the_time_of_the_clock() {
    let mut catalogue = MockCatalogue::new();
    catalogue.expect_publish().with(always(), mockall::predicate::eq(noon())).times(1).returning(
        |definition, _| {
            let version = definition.version.clone();
            Ok((PlatformId(3), DefinitionVersion { version, sha256: String::new() }))
        },
    );
    let taken = |_: &_, _| Err(PublishError::VersionTaken("1.0.0".into()));
    catalogue.expect_publish().times(1).returning(taken);
    let clock = Arc::new(FakeClock::at(noon()));
    let platforms = PlatformAdministration { catalogue: Arc::new(catalogue), clock };
    let definition = sample::definition("sample", "1.0.0");
    let (id, version) = platforms.publish(&definition).await.unwrap();
    assert_eq!((id, version.version.as_str()), (PlatformId(3), "1.0.0"));
    let refused = platforms.publish(&definition).await;
    assert!(matches!(refused, Err(PublishError::VersionTaken(_))), "{refused:?}");
}

fn validation(
    descriptor: impl Fn() -> Result<Option<String>, InvalidDescriptor> + Send + 'static,
) -> DefinitionValidation {
    let mut descriptors = MockAttestationDescriptors::new();
    descriptors.expect_descriptor().returning(move |_| descriptor());
    DefinitionValidation { descriptors: Arc::new(descriptors) }
}
