//! The body of a create request, for the API description. It is parsed by
//! [`domain::request::NewSession::read`], which names every invalid field.
#![expect(dead_code, reason = "these types describe, and hold nothing")]

use std::collections::BTreeMap;

use utoipa::ToSchema;

#[derive(ToSchema)]
#[schema(
    rename_all = "camelCase",
    example = json!({
        "platformId": 1,
        "location": { "country": "US", "state": "California" },
        "expiresInHours": 24,
        "externalReferenceId": "application-7",
    })
)]
pub(crate) struct CreateSession {
    /// An `id` of the platforms lookup.
    #[schema(minimum = 1, maximum = 2_147_483_647)]
    platform_id: i64,
    location: NewLocation,
    /// The applicant's contact and your metadata. Required with `notificationPlatformId`.
    receiver_data: Option<ReceiverData>,
    /// Hours until the session expires; 168 by default.
    #[schema(minimum = 1, maximum = 168)]
    expires_in_hours: Option<i64>,
    /// The region in which the browser runs; the closest one by default.
    preferred_region: Option<PreferredRegion>,
    /// Whether the data is attested; `false` by default.
    generate_attestation: Option<bool>,
    /// Repeated in the signed attestation, so that an older one cannot be presented to you: 1 to 64
    /// random bytes in base64url without padding. Has no effect without `generateAttestation`.
    #[schema(
        min_length = 2,
        max_length = 86,
        pattern = "^(?:[A-Za-z0-9_-]{4})*(?:[A-Za-z0-9_-][AQgw]|[A-Za-z0-9_-]{2}[AEIMQUYcgkosw048])?$",
        example = "4lVqcg3Qd0mYkJ1tq9sPWQ"
    )]
    attestation_challenge: Option<String>,
    /// An `id` of the channels lookup: the service sends the link over it.
    notification_platform_id: Option<i64>,
    /// The name shown as the sender. Applies with `notificationPlatformId` only.
    #[schema(min_length = 1, max_length = 100)]
    sender_name: Option<String>,
    /// An `id` of the templates lookup. Allowed with the e-mail channel only.
    email_template_id: Option<i64>,
    /// A recipient that is registered in the portal.
    #[schema(min_length = 1, max_length = 255)]
    receiver_id: Option<String>,
    /// Your reference, returned in responses and webhooks.
    #[schema(min_length = 1, max_length = 255)]
    external_reference_id: Option<String>,
    /// The address to open, if the platform has `allowCustomUrl`.
    #[schema(min_length = 1, max_length = 2048)]
    custom_url: Option<String>,
    /// Why you ask, as the applicant reads it before they start: one line without links.
    #[schema(
        min_length = 1,
        max_length = 140,
        example = "To confirm your income for your loan application"
    )]
    purpose: Option<String>,
    /// The page to which the applicant can return after the end: `https`, on one of the team's embed
    /// origins.
    #[schema(
        min_length = 1,
        max_length = 2048,
        pattern = "^https://",
        example = "https://lender.example/applications/7"
    )]
    return_url: Option<String>,
    /// How many attempts the applicant has, 3 by default. After a failure that another attempt may
    /// avoid, the page offers one, and the session stays open.
    #[schema(minimum = 1, maximum = 5)]
    max_attempts: Option<i64>,
}

/// The place from which the browser connects.
#[derive(ToSchema)]
pub(crate) struct NewLocation {
    /// ISO 3166-1 alpha-2.
    #[schema(min_length = 2, max_length = 2, example = "US")]
    country: String,
    /// A region of the country, by name or code; the same as `region`.
    #[schema(min_length = 1, max_length = 120)]
    state: Option<String>,
    /// The same as `state`.
    #[schema(min_length = 1, max_length = 120)]
    region: Option<String>,
    #[schema(min_length = 1, max_length = 120)]
    city: Option<String>,
}

/// The applicant. Only `metadata` is ever returned.
#[derive(ToSchema)]
pub(crate) struct ReceiverData {
    #[schema(min_length = 1, max_length = 200)]
    name: Option<String>,
    #[schema(max_length = 254, example = "ada@example.com")]
    email: Option<String>,
    /// E.164.
    #[schema(max_length = 16, example = "+15551234567")]
    phone: Option<String>,
    /// BCP 47.
    #[schema(max_length = 35, example = "en-US")]
    locale: Option<String>,
    /// Returned in the `metadata` of webhooks: up to 20 members, with names of up to 64 and values of
    /// up to 512 characters.
    metadata: Option<BTreeMap<String, String>>,
}

/// A region in which browsers run.
#[derive(ToSchema)]
pub(crate) enum PreferredRegion {
    #[schema(rename = "us-central")]
    UsCentral,
    #[schema(rename = "us-west")]
    UsWest,
    #[schema(rename = "us-east")]
    UsEast,
    #[schema(rename = "asia-south")]
    AsiaSouth,
    #[schema(rename = "europe-west")]
    EuropeWest,
}
