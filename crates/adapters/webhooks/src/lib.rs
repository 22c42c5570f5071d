//! Calls to the outside over hyper.

mod guard;
mod webhook;

pub use self::{guard::Lookup, webhook::HyperWebhookSender};
