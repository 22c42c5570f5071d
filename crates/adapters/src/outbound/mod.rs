//! Calls to the outside over hyper.

mod guard;
mod webhook;

pub use self::webhook::HyperWebhookSender;
