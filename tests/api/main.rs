//! The partner API over HTTP: endpoints, interface description, malformed requests, rate limits and
//! quotas.

mod endpoints;
mod fields;
mod hardening;
mod malformed_requests;
mod openapi;
mod quotas;
mod rate_limits;
mod refused_requests;
