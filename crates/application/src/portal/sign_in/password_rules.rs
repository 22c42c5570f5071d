//! Checking passwords, and the rules for new ones.

use std::sync::Arc;

use domain::{
    account::{MAX_PASSWORD_CHARS, PasswordRejected, check_password},
    secret::Secret,
};
use ports::{account_store::PasswordHash, credentials::PasswordHasher, driving::PortalError};

/// Checks and hashes passwords.
#[derive(Clone)]
pub struct PasswordRules {
    pub hasher: Arc<dyn PasswordHasher>,
}

impl PasswordRules {
    /// Returns whether a password has this hash. Takes as long without a hash, and for a password
    /// that is too long to be one.
    pub(crate) async fn is_correct(&self, password: Secret, hash: Option<PasswordHash>) -> bool {
        let fits = password.expose().chars().count() <= MAX_PASSWORD_CHARS;
        self.hasher.verify(password, hash.filter(|_| fits)).await
    }

    /// Hashes a password that the member with this address chooses.
    ///
    /// # Errors
    /// [`PortalError::Password`]: it breaks a rule.
    pub(crate) async fn hash_chosen(
        &self,
        password: Secret,
        email: &str,
    ) -> Result<PasswordHash, PortalError> {
        check_password(&password)?;
        if self.hasher.is_frequent(&password) {
            return Err(PasswordRejected::Frequent.into());
        }
        let words = vec![email.to_owned(), "avouch".to_owned()];
        if self.hasher.is_guessable(password.clone(), words).await {
            return Err(PasswordRejected::Guessable.into());
        }
        Ok(self.hasher.hash(password).await?)
    }
}
