//! Stored attestations, encrypted for their sessions.

use ::diesel::prelude::*;
use async_trait::async_trait;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use diesel_async::RunQueryDsl;
use domain::{
    id::{ApiKeyId, SessionId},
    session::ProofHash,
    workflow::AttestMode,
};
use ports::{
    Reencrypted, StoreError,
    attestor::{AttestationPackage, AttestationStore, Issuer},
};
use serde::{Deserialize, Serialize};

use crate::engine::column::Id;
use crate::engine::database::{Store, failed, with_conn, with_transaction};
use crate::engine::keyring::Encryption;
use crate::engine::schema::{attestations, sessions};
use ports::encryption::CipherError;

/// The encryption context of packages of earlier releases, which was the same for all sessions.
const PACKAGE: &str = "attestations.package";

fn place(session: Id) -> String {
    format!("{PACKAGE}/{}", session.0)
}

#[derive(Insertable)]
#[diesel(table_name = attestations)]
struct AttestationRow<'a> {
    session: Id,
    proof: &'a str,
    package: Vec<u8>,
}

/// A package as it is serialized before encryption; bytes are base64.
#[derive(Serialize, Deserialize)]
struct StoredPackage {
    mode: AttestMode,
    salt: String,
    attestation: String,
    disclosure: String,
    evidence: Option<String>,
    #[serde(default)]
    inclusion: Option<String>,
    issuer: String,
    valid_from: u64,
    valid_to: u64,
}

/// Replaces a row if its session is open, and returns whether it did.
macro_rules! put {
    ($conn:expr, $open:expr, $row:expr) => {{
        if $open.is_some() {
            let before = attestations::table.filter(attestations::session.eq($row.session));
            ::diesel::delete(before).execute($conn).await?;
            ::diesel::insert_into(attestations::table).values(&$row).execute($conn).await?;
        }
        Ok($open.is_some())
    }};
}

#[async_trait]
impl AttestationStore for Store {
    async fn keep(
        &self,
        session: SessionId,
        proof: &ProofHash,
        package: &AttestationPackage,
    ) -> Result<bool, StoreError> {
        let unfit = failed("seal an attestation");
        let plain = serde_json::to_vec(&StoredPackage::of(package))
            .map_err(failed("write an attestation"))?;
        let session = Id::from(session);
        let package = self.cipher.encrypt(&self.place(session), &plain).map_err(unfit)?;
        let row = AttestationRow { session, proof: proof.as_str(), package };
        let open = sessions::table
            .select(sessions::id)
            .filter(sessions::id.eq(row.session))
            .filter(sessions::closed_at.is_null());
        let written: QueryResult<bool> = with_transaction!(
            self,
            postgres | conn | {
                // The session's row is locked, so closing or erasing it concurrently happens
                // afterwards and finds the attestation.
                let open = open.for_no_key_update().first::<Id>(conn).await.optional()?;
                put!(conn, open, row)
            },
            sqlite | conn | {
                let open = open.first::<Id>(conn).await.optional()?;
                put!(conn, open, row)
            }
        );
        written.map_err(failed("keep an attestation"))
    }

    async fn attestation(
        &self,
        session: SessionId,
    ) -> Result<Option<(ProofHash, AttestationPackage)>, StoreError> {
        let row: QueryResult<Option<(String, Vec<u8>)>> = with_conn!(self, |conn| {
            attestations::table
                .find(Id::from(session))
                .select((attestations::proof, attestations::package))
                .first(conn)
                .await
                .optional()
        });
        let row = row.map_err(failed("read an attestation"))?;
        row.map(|(proof, package)| {
            let proof = ProofHash::new(&proof);
            let proof = proof.ok_or_else(|| StoreError::new("read an attestation", "its hash"))?;
            Ok((proof, self.read_package(Id::from(session), &package)?))
        })
        .transpose()
    }

    async fn reencrypt_attestations(
        &self,
        after: Option<SessionId>,
        limit: u16,
    ) -> Result<Reencrypted<SessionId>, StoreError> {
        let after = after.map_or_else(uuid::Uuid::nil, |session| *session.as_uuid());
        let rows: QueryResult<Vec<(Id, Vec<u8>)>> = with_conn!(self, |conn| {
            attestations::table
                .filter(attestations::session.gt(Id(after)))
                .order(attestations::session)
                .limit(limit.into())
                .select((attestations::session, attestations::package))
                .load(conn)
                .await
        });
        let rows = rows.map_err(failed("read attestations"))?;
        let mut done = Reencrypted { changed: 0, unreadable: vec![], next: None };
        for (session, sealed) in &rows {
            let place = self.place(*session);
            if self.cipher.is_current(&place, sealed) && self.cipher.decrypt(&place, sealed).is_ok()
            {
                continue;
            }
            let Ok(plain) = self.open_package(*session, sealed) else {
                done.unreadable.push(session.to());
                continue;
            };
            let anew = self.cipher.encrypt(&place, &plain);
            let anew = anew.map_err(failed("seal an attestation"))?;
            let this = attestations::table.find(*session).filter(attestations::package.eq(sealed));
            let changed: QueryResult<usize> = with_conn!(self, |conn| {
                ::diesel::update(this).set(attestations::package.eq(&anew)).execute(conn).await
            });
            done.changed += changed.map_err(failed("seal an attestation anew"))?;
        }
        let last = rows.last().filter(|_| rows.len() >= usize::from(limit));
        done.next = last.map(|(session, _)| session.to());
        Ok(done)
    }

    async fn attested(
        &self,
        owner: ApiKeyId,
        proof: &ProofHash,
    ) -> Result<Option<(SessionId, AttestationPackage)>, StoreError> {
        let row: QueryResult<Option<(Id, Vec<u8>)>> = with_conn!(self, |conn| {
            attestations::table
                .inner_join(sessions::table)
                .filter(attestations::proof.eq(proof.as_str()))
                .filter(sessions::owner.eq(Id::from(owner)))
                .select((attestations::session, attestations::package))
                .first(conn)
                .await
                .optional()
        });
        let row = row.map_err(failed("find an attestation"))?;
        row.map(|(session, package)| Ok((session.to(), self.read_package(session, &package)?)))
            .transpose()
    }
}

impl Store {
    /// Returns the encryption context of a session's package.
    fn place(&self, session: Id) -> String {
        match self.keyring.mode {
            Encryption::Prepare => PACKAGE.to_owned(),
            Encryption::On | Encryption::Required => place(session),
        }
    }

    fn open_package(&self, session: Id, sealed: &[u8]) -> Result<Vec<u8>, CipherError> {
        let bound = self.cipher.decrypt(&place(session), sealed);
        bound.or_else(|error| match self.keyring.mode {
            Encryption::Required => Err(error),
            Encryption::Prepare | Encryption::On => self.cipher.decrypt(PACKAGE, sealed),
        })
    }

    fn read_package(&self, session: Id, package: &[u8]) -> Result<AttestationPackage, StoreError> {
        let plain = self.open_package(session, package).map_err(failed("open an attestation"))?;
        let kept: StoredPackage =
            serde_json::from_slice(&plain).map_err(failed("read an attestation"))?;
        kept.package().ok_or_else(|| StoreError::new("read an attestation", "it is none"))
    }
}

impl StoredPackage {
    fn of(package: &AttestationPackage) -> Self {
        let text = |bytes: &[u8]| STANDARD.encode(bytes);
        Self {
            mode: package.mode,
            salt: text(&package.salt),
            attestation: text(&package.attestation),
            disclosure: text(&package.disclosure),
            evidence: package.evidence.as_deref().map(text),
            inclusion: package.inclusion.as_deref().map(text),
            issuer: text(&package.issuer.public_key),
            valid_from: package.issuer.valid_from,
            valid_to: package.issuer.valid_to,
        }
    }

    fn package(&self) -> Option<AttestationPackage> {
        let bytes = |text: &str| STANDARD.decode(text).ok();
        let optional = |text: &Option<String>| match text {
            Some(text) => bytes(text).map(Some),
            None => Some(None),
        };
        Some(AttestationPackage {
            mode: self.mode,
            salt: bytes(&self.salt)?.try_into().ok()?,
            attestation: bytes(&self.attestation)?,
            disclosure: bytes(&self.disclosure)?,
            evidence: optional(&self.evidence)?,
            inclusion: optional(&self.inclusion)?,
            issuer: Issuer {
                public_key: bytes(&self.issuer)?.try_into().ok()?,
                valid_from: self.valid_from,
                valid_to: self.valid_to,
            },
        })
    }
}
