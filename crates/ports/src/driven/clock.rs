//! The only ways to time and chance.

use chrono::{DateTime, Utc};
use domain::{
    binding::SecretHash,
    id::{AccountLinkId, SessionId, TeamId},
    notification::Mailbox,
    secret::Secret,
};

/// Tells the time, in whole microseconds: no store keeps more.
pub trait Clock: Send + Sync {
    fn now(&self) -> DateTime<Utc>;
}

/// Makes what must not be foreseen.
pub trait RandomSource: Send + Sync {
    /// A fresh identifier, ordered by time.
    fn new_id(&self) -> u128;

    /// Any number, each as likely as the other; for jitter.
    fn random_u16(&self) -> u16;

    /// 256 random bits.
    fn random_bytes(&self) -> [u8; 32];
}

/// Makes and reads the tokens of embed pages, passes for onlookers, and the links of people of the
/// portal.
pub trait TokenIssuer: Send + Sync {
    /// The token that opens this session's page; the same each time.
    fn embed_token(&self, session: SessionId) -> Secret;

    /// Whether this is that token. Takes as long whatever the answer.
    fn verify_embed_token(&self, session: SessionId, token: &str) -> bool;

    /// A pass to watch this session that runs out at that second.
    fn stream_token(&self, session: SessionId, until: DateTime<Utc>) -> Secret;

    /// Whether this is a pass for this session that has not run out. Takes as long whatever the
    /// answer, for passes of one length.
    fn verify_stream_token(&self, session: SessionId, pass: &str, now: DateTime<Utc>) -> bool;

    /// The keyed hash of a device's secret or of a code, within one session; the same each time.
    fn hash_secret(&self, session: SessionId, secret: &str) -> SecretHash;

    /// What somebody chooses a password with; the same each time.
    fn account_link_token(&self, id: AccountLinkId) -> Secret;

    /// Which link this is; none: it is no link of ours.
    fn verify_account_link_token(&self, token: &str) -> Option<AccountLinkId>;

    /// Where a mail of this team's to this address goes.
    fn mailbox(&self, team: TeamId, address: &str) -> Mailbox;

    /// What its receiver chooses with whether to get any; the same each time, and it never runs
    /// out.
    fn mailbox_token(&self, mailbox: &Mailbox) -> Secret;

    /// Which mailbox this is for; none: it is no token of ours.
    fn verify_mailbox_token(&self, token: &str) -> Option<Mailbox>;
}
