//! Sends webhook deliveries over HTTP (hyper).

mod guard;
mod webhook;

pub use self::{guard::Lookup, webhook::HyperWebhookSender};
