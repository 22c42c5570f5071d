//! The channels over which applicants are told where to go.
//!
//! **Invariant:** what is logged of a failure has no applicant's address in it.

mod channels;
mod mail;
mod messages;

pub use self::{
    channels::Channels,
    mail::{BadSmtpUrl, Mail, Server, Wordings, is_address},
    messages::{
        BadAccount,
        sms::{Sms, SmsAccount},
        whatsapp::{Whatsapp, WhatsappAccount},
    },
};

/// Text in one line, as headers and messages' gaps need it.
fn one_line(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}
