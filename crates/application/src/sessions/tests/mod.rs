//! The use cases of the partner API on an in-memory store.

mod authenticate;
mod create;
mod evidence;
mod read;

use std::sync::Arc;

use domain::{
    notification::Channel,
    rate::RateLimit,
    request::{AttestationRequest, Contact, ExpiresIn, MaxAttempts, NewSession, RequestedLocation},
};

use super::SessionUseCases;
use crate::testing::{FakeLimiter, FakePlaces, FakeVault, World};

const TWO_LINKS_AN_HOUR: RateLimit = RateLimit { count: 2, seconds: 3600 };

/// The use cases of a deployment that sends links by mail and by SMS, up to two to one address.
fn use_cases(world: &World) -> SessionUseCases {
    SessionUseCases {
        engine: world.engine.clone(),
        urls: world.urls(),
        attestations: world.attestations(),
        catalogue: world.store.clone(),
        sessions: world.store.clone(),
        random: world.random.clone(),
        recordings: world.store.clone(),
        vault: Arc::new(FakeVault::default()),
        notifications: world.store.clone(),
        contacts: world.store.clone(),
        templates: world.store.clone(),
        teams: world.store.clone(),
        places: Arc::new(FakePlaces),
        channels: [Channel::Email, Channel::Sms].into(),
        limiter: Arc::new(FakeLimiter::default()),
        recipient_limit: Some(TWO_LINKS_AN_HOUR),
    }
}

/// A request that names nothing but a platform and a country.
fn request(world: &World) -> NewSession {
    NewSession {
        platform: world.platform,
        location: RequestedLocation { country: "US".into(), ..RequestedLocation::default() },
        receiver: None,
        expires_in: ExpiresIn::hours(72).unwrap(),
        preferred_region: None,
        attestation: AttestationRequest::NotWanted,
        attestation_challenge: None,
        channel: None,
        sender_name: None,
        email_template: None,
        receiver_id: None,
        external_reference: None,
        custom_url: None,
        purpose: None,
        return_url: None,
        max_attempts: MaxAttempts::default(),
        studio: None,
    }
}

/// A request whose link the service sends by mail.
fn mailed(world: &World, address: &str) -> NewSession {
    let contact = Contact { email: Some(address.into()), ..Contact::default() };
    NewSession { channel: Some(Channel::Email.id()), receiver: Some(contact), ..request(world) }
}
