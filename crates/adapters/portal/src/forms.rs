//! Forms: taken only from pages of ours, and from the person that the page was made for.

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

const BODY_TIMEOUT: Duration = Duration::from_secs(15);
const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// More than a file may have of anything that is taken.
const MAX_UPLOAD_BYTES: usize = 64 * 1024;
/// Of parts of a form with a file.
const MAX_FORM_PARTS: usize = 4;
/// The field that carries the token.
const TOKEN: &str = "form_token";

/// The fields of a form.
pub(crate) struct Fields(HashMap<String, String>);

impl Fields {
    /// What was entered; empty where the field is not there.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.0.get(name).map(String::as_str).unwrap_or_default()
    }

    /// Whether the field is there: a box that is not ticked is not.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Reads what a form sends (WHATWG URL, section 5.1).
    pub(crate) fn read(body: &[u8]) -> Self {
        Self(url::form_urlencoded::parse(body).into_owned().collect())
    }

    /// What [`Self::read`] reads back; without the token.
    pub(crate) fn written(&self) -> String {
        let fields = self.0.iter().filter(|(name, _)| name.as_str() != TOKEN);
        url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish()
    }

    pub(crate) fn secret(&self, name: &str) -> Secret {
        Secret::new(self.text(name).to_owned())
    }
}

/// A form of somebody who is signed in.
pub(crate) struct CsrfForm {
    pub(crate) visitor: SignedInUser,
    pub(crate) fields: Fields,
}

/// A form of somebody who is signed in, with a file.
pub(crate) struct CsrfUpload {
    pub(crate) visitor: SignedInUser,
    /// No longer than [`LARGEST`]; what was is cut there.
    pub(crate) content: Vec<u8>,
}

/// A form of somebody who is not signed in yet.
pub(crate) struct PublicForm(pub(crate) Fields);

impl FromRequest for PublicForm {
    type Error = PageError;
    type Future = Pin<Box<dyn Future<Output = Result<Self, PageError>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (request, payload) = (request.clone(), payload.take());
        Box::pin(async move {
            must_be_ours(&request)?;
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
            let CsrfFormBeforeDuty(sent) =
                CsrfFormBeforeDuty::from_request(&request, &mut { payload }).await?;
            if sent.visitor.duty.is_some() { Err(PageError::Duty) } else { Ok(sent) }
        })
    }
}

/// A form of somebody who is signed in, whatever they have to do first.
pub(crate) struct CsrfFormBeforeDuty(pub(crate) CsrfForm);

impl FromRequest for CsrfFormBeforeDuty {
    type Error = PageError;
    type Future = Pin<Box<dyn Future<Output = Result<Self, PageError>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (request, mut payload) = (request.clone(), payload.take());
        Box::pin(async move {
            let AuthenticatedBeforeDuty(visitor) =
                AuthenticatedBeforeDuty::extract(&request).await?;
            let PublicForm(fields) = PublicForm::from_request(&request, &mut payload).await?;
            if !fits(fields.text(TOKEN).as_bytes(), &visitor) {
                return Err(PageError::Forged);
            }
            Ok(Self(CsrfForm { visitor, fields }))
        })
    }
}

impl FromRequest for CsrfUpload {
    type Error = PageError;
    type Future = Pin<Box<dyn Future<Output = Result<Self, PageError>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (request, payload) = (request.clone(), payload.take());
        Box::pin(async move {
            let Authenticated(visitor) = Authenticated::extract(&request).await?;
            must_be_ours(&request)?;
            let parts = parts(Multipart::new(request.headers(), payload));
            let parts = arrived(parts).await.ok_or(PageError::Forged)?;
            let part = |wanted: fn(&str) -> bool| {
                parts.iter().find(|(name, _)| wanted(name)).map(|(_, content)| content.clone())
            };
            let token = part(|name| name == TOKEN).unwrap_or_default();
            if !fits(&token, &visitor) {
                return Err(PageError::Forged);
            }
            Ok(Self { visitor, content: part(|name| name != TOKEN).unwrap_or_default() })
        })
    }
}

/// The parts of a form, by name.
async fn parts(mut form: Multipart) -> Result<Vec<(String, Vec<u8>)>, actix_web::Error> {
    let mut parts = vec![];
    while let Some(mut part) = form.try_next().await? {
        let (name, mut content) = (part.name().unwrap_or_default().to_owned(), vec![]);
        while let Some(piece) = part.try_next().await? {
            let room = MAX_UPLOAD_BYTES.saturating_sub(content.len());
            content.extend(piece.iter().take(room));
            if room == 0 {
                break;
            }
        }
        let whole = content.len() < MAX_UPLOAD_BYTES;
        parts.push((name, content));
        if parts.len() == MAX_FORM_PARTS || !whole {
            break;
        }
    }
    Ok(parts)
}

/// Whether a token is that of whoever the page was made for.
fn fits(told: &[u8], visitor: &SignedInUser) -> bool {
    let known = visitor.form_token.expose();
    !known.is_empty() && bool::from(told.ct_eq(known.as_bytes()))
}

/// Whether a page of ours sent it: the browser says so itself, and pages cannot change what it
/// says (Fetch Metadata; RFC 6454, section 7).
fn is_ours(request: &HttpRequest, origin: &str) -> bool {
    let header = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
    if let Some(site) = header(SITE)
        && site != "same-origin"
    {
        return false;
    }
    let Some(from) = header(ORIGIN) else { return header(SITE).is_some() };
    let host = from.split_once("://").map(|(_, host)| host);
    from == origin || (host.is_some() && host == header(HOST))
}

fn must_be_ours(request: &HttpRequest) -> Result<(), PageError> {
    let portal = request.app_data::<web::Data<Portal>>().ok_or(PageError::NotThere)?;
    if is_ours(request, &portal.origin) { Ok(()) } else { Err(PageError::Forged) }
}

async fn read(request: &HttpRequest, mut payload: Payload) -> Result<Fields, PageError> {
    let body = Bytes::from_request(request, &mut payload);
    let body = arrived(body).await.ok_or(PageError::Forged)?;
    Ok(Fields::read(&body))
}

/// A body that does not arrive, or is too large, is none.
async fn arrived<T>(body: impl Future<Output = Result<T, actix_web::Error>>) -> Option<T> {
    actix_web::rt::time::timeout(BODY_TIMEOUT, body).await.ok()?.ok()
}
