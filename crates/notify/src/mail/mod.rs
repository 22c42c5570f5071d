//! Letters as mails: to a server over SMTP, or into a folder where no server is configured.

mod answers;
mod smtp;
mod words;

use std::{io, path::PathBuf};

use async_trait::async_trait;
use domain::notification::Undelivered;
use lettre::{
    Address, Message,
    message::{
        Mailbox, MultiPart,
        header::{HeaderName, HeaderValue},
    },
};
use ports::notifier::{Letter, NotTaken, Notifier};
use tokio::io::AsyncWriteExt as _;

use self::smtp::Smtp;
pub use self::smtp::{BadSmtpUrl, Server};

/// Sends letters as mails from one address.
pub struct Mail {
    from: Address,
    way: Way,
}

/// Whether mail can be from or to it.
#[must_use]
pub fn is_address(text: &str) -> bool {
    text.parse::<Address>().is_ok()
}

enum Way {
    Smtp(Smtp),
    Folder(PathBuf),
}

impl Mail {
    /// Mails over SMTP. `None` where `from` is no e-mail address. Call it on a runtime.
    #[must_use]
    pub fn over(server: Server, from: &str) -> Option<Self> {
        Some(Self { from: from.parse().ok()?, way: Way::Smtp(Smtp::new(server)) })
    }

    /// Mails as files that nobody sends, `{id}.eml`. `None` where `from` is no e-mail address.
    #[must_use]
    pub fn into_folder(folder: PathBuf, from: &str) -> Option<Self> {
        Some(Self { from: from.parse().ok()?, way: Way::Folder(folder) })
    }

    fn compose(&self, letter: &Letter) -> Result<Message, NotTaken> {
        let address: Address = letter.address.parse().map_err(|_| NotTaken::ForGood {
            why: Undelivered::UnknownReceiver,
            detail: "it is no address that mail can be sent to".into(),
        })?;
        let failed = |error: &dyn std::error::Error| NotTaken::ForNow(error.to_string());
        let written = words::write(letter).map_err(|error| failed(&error))?;
        let (from, to) = (one_line(words::sender(letter)), letter.name.as_deref().map(one_line));
        let message = Message::builder()
            .from(Mailbox::new(Some(from), self.from.clone()))
            .to(Mailbox::new(to, address))
            .subject(written.subject)
            // The same at each try: who has the mail already can tell (RFC 5322, section 3.6.4).
            .message_id(Some(format!("<{}@{}>", letter.id, self.from.domain())))
            // No answers from out-of-office robots (RFC 3834, section 5).
            .raw_header(HeaderValue::new(
                HeaderName::new_from_ascii_str("Auto-Submitted"),
                "auto-generated".to_owned(),
            ))
            .multipart(MultiPart::alternative_plain_html(written.text, written.html));
        message.map_err(|error| failed(&error))
    }
}

/// A name without line breaks, which the mail library does not survive.
fn one_line(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).collect()
}

#[async_trait]
impl Notifier for Mail {
    async fn send(&self, letter: &Letter) -> Result<(), NotTaken> {
        let message = self.compose(letter)?;
        match &self.way {
            Way::Smtp(smtp) => smtp.send(message).await,
            Way::Folder(folder) => {
                let file = folder.join(format!("{}.eml", letter.id));
                let written = write(&file, &message.formatted()).await;
                written.map_err(|error| NotTaken::ForNow(format!("no file: {error}")))
            }
        }
    }
}

/// Writes a file for the service's own user: there is a link in it.
async fn write(file: &std::path::Path, content: &[u8]) -> io::Result<()> {
    let mut options = tokio::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut open = options.open(file).await?;
    open.write_all(content).await?;
    open.flush().await
}

#[cfg(test)]
mod tests;
