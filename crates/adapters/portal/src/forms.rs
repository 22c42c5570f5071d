//! Forms, which are accepted only from pages of the portal and from the user for whom the page was
//! rendered.

use std::{collections::HashMap, future::Future, pin::Pin, time::Duration};

use actix_multipart::Multipart;
use actix_web::{
    FromRequest, HttpRequest,
    dev::Payload,
    http::header::{HOST, HeaderName, ORIGIN},
    web::{self, Bytes},
};
use domain::secret::Secret;
use futures_util::TryStreamExt as _;
use ports::driving::SignedInUser;
use subtle::ConstantTimeEq as _;

use crate::{
    Portal,
    authenticated::{Authenticated, AuthenticatedBeforeDuty},
    error::PageError,
};

/// The time within which a form must arrive.
pub(crate) const BODY_TIMEOUT: Duration = Duration::from_secs(15);
/// The length of a form, as the server bounds all bodies that it reads itself.
pub(crate) const MAX_FORM_BYTES: usize = 64 * 1024;
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// Larger than every accepted file.
const MAX_UPLOAD_BYTES: usize = 64 * 1024;
/// The maximum number of parts of a form with a file.
const MAX_FORM_PARTS: usize = 4;
/// The field that carries the CSRF token.
const TOKEN: &str = "form_token";

/// The fields of a form.
pub(crate) struct Fields(HashMap<String, String>);

impl Fields {
    /// Returns the value of a field; empty if the field is absent.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.0.get(name).map(String::as_str).unwrap_or_default()
    }

    /// Returns whether a field is present; a checkbox that is not checked is absent.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Parses a submitted form (WHATWG URL, section 5.1).
    pub(crate) fn read(body: &[u8]) -> Self {
        Self(url::form_urlencoded::parse(body).into_owned().collect())
    }

    /// Serializes the fields for [`Self::read`], without the token.
    pub(crate) fn serialized(&self) -> String {
        let fields = self.0.iter().filter(|(name, _)| name.as_str() != TOKEN);
        url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish()
    }

    pub(crate) fn secret(&self, name: &str) -> Secret {
        Secret::new(self.text(name).to_owned())
    }
}

/// A form of the signed-in user.
pub(crate) struct CsrfForm {
    pub(crate) user: SignedInUser,
    pub(crate) fields: Fields,
}

/// A form of the signed-in user with a file.
pub(crate) struct CsrfUpload {
    pub(crate) user: SignedInUser,
    /// At most [`MAX_UPLOAD_BYTES`]; a longer file is truncated.
    pub(crate) content: Vec<u8>,
}

/// A form of a user who is not signed in yet.
pub(crate) struct PublicForm(pub(crate) Fields);

impl FromRequest for PublicForm {
    type Error = PageError;
    type Future = Pin<Box<dyn Future<Output = Result<Self, PageError>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (request, payload) = (request.clone(), payload.take());
        Box::pin(async move {
            require_same_origin(&request)?;
            read(&request, payload).await.map(Self)
        })
    }
}

impl FromRequest for CsrfForm {
    type Error = PageError;
    type Future = Pin<Box<dyn Future<Output = Result<Self, PageError>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (request, payload) = (request.clone(), payload.take());
        Box::pin(async move {
            let CsrfFormBeforeDuty(submitted) =
                CsrfFormBeforeDuty::from_request(&request, &mut { payload }).await?;
            if submitted.user.required_action.is_some() {
                Err(PageError::SecondFactorRequired)
            } else {
                Ok(submitted)
            }
        })
    }
}

/// A form of the signed-in user, even if a second factor has still to be set up.
pub(crate) struct CsrfFormBeforeDuty(pub(crate) CsrfForm);

impl FromRequest for CsrfFormBeforeDuty {
    type Error = PageError;
    type Future = Pin<Box<dyn Future<Output = Result<Self, PageError>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (request, mut payload) = (request.clone(), payload.take());
        Box::pin(async move {
            let AuthenticatedBeforeDuty(user) = AuthenticatedBeforeDuty::extract(&request).await?;
            let PublicForm(fields) = PublicForm::from_request(&request, &mut payload).await?;
            if !token_matches(fields.text(TOKEN).as_bytes(), &user) {
                return Err(PageError::Forged);
            }
            Ok(Self(CsrfForm { user, fields }))
        })
    }
}

impl FromRequest for CsrfUpload {
    type Error = PageError;
    type Future = Pin<Box<dyn Future<Output = Result<Self, PageError>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (request, payload) = (request.clone(), payload.take());
        Box::pin(async move {
            let Authenticated(user) = Authenticated::extract(&request).await?;
            require_same_origin(&request)?;
            let parts = parts(Multipart::new(request.headers(), payload));
            let parts = read_in_time(parts).await.ok_or(PageError::Forged)?;
            let part = |wanted: fn(&str) -> bool| {
                parts.iter().find(|(name, _)| wanted(name)).map(|(_, content)| content.clone())
            };
            let token = part(|name| name == TOKEN).unwrap_or_default();
            if !token_matches(&token, &user) {
                return Err(PageError::Forged);
            }
            Ok(Self { user, content: part(|name| name != TOKEN).unwrap_or_default() })
        })
    }
}

/// Returns the parts of a form with their names.
async fn parts(mut form: Multipart) -> Result<Vec<(String, Vec<u8>)>, actix_web::Error> {
    let mut parts = vec![];
    while let Some(mut part) = form.try_next().await? {
        let (name, mut content) = (part.name().unwrap_or_default().to_owned(), vec![]);
        while let Some(chunk) = part.try_next().await? {
            let free = MAX_UPLOAD_BYTES.saturating_sub(content.len());
            content.extend(chunk.iter().take(free));
            if free == 0 {
                break;
            }
        }
        let is_complete = content.len() < MAX_UPLOAD_BYTES;
        parts.push((name, content));
        if parts.len() == MAX_FORM_PARTS || !is_complete {
            break;
        }
    }
    Ok(parts)
}

/// Returns whether a token is the one of the user for whom the page was rendered.
fn token_matches(token: &[u8], user: &SignedInUser) -> bool {
    let expected = user.form_token.expose();
    !expected.is_empty() && bool::from(token.ct_eq(expected.as_bytes()))
}

/// Returns whether a page of the portal sent the form. Browsers set these headers, and pages cannot
/// change them (Fetch Metadata; RFC 6454, section 7).
fn is_same_origin(request: &HttpRequest, origin: &str) -> bool {
    let header = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
    if let Some(site) = header(SEC_FETCH_SITE)
        && site != "same-origin"
    {
        return false;
    }
    let Some(from) = header(ORIGIN) else { return header(SEC_FETCH_SITE).is_some() };
    let host = from.split_once("://").map(|(_, host)| host);
    from == origin || (host.is_some() && host == header(HOST))
}

fn require_same_origin(request: &HttpRequest) -> Result<(), PageError> {
    let portal = request.app_data::<web::Data<Portal>>().ok_or(PageError::NotFound)?;
    if is_same_origin(request, &portal.origin) { Ok(()) } else { Err(PageError::Forged) }
}

async fn read(request: &HttpRequest, mut payload: Payload) -> Result<Fields, PageError> {
    let body = Bytes::from_request(request, &mut payload);
    let body = read_in_time(body).await.ok_or(PageError::Forged)?;
    Ok(Fields::read(&body))
}

/// Returns `None` if the body does not arrive in time or is too large.
async fn read_in_time<T>(body: impl Future<Output = Result<T, actix_web::Error>>) -> Option<T> {
    actix_web::rt::time::timeout(BODY_TIMEOUT, body).await.ok()?.ok()
}
