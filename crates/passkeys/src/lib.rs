//! Passkeys as a second factor: the relying party's part of Web Authentication, level 3.
//!
//! **Invariant:** an answer counts for the origin and the host that the deployment is served at,
//! and for the challenge in the state that it comes with.

use domain::{account::Email, id::UserId};
use ports::passkeys::{Ceremony, Credential, PasskeyVerifier};
use webauthn_rp::{
    AuthenticatedCredential, NonDiscoverableAuthentication,
    NonDiscoverableAuthenticationServerState, NonDiscoverableCredentialRequestOptions,
    PublicKeyCredentialCreationOptions, Registration, RegistrationServerState,
    bin::{Decode as _, Encode as _},
    request::{
        AsciiDomain, Credentials as _, PublicKeyCredentialDescriptor, RpId,
        auth::{AllowedCredentials, AuthenticationVerificationOptions},
        register::{PublicKeyCredentialUserEntity, RegistrationVerificationOptions, UserHandle},
    },
    response::{
        AuthTransports, CredentialId,
        register::{DynamicState, StaticState},
    },
};

/// Bytes of a person's name for devices: those of their identifier.
const HANDLE: usize = 16;
/// Bytes of an answer that are looked at.
const LONGEST: usize = 16 * 1024;

/// The party that devices make passkeys for.
pub struct RelyingParty {
    id: RpId,
    /// Scheme, host and port.
    origin: String,
}

/// Passkeys are for host names, not for addresses (section 5.1.3, step 7).
#[derive(Debug, thiserror::Error)]
#[error("passkeys need a host name")]
pub struct NoHostName;

impl RelyingParty {
    /// # Errors
    /// The host is no name.
    pub fn new(host: &str, origin: String) -> Result<Self, NoHostName> {
        let numbers = host.parse::<std::net::IpAddr>().is_ok() || host.starts_with('[');
        let id = AsciiDomain::try_from(host.to_owned()).map_err(|_| NoHostName)?;
        if numbers { Err(NoHostName) } else { Ok(Self { id: RpId::Domain(id), origin }) }
    }
}

fn descriptor(credential: &Credential) -> Option<PublicKeyCredentialDescriptor<Vec<u8>>> {
    let id = CredentialId::<Vec<u8>>::decode(credential.id.clone()).ok()?;
    let transports = AuthTransports::decode(credential.transports).ok()?;
    Some(PublicKeyCredentialDescriptor { id, transports })
}

fn handle(user: UserId) -> Option<UserHandle<HANDLE>> {
    UserHandle::decode(user.as_uuid().into_bytes()).ok()
}

fn bounded(answer: &str) -> Option<&[u8]> {
    (answer.len() <= LONGEST).then_some(answer.as_bytes())
}

impl PasskeyVerifier for RelyingParty {
    fn offer(&self, (user, email): (UserId, &Email), have: &[Credential]) -> Option<Ceremony> {
        let others = have.iter().map(descriptor).collect::<Option<Vec<_>>>()?;
        let id = handle(user)?;
        let name = email.as_str().try_into().ok()?;
        let entity = PublicKeyCredentialUserEntity { name, id: &id, display_name: None };
        let options = PublicKeyCredentialCreationOptions::second_factor(&self.id, entity, others);
        let (server, client) = options.start_ceremony().ok()?;
        Some(Ceremony {
            options: serde_json::to_string(&client).ok()?,
            state: server.encode().ok()?,
        })
    }

    fn register(&self, state: &[u8], answer: &str) -> Option<Credential> {
        let answer = Registration::from_json_relaxed(bounded(answer)?).ok()?;
        let state = RegistrationServerState::<HANDLE>::decode(state).ok()?;
        let origins = [self.origin.as_str()];
        let options = RegistrationVerificationOptions::<&str, &str> {
            allowed_origins: &origins,
            error_on_unsolicited_extensions: false,
            ..RegistrationVerificationOptions::default()
        };
        let made = state.verify(&self.id, &answer, &options).ok()?;
        Some(Credential {
            id: made.id().as_ref().to_vec(),
            key: made.static_state().encode().ok()?,
            state: made.dynamic_state().encode().ok()?.to_vec(),
            transports: made.transports().encode().ok()?,
        })
    }

    fn ask(&self, have: &[Credential]) -> Option<Ceremony> {
        let mut allowed = AllowedCredentials::with_capacity(have.len());
        for credential in have {
            allowed.push(descriptor(credential)?.into());
        }
        let options =
            NonDiscoverableCredentialRequestOptions::second_factor(&self.id, allowed).ok()?;
        let (server, client) = options.start_ceremony().ok()?;
        Some(Ceremony {
            options: serde_json::to_string(&client).ok()?,
            state: server.encode().ok()?,
        })
    }

    fn verify(
        &self,
        person: UserId,
        have: &[Credential],
        state: &[u8],
        answer: &str,
    ) -> Option<Credential> {
        let answer = NonDiscoverableAuthentication::<HANDLE>::from_json_relaxed(bounded(answer)?);
        let answer = answer.ok()?;
        let state = NonDiscoverableAuthenticationServerState::decode(state).ok()?;
        let used = have.iter().find(|one| one.id == answer.raw_id().as_ref())?;
        let id = CredentialId::<&[u8]>::decode(&used.id).ok()?;
        let owner = handle(person)?;
        let key = StaticState::decode(&used.key).ok()?;
        let before = DynamicState::decode(used.state.as_slice().try_into().ok()?).ok()?;
        let mut known = AuthenticatedCredential::new(id, &owner, key, before).ok()?;
        let origins = [self.origin.as_str()];
        let options = AuthenticationVerificationOptions::<&str, &str> {
            allowed_origins: &origins,
            error_on_unsolicited_extensions: false,
            ..AuthenticationVerificationOptions::default()
        };
        state.verify(&self.id, &answer, &mut known, &options).ok()?;
        let state = known.dynamic_state().encode().ok()?.to_vec();
        Some(Credential { state, ..used.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_of_numbers_has_no_passkeys() {
        for host in ["127.0.0.1", "[::1]", "::1", ""] {
            assert!(RelyingParty::new(host, format!("http://{host}")).is_err(), "{host}");
        }
        for host in ["localhost", "avouch.example"] {
            assert!(RelyingParty::new(host, format!("https://{host}")).is_ok(), "{host}");
        }
    }

    #[test]
    fn nothing_is_made_of_nonsense() {
        let party = RelyingParty::new("avouch.example", "https://avouch.example".into()).unwrap();
        let user = UserId::from_uuid("018f0000-0000-7000-8000-000000000001".parse().unwrap());
        let email: Email = "ada@example.org".parse().unwrap();
        let offer = party.offer((user, &email), &[]).unwrap();
        assert!(offer.options.contains("avouch.example"), "{}", offer.options);
        for answer in ["", "{}", "null", "[", &"x".repeat(2 * LONGEST)] {
            assert!(party.register(&offer.state, answer).is_none());
        }
        assert!(party.ask(&[]).is_none());
        let odd = Credential { id: vec![1], key: vec![], state: vec![], transports: 255 };
        assert!(party.ask(&[odd]).is_none());
    }
}
