//! Links to films that work for a time, for whoever has them: signed by the bucket's owner, or by
//! the service where films are files of its own.

use std::{path::PathBuf, sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::TimeDelta;
use domain::id::SessionId;
use object_store::{
    aws::AmazonS3,
    path::Path,
    signer::{Method, Signer as _},
};
use ports::{StoreError, clock::Clock};
use ring::hmac;

use super::{FILMS, failed, film_name};

pub(super) enum Links {
    Bucket(Arc<AmazonS3>),
    Local(Box<LocalLinks>),
}

impl Links {
    pub(super) async fn to(
        &self,
        film: &Path,
        session: SessionId,
        lifetime: TimeDelta,
    ) -> Result<String, StoreError> {
        match self {
            Self::Bucket(bucket) => {
                let lifetime = lifetime.to_std().unwrap_or(Duration::ZERO);
                let signed = bucket.signed_url(Method::GET, film, lifetime).await;
                Ok(signed.map_err(failed("sign a link to a recording"))?.into())
            }
            Self::Local(links) => Ok(links.to(session, lifetime)),
        }
    }
}

/// Links that the service signs and answers itself.
#[derive(Clone)]
pub struct LocalLinks {
    folder: PathBuf,
    public_url: String,
    key: hmac::Key,
    clock: Arc<dyn Clock>,
}

impl LocalLinks {
    #[must_use]
    pub fn new(folder: PathBuf, public_url: String, key: &[u8; 32], clock: Arc<dyn Clock>) -> Self {
        Self { folder, public_url, key: hmac::Key::new(hmac::HMAC_SHA256, key), clock }
    }

    fn to(&self, session: SessionId, lifetime: TimeDelta) -> String {
        let expires = (self.clock.now() + lifetime).timestamp();
        let signature = URL_SAFE_NO_PAD.encode(hmac::sign(&self.key, &text(session, expires)));
        let (url, name) = (&self.public_url, film_name(session));
        format!("{url}/recordings/{name}?expires={expires}&signature={signature}")
    }

    /// The file that a link leads to; `None` where it was not signed by us, or has run out.
    #[must_use]
    pub fn open(&self, name: &str, expires: i64, signature: &str) -> Option<PathBuf> {
        let session = name.strip_suffix(".mp4")?.parse::<SessionId>().ok()?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        hmac::verify(&self.key, &text(session, expires), &signature).ok()?;
        let live = self.clock.now().timestamp() < expires;
        live.then(|| self.folder.join(FILMS).join(film_name(session)))
    }
}

fn text(session: SessionId, expires: i64) -> Vec<u8> {
    [session.as_uuid().as_bytes().as_slice(), &expires.to_be_bytes()].concat()
}
