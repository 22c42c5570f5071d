//! Tokens of embed pages, streams, account links and mail preferences.

use chrono::{DateTime, Utc};
use domain::{
    binding::SecretHash,
    id::{AccountLinkId, SessionId, TeamId},
    notification::Mailbox,
    secret::Secret,
};

/// Issues and verifies the tokens of embed pages, streams, account links and mail preferences.
pub trait TokenIssuer: Send + Sync {
    /// Returns the token that opens a session's page; it is the same each time.
    fn embed_token(&self, session: SessionId) -> Secret;

    /// Returns whether a text is the session's embed token. The time that it takes does not depend
    /// on the result.
    fn verify_embed_token(&self, session: SessionId, token: &str) -> bool;

    /// Returns a stream token for a session that expires at the second of `until`.
    fn stream_token(&self, session: SessionId, until: DateTime<Utc>) -> Secret;

    /// Returns whether a text is a stream token for the session that has not expired. For tokens of
    /// equal length, the time that it takes does not depend on the result.
    fn verify_stream_token(&self, session: SessionId, token: &str, now: DateTime<Utc>) -> bool;

    /// Returns the keyed hash of a device's secret or of a code within one session; it is the same
    /// each time.
    fn hash_secret(&self, session: SessionId, secret: &str) -> SecretHash;

    /// Returns the token of an account link, with which a member chooses a password; it is the same
    /// each time.
    fn account_link_token(&self, id: AccountLinkId) -> Secret;

    /// Returns the account link of a token; `None` if this service did not issue the token.
    fn verify_account_link_token(&self, token: &str) -> Option<AccountLinkId>;

    /// Returns the mailbox of a team's mails to an address.
    fn mailbox(&self, team: TeamId, address: &str) -> Mailbox;

    /// Returns the token with which the owner of a mailbox chooses whether to receive mails. It is
    /// the same each time and never expires.
    fn mailbox_token(&self, mailbox: &Mailbox) -> Secret;

    /// Returns the mailbox of a token; `None` if this service did not issue the token.
    fn verify_mailbox_token(&self, token: &str) -> Option<Mailbox>;
}
