//! What an exported attestation consists of.

use domain::{id::SessionId, session::ProofHash, workflow::AttestMode};
use ports::{
    attestor::{AttestationPackage, AttestationStore as _, Issuer},
    driving::{AttestationExportService as _, ExportedFile},
    trusted_roots::MockTrustedRoots,
};

use super::*;
use crate::{administration::AttestationExport, testing::World};

#[tokio::test]
async fn an_export_has_what_its_verification_needs() {
    let world = World::new().await;
    let session = world.session().await;
    let proof = proof();
    assert!(world.store.keep(session, &proof, &package()).await.unwrap());
    let exported = export(&world).export(session).await.unwrap();
    assert_eq!((exported.proof, exported.mode), (proof, AttestMode::FullReveal));
    let names: Vec<_> = exported.files.iter().map(|file| file.name).collect();
    assert_eq!(
        names,
        [
            "attestation.cbor",
            "disclosure.cbor",
            "evidence.cbor",
            "inclusion.tlog-proof",
            "issuers.json",
            "session.json",
            "roots.pem",
        ]
    );
    assert_eq!(exported.files[0].content, [1]);
    assert_eq!(
        text(&exported.files[4]),
        format!(
            "{{\n  \"issuers\": [\n    {{\n      \"name\": \"the attestor's key as this service is \
             configured to believe it\",\n      \"publicKey\": \"{}\",\n      \"validFrom\": 5,\n      \
             \"validTo\": 6\n    }}\n  ]\n}}\n",
            "0a".repeat(32)
        )
    );
    assert!(text(&exported.files[5]).contains(&format!("\"sessionId\": \"{session}\"")));
    assert!(text(&exported.files[5]).contains(&format!("\"salt\": \"{}\"", "07".repeat(32))));
    let roots = text(&exported.files[6]);
    let lengths: Vec<_> = roots.lines().map(str::len).collect();
    assert_eq!(lengths, [27, 64, 4, 25], "{roots}");
}

#[tokio::test]
async fn evidence_with_credentials_and_a_missing_log_entry_are_left_out() {
    let world = World::new().await;
    let session = world.session().await;
    let package = AttestationPackage { evidence: None, inclusion: None, ..package() };
    assert!(world.store.keep(session, &proof(), &package).await.unwrap());
    let exported = export(&world).export(session).await.unwrap();
    let optional = ["evidence.cbor", "inclusion.tlog-proof"];
    assert!(exported.files.iter().all(|file| !optional.contains(&file.name)));
}

#[tokio::test]
async fn a_session_without_an_attestation_is_refused() {
    let world = World::new().await;
    let session = SessionId::from_uuid(Uuid::nil());
    let error = export(&world).export(session).await.unwrap_err().to_string();
    assert_eq!(error, format!("session {session} has no attestation, or it was erased"));
}

fn export(world: &World) -> AttestationExport {
    let mut roots = MockTrustedRoots::new();
    roots.expect_certificates().returning(|| vec![vec![3; 50]]);
    AttestationExport { attestations: world.store.clone(), roots: Arc::new(roots) }
}

fn proof() -> ProofHash {
    ProofHash::new(&"ab".repeat(32)).unwrap()
}

fn text(file: &ExportedFile) -> String {
    String::from_utf8(file.content.clone()).unwrap()
}

fn package() -> AttestationPackage {
    AttestationPackage {
        mode: AttestMode::FullReveal,
        salt: [7; 32],
        attestation: vec![1],
        disclosure: vec![2],
        evidence: Some(vec![3]),
        inclusion: Some(vec![4]),
        issuer: Issuer { public_key: [10; 32], valid_from: 5, valid_to: 6 },
    }
}
