//! The channels over which applicants are told where to go.
//!
//! **Invariant:** what is logged of a failure has no applicant's address in it.

mod mail;

pub use self::mail::{BadSmtpUrl, Mail, Server, Wordings, is_address};
