//! Films that are files of the service's own, for whoever has a link that it signed.

use actix_files::NamedFile;
use actix_web::{
    HttpRequest, HttpResponse,
    http::header::{
        CACHE_CONTROL, ContentDisposition, DispositionParam, DispositionType, HeaderValue,
    },
    web,
};
use serde::Deserialize;

use super::{error::ApiError, methods::reading};
use crate::recordings::LocalLinks;

#[derive(Deserialize)]
struct Signed {
    expires: i64,
    signature: String,
}

pub(super) fn routes(config: &mut web::ServiceConfig) {
    config.route("/recordings/{name}", reading().to(recording));
}

/// Answers ranges (RFC 9110, section 14), so that a player can begin anywhere.
async fn recording(
    links: web::Data<LocalLinks>,
    request: HttpRequest,
    name: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let signed = web::Query::<Signed>::from_query(request.query_string());
    let signed = signed.map_err(|_| ApiError::NotFound)?.into_inner();
    let found = links.open(&name, signed.expires, &signed.signature);
    let path = found.ok_or(ApiError::NotFound)?;
    let file = NamedFile::open(path).map_err(|_| ApiError::NotFound)?;
    let filename = DispositionParam::Filename(name.into_inner());
    let shown =
        ContentDisposition { disposition: DispositionType::Inline, parameters: vec![filename] };
    let mut response = file.set_content_disposition(shown).into_response(&request);
    let private = HeaderValue::from_static("private, no-store");
    response.headers_mut().insert(CACHE_CONTROL, private);
    Ok(response)
}
