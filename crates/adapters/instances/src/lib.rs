//! Connections between the instances of a deployment: TLS 1.3 (RFC 8446) with a certificate on both
//! sides, issued by the deployment's own authority.

pub mod browsers;
mod diagnostic;
mod identity;
mod links;
mod multiplexer;
mod socket;

pub use self::{
    diagnostic::{CertificateDiagnostic, HostsDiagnostic},
    identity::{IdentityError, IdentityFiles, InstanceIdentity},
    links::TlsLinks,
};
