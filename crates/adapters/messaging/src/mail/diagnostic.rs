//! Examines the mail server.

use std::time::Duration;

use async_trait::async_trait;
use ports::diagnostic::{Diagnosis, Diagnostic};

use super::smtp::SmtpServer;

/// How long the answers of a mail server are waited for.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(15);

/// Examines whether a mail server accepts commands, with TLS and password as configured. No mail is sent.
pub struct MailDiagnostic {
    /// `None` if mails are written to the data folder.
    pub server: Option<SmtpServer>,
}

#[async_trait]
impl Diagnostic for MailDiagnostic {
    fn subject(&self) -> &'static str {
        "mail"
    }

    async fn examine(&self) -> Vec<Diagnosis> {
        let Some(server) = &self.server else {
            let advice = "set smtp_url, or read the mails in the folder outbox of data_dir";
            return vec![Diagnosis::warning("mails are written to the data folder", advice)];
        };
        let answered = tokio::time::timeout(RESPONSE_TIMEOUT, server.check()).await;
        let late = || Err(format!("no answer within {} s", RESPONSE_TIMEOUT.as_secs()));
        vec![match answered.unwrap_or_else(|_| late()) {
            Ok(()) => Diagnosis::ok(format!("{server:?} accepts commands")),
            Err(error) => Diagnosis::failed(
                format!("{server:?}: {error}"),
                "correct smtp_url and smtp_roots, or the rules of the network between",
            ),
        }]
    }
}
