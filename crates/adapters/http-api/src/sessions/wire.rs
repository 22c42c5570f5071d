//! Parts of a session that several responses contain.

use domain::request::Location;
use serde::Serialize;
use utoipa::ToSchema;

/// `state` and `region` are the same thing under the two names that are in use.
#[derive(Serialize, ToSchema)]
#[schema(as = Location)]
pub(super) struct WireLocation {
    country: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    region: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    city: Option<String>,
}

impl From<Location> for WireLocation {
    fn from(location: Location) -> Self {
        let Location { country, region, city } = location;
        Self { country, state: region.clone(), region, city }
    }
}
