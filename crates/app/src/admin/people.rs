//! `avouch admin …` about the people who use the portal.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use credentials::{Argon2Passwords, TotpCodes};
use domain::{
    account::{Email, Role},
    audit::AuditEvent,
    id::{TeamId, UserId},
    secret::Secret,
};
use ports::{
    account_store::{NewPassword, SecondFactors as _, SignInStore as _, User, UserStore as _},
    audit_log::AuditLog as _,
    clock::Clock as _,
    credentials::{PasswordHasher as _, TotpVerifier as _},
    passkeys::PasskeyStore as _,
    random::RandomSource as _,
};
use serde_json::{Value, json};
use store::Store;
use system::clock::{SystemClock, SystemRandom};

use super::ADMIN;
use crate::storage::{StartupError, error_chain};

/// Characters of a password that is made for somebody: 120 bits.
const PASSWORD: usize = 24;

/// Makes a person with a password, which is shown this once.
pub(super) async fn create(
    store: &Arc<Store>,
    team: TeamId,
    email: Email,
    role: Role,
) -> Result<Value, StartupError> {
    let now = SystemClock.now();
    let (password, kept) = make_password(now).await?;
    let user = User {
        id: UserId::from_u128(SystemRandom.new_id()),
        team,
        email,
        role,
        has_password: true,
        has_second_factor: false,
        created_at: now,
    };
    let subject = format!("{} as {}", user.email, role.as_str());
    store
        .note(team, &AuditEvent::new(now, ADMIN, "person.add", &subject))
        .await
        .map_err(error_chain)?;
    if !store.add_user(&user, Some(&kept), now).await.map_err(error_chain)? {
        return Err(format!("somebody has the address {} already", user.email).into());
    }
    Ok(json!({ "userId": user.id, "password": password.expose() }))
}

/// Gives somebody another password, which is shown this once, and ends their sign-ins.
pub(super) async fn reset_password(
    store: &Arc<Store>,
    email: Email,
) -> Result<Value, StartupError> {
    let user = known(store, &email).await?;
    let now = SystemClock.now();
    let (password, kept) = make_password(now).await?;
    let deed = AuditEvent::new(now, ADMIN, "password.reset", user.email.as_str());
    store.note(user.team, &deed).await.map_err(error_chain)?;
    store.set_password(user.id, &kept).await.map_err(error_chain)?;
    let ended = store.end_other_sign_ins(user.id, None).await.map_err(error_chain)?;
    Ok(json!({ "userId": user.id, "password": password.expose(), "signInsEnded": ended }))
}

/// Takes somebody's one-time codes and passkeys away, and ends their sign-ins.
pub(super) async fn drop_second_factor(
    store: &Arc<Store>,
    email: Email,
) -> Result<Value, StartupError> {
    let user = known(store, &email).await?;
    let deed = AuditEvent::new(SystemClock.now(), ADMIN, "second-factor.drop", user.email.as_str());
    store.note(user.team, &deed).await.map_err(error_chain)?;
    for passkey in store.passkeys(user.id).await.map_err(error_chain)? {
        store.remove_passkey(user.id, passkey.id).await.map_err(error_chain)?;
    }
    store.set_second_factor(user.id, None).await.map_err(error_chain)?;
    let ended = store.end_other_sign_ins(user.id, None).await.map_err(error_chain)?;
    Ok(json!({ "userId": user.id, "signInsEnded": ended }))
}

async fn known(store: &Arc<Store>, email: &Email) -> Result<User, StartupError> {
    let kept = store.user_by_email(email).await.map_err(error_chain)?;
    Ok(kept.ok_or_else(|| format!("nobody has the address {email}"))?.user)
}

/// A password for somebody, and what is kept of it: it has to be replaced before long.
async fn make_password(now: DateTime<Utc>) -> Result<(Secret, NewPassword), StartupError> {
    let password = password();
    let passwords = Argon2Passwords::new().map_err(error_chain)?;
    let hash = passwords.hash(password.clone()).await.map_err(error_chain)?;
    Ok((password, NewPassword::made(hash, now)))
}

/// Four groups of six that can be typed.
fn password() -> Secret {
    let bits = SystemRandom.random_bytes();
    let text = TotpCodes.secret(bits.first_chunk().copied().unwrap_or_default());
    let text: Vec<_> = text.expose().to_lowercase().chars().take(PASSWORD).collect();
    let groups: Vec<String> = text.chunks(6).map(|group| group.iter().collect()).collect();
    Secret::new(groups.join("-"))
}
