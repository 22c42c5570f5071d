//! Responses that are the same for all callers, serialized once in each worker.

use std::{
    cell::{OnceCell, RefCell},
    time::{Duration, Instant},
};

use actix_web::{HttpResponse, web::Bytes};
use domain::api_key::Environment;
use ports::catalogue::CatalogueRevision;
use serde::Serialize;

use crate::{envelope, error::ApiError};

/// The age up to which cached platforms are returned: their health changes.
const MAX_PLATFORMS_AGE: Duration = Duration::from_secs(10);

#[derive(Default)]
pub(crate) struct ResponseCache {
    development: RefCell<Option<CachedPlatforms>>,
    production: RefCell<Option<CachedPlatforms>>,
    pub(super) countries: FixedResponse,
    pub(super) error_codes: FixedResponse,
}

impl ResponseCache {
    /// Returns the cached platforms of an environment if they have this revision and are not too old.
    pub(super) fn platforms(
        &self,
        environment: Environment,
        revision: Option<CatalogueRevision>,
    ) -> Option<HttpResponse> {
        let cached = self.slot(environment).borrow();
        let is_current = |platforms: &&CachedPlatforms| {
            Some(platforms.revision) == revision && platforms.at.elapsed() < MAX_PLATFORMS_AGE
        };
        let platforms = cached.as_ref().filter(is_current)?;
        Some(envelope::respond_with(platforms.body.clone()))
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
        let (at, cached) = (Instant::now(), body.clone());
        *self.slot(environment).borrow_mut() =
            revision.map(|revision| CachedPlatforms { revision, at, body: cached });
        Ok(envelope::respond_with(body))
    }

    const fn slot(&self, environment: Environment) -> &RefCell<Option<CachedPlatforms>> {
        match environment {
            Environment::Development => &self.development,
            Environment::Production => &self.production,
        }
    }
}

struct CachedPlatforms {
    revision: CatalogueRevision,
    at: Instant,
    body: Bytes,
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
