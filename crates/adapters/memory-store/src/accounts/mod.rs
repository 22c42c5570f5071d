//! Portal users with their credentials, sign-ins and mails.

mod invitations;
mod known_browsers;
mod links;
mod notices;
mod passkeys;
mod sign_ins;
mod users;

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use domain::{
    account::{Email, Role},
    id::{AccountLinkId, NoticeId, PasskeyId, SignInId, TeamId, UserId},
    secret::Secret,
};
use ports::{
    StoreError,
    account_store::{CodeHash, NewPassword, PasswordHash, StoredUser, User},
    known_browsers::KnownBrowser,
    passkeys::StoredPasskey,
};

use self::{links::LinkRecord, notices::NoticeRecord, sign_ins::SignInRecord};

/// All users, and the records that belong to them.
#[derive(Default)]
pub(crate) struct AccountState {
    users: BTreeMap<UserId, UserRecord>,
    sign_ins: BTreeMap<SignInId, SignInRecord>,
    links: BTreeMap<AccountLinkId, LinkRecord>,
    notices: BTreeMap<NoticeId, NoticeRecord>,
    passkeys: BTreeMap<PasskeyId, StoredPasskey>,
    browsers: Vec<KnownBrowser>,
}

struct UserRecord {
    id: UserId,
    team: TeamId,
    email: Email,
    /// Whether the member owns the address; otherwise they were invited by it and have not claimed
    /// it.
    has_address: bool,
    role: Role,
    password: Option<PasswordHash>,
    password_until: Option<DateTime<Utc>>,
    /// The member's subject at the identity provider.
    subject: Option<String>,
    totp: Option<Secret>,
    /// The time step of the last TOTP code that was used.
    totp_step: i64,
    recovery: Vec<CodeHash>,
    created_at: DateTime<Utc>,
}

impl UserRecord {
    fn new(
        user: &User,
        password: Option<&NewPassword>,
        has_address: bool,
        created_at: DateTime<Utc>,
    ) -> Self {
        Self {
            id: user.id,
            team: user.team,
            email: user.email.clone(),
            has_address,
            role: user.role,
            password: password.map(|password| password.hash.clone()),
            password_until: password.and_then(|password| password.until),
            subject: None,
            totp: None,
            totp_step: 0,
            recovery: vec![],
            created_at,
        }
    }
}

impl AccountState {
    /// Refuses a reference to a person who does not exist.
    fn require(&self, id: UserId, action: &'static str) -> Result<(), StoreError> {
        let known = self.users.contains_key(&id);
        if known { Ok(()) } else { Err(StoreError::new(action, "there is no such person")) }
    }

    /// Returns the user with an address.
    fn holder(&self, email: &Email) -> Option<&UserRecord> {
        self.users.values().find(|record| record.has_address && record.email == *email)
    }

    fn passkey_count(&self, id: UserId) -> usize {
        self.passkeys.values().filter(|passkey| passkey.user == id).count()
    }

    fn user(&self, record: &UserRecord) -> User {
        User {
            id: record.id,
            team: record.team,
            email: record.email.clone(),
            role: record.role,
            has_password: record.password.is_some(),
            has_second_factor: record.totp.is_some() || self.passkey_count(record.id) > 0,
            created_at: record.created_at,
        }
    }

    fn kept(&self, record: &UserRecord) -> StoredUser {
        StoredUser {
            user: self.user(record),
            password: record.password.clone(),
            password_until: record.password_until,
            subject: record.subject.clone(),
            totp: record.totp.clone(),
            passkeys: self.passkey_count(record.id),
            recovery_codes_left: record.recovery.len(),
        }
    }

    fn kept_of(&self, id: UserId) -> Option<StoredUser> {
        self.users.get(&id).map(|record| self.kept(record))
    }

    /// Removes a user with all records that belong to them.
    fn remove(&mut self, id: UserId) {
        self.users.remove(&id);
        self.sign_ins.retain(|_, record| record.sign_in.user != id);
        self.links.retain(|_, record| record.link.user != id);
        self.notices.retain(|_, record| record.notice.user != id);
        self.passkeys.retain(|_, passkey| passkey.user != id);
        self.browsers.retain(|browser| browser.user != id);
    }
}
