//! The services that operators use on the command line. No team's member is signed in: the operator
//! has access to the machine, and audit events name the command.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use chrono::TimeDelta;
use domain::{
    account::{Email, Role},
    api_key::Environment,
    frame_ancestors::FrameAncestor,
    id::{ApiKeyId, ContactId, PlatformId, SessionId, TeamId, TemplateId, UserId},
    platform::{CanaryShare, Platform, PublishedVersion, VersionChange},
    request::Contact,
    secret::Secret,
    session::{DefinitionVersion, ProofHash},
    template::ReviewStep,
    workflow::{AttestMode, Definition, Fixture, JsonPath, Replayed, Severity},
};

use crate::{
    StoreError,
    attestation_descriptors::InvalidDescriptor,
    catalogue::{ChooseVersionError, PublishError},
    contact_store::StoredContact,
    definition_syntax::DocumentPosition,
    secret_key::{RotatedFingerprints, SecretKeyError},
    template_store::{StoredTemplate, TemplateRevision},
};

/// Why a command of an operator was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum AdministrationError {
    #[error("there is no {kind} {id}")]
    NotFound { kind: &'static str, id: String },
    #[error("nobody has the address {0}")]
    UnknownAddress(Email),
    #[error("somebody has the address {0} already")]
    AddressTaken(Email),
    #[error("session {0} has no attestation, or it was erased")]
    NoAttestation(SessionId),
    /// A value violates a rule, which the text names.
    #[error("{0}")]
    Invalid(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Creates teams and sets who may embed their sessions.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait TeamAdminService: Send + Sync {
    /// Creates a team with a name of 1 to 200 characters.
    async fn create(&self, name: &str) -> Result<TeamId, AdministrationError>;

    /// Sets the origins whose pages may embed the team's sessions; an empty list allows any origin.
    async fn set_frame_ancestors(
        &self,
        team: TeamId,
        origins: &[FrameAncestor],
    ) -> Result<(), AdministrationError>;
}

/// An API key to be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewApiKey {
    pub team: TeamId,
    pub environment: Environment,
    /// `None` for a key that does not expire.
    pub expires_in: Option<TimeDelta>,
    /// The name of the key in the portal.
    pub label: String,
}

/// An API key in plain form, which only this result contains.
pub struct IssuedApiKey {
    pub id: ApiKeyId,
    pub text: Secret,
}

/// Manages the API keys of all teams.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait ApiKeyAdminService: Send + Sync {
    async fn create(&self, key: NewApiKey) -> Result<IssuedApiKey, AdministrationError>;

    /// Replaces the key of a record; the earlier key is invalid from then on.
    async fn rotate(&self, id: ApiKeyId) -> Result<IssuedApiKey, AdministrationError>;

    async fn revoke(&self, id: ApiKeyId) -> Result<(), AdministrationError>;
}

/// A generated password, which only this result contains. It expires after
/// [`INITIAL_PASSWORD_TTL`](domain::account::INITIAL_PASSWORD_TTL).
pub struct GeneratedPassword {
    pub user: UserId,
    pub password: Secret,
}

/// Manages the members of all teams.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait UserAdminService: Send + Sync {
    /// Creates a member with a generated password.
    async fn create(
        &self,
        team: TeamId,
        email: Email,
        role: Role,
    ) -> Result<GeneratedPassword, AdministrationError>;

    /// Replaces a member's password with a generated one, and ends all sign-ins. Returns the
    /// number of those.
    async fn reset_password(
        &self,
        email: &Email,
    ) -> Result<(GeneratedPassword, usize), AdministrationError>;

    /// Removes a member's one-time codes and passkeys, and ends all sign-ins. Returns the number of
    /// those.
    async fn drop_second_factor(
        &self,
        email: &Email,
    ) -> Result<(UserId, usize), AdministrationError>;
}

/// Manages the registered contacts of all teams.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait ContactAdminService: Send + Sync {
    async fn register(
        &self,
        team: TeamId,
        contact: Contact,
    ) -> Result<ContactId, AdministrationError>;

    /// Returns a team's contacts, the newest first.
    async fn contacts(&self, team: TeamId) -> Result<Vec<StoredContact>, AdministrationError>;

    /// Deletes a contact. Sessions keep its data.
    async fn remove(&self, team: TeamId, id: ContactId) -> Result<(), AdministrationError>;
}

/// Lists and reviews the mail templates of all teams.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait TemplateAdminService: Send + Sync {
    /// Returns a team's templates, the newest first; without a team, those of all teams that wait
    /// for review, the oldest first.
    async fn templates(
        &self,
        team: Option<TeamId>,
    ) -> Result<Vec<StoredTemplate>, AdministrationError>;

    /// Takes a review step for a template that waits for review, with the revision that the
    /// operator has read. `reason` is for a rejection.
    async fn review(
        &self,
        template: (TemplateId, TemplateRevision),
        step: ReviewStep,
        reason: &str,
    ) -> Result<(), AdministrationError>;
}

/// A file of an exported attestation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedFile {
    pub name: &'static str,
    pub content: Vec<u8>,
}

/// An attestation with everything that its verification needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedAttestation {
    pub proof: ProofHash,
    pub mode: AttestMode,
    pub files: Vec<ExportedFile>,
}

/// Exports attestations for `avouch-verify`.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait AttestationExportService: Send + Sync {
    /// Returns `attestation.cbor`, `disclosure.cbor`, `issuers.json`, `session.json` and
    /// `roots.pem`; `evidence.cbor` unless it would contain credentials, and
    /// `inclusion.tlog-proof` if the attestation is in a log.
    async fn export(&self, session: SessionId) -> Result<ExportedAttestation, AdministrationError>;
}

/// Whether teams get new data keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataKeys {
    Keep,
    Replace,
}

/// The numbers of records that were encrypted again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReencryptionCounts {
    /// Values that the deployment's keys encrypt.
    pub reencrypted: usize,
    /// Data keys that the deployment's keys encrypt.
    pub rewrapped: usize,
    /// Rows that data keys encrypt.
    pub encrypted: usize,
}

/// Why not everything was encrypted again.
#[derive(Debug, thiserror::Error)]
pub enum ReencryptionError {
    #[error(
        "{} resealed, {} rewrapped, {} encrypted, but no key opens what these have: {}",
        .done.reencrypted, .done.rewrapped, .done.encrypted, .records.join(", ")
    )]
    Unreadable { done: ReencryptionCounts, records: Vec<String> },
    #[error(transparent)]
    SecretKey(#[from] SecretKeyError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Encrypts stored values with the newest keys, and rotates the secret key.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait EncryptionAdminService: Send + Sync {
    /// Encrypts everything with the newest keys, in batches, while other processes serve. Then no
    /// earlier key is needed, and replaced data keys are destroyed. Returns the number of these
    /// with the other counts. Values that no key decrypts are left as they are, and no data key is
    /// destroyed.
    async fn reencrypt(
        &self,
        data_keys: DataKeys,
    ) -> Result<(ReencryptionCounts, usize), ReencryptionError>;

    /// Generates a new secret key, and keeps the current one as the earlier one.
    fn rotate_secret_key(&self) -> Result<RotatedFingerprints, SecretKeyError>;
}

/// What the validation of a definition found at one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub severity: Severity,
    pub path: JsonPath,
    /// `None` if the document is no JSON, and the place is not known.
    pub position: Option<DocumentPosition>,
    /// What is wrong, and how to correct it.
    pub message: String,
}

/// The result of the validation of a document.
#[derive(Debug, Clone)]
pub struct DefinitionReport {
    /// The definition; `None` if the document cannot be read as one.
    pub definition: Option<Definition>,
    /// The errors and warnings, in the order of the document.
    pub findings: Vec<Finding>,
}

impl DefinitionReport {
    /// Returns the number of findings of a severity.
    #[must_use]
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }

    /// Returns the definition if it can be published.
    ///
    /// # Errors
    /// It has errors.
    pub fn into_valid(self) -> Result<Definition, InvalidDefinition> {
        let is_valid = self.count(Severity::Error) == 0;
        self.definition.filter(|_| is_valid).ok_or_else(|| {
            let errors = self.findings.into_iter();
            InvalidDefinition(
                errors.filter(|finding| finding.severity == Severity::Error).collect(),
            )
        })
    }
}

/// Why a platform definition cannot be published: its errors.
#[derive(Debug, thiserror::Error)]
pub struct InvalidDefinition(pub Vec<Finding>);

impl fmt::Display for InvalidDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cannot be published: ")?;
        for (index, Finding { path, message, .. }) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(f, "{separator}{path}: {message}")?;
        }
        Ok(())
    }
}

/// Validates platform definitions.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait DefinitionService: Send + Sync {
    /// Reads a definition from JSON, and validates it together with its descriptor.
    fn validate(&self, document: &str) -> DefinitionReport;

    /// Returns what an attestor has to allow for a definition, as JSON; `None` if the definition
    /// has no plan for attestations.
    fn descriptor(&self, definition: &Definition) -> Result<Option<String>, InvalidDescriptor>;

    /// Returns the JSON Schema of definitions (draft 2020-12).
    fn schema(&self) -> String;

    /// Returns the reference of definitions for their authors, as Markdown.
    fn reference(&self) -> String;

    /// Runs a definition on a fixture, without a browser.
    fn replay(&self, definition: &Arc<Definition>, fixture: &Fixture) -> Replayed;
}

/// Publishes platform definitions.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait PlatformAdminService: Send + Sync {
    /// Publishes a validated definition for all new sessions of its platform, or for a share of them.
    async fn publish(
        &self,
        definition: &Definition,
        canary: Option<CanaryShare>,
    ) -> Result<(PlatformId, DefinitionVersion), PublishError>;

    /// Returns a platform with its published versions, the newest first.
    async fn versions(
        &self,
        id: PlatformId,
    ) -> Result<Option<(Platform, Vec<PublishedVersion>)>, StoreError>;

    /// Changes the versions that new sessions of a platform run.
    ///
    /// # Errors
    /// [`ChooseVersionError::Changed`] if they do not run those that the change begins with.
    async fn choose_version(
        &self,
        id: PlatformId,
        change: &VersionChange,
    ) -> Result<(), ChooseVersionError>;
}
