//! Portal users: their sign-ins, credentials and notices.

pub(crate) mod account_links;
pub(crate) mod invitations;
pub(crate) mod known_browsers;
pub(crate) mod notices;
pub(crate) mod passkeys;
pub(crate) mod sign_ins;
pub(crate) mod users;
