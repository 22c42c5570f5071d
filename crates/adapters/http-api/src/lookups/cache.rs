//! Answers that are the same for everybody, written once in each worker.

use std::cell::{OnceCell, RefCell};

use actix_web::{HttpResponse, web::Bytes};
use domain::api_key::Environment;
use ports::catalogue::CatalogueRevision;
use serde::Serialize;

use crate::{envelope, error::ApiError};

#[derive(Default)]
pub(crate) struct ResponseCache {
    development: RefCell<Option<(CatalogueRevision, Bytes)>>,
    production: RefCell<Option<(CatalogueRevision, Bytes)>>,
    pub(super) countries: FixedResponse,
    pub(super) error_codes: FixedResponse,
}

impl ResponseCache {
    /// The platforms of an environment, if they are those of this revision.
    pub(super) fn platforms(
        &self,
        environment: Environment,
        revision: Option<CatalogueRevision>,
    ) -> Option<HttpResponse> {
        let kept = self.place(environment).borrow();
        let (_, body) = kept.as_ref().filter(|(of, _)| Some(*of) == revision)?;
        Some(envelope::written(body.clone()))
    }

    /// Keeps what was read after the catalogue had this revision: the same, or something newer,
    /// which is then read once more.
    pub(super) fn keep_platforms<T: Serialize>(
        &self,
        environment: Environment,
        revision: Option<CatalogueRevision>,
        platforms: &T,
    ) -> Result<HttpResponse, ApiError> {
        let body = envelope::write(platforms)?;
        *self.place(environment).borrow_mut() = revision.map(|revision| (revision, body.clone()));
        Ok(envelope::written(body))
    }

    const fn place(
        &self,
        environment: Environment,
    ) -> &RefCell<Option<(CatalogueRevision, Bytes)>> {
        match environment {
            Environment::Development => &self.development,
            Environment::Production => &self.production,
        }
    }
}

/// An answer that stays as long as the process.
#[derive(Default)]
pub(super) struct FixedResponse(OnceCell<Bytes>);

impl FixedResponse {
    pub(super) fn answer<T: Serialize>(
        &self,
        make: impl FnOnce() -> T,
    ) -> Result<HttpResponse, ApiError> {
        if let Some(body) = self.0.get() {
            return Ok(envelope::written(body.clone()));
        }
        let body = envelope::write(&make())?;
        Ok(envelope::written(self.0.get_or_init(|| body).clone()))
    }
}
