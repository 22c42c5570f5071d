//! Examples of the response of each operation, and of each error.

use serde_json::{Value, json};

use crate::failure_code::FailureCode;

const ID: &str = "01928f7e-5b1a-7c3e-9d2f-6a4b8c0d1e2f";
const LINK: &str = "https://avouch.example/embed/01928f7e-5b1a-7c3e-9d2f-6a4b8c0d1e2f?token=T";

/// Returns the `data` of a successful operation.
pub(super) fn data(operation: &str) -> Option<Value> {
    Some(match operation {
        "createSession" => json!({
            "sessionId": ID,
            "status": "CREATED",
            "embedUrl": LINK,
            "platformId": 1,
            "expiresAt": "2026-01-08T12:00:00.000Z",
            "createdAt": "2026-01-01T12:00:00.000Z",
            "location": { "country": "US", "state": "California", "region": "California" },
            "preferredRegion": "us-west",
            "externalReferenceId": "application-7",
        }),
        "getSession" => session(),
        "listSessions" => json!({
            "sessions": [{
                "sessionId": ID,
                "status": "COMPLETED",
                "platformId": 1,
                "createdAt": "2026-01-01T12:00:00.000Z",
                "completedAt": "2026-01-01T12:03:10.250Z",
            }],
            "total": 1,
            "limit": 20,
            "offset": 0,
        }),
        "getRecording" => json!({
            "status": "completed",
            "recordingUrl": null,
            "error": "sessions are not recorded by this deployment",
        }),
        "terminateSession" => json!({ "sessionId": ID, "status": "TERMINATED" }),
        "resendNotification" => json!({ "sessionId": ID, "notificationStatus": "queued" }),
        "eraseData" => json!({
            "sessionId": ID, "status": "TERMINATED", "dataErasedAt": "2026-01-02T09:30:00.000Z",
        }),
        "getTimeline" => json!([
            {
                "at": "2026-01-01T12:00:00.000Z", "event": "SessionCreated", "status": "CREATED",
                "errorCode": null,
            },
            {
                "at": "2026-01-01T12:00:40.120Z", "event": "ApplicantCancelled",
                "status": "CANCELLED", "errorCode": "APPLICANT_CANCELLED",
            },
        ]),
        _ => return lookup(operation),
    })
}

fn session() -> Value {
    json!({
        "sessionId": ID,
        "status": "COMPLETED",
        "progress": 100,
        "embedUrl": LINK,
        "streamUrl": null,
        "platformId": 1,
        "platform": {
            "id": 1,
            "name": "acme-sandbox",
            "displayName": "Acme (sandbox)",
            "icon": "https://avouch.example/icons/acme-sandbox.svg",
            "loginUrl": "https://sandbox.localhost/login",
        },
        "location": { "country": "US", "state": "California", "region": "California" },
        "preferredRegion": "us-west",
        "expiresAt": "2026-01-08T12:00:00.000Z",
        "createdAt": "2026-01-01T12:00:00.000Z",
        "completedAt": "2026-01-01T12:03:10.250Z",
        "errorMessage": null,
        "errorCode": null,
        "hasAttestation": true,
        "attestedFields": ["accountId"],
        "attestationType": "zktls-full",
        "attestationChallenge": "4lVqcg3Qd0mYkJ1tq9sPWQ",
        "extractedData": { "accountId": "acme-ok-4711" },
        "missing": [],
        "externalReferenceId": "application-7",
        "nextAction": null,
        "dataErasedAt": null,
    })
}

fn lookup(operation: &str) -> Option<Value> {
    Some(match operation {
        "listPlatforms" => json!([{
            "id": 1,
            "name": "acme-sandbox",
            "displayName": "Acme (sandbox)",
            "description": "A demonstration platform for tests.",
            "icon": "https://avouch.example/icons/acme-sandbox.svg",
            "loginUrl": "https://sandbox.localhost/login",
            "allowCustomUrl": false,
            "config": { "workflowVersion": "1.0.0" },
            "isActive": true,
            "createdAt": "2026-01-01T00:00:00.000Z",
            "updatedAt": "2026-01-01T00:00:00.000Z",
        }]),
        "listNotificationPlatforms" | "listEmailTemplates" => json!([]),
        "listSupportedCountries" => {
            json!([{ "country_code": "US", "country_name": "United States" }])
        }
        "listErrorCodes" => json!([{
            "code": "NO_DATA",
            "category": "applicant",
            "retryable": false,
            "message": "The account does not hold the required data",
            "applicantMessage": "We couldn't find the required information.",
        }]),
        _ => return None,
    })
}

/// Returns the body of a failed request, by operation and status.
pub(super) fn failure(operation: &str, status: &str) -> Option<Value> {
    let code = code(operation, status).as_str();
    Some(json!({
        "statusCode": status.parse::<u16>().ok()?,
        "message": message(operation, status),
        "code": code,
        "docUrl": format!(
            "https://avouch.example/docs/errors.html#{}", code.to_ascii_lowercase()
        ),
    }))
}

fn code(operation: &str, status: &str) -> FailureCode {
    match (operation, status) {
        ("getAttestation" | "verifyAttestation", "404") => FailureCode::AttestationNotFound,
        (_, "400") => FailureCode::InvalidRequest,
        (_, "401") => FailureCode::Unauthorized,
        (_, "404") => FailureCode::SessionNotFound,
        (_, "408") => FailureCode::RequestTimeout,
        ("resendNotification", "409") => FailureCode::NoNotificationChannel,
        (_, "409") => FailureCode::IdempotencyConflict,
        (_, "413") => FailureCode::PayloadTooLarge,
        (_, "415") => FailureCode::UnsupportedMediaType,
        (_, "422") => FailureCode::IdempotencyKeyReused,
        (_, "429") => FailureCode::RateLimited,
        _ => FailureCode::InternalError,
    }
}

fn message(operation: &str, status: &str) -> &'static str {
    match (operation, status) {
        ("createSession", "400") => "platformId must be a number; location must be an object",
        ("listSessions", "400") => "limit must be between 1 and 100",
        ("listSupportedCountries", "400") => "region must be given with country",
        (_, "400") => "Bad Request",
        (_, "401") => "Unauthorized",
        ("getAttestation" | "verifyAttestation", "404") => "Attestation not found",
        (_, "404") => "Session not found",
        (_, "408") => "the body did not arrive in time",
        ("resendNotification", "409") => "the session was created without notificationPlatformId",
        (_, "409") => "a request with this Idempotency-Key is being carried out",
        (_, "413") => "the body must be at most 65536 bytes long",
        (_, "415") => "Content-Type must be application/json",
        (_, "422") => "Idempotency-Key was used before with another request",
        (_, "429") => "Too Many Requests",
        _ => "Internal Server Error",
    }
}
