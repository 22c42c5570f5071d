//! Letters as mails: to a server over SMTP, or into a folder where no server is configured.

mod account;
mod answers;
mod notice;
mod read_aloud;
mod smtp;
mod wording;
pub(crate) mod words;

use std::{io, path::PathBuf};

use async_trait::async_trait;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use domain::{
    branding::{Brand, Logo},
    notification::NotificationFailure,
    template::TemplateText,
};
use lettre::{
    Address, Message,
    message::{
        Attachment, Mailbox, MessageBuilder, MultiPart, SinglePart,
        header::{ContentType, HeaderName, HeaderValue},
    },
};
use ports::notifier::{
    AccountMail, AccountNotice, MailRenderer, Mailer, Notification, Notifier, RenderedMail,
    SendError,
};
use tokio::io::AsyncWriteExt as _;

pub use self::smtp::{BadSmtpUrl, Server};
use self::{smtp::Smtp, words::Facts};
use crate::one_line;

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

    fn compose(&self, letter: &Notification) -> Result<Message, SendError> {
        let to = letter.name.as_deref().map(one_line);
        let from = one_line(words::sender(letter));
        let logo = letter.brand.logo.as_ref();
        let to = (to, letter.address.as_str());
        let ways = ways_out(&letter.choice);
        self.message(&letter.id.to_string(), from, to, words::write(letter), logo, ways)
    }

    fn compose_account(&self, mail: &AccountMail) -> Result<Message, SendError> {
        let (id, from) = (mail.id.to_string(), words::SERVICE.to_owned());
        self.message(&id, from, (None, mail.address.as_str()), account::write(mail), None, vec![])
    }

    fn compose_notice(&self, notice: &AccountNotice) -> Result<Message, SendError> {
        let (id, from) = (notice.id.to_string(), words::SERVICE.to_owned());
        let to = (None, notice.address.as_str());
        self.message(&id, from, to, notice::write(notice), None, vec![])
    }

    fn message(
        &self,
        id: &str,
        from: String,
        (to, address): (Option<String>, &str),
        written: Result<RenderedMail, minijinja::Error>,
        logo: Option<&Logo>,
        ways_out: Vec<HeaderValue>,
    ) -> Result<Message, SendError> {
        let address: Address = address.parse().map_err(|_| SendError::Permanent {
            why: NotificationFailure::UnknownReceiver,
            detail: "it is no address that mail can be sent to".into(),
        })?;
        let failed = |error: &dyn std::error::Error| SendError::Transient(error.to_string());
        let written = written.map_err(|error| failed(&error))?;
        let builder = Message::builder()
            .from(Mailbox::new(Some(from), self.from.clone()))
            .to(Mailbox::new(to, address))
            .subject(one_line(&written.subject))
            // The same at each try: who has the mail already can tell (RFC 5322, section 3.6.4).
            .message_id(Some(format!("<{id}@{}>", self.from.domain())))
            // No answers from out-of-office robots (RFC 3834, section 5).
            .raw_header(HeaderValue::new(
                HeaderName::new_from_ascii_str("Auto-Submitted"),
                "auto-generated".to_owned(),
            ));
        let builder = ways_out.into_iter().fold(builder, MessageBuilder::raw_header);
        let message = builder.multipart(body(written.text, written.html, logo));
        message.map_err(|error| failed(&error))
    }
}

/// How a mail program offers to stop such mails (RFC 2369, section 3.2); with one click only where
/// that goes over TLS (RFC 8058, section 3.1).
fn ways_out(choice: &str) -> Vec<HeaderValue> {
    let at = HeaderValue::new(
        HeaderName::new_from_ascii_str("List-Unsubscribe"),
        format!("<{}>", one_line(choice)),
    );
    let one_click = HeaderValue::new(
        HeaderName::new_from_ascii_str("List-Unsubscribe-Post"),
        "List-Unsubscribe=One-Click".to_owned(),
    );
    if choice.starts_with("https://") { vec![at, one_click] } else { vec![at] }
}

/// Text and HTML, and the logo that the HTML shows (RFC 2387).
fn body(text: String, html: String, logo: Option<&Logo>) -> MultiPart {
    let Some(logo) = logo else { return MultiPart::alternative_plain_html(text, html) };
    // A kind that is written as it has to be; what cannot be is no picture.
    let Ok(kind) = ContentType::parse("image/png") else {
        return MultiPart::alternative_plain_html(text, html);
    };
    let picture = Attachment::new_inline("logo".to_owned()).body(logo.bytes().to_vec(), kind);
    let shown = MultiPart::related().singlepart(SinglePart::html(html)).singlepart(picture);
    MultiPart::alternative().singlepart(SinglePart::plain(text)).multipart(shown)
}

impl Mail {
    async fn hand_over(&self, id: &str, message: Message) -> Result<(), SendError> {
        match &self.way {
            Way::Smtp(smtp) => smtp.send(message).await,
            Way::Folder(folder) => {
                let file = folder.join(format!("{id}.eml"));
                let written = write(&file, &message.formatted()).await;
                written.map_err(|error| SendError::Transient(format!("no file: {error}")))
            }
        }
    }
}

#[async_trait]
impl Notifier for Mail {
    async fn send(&self, letter: &Notification) -> Result<(), SendError> {
        self.hand_over(&letter.id.to_string(), self.compose(letter)?).await
    }
}

#[async_trait]
impl Mailer for Mail {
    async fn mail(&self, mail: &AccountMail) -> Result<(), SendError> {
        self.hand_over(&mail.id.to_string(), self.compose_account(mail)?).await
    }

    async fn notify(&self, notice: &AccountNotice) -> Result<(), SendError> {
        self.hand_over(&notice.id.to_string(), self.compose_notice(notice)?).await
    }
}

/// Wordings as mails have them.
pub struct Wordings;

impl MailRenderer for Wordings {
    fn preview(
        &self,
        wording: &TemplateText,
        sender: &str,
        brand: &Brand,
    ) -> Result<RenderedMail, Vec<String>> {
        let colour = brand.colour.map(|colour| colour.to_string());
        let encoded =
            |logo: &Logo| format!("data:image/png;base64,{}", STANDARD.encode(logo.bytes()));
        let logo = brand.logo.as_ref().map(encoded);
        let facts = Facts {
            sender,
            name: "Ada Lovelace",
            platform: "Acme",
            link: "https://avouch.example/embed/0?token=preview",
            expires: "2030-01-31 12:00 UTC",
            choice: "https://avouch.example/unsubscribe/0?lang=en",
            look: words::look(brand, colour.as_deref(), logo.as_deref()),
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
