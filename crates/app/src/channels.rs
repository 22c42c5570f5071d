//! The channels of this deployment.

use std::sync::Arc;

use domain::notification::Channel;
use http_client::HttpClient;
use messaging::{Channels, Mail, Sms, Whatsapp};
use system::data_dir::private_folder;

use crate::{
    config::{Config, MailConfig, MessageConfig},
    storage::{StartupError, error_chain},
};

/// Returns the channels that partners can choose.
pub(crate) fn active(messages: &MessageConfig) -> Vec<Channel> {
    let is_active = |channel: &Channel| match channel {
        Channel::Email => true,
        Channel::Whatsapp => messages.whatsapp.is_some(),
        Channel::Sms => messages.sms.is_some(),
    };
    Channel::ALL.iter().copied().filter(is_active).collect()
}

/// Returns the senders of notifications over each channel.
pub(crate) fn channels(config: &Config, mail: Arc<Mail>) -> Result<Channels, StartupError> {
    let MessageConfig { whatsapp, sms } = config.mailing.messages.clone();
    let caller = Arc::new(HttpClient::new()?);
    Ok(Channels {
        mail,
        whatsapp: whatsapp.map(|account| Whatsapp::new(account, caller.clone())),
        sms: sms.map(|account| Sms::new(account, caller)),
    })
}

/// Returns the sender of mails: over SMTP, or into a folder of the service's own.
pub(crate) fn mail(config: &Config) -> Result<Arc<Mail>, StartupError> {
    let MailConfig { smtp, from, .. } = &config.mailing;
    let mail = if let Some(server) = smtp {
        Mail::over(server.clone(), from)
    } else {
        let outbox = config.data_dir.join("outbox");
        private_folder(&outbox).map_err(error_chain)?;
        tracing::info!("there is no smtp_url: mails are written to {}", outbox.display());
        Mail::into_folder(outbox, from)
    };
    Ok(Arc::new(mail.ok_or("mail_from must be an e-mail address")?))
}
