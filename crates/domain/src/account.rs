//! The people who use the portal: what they may do, and what they sign in with.

use std::{fmt, str::FromStr};

use chrono::TimeDelta;

use crate::secret::Secret;

/// The longest address that mail can be sent to (RFC 5321, section 4.5.3.1.3, without the brackets).
const LONGEST_EMAIL: usize = 254;
/// A password that is all that is asked for has so many characters at least (NIST SP 800-63B-4,
/// section 3.1.1.2).
pub const MIN_PASSWORD_CHARS: usize = 15;
/// More would only cost us time.
pub const MAX_PASSWORD_CHARS: usize = 200;
/// How long a password opens something that was made for somebody, until they choose their own.
pub const INITIAL_PASSWORD_TTL: TimeDelta = TimeDelta::hours(72);
/// Characters of the name that a key is told apart by.
pub const MAX_LABEL_CHARS: usize = 60;

/// What a person is in their team; each may all that those before it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Looks on.
    Viewer,
    /// Works with sessions, keys and webhooks.
    Member,
    /// Decides who is in the team and what it looks like.
    Owner,
    /// Runs the deployment.
    Operator,
}

/// What an action asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    /// To see what the team has, without secrets.
    Look,
    /// To change keys and webhooks, and to end sessions.
    Work,
    /// To change who is in the team.
    Govern,
    /// To decide for the deployment.
    Operate,
}

impl Role {
    pub const ALL: [Self; 4] = [Self::Viewer, Self::Member, Self::Owner, Self::Operator];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Member => "member",
            Self::Owner => "owner",
            Self::Operator => "operator",
        }
    }

    #[must_use]
    pub fn may(self, right: Permission) -> bool {
        self >= match right {
            Permission::Look => Self::Viewer,
            Permission::Work => Self::Member,
            Permission::Govern => Self::Owner,
            Permission::Operate => Self::Operator,
        }
    }

    /// Nobody makes somebody mightier than themselves.
    #[must_use]
    pub fn may_appoint(self, other: Self) -> bool {
        self.may(Permission::Govern) && other <= self
    }
}

impl FromStr for Role {
    type Err = UnknownRole;

    fn from_str(text: &str) -> Result<Self, UnknownRole> {
        Self::ALL.into_iter().find(|role| role.as_str() == text).ok_or(UnknownRole)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a role is `viewer`, `member`, `owner` or `operator`")]
pub struct UnknownRole;

/// What a link is for that a person was mailed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkPurpose {
    /// To come into a team.
    Invitation,
    /// To choose a password in the place of one that they no longer know.
    Reset,
}

impl LinkPurpose {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Invitation => "invitation",
            Self::Reset => "reset",
        }
    }

    /// For how long such a link opens something.
    #[must_use]
    pub const fn ttl(self) -> TimeDelta {
        match self {
            Self::Invitation => TimeDelta::days(7),
            Self::Reset => TimeDelta::minutes(30),
        }
    }
}

impl FromStr for LinkPurpose {
    type Err = UnknownLinkPurpose;

    fn from_str(text: &str) -> Result<Self, UnknownLinkPurpose> {
        let all = [Self::Invitation, Self::Reset];
        all.into_iter().find(|purpose| purpose.as_str() == text).ok_or(UnknownLinkPurpose)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a link is an `invitation` or a `reset`")]
pub struct UnknownLinkPurpose;

/// The address that a person signs in with, in lower case.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Email(String);

impl Email {
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Email {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl FromStr for Email {
    type Err = InvalidEmail;

    fn from_str(text: &str) -> Result<Self, InvalidEmail> {
        let text = text.trim().to_lowercase();
        let plain = |c: char| c.is_ascii_graphic() && !"\"(),:;<>[\\]".contains(c);
        let (local, domain) = text.rsplit_once('@').ok_or(InvalidEmail)?;
        let labels = || domain.split('.');
        let fine = (1..=64).contains(&local.len())
            && text.len() <= LONGEST_EMAIL
            && text.chars().all(plain)
            && !local.contains('@')
            && labels().count() >= 2
            && labels().all(|label| !label.is_empty());
        if fine { Ok(Self(text)) } else { Err(InvalidEmail) }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be an e-mail address")]
pub struct InvalidEmail;

/// Whether a password may be chosen, as far as its length tells.
///
/// # Errors
/// It is too short or too long.
pub fn check_password(password: &Secret) -> Result<(), PasswordRejected> {
    match password.expose().chars().count() {
        0..MIN_PASSWORD_CHARS => Err(PasswordRejected::Short),
        MIN_PASSWORD_CHARS..=MAX_PASSWORD_CHARS => Ok(()),
        _ => Err(PasswordRejected::Long),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PasswordRejected {
    #[error("a password has at least {MIN_PASSWORD_CHARS} characters")]
    Short,
    #[error("a password has at most {MAX_PASSWORD_CHARS} characters")]
    Long,
    /// It is on a list.
    #[error(
        "that password is on lists of frequent and stolen passwords, which are tried first: choose \
         another one"
    )]
    Frequent,
    /// It is among the first that somebody would try.
    #[error("that password is too easy to guess")]
    Guessable,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_and_what_they_may() {
        let rights = [Permission::Look, Permission::Work, Permission::Govern];
        let table = Role::ALL.map(|role| (role.as_str(), rights.map(|right| role.may(right))));
        assert_eq!(
            table,
            [
                ("viewer", [true, false, false]),
                ("member", [true, true, false]),
                ("owner", [true, true, true]),
                ("operator", [true, true, true]),
            ]
        );
    }

    #[test]
    fn nobody_appoints_somebody_mightier() {
        let may = |one: Role| Role::ALL.map(|other| one.may_appoint(other));
        assert_eq!(may(Role::Member), [false; 4]);
        assert_eq!(may(Role::Owner), [true, true, true, false]);
        assert_eq!(may(Role::Operator), [true; 4]);
    }

    #[test]
    fn addresses_are_read_in_lower_case() {
        let read = |text: &str| text.parse::<Email>().map(|email| email.as_str().to_owned());
        assert_eq!(read(" Ada@Example.ORG ").unwrap(), "ada@example.org");
        let long = format!("{}@example.org", "a".repeat(65));
        for odd in
            ["", "ada", "@x.y", "ada@", "a@b", "a b@c.d", "a@b..c", "a@b@c.d", "a@b.c\r\nx", &long]
        {
            assert_eq!(read(odd), Err(InvalidEmail), "{odd}");
        }
    }

    #[test]
    fn passwords_have_a_length() {
        let check = |length| check_password(&Secret::new("ä".repeat(length)));
        assert_eq!(check(14), Err(PasswordRejected::Short));
        assert_eq!(check(15), Ok(()));
        assert_eq!(check(200), Ok(()));
        assert_eq!(check(201), Err(PasswordRejected::Long));
    }
}
