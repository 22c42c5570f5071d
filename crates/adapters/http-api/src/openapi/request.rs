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
    /// A platform of the lookup.
    #[schema(minimum = 1, maximum = 2_147_483_647)]
    platform_id: i64,
    location: NewLocation,
    /// Who verifies. Required with `notificationPlatformId`.
    receiver_data: Option<ReceiverData>,
    /// How long the session may stay open: 168 unless asked otherwise.
    #[schema(minimum = 1, maximum = 168)]
    expires_in_hours: Option<i64>,
    /// Where the browser runs; the closest region by default.
    preferred_region: Option<PreferredRegion>,
    /// Whether the data is to be proved by an attestation; not unless asked for.
    generate_attestation: Option<bool>,
    /// Repeated in the signed attestation, so that it can be told from an older one: 1 to 64 random
    /// bytes in base64url without padding. Without `generateAttestation` nothing repeats it.
    #[schema(
        min_length = 2,
        max_length = 86,
        pattern = "^(?:[A-Za-z0-9_-]{4})*(?:[A-Za-z0-9_-][AQgw]|[A-Za-z0-9_-]{2}[AEIMQUYcgkosw048])?$",
        example = "4lVqcg3Qd0mYkJ1tq9sPWQ"
    )]
    attestation_challenge: Option<String>,
    /// A channel of the lookup, over which the service sends the link.
    notification_platform_id: Option<i64>,
    /// Shown as the sender, with a channel.
    #[schema(min_length = 1, max_length = 100)]
    sender_name: Option<String>,
    /// An approved template of the lookup, with the e-mail channel.
    email_template_id: Option<i64>,
    /// A registered receiver.
    #[schema(min_length = 1, max_length = 255)]
    receiver_id: Option<String>,
    /// The partner's own reference; appears in answers and deliveries.
    #[schema(min_length = 1, max_length = 255)]
    external_reference_id: Option<String>,
    /// Where the platform has `allowCustomUrl`.
    #[schema(min_length = 1, max_length = 2048)]
    custom_url: Option<String>,
}

/// Where the applicant's connection is to come from.
#[derive(ToSchema)]
pub(crate) struct NewLocation {
    /// ISO 3166-1 alpha-2.
    #[schema(min_length = 2, max_length = 2, example = "US")]
    country: String,
    /// A region of the country by name or code, in any case; the same as `region`.
    #[schema(min_length = 1, max_length = 120)]
    state: Option<String>,
    /// The same as `state`.
    #[schema(min_length = 1, max_length = 120)]
    region: Option<String>,
    #[schema(min_length = 1, max_length = 120)]
    city: Option<String>,
}

/// The person who verifies. Nothing of it but `metadata` ever comes back.
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
    /// At most 20 members, names of at most 64 and values of at most 512 characters; comes back in
    /// the deliveries' `metadata`.
    metadata: Option<BTreeMap<String, String>>,
}

/// Where browsers run.
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
