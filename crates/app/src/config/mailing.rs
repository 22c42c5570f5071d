//! The settings of mails and short messages.

use std::collections::BTreeMap;

use domain::webhook::Backoff;
use messaging::SmtpServer;
use url::{Host, Url};

use super::{
    messages::{MessageConfig, messages},
    values::certificates,
};

/// The mail server, and how often a mail is attempted.
#[derive(Debug, Clone)]
pub struct MailConfig {
    /// The mail server; `None` to write mails as files to the data folder.
    pub(crate) smtp: Option<SmtpServer>,
    /// The sender address of mails.
    pub(crate) from: String,
    pub(crate) backoff: Backoff,
    /// The channels beside mail.
    pub(crate) messages: MessageConfig,
}

pub(super) fn mailing(
    values: &BTreeMap<String, String>,
    public_url: &str,
    faults: &mut Vec<String>,
) -> MailConfig {
    let roots = certificates(values.get("smtp_roots"), "smtp_roots", faults);
    let smtp = values.get("smtp_url").map(|url| SmtpServer::new(url, &roots)).transpose();
    let smtp = smtp.map_err(|error| faults.push(format!("smtp_url {error}"))).ok().flatten();
    let from = values.get("mail_from").cloned();
    let from = from.unwrap_or_else(|| format!("no-reply@{}", domain_of(public_url)));
    if !messaging::is_address(&from) {
        faults.push("mail_from must be an e-mail address".into());
    }
    let backoff = values.get("notification_backoff").map_or("15x4", String::as_str);
    let backoff = backoff.parse::<Backoff>();
    let backoff = backoff.map_err(|error| faults.push(format!("notification_backoff: {error}")));
    let messages = messages(values, faults);
    MailConfig { smtp, from, backoff: backoff.unwrap_or_default(), messages }
}

/// Returns the domain of an address; an IP address has none.
fn domain_of(url: &str) -> String {
    let url = Url::parse(url).ok();
    match url.as_ref().and_then(Url::host) {
        Some(Host::Domain(domain)) => domain.to_owned(),
        Some(Host::Ipv4(_) | Host::Ipv6(_)) | None => "localhost".to_owned(),
    }
}
