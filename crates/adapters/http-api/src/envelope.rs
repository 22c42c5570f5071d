//! The envelope of every successful body.

use actix_web::{
    HttpRequest, HttpResponse, Responder,
    body::BoxBody,
    http::{StatusCode, header::ContentType},
    web::Bytes,
};
use serde::Serialize;
use utoipa::ToSchema;

use super::error::ApiError;

/// `{ "status": "success", "data": … }`, with 200 or 201.
pub(super) struct Success<T>(pub(super) StatusCode, pub(super) T);

/// The envelope of every successful response.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes `Body`, which borrows, in the interface description")]
pub(super) struct Envelope<T> {
    /// Always `success`.
    #[schema(pattern = "^success$", example = "success")]
    status: String,
    data: T,
}

/// Returns the complete body for some data, for responses that are cached.
pub(super) fn write<T: Serialize>(data: &T) -> Result<Bytes, ApiError> {
    let body = serde_json::to_vec(&Body { status: "success", data });
    body.map(Bytes::from).map_err(|error| ApiError::Internal(error.into()))
}

/// Returns a 200 response with a body that was serialized before.
pub(super) fn respond_with(body: Bytes) -> HttpResponse {
    HttpResponse::Ok().content_type(ContentType::json()).body(body)
}

#[derive(Serialize)]
struct Body<'a, T> {
    status: &'static str,
    data: &'a T,
}

pub(super) const fn ok<T>(data: T) -> Success<T> {
    Success(StatusCode::OK, data)
}

impl<T: Serialize> Success<T> {
    pub(super) fn into_response(self) -> HttpResponse {
        HttpResponse::build(self.0).json(Body { status: "success", data: &self.1 })
    }
}

impl<T: Serialize> Responder for Success<T> {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        self.into_response()
    }
}
