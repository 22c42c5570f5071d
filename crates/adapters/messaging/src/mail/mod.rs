//! Mails: sent to a server over SMTP, or written to a folder if no server is configured.

mod account;
mod diagnostic;
mod notice;
mod plain_text;
mod smtp;
mod smtp_status;
mod template;
pub(crate) mod translations;

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

pub use self::{
    diagnostic::MailDiagnostic,
    smtp::{InvalidSmtpUrl, SmtpServer},
};
use self::{smtp::Smtp, translations::MailContext};
use crate::one_line;

/// Sends mails from one address.
pub struct Mail {
    from: Address,
    transport: Transport,
}

/// Whether the text is an e-mail address.
#[must_use]
pub fn is_address(text: &str) -> bool {
    text.parse::<Address>().is_ok()
}

/// The destination of mails.
enum Transport {
    Smtp(Smtp),
    Folder(PathBuf),
}

impl Mail {
    /// Sends mails over SMTP. Returns `None` if `from` is not an e-mail address. Must be called within a
    /// Tokio runtime.
    #[must_use]
    pub fn over(server: SmtpServer, from: &str) -> Option<Self> {
        Some(Self { from: from.parse().ok()?, transport: Transport::Smtp(Smtp::new(server)) })
    }

    /// Writes mails to files `{id}.eml` instead of sending them. Returns `None` if `from` is not an
    /// e-mail address.
    #[must_use]
    pub fn into_folder(folder: PathBuf, from: &str) -> Option<Self> {
        Some(Self { from: from.parse().ok()?, transport: Transport::Folder(folder) })
    }

    fn compose(&self, letter: &Notification) -> Result<Message, SendError> {
        let to = letter.name.as_deref().map(one_line);
        let from = one_line(translations::sender(letter));
        let logo = letter.brand.logo.as_ref();
        let to = (to, letter.address.as_str());
        let headers = unsubscribe_headers(&letter.choice);
        self.message(
            &letter.id.to_string(),
            from,
            to,
            translations::render_notification(letter),
            logo,
            headers,
        )
    }

    fn compose_account(&self, mail: &AccountMail) -> Result<Message, SendError> {
        let (id, from) = (mail.id.to_string(), translations::SERVICE_NAME.to_owned());
        self.message(
            &id,
            from,
            (None, mail.address.as_str()),
            account::render_account_mail(mail),
            None,
            vec![],
        )
    }

    fn compose_notice(&self, notice: &AccountNotice) -> Result<Message, SendError> {
        let (id, from) = (notice.id.to_string(), translations::SERVICE_NAME.to_owned());
        let to = (None, notice.address.as_str());
        self.message(&id, from, to, notice::render_notice(notice), None, vec![])
    }

    fn message(
        &self,
        id: &str,
        from: String,
        (to, address): (Option<String>, &str),
        rendered: Result<RenderedMail, minijinja::Error>,
        logo: Option<&Logo>,
        headers: Vec<HeaderValue>,
    ) -> Result<Message, SendError> {
        let address: Address = address.parse().map_err(|_| SendError::Permanent {
            why: NotificationFailure::UnknownReceiver,
            detail: "the recipient's address is malformed".into(),
        })?;
        let failed = |error: &dyn std::error::Error| SendError::Transient(error.to_string());
        let rendered = rendered.map_err(|error| failed(&error))?;
        let builder = Message::builder()
            .from(Mailbox::new(Some(from), self.from.clone()))
            .to(Mailbox::new(to, address))
            .subject(one_line(&rendered.subject))
            // The same for each attempt, so that recipients can detect duplicates (RFC 5322, section
            // 3.6.4).
            .message_id(Some(format!("<{id}@{}>", self.from.domain())))
            // Prevents automatic replies (RFC 3834, section 5).
            .raw_header(HeaderValue::new(
                HeaderName::new_from_ascii_str("Auto-Submitted"),
                "auto-generated".to_owned(),
            ));
        let builder = headers.into_iter().fold(builder, MessageBuilder::raw_header);
        let message = builder.multipart(body(rendered.text, rendered.html, logo));
        message.map_err(|error| failed(&error))
    }
}

/// Returns the headers by which mail clients offer to unsubscribe (RFC 2369, section 3.2); with one
/// click only if the URL uses TLS (RFC 8058, section 3.1).
fn unsubscribe_headers(url: &str) -> Vec<HeaderValue> {
    let link = HeaderValue::new(
        HeaderName::new_from_ascii_str("List-Unsubscribe"),
        format!("<{}>", one_line(url)),
    );
    let one_click = HeaderValue::new(
        HeaderName::new_from_ascii_str("List-Unsubscribe-Post"),
        "List-Unsubscribe=One-Click".to_owned(),
    );
    if url.starts_with("https://") { vec![link, one_click] } else { vec![link] }
}

/// Returns the body: text and HTML, and the logo that the HTML refers to (RFC 2387).
fn body(text: String, html: String, logo: Option<&Logo>) -> MultiPart {
    let Some(logo) = logo else { return MultiPart::alternative_plain_html(text, html) };
    // The media type is valid; the fallback only avoids a panic.
    let Ok(png) = ContentType::parse("image/png") else {
        return MultiPart::alternative_plain_html(text, html);
    };
    let image = Attachment::new_inline("logo".to_owned()).body(logo.bytes().to_vec(), png);
    let related = MultiPart::related().singlepart(SinglePart::html(html)).singlepart(image);
    MultiPart::alternative().singlepart(SinglePart::plain(text)).multipart(related)
}

impl Mail {
    async fn deliver(&self, id: &str, message: Message) -> Result<(), SendError> {
        match &self.transport {
            Transport::Smtp(smtp) => smtp.send(message).await,
            Transport::Folder(folder) => {
                let file = folder.join(format!("{id}.eml"));
                let written = write(&file, &message.formatted()).await;
                written.map_err(|error| {
                    SendError::Transient(format!("failed to write the mail to a file: {error}"))
                })
            }
        }
    }
}

#[async_trait]
impl Notifier for Mail {
    async fn send(&self, letter: &Notification) -> Result<(), SendError> {
        self.deliver(&letter.id.to_string(), self.compose(letter)?).await
    }
}

#[async_trait]
impl Mailer for Mail {
    async fn mail(&self, mail: &AccountMail) -> Result<(), SendError> {
        self.deliver(&mail.id.to_string(), self.compose_account(mail)?).await
    }

    async fn notify(&self, notice: &AccountNotice) -> Result<(), SendError> {
        self.deliver(&notice.id.to_string(), self.compose_notice(notice)?).await
    }
}

/// Renders previews of templates.
pub struct MailTemplates;

impl MailRenderer for MailTemplates {
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
        let context = MailContext {
            sender,
            name: "Ada Lovelace",
            platform: "Acme",
            link: "https://avouch.example/embed/0?token=preview",
            expires: "2030-01-31 12:00 UTC",
            choice: "https://avouch.example/unsubscribe/0?lang=en",
            appearance: translations::appearance(brand, colour.as_deref(), logo.as_deref()),
        };
        let errors = template::validate(wording, &context);
        if !errors.is_empty() {
            return Err(errors);
        }
        template::render(wording, &context).map_err(|error| vec![error.to_string()])
    }
}

/// Writes a file that only the service's user can read, because it contains a link.
async fn write(file: &std::path::Path, content: &[u8]) -> io::Result<()> {
    let mut options = tokio::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = options.open(file).await?;
    file.write_all(content).await?;
    file.flush().await
}

#[cfg(test)]
mod tests;
