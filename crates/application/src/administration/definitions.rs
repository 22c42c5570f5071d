//! Validates platform definitions, and derives what an attestor has to allow for them.

use std::{collections::HashSet, sync::Arc};

use domain::workflow::{
    Definition, Fixture, JsonPath, PageTree, Replayed, Severity, ValidationError, check, replay,
    write_out,
};
use ports::{
    attestation_descriptors::{AttestationDescriptors, InvalidDescriptor},
    definition_syntax::{DefinitionSyntax, MAX_DEFINITION_BYTES},
    driving::{DefinitionReport, DefinitionService, Finding},
};

/// Findings of one document that are reported.
const MAX_FINDINGS: usize = 500;

/// Implements [`DefinitionService`].
pub struct DefinitionValidation {
    pub syntax: Arc<dyn DefinitionSyntax>,
    pub descriptors: Arc<dyn AttestationDescriptors>,
}

impl DefinitionService for DefinitionValidation {
    fn validate(&self, document: &str) -> DefinitionReport {
        if let Err(errors) = self.syntax.validate(document) {
            let findings = errors.into_iter().map(|error| Finding {
                severity: Severity::Error,
                path: error.path,
                position: error.position,
                message: error.message,
            });
            return self.report(document, None, findings.collect());
        }
        let written = match serde_json::from_str(document).map(|value| write_out(&value)) {
            Ok(Err(errors)) => {
                return self.report(document, None, errors.into_iter().map(finding).collect());
            }
            Ok(Ok(written)) => written,
            // The error is reported below.
            Err(_) => None,
        };
        let size = written.as_ref().map_or(0, |written| written.document.to_string().len());
        if size > MAX_DEFINITION_BYTES {
            let path = JsonPath::root().member("signIns");
            let message = format!(
                "written out, the definition has {size} bytes; at most {MAX_DEFINITION_BYTES}"
            );
            let error = ValidationError { severity: Severity::Error, path, message };
            return self.report(document, None, vec![finding(error)]);
        }
        let definition = match &written {
            Some(written) => serde_json::from_value(written.document.clone()),
            None => serde_json::from_str(document),
        };
        match definition {
            Ok(definition) => {
                let mut findings: Vec<_> =
                    self.errors(&definition).into_iter().map(finding).collect();
                if let Some(written) = &written {
                    for finding in &mut findings {
                        finding.path = written.original(&finding.path);
                    }
                    findings.extend(written.warnings.iter().cloned().map(finding));
                    // Several nodes may use one sign-in.
                    let mut seen = HashSet::new();
                    findings.retain(|one| seen.insert((one.path.to_string(), one.message.clone())));
                }
                self.report(document, Some(definition), findings)
            }
            // The schema allows what the types refuse, such as a number out of its range.
            Err(error) => {
                let finding = Finding {
                    severity: Severity::Error,
                    path: JsonPath::root(),
                    position: None,
                    message: format!("is no definition: {error}"),
                };
                self.report(document, None, vec![finding])
            }
        }
    }

    fn descriptor(&self, definition: &Definition) -> Result<Option<String>, InvalidDescriptor> {
        self.descriptors.descriptor(definition)
    }

    fn schema(&self) -> String {
        self.syntax.schema()
    }

    fn reference(&self) -> String {
        self.syntax.reference()
    }

    fn replay(&self, definition: &Arc<Definition>, fixture: &Fixture) -> Replayed {
        let select = |page: &PageTree, scope: usize, selector: &str| {
            self.syntax.select(page, scope, selector)
        };
        replay(definition, fixture, &select)
    }
}

fn finding(error: ValidationError) -> Finding {
    let ValidationError { severity, path, message } = error;
    Finding { severity, path, position: None, message }
}

impl DefinitionValidation {
    fn errors(&self, definition: &Definition) -> Vec<ValidationError> {
        let mut errors = check(definition);
        let error = |path, message| ValidationError { severity: Severity::Error, path, message };
        for (path, selector) in definition.selector_paths() {
            // An empty selector is reported already.
            let wrong = self.syntax.selector_error(selector);
            if let Some(message) = wrong.filter(|_| !selector.trim().is_empty()) {
                errors.push(error(path, message));
            }
        }
        if let Err(invalid) = self.descriptors.descriptor(definition) {
            errors.push(error(JsonPath::root().member("attest"), invalid.to_string()));
        }
        errors
    }

    /// Returns a report with the positions of all findings, in the order of the document.
    fn report(
        &self,
        document: &str,
        definition: Option<Definition>,
        mut findings: Vec<Finding>,
    ) -> DefinitionReport {
        let paths: Vec<_> = findings.iter().map(|finding| finding.path.clone()).collect();
        let positions = self.syntax.positions(document, &paths);
        for (finding, position) in findings.iter_mut().zip(positions) {
            finding.position = finding.position.or(position);
        }
        // Errors come first where there are too many findings.
        findings.sort_by_key(|finding| finding.severity);
        findings.truncate(MAX_FINDINGS);
        findings.sort_by_key(|finding| finding.position);
        DefinitionReport { definition, findings }
    }
}
