//! Who somebody is, as an OpenID Connect provider says: the authorization code flow with PKCE
//! (OpenID Connect Core 1.0, section 3.1; RFC 7636).
//!
//! **Invariant:** an identity comes from an ID token whose signature, issuer, audience, times and
//! nonce were verified, in answer to a question of ours; its address is one that the provider has
//! verified.

use std::time::Duration;

use async_trait::async_trait;
use calls::{Address, BadAddress, Caller, NoAnswer};
use domain::{account::Email, secret::Secret};
use openidconnect::{
    AsyncHttpClient, AuthorizationCode, ClientId, ClientSecret, CsrfToken, HttpRequest,
    HttpResponse, IssuerUrl, Nonce, OAuth2TokenResponse as _, PkceCodeChallenge, PkceCodeVerifier,
    RedirectUrl, Scope, TokenResponse as _,
    core::{
        CoreAuthPrompt, CoreAuthenticationFlow, CoreClient, CoreProviderMetadata,
        CoreUserInfoClaims,
    },
};
use ports::identity::{
    AuthorizationCallback, AuthorizationPrompt, AuthorizationRequest, Identity, IdentityError,
    IdentityProvider,
};
use serde::{Deserialize, Serialize};

/// Bytes of what a browser comes back with that are looked at.
const LONGEST: usize = 4 * 1024;
/// The longest subject (section 2).
const LONGEST_SUBJECT: usize = 255;

/// What a provider knows the service by.
#[derive(Clone)]
pub struct Account {
    issuer: IssuerUrl,
    client: ClientId,
    secret: ClientSecret,
    name: String,
}

/// Without the secret.
impl std::fmt::Debug for Account {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Account").field("issuer", &self.issuer.as_str()).finish_non_exhaustive()
    }
}

/// What is wrong with an account, to be read after the name of its setting.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum BadAccount {
    #[error("issuer {0}")]
    Issuer(#[from] BadAddress),
    #[error("client_id must not be empty")]
    Client,
    #[error("client_secret must not be empty")]
    Secret,
    #[error("name has 1 to 40 characters")]
    Name,
}

impl Account {
    /// # Errors
    /// The first value that cannot be.
    pub fn new(issuer: &str, client: &str, secret: &str, name: &str) -> Result<Self, BadAccount> {
        issuer.parse::<Address>()?;
        let issuer = IssuerUrl::new(issuer.to_owned()).map_err(|_| BadAddress)?;
        if client.is_empty() {
            return Err(BadAccount::Client);
        }
        if secret.is_empty() {
            return Err(BadAccount::Secret);
        }
        if !(1..=40).contains(&name.chars().count()) {
            return Err(BadAccount::Name);
        }
        Ok(Self {
            issuer,
            client: ClientId::new(client.to_owned()),
            secret: ClientSecret::new(secret.to_owned()),
            name: name.to_owned(),
        })
    }
}

/// A provider that is asked anew each time what it is: its keys may have changed.
pub struct Provider {
    account: Account,
    back: RedirectUrl,
    http: Http,
}

/// Where browsers come back to is no address.
#[derive(Debug, thiserror::Error)]
#[error("{0} is no address to come back to")]
pub struct BadReturn(String);

impl Provider {
    /// # Errors
    /// `back`, where browsers come back to, is no URL.
    pub fn new(account: Account, back: &str, caller: Caller) -> Result<Self, BadReturn> {
        let back = RedirectUrl::new(back.to_owned()).map_err(|_| BadReturn(back.to_owned()))?;
        Ok(Self { account, back, http: Http(caller) })
    }

    async fn metadata(&self) -> Result<CoreProviderMetadata, IdentityError> {
        let found = CoreProviderMetadata::discover_async(self.account.issuer.clone(), &self.http);
        found.await.map_err(|error| IdentityError::Unreachable(chain(&error)))
    }
}

/// Kept between asking and the answer.
#[derive(Serialize, Deserialize)]
struct Kept {
    state: CsrfToken,
    nonce: Nonce,
    verifier: PkceCodeVerifier,
}

#[async_trait]
impl IdentityProvider for Provider {
    fn name(&self) -> &str {
        &self.account.name
    }

    async fn authorization_request(
        &self,
        prompt: AuthorizationPrompt,
    ) -> Result<AuthorizationRequest, IdentityError> {
        let Account { client, secret, .. } = self.account.clone();
        let client =
            CoreClient::from_provider_metadata(self.metadata().await?, client, Some(secret))
                .set_redirect_uri(self.back.clone());
        let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
        let flow = CoreAuthenticationFlow::AuthorizationCode;
        let asked = client
            .authorize_url(flow, CsrfToken::new_random, Nonce::new_random)
            .add_scope(Scope::new("email".to_owned()))
            .set_pkce_challenge(challenge);
        let asked = match prompt {
            AuthorizationPrompt::Any => asked,
            // With `max_age` the ID token has to say when they were asked (section 2).
            AuthorizationPrompt::Login => {
                asked.add_prompt(CoreAuthPrompt::Login).set_max_age(Duration::ZERO)
            }
        };
        let (url, state, nonce) = asked.url();
        let kept = serde_json::to_string(&Kept { state, nonce, verifier });
        let kept = kept.map_err(|error| IdentityError::Refused(error.to_string()))?;
        Ok(AuthorizationRequest { url: url.into(), kept: Secret::new(kept) })
    }

    async fn exchange_code(
        &self,
        kept: &Secret,
        arrival: &AuthorizationCallback,
    ) -> Result<Identity, IdentityError> {
        let refused = |why: &str| IdentityError::Refused(why.to_owned());
        let wrong = |error: &dyn std::error::Error| IdentityError::Refused(chain(error));
        let kept: Kept =
            serde_json::from_str(kept.expose()).map_err(|_| refused("nothing was asked"))?;
        if arrival.state != *kept.state.secret() {
            return Err(refused("it answers another question"));
        }
        if arrival.code.expose().len() > LONGEST {
            return Err(refused("its code is too long"));
        }
        let Account { client, secret, .. } = self.account.clone();
        let client =
            CoreClient::from_provider_metadata(self.metadata().await?, client, Some(secret))
                .set_redirect_uri(self.back.clone());
        let code = AuthorizationCode::new(arrival.code.expose().to_owned());
        let token = client
            .exchange_code(code)
            .map_err(|error| wrong(&error))?
            .set_pkce_verifier(kept.verifier)
            .request_async(&self.http)
            .await
            .map_err(|error| wrong(&error))?;
        let id_token = token.id_token().ok_or_else(|| refused("it brings no ID token"))?;
        let claims = id_token.claims(&client.id_token_verifier(), &kept.nonce);
        let claims = claims.map_err(|error| wrong(&error))?;
        let subject = claims.subject();
        if subject.len() > LONGEST_SUBJECT {
            return Err(refused("its subject is too long"));
        }
        let mut known = (claims.email().cloned(), claims.email_verified());
        if known.0.is_none() {
            // Some say it to who asks once more (section 5.4).
            let who = Some(subject.clone());
            let info = client.user_info(token.access_token().clone(), who);
            let info = info.map_err(|error| wrong(&error))?.request_async(&self.http).await;
            let info: CoreUserInfoClaims = info.map_err(|error| wrong(&error))?;
            known = (info.email().cloned(), info.email_verified());
        }
        let (Some(email), Some(true)) = known else { return Err(IdentityError::NoAddress) };
        let email: Email = email.parse().map_err(|_| IdentityError::NoAddress)?;
        Ok(Identity {
            subject: format!("{} {}", self.account.issuer.as_str(), subject.as_str()),
            email,
            authenticated_at: claims.auth_time(),
        })
    }
}

/// An error with its causes: what it says of itself is half of it.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// Our way to call, as the library takes it.
struct Http(Caller);

/// Why a call had no answer.
#[derive(Debug, thiserror::Error)]
enum NoCall {
    #[error(transparent)]
    Address(#[from] BadAddress),
    #[error(transparent)]
    NoAnswer(#[from] NoAnswer),
}

impl<'c> AsyncHttpClient<'c> for Http {
    type Error = NoCall;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<HttpResponse, NoCall>> + Send + 'c>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        Box::pin(async move {
            request.uri().to_string().parse::<Address>()?;
            Ok(self.0.send(request).await?)
        })
    }
}
