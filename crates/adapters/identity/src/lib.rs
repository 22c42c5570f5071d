//! Sign-in by an OpenID Connect provider: the authorization code flow with PKCE (OpenID Connect Core
//! 1.0, section 3.1; RFC 7636).
//!
//! **Invariant:** an identity comes from an ID token whose signature, issuer, audience, times and nonce
//! were verified, in response to a request of ours; its address is one that the provider has verified.

use std::time::Duration;

use async_trait::async_trait;
use domain::{account::Email, secret::Secret};
use http_client::{BaseUrl, HttpClient, HttpClientError, InvalidUrl};
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

/// Bytes of the authorization code.
const MAX_CODE_BYTES: usize = 4 * 1024;
/// Bytes of the subject (section 2).
const MAX_SUBJECT_BYTES: usize = 255;

/// The registration of the service at a provider.
#[derive(Clone)]
pub struct ClientRegistration {
    issuer: IssuerUrl,
    client: ClientId,
    secret: ClientSecret,
    name: String,
}

/// Shows the issuer only, without the secret.
impl std::fmt::Debug for ClientRegistration {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Account").field("issuer", &self.issuer.as_str()).finish_non_exhaustive()
    }
}

/// The reason why a registration is invalid; the text follows the name of its setting.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum InvalidRegistration {
    #[error("issuer {0}")]
    Issuer(#[from] InvalidUrl),
    #[error("client_id must not be empty")]
    Client,
    #[error("client_secret must not be empty")]
    Secret,
    #[error("name has 1 to 40 characters")]
    Name,
}

impl ClientRegistration {
    /// Validates the values of a registration.
    ///
    /// # Errors
    /// The first invalid value.
    pub fn new(
        issuer: &str,
        client: &str,
        secret: &str,
        name: &str,
    ) -> Result<Self, InvalidRegistration> {
        issuer.parse::<BaseUrl>()?;
        let issuer = IssuerUrl::new(issuer.to_owned()).map_err(|_| InvalidUrl)?;
        if client.is_empty() {
            return Err(InvalidRegistration::Client);
        }
        if secret.is_empty() {
            return Err(InvalidRegistration::Secret);
        }
        if !(1..=40).contains(&name.chars().count()) {
            return Err(InvalidRegistration::Name);
        }
        Ok(Self {
            issuer,
            client: ClientId::new(client.to_owned()),
            secret: ClientSecret::new(secret.to_owned()),
            name: name.to_owned(),
        })
    }
}

/// An OpenID Connect provider. Its metadata is fetched for each sign-in, because its keys may have
/// changed.
pub struct OidcProvider {
    account: ClientRegistration,
    redirect_url: RedirectUrl,
    http: Http,
}

/// The redirect URL is not a URL.
#[derive(Debug, thiserror::Error)]
#[error("{0} is not a valid redirect URL")]
pub struct InvalidRedirectUrl(String);

impl OidcProvider {
    /// Creates a provider, which redirects browsers back to `redirect_url`.
    ///
    /// # Errors
    /// The redirect URL is not a URL.
    pub fn new(
        account: ClientRegistration,
        redirect_url: &str,
        client: HttpClient,
    ) -> Result<Self, InvalidRedirectUrl> {
        let redirect_url = RedirectUrl::new(redirect_url.to_owned())
            .map_err(|_| InvalidRedirectUrl(redirect_url.to_owned()))?;
        Ok(Self { account, redirect_url, http: Http(client) })
    }

    async fn metadata(&self) -> Result<CoreProviderMetadata, IdentityError> {
        let metadata =
            CoreProviderMetadata::discover_async(self.account.issuer.clone(), &self.http);
        metadata.await.map_err(|error| IdentityError::Unreachable(chain(&error)))
    }
}

/// The state of a sign-in between the authorization request and its response.
#[derive(Serialize, Deserialize)]
struct PendingSignIn {
    state: CsrfToken,
    nonce: Nonce,
    verifier: PkceCodeVerifier,
}

#[async_trait]
impl IdentityProvider for OidcProvider {
    fn name(&self) -> &str {
        &self.account.name
    }

    async fn authorization_request(
        &self,
        prompt: AuthorizationPrompt,
    ) -> Result<AuthorizationRequest, IdentityError> {
        let ClientRegistration { client, secret, .. } = self.account.clone();
        let client =
            CoreClient::from_provider_metadata(self.metadata().await?, client, Some(secret))
                .set_redirect_uri(self.redirect_url.clone());
        let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
        let flow = CoreAuthenticationFlow::AuthorizationCode;
        let request = client
            .authorize_url(flow, CsrfToken::new_random, Nonce::new_random)
            .add_scope(Scope::new("email".to_owned()))
            .set_pkce_challenge(challenge);
        let request = match prompt {
            AuthorizationPrompt::Any => request,
            // With `max_age` the ID token must contain the time of authentication (section 2).
            AuthorizationPrompt::Login => {
                request.add_prompt(CoreAuthPrompt::Login).set_max_age(Duration::ZERO)
            }
        };
        let (url, state, nonce) = request.url();
        let kept = serde_json::to_string(&PendingSignIn { state, nonce, verifier });
        let kept = kept.map_err(|error| IdentityError::Refused(error.to_string()))?;
        Ok(AuthorizationRequest { url: url.into(), kept: Secret::new(kept) })
    }

    async fn exchange_code(
        &self,
        kept: &Secret,
        arrival: &AuthorizationCallback,
    ) -> Result<Identity, IdentityError> {
        let refuse = |why: &str| IdentityError::Refused(why.to_owned());
        let error_chain = |error: &dyn std::error::Error| IdentityError::Refused(chain(error));
        let kept: PendingSignIn = serde_json::from_str(kept.expose())
            .map_err(|_| refuse("there is no pending sign-in"))?;
        if arrival.state != *kept.state.secret() {
            return Err(refuse("the state does not match the pending sign-in"));
        }
        if arrival.code.expose().len() > MAX_CODE_BYTES {
            return Err(refuse("the authorization code is too long"));
        }
        let ClientRegistration { client, secret, .. } = self.account.clone();
        let client =
            CoreClient::from_provider_metadata(self.metadata().await?, client, Some(secret))
                .set_redirect_uri(self.redirect_url.clone());
        let code = AuthorizationCode::new(arrival.code.expose().to_owned());
        let token = client
            .exchange_code(code)
            .map_err(|error| error_chain(&error))?
            .set_pkce_verifier(kept.verifier)
            .request_async(&self.http)
            .await
            .map_err(|error| error_chain(&error))?;
        let id_token =
            token.id_token().ok_or_else(|| refuse("the response contains no ID token"))?;
        let claims = id_token.claims(&client.id_token_verifier(), &kept.nonce);
        let claims = claims.map_err(|error| error_chain(&error))?;
        let subject = claims.subject();
        if subject.len() > MAX_SUBJECT_BYTES {
            return Err(refuse("the subject is too long"));
        }
        let mut address = (claims.email().cloned(), claims.email_verified());
        if address.0.is_none() {
            // Some providers return it only from the user info endpoint (section 5.4).
            let expected = Some(subject.clone());
            let info = client.user_info(token.access_token().clone(), expected);
            let info = info.map_err(|error| error_chain(&error))?.request_async(&self.http).await;
            let info: CoreUserInfoClaims = info.map_err(|error| error_chain(&error))?;
            address = (info.email().cloned(), info.email_verified());
        }
        let (Some(email), Some(true)) = address else { return Err(IdentityError::NoAddress) };
        let email: Email = email.parse().map_err(|_| IdentityError::NoAddress)?;
        Ok(Identity {
            subject: format!("{} {}", self.account.issuer.as_str(), subject.as_str()),
            email,
            authenticated_at: claims.auth_time(),
        })
    }
}

/// Returns the text of an error with those of its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// Our HTTP client, adapted to the library's interface.
struct Http(HttpClient);

/// The reason why a request has no response.
#[derive(Debug, thiserror::Error)]
enum ProviderCallError {
    #[error(transparent)]
    Url(#[from] InvalidUrl),
    #[error(transparent)]
    Request(#[from] HttpClientError),
}

impl<'c> AsyncHttpClient<'c> for Http {
    type Error = ProviderCallError;
    type Future = std::pin::Pin<
        Box<dyn Future<Output = Result<HttpResponse, ProviderCallError>> + Send + 'c>,
    >;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        Box::pin(async move {
            request.uri().to_string().parse::<BaseUrl>()?;
            Ok(self.0.send(request).await?)
        })
    }
}
