//! Letters as mails: to a server over SMTP, or into a folder where no server is configured.

mod account;
mod answers;
mod read_aloud;
mod smtp;
mod wording;
mod words;

use std::{io, path::PathBuf};

use async_trait::async_trait;
use domain::{notification::Undelivered, template::Wording};
use lettre::{
    Address, Message,
    message::{
        Mailbox, MultiPart,
        header::{HeaderName, HeaderValue},
    },
};
use ports::notifier::{AccountMail, Letter, Mailer, NotTaken, Notifier, Stationery, Written};
use tokio::io::AsyncWriteExt as _;

pub use self::smtp::{BadSmtpUrl, Server};
use self::{smtp::Smtp, words::Facts};

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
        let to = letter.name.as_deref().map(one_line);
        let from = one_line(words::sender(letter));
        self.message(&letter.id.to_string(), from, to, &letter.address, words::write(letter))
    }

    fn compose_account(&self, mail: &AccountMail) -> Result<Message, NotTaken> {
        let (id, from) = (mail.id.to_string(), words::SERVICE.to_owned());
        self.message(&id, from, None, mail.address.as_str(), account::write(mail))
    }

    fn message(
        &self,
        id: &str,
        from: String,
        to: Option<String>,
        address: &str,
        written: Result<Written, minijinja::Error>,
    ) -> Result<Message, NotTaken> {
        let address: Address = address.parse().map_err(|_| NotTaken::ForGood {
            why: Undelivered::UnknownReceiver,
            detail: "it is no address that mail can be sent to".into(),
        })?;
        let failed = |error: &dyn std::error::Error| NotTaken::ForNow(error.to_string());
        let written = written.map_err(|error| failed(&error))?;
        let message = Message::builder()
            .from(Mailbox::new(Some(from), self.from.clone()))
            .to(Mailbox::new(to, address))
            .subject(one_line(&written.subject))
            // The same at each try: who has the mail already can tell (RFC 5322, section 3.6.4).
            .message_id(Some(format!("<{id}@{}>", self.from.domain())))
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

impl Mail {
    async fn hand_over(&self, id: &str, message: Message) -> Result<(), NotTaken> {
        match &self.way {
            Way::Smtp(smtp) => smtp.send(message).await,
            Way::Folder(folder) => {
                let file = folder.join(format!("{id}.eml"));
                let written = write(&file, &message.formatted()).await;
                written.map_err(|error| NotTaken::ForNow(format!("no file: {error}")))
            }
        }
    }
}

#[async_trait]
impl Notifier for Mail {
    async fn send(&self, letter: &Letter) -> Result<(), NotTaken> {
        self.hand_over(&letter.id.to_string(), self.compose(letter)?).await
    }
}

#[async_trait]
impl Mailer for Mail {
    async fn mail(&self, mail: &AccountMail) -> Result<(), NotTaken> {
        self.hand_over(&mail.id.to_string(), self.compose_account(mail)?).await
    }
}

/// Wordings as mails have them.
pub struct Wordings;

impl Stationery for Wordings {
    fn preview(&self, wording: &Wording, sender: &str) -> Result<Written, Vec<String>> {
        let facts = Facts {
            sender,
            name: "Ada Lovelace",
            platform: "Acme",
            link: "https://avouch.example/embed/0?token=preview",
            expires: "2030-01-31 12:00 UTC",
        };
        let flaws = wording::flaws(wording, &facts);
        if !flaws.is_empty() {
            return Err(flaws);
        }
        wording::write(wording, &facts).map_err(|error| vec![error.to_string()])
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
