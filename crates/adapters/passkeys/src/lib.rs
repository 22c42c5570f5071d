//! Passkeys as a second factor: the relying party's part of Web Authentication, level 3.
//!
//! **Invariant:** a response is accepted only for the origin and the host of the deployment, and for the
//! challenge in the state that it is verified with.

use domain::{account::Email, id::UserId};
use ports::passkeys::{Ceremony, Credential, PasskeyVerifier};
use url::Url;
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

/// Bytes of a user handle: those of the user's id.
const USER_HANDLE_BYTES: usize = 16;
/// Bytes of a response of an authenticator.
const MAX_RESPONSE_BYTES: usize = 16 * 1024;

/// The relying party of the deployment.
pub struct RelyingParty {
    id: RpId,
    /// Scheme, host and port.
    origin: String,
}

/// The host is not a host name. Passkeys are for host names, not for addresses (section 5.1.3, step 7).
#[derive(Debug, thiserror::Error)]
#[error("passkeys need a host name")]
pub struct NoHostName;

impl RelyingParty {
    /// Creates the relying party of a host.
    ///
    /// # Errors
    /// The host is not a host name.
    pub fn new(host: &str, origin: String) -> Result<Self, NoHostName> {
        let is_address = host.parse::<std::net::IpAddr>().is_ok() || host.starts_with('[');
        let id = AsciiDomain::try_from(host.to_owned()).map_err(|_| NoHostName)?;
        if is_address { Err(NoHostName) } else { Ok(Self { id: RpId::Domain(id), origin }) }
    }

    /// Creates the relying party of an origin; `None` if its host is not a host name, so that it can
    /// have no passkeys.
    #[must_use]
    pub fn for_origin(origin: &str) -> Option<Self> {
        let host = Url::parse(origin).ok()?.host_str()?.to_owned();
        Self::new(&host, origin.to_owned()).ok()
    }
}

fn descriptor(credential: &Credential) -> Option<PublicKeyCredentialDescriptor<Vec<u8>>> {
    let id = CredentialId::<Vec<u8>>::decode(credential.id.clone()).ok()?;
    let transports = AuthTransports::decode(credential.transports).ok()?;
    Some(PublicKeyCredentialDescriptor { id, transports })
}

fn handle(user: UserId) -> Option<UserHandle<USER_HANDLE_BYTES>> {
    UserHandle::decode(user.as_uuid().into_bytes()).ok()
}

fn bounded(response: &str) -> Option<&[u8]> {
    (response.len() <= MAX_RESPONSE_BYTES).then_some(response.as_bytes())
}

impl PasskeyVerifier for RelyingParty {
    fn offer(
        &self,
        (user, email): (UserId, &Email),
        credentials: &[Credential],
    ) -> Option<Ceremony> {
        let excluded = credentials.iter().map(descriptor).collect::<Option<Vec<_>>>()?;
        let id = handle(user)?;
        let name = email.as_str().try_into().ok()?;
        let entity = PublicKeyCredentialUserEntity { name, id: &id, display_name: None };
        let options = PublicKeyCredentialCreationOptions::second_factor(&self.id, entity, excluded);
        let (server, client) = options.start_ceremony().ok()?;
        Some(Ceremony {
            options: serde_json::to_string(&client).ok()?,
            state: server.encode().ok()?,
        })
    }

    fn register(&self, state: &[u8], response: &str) -> Option<Credential> {
        let response = Registration::from_json_relaxed(bounded(response)?).ok()?;
        let state = RegistrationServerState::<USER_HANDLE_BYTES>::decode(state).ok()?;
        let origins = [self.origin.as_str()];
        let options = RegistrationVerificationOptions::<&str, &str> {
            allowed_origins: &origins,
            error_on_unsolicited_extensions: false,
            ..RegistrationVerificationOptions::default()
        };
        let registered = state.verify(&self.id, &response, &options).ok()?;
        Some(Credential {
            id: registered.id().as_ref().to_vec(),
            key: registered.static_state().encode().ok()?,
            state: registered.dynamic_state().encode().ok()?.to_vec(),
            transports: registered.transports().encode().ok()?,
        })
    }

    fn ask(&self, credentials: &[Credential]) -> Option<Ceremony> {
        let mut allowed = AllowedCredentials::with_capacity(credentials.len());
        for credential in credentials {
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
        user: UserId,
        credentials: &[Credential],
        state: &[u8],
        response: &str,
    ) -> Option<Credential> {
        let response = NonDiscoverableAuthentication::<USER_HANDLE_BYTES>::from_json_relaxed(
            bounded(response)?,
        );
        let response = response.ok()?;
        let state = NonDiscoverableAuthenticationServerState::decode(state).ok()?;
        let credential =
            credentials.iter().find(|credential| credential.id == response.raw_id().as_ref())?;
        let id = CredentialId::<&[u8]>::decode(&credential.id).ok()?;
        let owner = handle(user)?;
        let key = StaticState::decode(&credential.key).ok()?;
        let dynamic_state =
            DynamicState::decode(credential.state.as_slice().try_into().ok()?).ok()?;
        let mut authenticated =
            AuthenticatedCredential::new(id, &owner, key, dynamic_state).ok()?;
        let origins = [self.origin.as_str()];
        let options = AuthenticationVerificationOptions::<&str, &str> {
            allowed_origins: &origins,
            error_on_unsolicited_extensions: false,
            ..AuthenticationVerificationOptions::default()
        };
        state.verify(&self.id, &response, &mut authenticated, &options).ok()?;
        let state = authenticated.dynamic_state().encode().ok()?.to_vec();
        Some(Credential { state, ..credential.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ip_address_is_not_a_relying_party() {
        for host in ["127.0.0.1", "[::1]", "::1", ""] {
            assert!(RelyingParty::new(host, format!("http://{host}")).is_err(), "{host}");
        }
        for host in ["localhost", "avouch.example"] {
            assert!(RelyingParty::new(host, format!("https://{host}")).is_ok(), "{host}");
        }
        assert!(RelyingParty::for_origin("https://avouch.example:8443").is_some());
        assert!(RelyingParty::for_origin("http://127.0.0.1:8080").is_none());
        assert!(RelyingParty::for_origin("nowhere").is_none());
    }

    #[test]
    fn malformed_responses_and_credentials_are_refused() {
        let party = RelyingParty::new("avouch.example", "https://avouch.example".into()).unwrap();
        let user = UserId::from_uuid("018f0000-0000-7000-8000-000000000001".parse().unwrap());
        let email: Email = "ada@example.org".parse().unwrap();
        let ceremony = party.offer((user, &email), &[]).unwrap();
        assert!(ceremony.options.contains("avouch.example"), "{}", ceremony.options);
        for response in ["", "{}", "null", "[", &"x".repeat(2 * MAX_RESPONSE_BYTES)] {
            assert!(party.register(&ceremony.state, response).is_none());
        }
        assert!(party.ask(&[]).is_none());
        let malformed = Credential { id: vec![1], key: vec![], state: vec![], transports: 255 };
        assert!(party.ask(&[malformed]).is_none());
    }
}
