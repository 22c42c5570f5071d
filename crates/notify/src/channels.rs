//! The channels of a deployment: each letter goes over its own.

use std::sync::Arc;

use async_trait::async_trait;
use domain::notification::Channel;
use ports::notifier::{Notification, Notifier, SendError};

use crate::{Mail, Sms, Whatsapp};

/// All that are configured.
pub struct Channels {
    pub mail: Arc<Mail>,
    pub whatsapp: Option<Whatsapp>,
    pub sms: Option<Sms>,
}

#[async_trait]
impl Notifier for Channels {
    async fn send(&self, letter: &Notification) -> Result<(), SendError> {
        // Taken out of the configuration since: whoever did may put it back.
        let gone = || SendError::Transient("its channel is not configured any more".into());
        match letter.channel {
            Channel::Email => self.mail.send(letter).await,
            Channel::Whatsapp => self.whatsapp.as_ref().ok_or_else(gone)?.send(letter).await,
            Channel::Sms => self.sms.as_ref().ok_or_else(gone)?.send(letter).await,
        }
    }
}
