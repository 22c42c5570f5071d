//! Films, for those who have a link that the service signed.

use std::ops::Range;

use actix_web::{
    HttpRequest, HttpResponse,
    body::SizedStream,
    http::{
        StatusCode,
        header::{
            self, ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_RANGE,
            CONTENT_SECURITY_POLICY, ContentDisposition, DispositionParam, DispositionType,
            Header as _,
        },
    },
    web::{self, Bytes},
};
use futures_util::{TryStreamExt as _, stream::try_unfold};
use ports::{StoreError, recording::SharedRecordings};
use serde::Deserialize;

use super::{error::ApiError, methods::reading};

const POLICY: &str = "default-src 'none'; media-src 'self'; style-src 'unsafe-inline'";

#[derive(Deserialize)]
struct SignedLink {
    expires: i64,
    signature: String,
}

pub(super) fn routes(config: &mut web::ServiceConfig) {
    config.route("/recordings/{name}", reading().to(recording));
}

/// Answers one range of bytes (RFC 9110, section 14), so that a player can begin anywhere.
async fn recording(
    films: web::Data<dyn SharedRecordings>,
    request: HttpRequest,
    name: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let signed = web::Query::<SignedLink>::from_query(request.query_string());
    let signed = signed.map_err(|_| ApiError::NotFound)?.into_inner();
    let film = films.open(&name, signed.expires, &signed.signature).await?;
    let film = film.ok_or(ApiError::NotFound)?;
    let filename = DispositionParam::Filename(name.into_inner());
    let shown =
        ContentDisposition { disposition: DispositionType::Inline, parameters: vec![filename] };
    let length = film.length();
    let Some((status, range)) = asked(&request, length) else {
        let mut response = HttpResponse::RangeNotSatisfiable();
        return Ok(response.insert_header((CONTENT_RANGE, format!("bytes */{length}"))).finish());
    };
    let mut response = HttpResponse::build(status);
    response
        .content_type("video/mp4")
        .insert_header((CONTENT_DISPOSITION, shown))
        .insert_header((ACCEPT_RANGES, "bytes"))
        .insert_header((CACHE_CONTROL, "private, no-store"))
        // A browser that is led to a film makes a page of its own around it.
        .insert_header((CONTENT_SECURITY_POLICY, POLICY));
    if status == StatusCode::PARTIAL_CONTENT {
        let last = range.end.saturating_sub(1);
        let part = format!("bytes {}-{last}/{length}", range.start);
        response.insert_header((CONTENT_RANGE, part));
    }
    let size = range.end - range.start;
    let bytes = try_unfold((film, range), async |(film, range)| {
        if range.is_empty() {
            return Ok(None);
        }
        let bytes = film.read(range.clone()).await?;
        let next = range.start.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        Ok(Some((Bytes::from(bytes), (film, next..range.end))))
    });
    let bytes = bytes.map_err(|error: StoreError| {
        let cause: &dyn std::error::Error = &error;
        tracing::error!(error = cause, "failed to read a recording; the response ends");
        error
    });
    Ok(response.body(SizedStream::new(size, Box::pin(bytes))))
}

/// What is asked for; `None` where the film has nothing of it. Several ranges are answered with the
/// whole, as is what cannot be read.
fn asked(request: &HttpRequest, length: u64) -> Option<(StatusCode, Range<u64>)> {
    let whole = Some((StatusCode::OK, 0..length));
    if !request.headers().contains_key(header::RANGE) {
        return whole;
    }
    let Ok(header::Range::Bytes(ranges)) = header::Range::parse(request) else { return whole };
    let [range] = ranges.as_slice() else { return whole };
    let (first, last) = range.to_satisfiable_range(length)?;
    Some((StatusCode::PARTIAL_CONTENT, first..last.saturating_add(1)))
}
