//! Serves recordings to holders of a signed link.

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

/// Serves one range of bytes (RFC 9110, section 14), so that a player can seek.
async fn recording(
    recordings: web::Data<dyn SharedRecordings>,
    request: HttpRequest,
    name: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let link = web::Query::<SignedLink>::from_query(request.query_string());
    let link = link.map_err(|_| ApiError::NotFound)?.into_inner();
    let recording_file = recordings.open(&name, link.expires, &link.signature).await?;
    let recording_file = recording_file.ok_or(ApiError::NotFound)?;
    let filename = DispositionParam::Filename(name.into_inner());
    let content_disposition =
        ContentDisposition { disposition: DispositionType::Inline, parameters: vec![filename] };
    let length = recording_file.length();
    let Some((status, range)) = requested_range(&request, length) else {
        let mut response = HttpResponse::RangeNotSatisfiable();
        return Ok(response.insert_header((CONTENT_RANGE, format!("bytes */{length}"))).finish());
    };
    let mut response = HttpResponse::build(status);
    response
        .content_type("video/mp4")
        .insert_header((CONTENT_DISPOSITION, content_disposition))
        .insert_header((ACCEPT_RANGES, "bytes"))
        .insert_header((CACHE_CONTROL, "private, no-store"))
        // Some browsers wrap a video that is opened directly in a page of their own.
        .insert_header((CONTENT_SECURITY_POLICY, POLICY));
    if status == StatusCode::PARTIAL_CONTENT {
        let last = range.end.saturating_sub(1);
        let part = format!("bytes {}-{last}/{length}", range.start);
        response.insert_header((CONTENT_RANGE, part));
    }
    let size = range.end - range.start;
    let bytes = try_unfold((recording_file, range), async |(recording_file, range)| {
        if range.is_empty() {
            return Ok(None);
        }
        let bytes = recording_file.read(range.clone()).await?;
        let next = range.start.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        Ok(Some((Bytes::from(bytes), (recording_file, next..range.end))))
    });
    let bytes = bytes.map_err(|error: StoreError| {
        let cause: &dyn std::error::Error = &error;
        tracing::error!(error = cause, "failed to read a recording; the response ends");
        error
    });
    Ok(response.body(SizedStream::new(size, Box::pin(bytes))))
}

/// Returns the requested status and range; `None` if the range is not satisfiable. Requests for
/// several ranges, and headers that cannot be parsed, get the complete file.
fn requested_range(request: &HttpRequest, length: u64) -> Option<(StatusCode, Range<u64>)> {
    let complete = Some((StatusCode::OK, 0..length));
    if !request.headers().contains_key(header::RANGE) {
        return complete;
    }
    let Ok(header::Range::Bytes(ranges)) = header::Range::parse(request) else { return complete };
    let [range] = ranges.as_slice() else { return complete };
    let (first, last) = range.to_satisfiable_range(length)?;
    Some((StatusCode::PARTIAL_CONTENT, first..last.saturating_add(1)))
}
