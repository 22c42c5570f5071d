//! `GET /partner/supported-countries`

use actix_web::{HttpRequest, HttpResponse, web};
use domain::request::InvalidRequest;
use ports::{
    driving::LookupService,
    places::{Country, Region},
};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use crate::{
    caller::Caller,
    envelope::{Envelope, ok},
    error::{ApiError, ErrorBody},
    lookups::cache::ResponseCache,
    query::Query,
};

/// Countries, regions, cities
///
/// Without parameters, the supported countries. With `country`, its regions. With `country` and
/// `region`, the cities of the region. Unknown places have an empty list.
#[utoipa::path(
    get,
    path = "/partner/supported-countries",
    tag = "Lookups",
    operation_id = "listSupportedCountries",
    params(PlaceParams),
    responses(
        (status = 200, description = "The places.", body = Envelope<Vec<Place>>),
        (status = 400, description = "`region` without `country`, or a parameter twice.", body = ErrorBody),
    ),
)]
pub(crate) async fn countries(
    request: HttpRequest,
    lookups: web::Data<dyn LookupService>,
    cache: web::Data<ResponseCache>,
    _: Caller,
) -> Result<HttpResponse, ApiError> {
    let query = Query::read(request.query_string(), &["country", "region"])?;
    let places: Vec<Place> = match (query.get("country"), query.get("region")) {
        (None, Some(_)) => {
            return Err(InvalidRequest::one("region must be given with country").into());
        }
        (None, None) => {
            let all = || lookups.countries().iter().map(Place::country).collect::<Vec<_>>();
            return cache.countries.answer(all);
        }
        (Some(country), None) => {
            let regions = lookups.country(country).map_or(&[][..], |country| country.regions);
            regions.iter().map(Place::region).collect()
        }
        (Some(country), Some(region)) => {
            let region = lookups.country(country).and_then(|country| country.region(region));
            region.map_or_else(Vec::new, Place::cities)
        }
    };
    Ok(ok(places).into_response())
}

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query, which `Query` reads")]
struct PlaceParams {
    /// ISO 3166-1 alpha-2; asks for that country's regions.
    #[param(example = "US")]
    country: Option<String>,
    /// A region of the country by code or name; asks for that region's cities.
    region: Option<String>,
}

/// A country, a region of one, or a city of a region.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum Place {
    Country { country_code: &'static str, country_name: &'static str },
    Region { region_code: &'static str, region_name: &'static str },
    City { city_name: &'static str, region_code: &'static str },
}

impl Place {
    fn country(country: &Country) -> Self {
        Self::Country { country_code: country.code, country_name: country.name }
    }

    fn region(region: &Region) -> Self {
        Self::Region { region_code: region.code, region_name: region.name }
    }

    fn cities(region: &Region) -> Vec<Self> {
        let city = |city_name| Self::City { city_name, region_code: region.code };
        region.cities().map(city).collect()
    }
}
