//! Responses that are the same for all callers, serialized once in each worker.

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
    /// Returns the cached platforms of an environment if they have this revision.
    pub(super) fn platforms(
        &self,
        environment: Environment,
        revision: Option<CatalogueRevision>,
    ) -> Option<HttpResponse> {
        let cached = self.slot(environment).borrow();
        let (_, body) = cached.as_ref().filter(|(of, _)| Some(*of) == revision)?;
        Some(envelope::respond_with(body.clone()))
    }

    /// Caches platforms that were read after the catalogue had this revision. They may be newer,
    /// and are then read once more.
    pub(super) fn cache_platforms<T: Serialize>(
        &self,
        environment: Environment,
        revision: Option<CatalogueRevision>,
        platforms: &T,
    ) -> Result<HttpResponse, ApiError> {
        let body = envelope::write(platforms)?;
        *self.slot(environment).borrow_mut() = revision.map(|revision| (revision, body.clone()));
        Ok(envelope::respond_with(body))
    }

    const fn slot(&self, environment: Environment) -> &RefCell<Option<(CatalogueRevision, Bytes)>> {
        match environment {
            Environment::Development => &self.development,
            Environment::Production => &self.production,
        }
    }
}

/// A response that does not change while the process runs.
#[derive(Default)]
pub(super) struct FixedResponse(OnceCell<Bytes>);

impl FixedResponse {
    pub(super) fn answer<T: Serialize>(
        &self,
        make: impl FnOnce() -> T,
    ) -> Result<HttpResponse, ApiError> {
        if let Some(body) = self.0.get() {
            return Ok(envelope::respond_with(body.clone()));
        }
        let body = envelope::write(&make())?;
        Ok(envelope::respond_with(self.0.get_or_init(|| body).clone()))
    }
}
