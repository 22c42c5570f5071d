//! What partners may choose from.

use actix_web::web;
use domain::{platform::Platform, request::Invalid, webhook::wire_time};
use ports::driving::Lookups;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{
    caller::Caller,
    envelope::{Success, ok},
    error::ApiError,
};

pub(super) fn routes(config: &mut web::ServiceConfig) {
    config
        .service(web::resource("/browser-platforms").route(web::get().to(platforms)))
        .service(web::resource("/notification-platforms").route(web::get().to(none_configured)))
        .service(web::resource("/email-templates").route(web::get().to(none_configured)))
        .service(web::resource("/supported-countries").route(web::get().to(countries)));
}

async fn platforms(
    lookups: web::Data<dyn Lookups>,
    Caller(caller): Caller,
) -> Result<Success<Vec<WirePlatform>>, ApiError> {
    let platforms = lookups.platforms(caller.environment).await?;
    Ok(ok(platforms.into_iter().map(WirePlatform::from).collect()))
}

/// No notification channel can be configured yet, and so no template either.
async fn none_configured(_: Caller) -> Success<Vec<Value>> {
    ok(vec![])
}

async fn countries(
    lookups: web::Data<dyn Lookups>,
    _: Caller,
    query: web::Query<Asked>,
) -> Result<Success<Vec<Value>>, ApiError> {
    let asked = query.into_inner();
    let places: Vec<Value> = match (asked.country, asked.region) {
        (None, Some(_)) => return Err(Invalid::one("region must be given with country").into()),
        (None, None) => lookups
            .countries()
            .into_iter()
            .map(|country| json!({"country_code": country.code, "country_name": country.name}))
            .collect(),
        (Some(country), None) => lookups
            .regions(&country)
            .into_iter()
            .map(|region| json!({"region_code": region.code, "region_name": region.name}))
            .collect(),
        // Cities are not looked up yet; any is accepted.
        (Some(_), Some(_)) => vec![],
    };
    Ok(ok(places))
}

#[derive(Deserialize)]
struct Asked {
    country: Option<String>,
    region: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WirePlatform {
    id: i32,
    name: String,
    display_name: String,
    description: String,
    icon: String,
    login_url: String,
    allow_custom_url: bool,
    config: Map<String, Value>,
    is_active: bool,
    created_at: String,
    updated_at: String,
}

impl From<Platform> for WirePlatform {
    fn from(platform: Platform) -> Self {
        let config = [("workflowVersion".to_owned(), json!(platform.current.version))];
        Self {
            id: platform.id.0,
            name: platform.name,
            display_name: platform.display_name,
            description: platform.description,
            icon: platform.icon,
            login_url: platform.login_url,
            allow_custom_url: false,
            config: config.into_iter().collect(),
            is_active: platform.is_active,
            created_at: wire_time(platform.created_at),
            updated_at: wire_time(platform.updated_at),
        }
    }
}
