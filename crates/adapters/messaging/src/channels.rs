//! The channels of a deployment: each notification is sent over its own.

use std::sync::Arc;

use async_trait::async_trait;
use domain::notification::Channel;
use ports::notifier::{Notification, Notifier, SendError};

use crate::{Mail, Sms, Whatsapp};

/// All configured channels.
pub struct Channels {
    pub mail: Arc<Mail>,
    pub whatsapp: Option<Whatsapp>,
    pub sms: Option<Sms>,
}

#[async_trait]
impl Notifier for Channels {
    async fn send(&self, letter: &Notification) -> Result<(), SendError> {
        // Temporary, since the operator may configure the channel again.
        let not_configured = || {
            SendError::Transient(
                "the channel of the notification is not configured any more".into(),
            )
        };
        match letter.channel {
            Channel::Email => self.mail.send(letter).await,
            Channel::Whatsapp => {
                self.whatsapp.as_ref().ok_or_else(not_configured)?.send(letter).await
            }
            Channel::Sms => self.sms.as_ref().ok_or_else(not_configured)?.send(letter).await,
        }
    }
}
