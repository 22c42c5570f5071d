//! Validating and publishing platform definitions.

use domain::{
    id::PlatformId,
    platform::{ActiveVersions, VersionChange},
    session::DefinitionVersion,
    workflow::{Condition, JsonPath, Severity},
};
use mockall::predicate::always;
use ports::{
    attestation_descriptors::{InvalidDescriptor, MockAttestationDescriptors},
    catalogue::{MockCatalogue, PublishError},
    definition_syntax::{DocumentPosition, MockDefinitionSyntax, SyntaxError},
    driving::{DefinitionService as _, PlatformAdminService as _},
};
use testkit::sample;
use tokio::time::Instant;

use super::*;
use crate::{
    administration::{DefinitionValidation, PlatformAdministration},
    trusted_keys::TRUST,
};

#[test]
fn a_valid_definition_is_read() {
    let definition = sample::definition("sample", "1.0.0");
    let document = serde_json::to_string(&definition).unwrap();
    let read = validation(|| Ok(None)).validate(&document).into_valid().unwrap();
    assert_eq!((read.platform, read.version), (definition.platform, definition.version));
}

#[test]
fn what_is_no_definition_is_refused_with_its_place() {
    let mut syntax = MockDefinitionSyntax::new();
    let path = JsonPath::root().member("start");
    let known = Some(DocumentPosition { line: 7, column: 1 });
    let errors = [(JsonPath::root(), known), (path.clone(), None)];
    let errors =
        errors.map(|(path, position)| SyntaxError { path, position, message: "no".into() });
    syntax.expect_validate().times(1).return_once(move |_| Err(errors.into()));
    syntax.expect_positions().times(1).returning(|_, paths| {
        paths.iter().map(|_| Some(DocumentPosition { line: 3, column: 9 })).collect()
    });
    let report = validation_with(syntax, || Ok(None)).validate("{}");
    assert!(report.definition.is_none());
    let found: Vec<_> = report.findings.iter().map(|f| (f.path.clone(), f.position)).collect();
    // In the order of the document; what the syntax knows better stays.
    assert_eq!(
        found,
        [(path, Some(DocumentPosition { line: 3, column: 9 })), (JsonPath::root(), known)]
    );
    let refused = report.into_valid().unwrap_err();
    assert_eq!(refused.to_string(), "cannot be published: $.start: no; $: no");
}

#[test]
fn what_the_types_refuse_is_an_error_of_the_document() {
    let report = validation(|| Ok(None)).validate("{}");
    let [finding] = report.findings.as_slice() else { panic!("{report:?}") };
    assert!(finding.message.starts_with("is no definition: missing field"), "{finding:?}");
    assert!(report.into_valid().is_err());
}

#[test]
fn all_errors_of_a_definition_its_selectors_and_its_descriptor_are_listed() {
    let mut definition = sample::definition("sample", "1.0.0");
    definition.start = "nowhere".into();
    let unused = Condition::Selector("a[[".into());
    definition.signals.insert("unused".into(), unused);
    let document = serde_json::to_string(&definition).unwrap();
    let mut syntax = MockDefinitionSyntax::new();
    syntax.expect_validate().returning(|_| Ok(()));
    syntax.expect_positions().returning(|_, paths| vec![None; paths.len()]);
    let broken = |selector: &str| selector.contains("[[").then(|| "is no selector".to_owned());
    syntax.expect_selector_error().returning(broken);
    let descriptor = || Err(InvalidDescriptor("the host is missing".into()));
    let report = validation_with(syntax, descriptor).validate(&document);
    let found: Vec<_> = report
        .findings
        .iter()
        .map(|finding| (finding.severity, finding.path.to_string()))
        .collect();
    for (severity, path) in [
        (Severity::Error, "$.start"),
        (Severity::Error, "$.signals.unused.selector"),
        (Severity::Warning, "$.signals.unused"),
        (Severity::Error, "$.attest"),
    ] {
        assert!(found.contains(&(severity, path.to_owned())), "{found:?}");
    }
    let refused = report.into_valid().unwrap_err();
    assert!(refused.0.iter().all(|finding| finding.severity == Severity::Error));
    assert!(refused.to_string().contains("; $.attest: the host is missing"), "{refused}");
}

#[test]
fn the_number_of_findings_is_bounded_and_errors_come_first() {
    let mut definition = sample::definition("sample", "1.0.0");
    for number in 0..600 {
        let cookie = Condition::Cookie("a".into());
        definition.signals.insert(format!("s{number}"), cookie);
    }
    let document = serde_json::to_string(&definition).unwrap();
    let report = validation(|| Err(InvalidDescriptor("no".into()))).validate(&document);
    assert_eq!(report.findings.len(), 500);
    assert_eq!(report.count(Severity::Error), 2, "too many signals, and no descriptor");
}

#[test]
fn a_descriptor_is_passed_on() {
    let definition = sample::definition("sample", "1.0.0");
    let validation = validation(|| Ok(Some("{}".into())));
    assert_eq!(validation.descriptor(&definition).unwrap().as_deref(), Some("{}"));
}

#[tokio::test(start_paused = true)]
async fn a_publication_is_reported_when_no_process_trusts_the_earlier_catalogue() {
    let mut catalogue = MockCatalogue::new();
    catalogue.expect_publish().returning(|definition, _, _| {
        let version = definition.version.clone();
        Ok((PlatformId(3), DefinitionVersion { version, sha256: String::new() }))
    });
    catalogue.expect_choose_version().returning(|_, _, _| Ok(()));
    let clock = Arc::new(FakeClock::at(noon()));
    let platforms = PlatformAdministration { catalogue: Arc::new(catalogue), clock };
    let began = Instant::now();
    platforms.publish(&sample::definition("sample", "1.0.0"), None).await.unwrap();
    let published = Instant::now();
    assert!(published - began > TRUST);
    let to = ActiveVersions { version: "1.0.0".into(), canary: None };
    let change = VersionChange { from: None, to };
    platforms.choose_version(PlatformId(3), &change).await.unwrap();
    assert!(published.elapsed() > TRUST);
}

#[tokio::test]
async fn a_definition_is_published_with_the_time_of_the_clock() {
    let mut catalogue = MockCatalogue::new();
    catalogue
        .expect_publish()
        .with(always(), mockall::predicate::eq(None), mockall::predicate::eq(noon()))
        .times(1)
        .returning(|definition, _, _| {
            let version = definition.version.clone();
            Ok((PlatformId(3), DefinitionVersion { version, sha256: String::new() }))
        });
    let taken = |_: &_, _, _| Err(PublishError::VersionTaken("1.0.0".into()));
    catalogue.expect_publish().times(1).returning(taken);
    let clock = Arc::new(FakeClock::at(noon()));
    let platforms = PlatformAdministration { catalogue: Arc::new(catalogue), clock };
    let definition = sample::definition("sample", "1.0.0");
    let (id, version) = platforms.publish(&definition, None).await.unwrap();
    assert_eq!((id, version.version.as_str()), (PlatformId(3), "1.0.0"));
    let refused = platforms.publish(&definition, None).await;
    assert!(matches!(refused, Err(PublishError::VersionTaken(_))), "{refused:?}");
}

fn validation(
    descriptor: impl Fn() -> Result<Option<String>, InvalidDescriptor> + Send + 'static,
) -> DefinitionValidation {
    let mut syntax = MockDefinitionSyntax::new();
    syntax.expect_validate().returning(|_| Ok(()));
    syntax.expect_positions().returning(|_, paths| vec![None; paths.len()]);
    syntax.expect_selector_error().returning(|_| None);
    validation_with(syntax, descriptor)
}

fn validation_with(
    syntax: MockDefinitionSyntax,
    descriptor: impl Fn() -> Result<Option<String>, InvalidDescriptor> + Send + 'static,
) -> DefinitionValidation {
    let mut descriptors = MockAttestationDescriptors::new();
    descriptors.expect_descriptor().returning(move |_| descriptor());
    DefinitionValidation { syntax: Arc::new(syntax), descriptors: Arc::new(descriptors) }
}
