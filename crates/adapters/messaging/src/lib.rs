//! The channels over which applicants and users are notified.
//!
//! **Invariant:** the detail of a failure, which is logged, never contains an applicant's address.

mod channels;
mod mail;
mod messages;

pub use self::{
    channels::Channels,
    mail::{InvalidSmtpUrl, Mail, MailDiagnostic, MailTemplates, SmtpServer, is_address},
    messages::{
        InvalidAccount,
        sms::{Sms, SmsAccount},
        whatsapp::{Whatsapp, WhatsappAccount},
    },
};

/// Returns the text without control characters, as headers and template parameters require.
fn one_line(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}
