//! The requests that the service sends to partners' endpoints, for the API description.

use serde_json::{Map, Value};
use utoipa::{
    OpenApi, ToSchema,
    openapi::{self, RefOr, example::ExampleBuilder},
};

use super::{AttestationType, ErrorCodeName};

/// Name, summary and body of the documented examples, which a test of `domain` compares with what
/// is sent.
const EXAMPLES: [(&str, &str, &str); 6] = [
    (
        "COMPLETED",
        "All requested data was collected",
        include_str!("../../../../../docs/site/src/examples/webhook-completed.json"),
    ),
    (
        "PARTIAL_COMPLETE",
        "Optional data is missing",
        include_str!("../../../../../docs/site/src/examples/webhook-partial-complete.json"),
    ),
    (
        "ERROR",
        "The session failed",
        include_str!("../../../../../docs/site/src/examples/webhook-error.json"),
    ),
    (
        "CANCELLED",
        "The applicant cancelled or declined to share",
        include_str!("../../../../../docs/site/src/examples/webhook-cancelled.json"),
    ),
    (
        "TERMINATED",
        "You ended the session",
        include_str!("../../../../../docs/site/src/examples/webhook-terminated.json"),
    ),
    (
        "test",
        "A test delivery",
        include_str!("../../../../../docs/site/src/examples/webhook-test.json"),
    ),
];

#[derive(OpenApi)]
#[openapi(paths(session_finished))]
struct Webhooks;

/// Adds the webhooks to the description.
pub(super) fn describe(api: &mut openapi::OpenApi) {
    let mut webhooks = Webhooks::openapi();
    let operations = webhooks.paths.paths.values_mut().filter_map(|item| item.post.as_mut());
    for body in operations.filter_map(|operation| operation.request_body.as_mut()) {
        let RefOr::T(body) = body else { continue };
        for content in body.content.values_mut() {
            if let RefOr::T(content) = content {
                content.examples = EXAMPLES.iter().map(example).collect();
            }
        }
    }
    let schemas = webhooks.components.unwrap_or_default().schemas;
    api.components.get_or_insert_default().schemas.extend(schemas);
    api.webhooks = Some(webhooks.paths);
}

fn example(
    (name, summary, body): &(&str, &str, &str),
) -> (String, RefOr<openapi::example::Example>) {
    let body: Option<Value> = serde_json::from_str(body).ok();
    let example = ExampleBuilder::new().summary(*summary).value(body).build();
    ((*name).to_owned(), RefOr::T(example))
}

/// Session finished
///
/// Sent once to each active webhook of your team when a session reaches `COMPLETED`,
/// `PARTIAL_COMPLETE`, `ERROR`, `CANCELLED` or `TERMINATED`. Verify the signature over the raw body
/// before you use it, and store the `webhook-id`: the same delivery can arrive more than once.
#[utoipa::path(
    post,
    path = "sessionFinished",
    tag = "Webhooks",
    operation_id = "sessionFinished",
    security(()),
    params(
        (
            "webhook-id" = Uuid, Header,
            description = "Identifies the delivery; the same for every attempt.",
        ),
        (
            "webhook-timestamp" = i64, Header,
            description = "Unix time of this attempt in seconds. Refuse timestamps that are more than five minutes off.",
        ),
        (
            "webhook-signature" = String, Header,
            description = "`v1,` and the base64 HMAC-SHA256 of `{webhook-id}.{webhook-timestamp}.{body}`. Several signatures, while a secret is rotated, are separated by spaces.",
        ),
        (
            "x-webhook-signature" = String, Header,
            description = "The same as `webhook-signature`.",
        ),
    ),
    request_body(content = WebhookPayload),
    responses(
        (status = "2XX", description = "Delivered. Respond within the webhook's timeout, 30 seconds by default."),
        (status = 410, description = "The delivery ends without further attempts."),
        (status = "default", description = "The delivery is retried. `Retry-After` is respected up to an hour."),
    ),
)]
#[expect(dead_code, reason = "describes a request that the service sends")]
const fn session_finished() {}

/// A finished session. Fields that do not apply are left out.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes what `domain::webhook::payload` returns")]
struct WebhookPayload {
    #[schema(value_type = Uuid)]
    session_id: String,
    /// The attempts that the applicant started.
    attempts: u8,
    /// The terminal status of the session.
    #[schema(pattern = "^(COMPLETED|PARTIAL_COMPLETE|ERROR|CANCELLED|TERMINATED)$")]
    status: String,
    platform_id: i32,
    /// As given at creation.
    external_reference_id: Option<String>,
    /// The data that the applicant agreed to share, if the session is `COMPLETED` or
    /// `PARTIAL_COMPLETE`.
    extracted_data: Option<Map<String, Value>>,
    /// Identifies the attestation, if there is one.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    proof_hash: Option<String>,
    /// The fields of `extractedData` whose values the attestation proves.
    attested_fields: Option<Vec<String>>,
    #[schema(value_type = Option<AttestationType>)]
    attestation_type: Option<String>,
    #[schema(format = DateTime)]
    completed_at: Option<String>,
    metadata: WebhookMetadata,
}

/// Details of the session, beside the members of `receiverData.metadata`.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes what `domain::webhook::payload` returns")]
struct WebhookMetadata {
    /// Why the session failed or is incomplete.
    #[schema(value_type = Option<ErrorCodeName>)]
    error_code: Option<String>,
    error_message: Option<String>,
    /// The requested fields that could not be read.
    missing: Option<Vec<String>>,
    #[schema(pattern = "^(development|production)$")]
    environment: String,
    /// The version of the platform's definition that the session ran.
    workflow_version: Option<String>,
    /// `true` in a test delivery, whose session does not exist.
    test: Option<bool>,
}
