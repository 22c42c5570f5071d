//! What partners may choose from.

use actix_web::{HttpRequest, Route, web};
use domain::{
    error_code::{Category, ErrorCode, Retry},
    platform::Platform,
    request::Invalid,
    webhook::wire_time,
};
use ports::driving::Lookups;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{
    caller::Caller,
    envelope::{Success, ok},
    error::ApiError,
    methods::{reading, wrong_method},
    query::Query,
};

pub(super) fn routes(config: &mut web::ServiceConfig) {
    let lookup = |path, route: Route| {
        web::resource(path).route(route).default_service(wrong_method("GET, HEAD"))
    };
    config
        .service(lookup("/browser-platforms", reading().to(platforms)))
        .service(lookup("/notification-platforms", reading().to(none_configured)))
        .service(lookup("/email-templates", reading().to(none_configured)))
        .service(lookup("/supported-countries", reading().to(countries)))
        .service(lookup("/error-codes", reading().to(error_codes)));
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
    request: HttpRequest,
    lookups: web::Data<dyn Lookups>,
    _: Caller,
) -> Result<Success<Vec<Value>>, ApiError> {
    let query = Query::read(request.query_string(), &["country", "region"])?;
    let places: Vec<Value> = match (query.get("country"), query.get("region")) {
        (None, Some(_)) => return Err(Invalid::one("region must be given with country").into()),
        (None, None) => lookups
            .countries()
            .into_iter()
            .map(|country| json!({"country_code": country.code, "country_name": country.name}))
            .collect(),
        (Some(country), None) => lookups
            .regions(country)
            .into_iter()
            .map(|region| json!({"region_code": region.code, "region_name": region.name}))
            .collect(),
        // Cities are not looked up yet; any is accepted.
        (Some(_), Some(_)) => vec![],
    };
    Ok(ok(places))
}

/// The catalogue of `errorCode`; the same for everybody.
async fn error_codes(_: Caller) -> Success<Vec<WireCode>> {
    ok(ErrorCode::ALL.iter().copied().map(WireCode::from).collect())
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WireCode {
    code: ErrorCode,
    category: Category,
    retryable: bool,
    /// What the partner reads as `errorMessage`.
    message: &'static str,
    /// What the applicant reads.
    applicant_message: &'static str,
}

impl From<ErrorCode> for WireCode {
    fn from(code: ErrorCode) -> Self {
        Self {
            code,
            category: code.category(),
            retryable: code.retry() == Retry::Worthwhile,
            message: code.partner_text(),
            applicant_message: code.applicant_text(),
        }
    }
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
        let config = [("workflowVersion".to_owned(), json!(platform.version))];
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
