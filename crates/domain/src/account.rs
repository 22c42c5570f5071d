//! Members who use the portal: their roles, and the credentials that they sign in with.

use std::{fmt, str::FromStr};

use chrono::TimeDelta;

use crate::secret::Secret;

/// The longest address that mail can be sent to (RFC 5321, section 4.5.3.1.3, without the
/// brackets).
const MAX_EMAIL_BYTES: usize = 254;
/// The minimum length of a password that is used as the only factor (NIST SP 800-63B-4,
/// section 3.1.1.2).
pub const MIN_PASSWORD_CHARS: usize = 15;
/// The maximum length of a password. A longer one would only take more time to hash.
pub const MAX_PASSWORD_CHARS: usize = 200;
/// How long a generated initial password is valid; the member chooses their own before then.
pub const INITIAL_PASSWORD_TTL: TimeDelta = TimeDelta::hours(72);
/// The maximum length of the name that distinguishes a key.
pub const MAX_LABEL_CHARS: usize = 60;

/// The role of a member in their team.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Reads only.
    Viewer,
    /// Works with sessions, keys and webhooks.
    Member,
    /// Does what a member does, and writes and publishes the definitions of platforms, which all
    /// teams use.
    Author,
    /// Manages the members of the team and its branding.
    Owner,
    /// Runs the deployment.
    Operator,
}

/// The permission that an action requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    /// To read what the team has, without secrets.
    View,
    /// To change keys and webhooks, and to end sessions.
    Edit,
    /// To change the members of the team.
    ManageTeam,
    /// To write and publish the definitions of platforms.
    Author,
    /// To make decisions for the deployment.
    Operate,
}

impl Permission {
    const ALL: [Self; 5] = [Self::View, Self::Edit, Self::ManageTeam, Self::Author, Self::Operate];
}

impl Role {
    pub const ALL: [Self; 5] =
        [Self::Viewer, Self::Member, Self::Author, Self::Owner, Self::Operator];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Member => "member",
            Self::Author => "author",
            Self::Owner => "owner",
            Self::Operator => "operator",
        }
    }

    #[must_use]
    pub const fn may(self, permission: Permission) -> bool {
        match permission {
            Permission::View => true,
            Permission::Edit => !matches!(self, Self::Viewer),
            Permission::ManageTeam => matches!(self, Self::Owner | Self::Operator),
            Permission::Author => matches!(self, Self::Author | Self::Operator),
            Permission::Operate => matches!(self, Self::Operator),
        }
    }

    /// Returns whether this role may give the other one to a member. No member can give a
    /// permission that they lack: an owner appoints no author, since authors publish for all teams.
    #[must_use]
    pub fn may_appoint(self, other: Self) -> bool {
        let is_covered = |permission| !other.may(permission) || self.may(permission);
        self.may(Permission::ManageTeam) && Permission::ALL.into_iter().all(is_covered)
    }

    /// Returns whether this role may remove a member with the other one, and end their sign-ins. An
    /// owner decides who belongs to the team, whoever has appointed them; operators work for the
    /// deployment.
    #[must_use]
    pub fn may_remove(self, other: Self) -> bool {
        self.may(Permission::ManageTeam)
            && (self.may(Permission::Operate) || !other.may(Permission::Operate))
    }
}

impl FromStr for Role {
    type Err = UnknownRole;

    fn from_str(text: &str) -> Result<Self, UnknownRole> {
        Self::ALL.into_iter().find(|role| role.as_str() == text).ok_or(UnknownRole)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the role must be `viewer`, `member`, `author`, `owner` or `operator`")]
pub struct UnknownRole;

/// The purpose of an account link that was mailed to a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkPurpose {
    /// Joining a team.
    Invitation,
    /// Choosing a new password in place of a forgotten one.
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

    /// Returns how long such a link is valid.
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

/// The address that a member signs in with, in lower case.
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
        let allowed = |c: char| c.is_ascii_graphic() && !"\"(),:;<>[\\]".contains(c);
        let (local, domain) = text.rsplit_once('@').ok_or(InvalidEmail)?;
        let labels = || domain.split('.');
        let valid = (1..=64).contains(&local.len())
            && text.len() <= MAX_EMAIL_BYTES
            && text.chars().all(allowed)
            && !local.contains('@')
            && labels().count() >= 2
            && labels().all(|label| !label.is_empty());
        if valid { Ok(Self(text)) } else { Err(InvalidEmail) }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be an email address")]
pub struct InvalidEmail;

/// Checks the length of a new password.
///
/// # Errors
/// The password is too short or too long.
pub fn check_password(password: &Secret) -> Result<(), PasswordRejected> {
    match password.expose().chars().count() {
        0..MIN_PASSWORD_CHARS => Err(PasswordRejected::Short),
        MIN_PASSWORD_CHARS..=MAX_PASSWORD_CHARS => Ok(()),
        _ => Err(PasswordRejected::Long),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PasswordRejected {
    #[error("the password must have at least {MIN_PASSWORD_CHARS} characters")]
    Short,
    #[error("the password can have at most {MAX_PASSWORD_CHARS} characters")]
    Long,
    /// The password is on a list of frequent or stolen ones.
    #[error("this password appears on lists of common and leaked passwords. Choose another one")]
    Frequent,
    /// The password is among the first that an attacker would guess.
    #[error("this password is too easy to guess. Choose another one")]
    Guessable,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_has_its_permissions() {
        let table = Role::ALL.map(|role| (role.as_str(), Permission::ALL.map(|p| role.may(p))));
        assert_eq!(
            table,
            [
                ("viewer", [true, false, false, false, false]),
                ("member", [true, true, false, false, false]),
                ("author", [true, true, false, true, false]),
                ("owner", [true, true, true, false, false]),
                ("operator", [true; 5]),
            ]
        );
    }

    #[test]
    fn no_role_can_give_a_permission_that_it_lacks() {
        let may = |role: Role| Role::ALL.map(|other| role.may_appoint(other));
        assert_eq!(may(Role::Member), [false; 5]);
        assert_eq!(may(Role::Author), [false; 5]);
        assert_eq!(may(Role::Owner), [true, true, false, true, false]);
        assert_eq!(may(Role::Operator), [true; 5]);
    }

    #[test]
    fn an_owner_removes_everyone_but_operators() {
        let may = |role: Role| Role::ALL.map(|other| role.may_remove(other));
        for role in [Role::Viewer, Role::Member, Role::Author] {
            assert_eq!(may(role), [false; 5]);
        }
        assert_eq!(may(Role::Owner), [true, true, true, true, false]);
        assert_eq!(may(Role::Operator), [true; 5]);
    }

    #[test]
    fn addresses_are_parsed_to_lower_case() {
        let read = |text: &str| text.parse::<Email>().map(|email| email.as_str().to_owned());
        assert_eq!(read(" Ada@Example.ORG ").unwrap(), "ada@example.org");
        let long = format!("{}@example.org", "a".repeat(65));
        for invalid in
            ["", "ada", "@x.y", "ada@", "a@b", "a b@c.d", "a@b..c", "a@b@c.d", "a@b.c\r\nx", &long]
        {
            assert_eq!(read(invalid), Err(InvalidEmail), "{invalid}");
        }
    }

    #[test]
    fn password_lengths_are_bounded() {
        let check = |length| check_password(&Secret::new("ä".repeat(length)));
        assert_eq!(check(14), Err(PasswordRejected::Short));
        assert_eq!(check(15), Ok(()));
        assert_eq!(check(200), Ok(()));
        assert_eq!(check(201), Err(PasswordRejected::Long));
    }
}
