//! Messages that leave the service: webhooks, mail and text messages.

mod documented_endpoints;
mod list_unsubscribe;
mod mail;
mod quickstarts;
mod text_messages;
mod webhooks;
