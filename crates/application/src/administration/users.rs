//! Creates members with a generated password, and gives back access to members who lost theirs.

use std::sync::Arc;

use async_trait::async_trait;
use domain::{
    account::{Email, Role},
    id::{TeamId, UserId},
    secret::Secret,
};
use ports::{
    StoreError,
    account_store::{NewPassword, SecondFactors, SignInStore, User, UserStore},
    clock::Clock,
    credentials::{PasswordHasher, TotpVerifier},
    driving::{AdministrationError, GeneratedPassword, UserAdminService},
    key_store::TeamStore,
    passkeys::PasskeyStore,
    random::RandomSource,
};
use uuid::Uuid;

use super::{OperatorAudit, require_team};

/// The length of a generated password in base32, without separators: 120 bits.
const PASSWORD_CHARS: usize = 24;
const PASSWORD_GROUP_CHARS: usize = 6;

/// Implements [`UserAdminService`].
pub struct UserAdministration {
    pub teams: Arc<dyn TeamStore>,
    pub users: Arc<dyn UserStore>,
    pub second_factors: Arc<dyn SecondFactors>,
    pub sign_ins: Arc<dyn SignInStore>,
    pub passkeys: Arc<dyn PasskeyStore>,
    pub hasher: Arc<dyn PasswordHasher>,
    pub totp: Arc<dyn TotpVerifier>,
    pub audit: OperatorAudit,
    pub clock: Arc<dyn Clock>,
    pub random: Arc<dyn RandomSource>,
}

#[async_trait]
impl UserAdminService for UserAdministration {
    async fn create(
        &self,
        team: TeamId,
        email: Email,
        role: Role,
    ) -> Result<GeneratedPassword, AdministrationError> {
        require_team(&*self.teams, team).await?;
        let (password, stored) = self.generate_password().await?;
        let now = self.clock.now();
        let user = User {
            id: UserId::from_uuid(Uuid::from_u128(self.random.new_id())),
            team,
            email,
            role,
            has_password: true,
            has_second_factor: false,
            created_at: now,
        };
        let subject = format!("{} as {}", user.email, role.as_str());
        self.audit.record(team, "person.add", &subject).await?;
        if self.users.add_user(&user, Some(&stored), now).await? {
            Ok(GeneratedPassword { user: user.id, password })
        } else {
            Err(AdministrationError::AddressTaken(user.email))
        }
    }

    async fn reset_password(
        &self,
        email: &Email,
    ) -> Result<(GeneratedPassword, usize), AdministrationError> {
        let user = self.user(email).await?;
        let (password, stored) = self.generate_password().await?;
        self.audit.record(user.team, "password.reset", user.email.as_str()).await?;
        self.users.set_password(user.id, &stored).await?;
        let ended = self.sign_ins.end_other_sign_ins(user.id, None).await?;
        Ok((GeneratedPassword { user: user.id, password }, ended))
    }

    async fn drop_second_factor(
        &self,
        email: &Email,
    ) -> Result<(UserId, usize), AdministrationError> {
        let user = self.user(email).await?;
        self.audit.record(user.team, "second-factor.drop", user.email.as_str()).await?;
        for passkey in self.passkeys.passkeys(user.id).await? {
            self.passkeys.remove_passkey(user.id, passkey.id).await?;
        }
        // Without passkeys this deletes the recovery codes as well.
        self.second_factors.set_second_factor(user.id, None).await?;
        let ended = self.sign_ins.end_other_sign_ins(user.id, None).await?;
        Ok((user.id, ended))
    }
}

impl UserAdministration {
    async fn user(&self, email: &Email) -> Result<User, AdministrationError> {
        let found = self.users.user_by_email(email).await?;
        Ok(found.ok_or_else(|| AdministrationError::UnknownAddress(email.clone()))?.user)
    }

    async fn generate_password(&self) -> Result<(Secret, NewPassword), StoreError> {
        let password = self.password();
        let hash = self.hasher.hash(password.clone()).await?;
        Ok((password, NewPassword::made(hash, self.clock.now())))
    }

    /// Returns four groups of six characters, which can be typed.
    fn password(&self) -> Secret {
        let bits = self.random.random_bytes();
        let base32 = self.totp.secret(bits.first_chunk().copied().unwrap_or_default());
        let chars: Vec<_> = base32.expose().to_lowercase().chars().take(PASSWORD_CHARS).collect();
        let groups = chars.chunks(PASSWORD_GROUP_CHARS).map(|group| group.iter().collect());
        Secret::new(groups.collect::<Vec<String>>().join("-"))
    }
}
