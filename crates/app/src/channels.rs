//! The channels of this deployment.

use std::sync::Arc;

use domain::notification::Channel;
use http_client::HttpClient;
use messaging::{Channels, Mail, Sms, Whatsapp};

use crate::{
    config::{Config, MailConfig, MessageConfig},
    data_dir::private_folder,
    storage::StartupError,
};

/// Those that partners can choose.
pub(crate) fn active(messages: &MessageConfig) -> Vec<Channel> {
    let is_active = |channel: &Channel| match channel {
        Channel::Email => true,
        Channel::Whatsapp => messages.whatsapp.is_some(),
        Channel::Sms => messages.sms.is_some(),
    };
    Channel::ALL.iter().copied().filter(is_active).collect()
}

/// Whoever carries letters, over each of them.
pub(crate) fn channels(config: &Config, mail: Arc<Mail>) -> Result<Channels, StartupError> {
    let MessageConfig { whatsapp, sms } = config.mailing.messages.clone();
    let caller = Arc::new(HttpClient::new()?);
    Ok(Channels {
        mail,
        whatsapp: whatsapp.map(|account| Whatsapp::new(account, caller.clone())),
        sms: sms.map(|account| Sms::new(account, caller)),
    })
}

/// Mails go over SMTP, or into a folder of the service's own.
pub(crate) fn mail(config: &Config) -> Result<Arc<Mail>, StartupError> {
    let MailConfig { smtp, from, .. } = &config.mailing;
    let mail = if let Some(server) = smtp {
        Mail::over(server.clone(), from)
    } else {
        let outbox = config.data_dir.join("outbox");
        private_folder(&outbox)?;
        tracing::info!("there is no smtp_url: mails are written to {}", outbox.display());
        Mail::into_folder(outbox, from)
    };
    Ok(Arc::new(mail.ok_or("mail_from must be an e-mail address")?))
}
