//! `avouch admin …` about the people who use the portal.

use std::sync::Arc;

use adapters::{
    credentials::{Argon2Passwords, TotpCodes},
    diesel::Store,
    system::{SystemChance, SystemClock},
};
use domain::{
    account::{Email, Role},
    audit::Deed,
    id::{TeamId, UserId},
    secret::Secret,
};
use ports::{
    account_store::{User, UserStore as _},
    audit_log::AuditLog as _,
    clock::{Chance as _, Clock as _},
    credentials::{OneTimeCodes as _, Passwords as _},
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::ADMIN;
use crate::kept::{Failure, explain};

/// Characters of a password that is made for somebody: 120 bits.
const PASSWORD: usize = 24;

/// Makes a person with a password, which is shown this once.
pub(super) async fn create(
    store: &Arc<Store>,
    team: TeamId,
    email: Email,
    role: Role,
) -> Result<Value, Failure> {
    let now = SystemClock.now();
    let password = password();
    let passwords = Argon2Passwords::new().map_err(explain)?;
    let hash = passwords.hash(password.clone()).await.map_err(explain)?;
    let user = User {
        id: UserId::from_uuid(Uuid::from_u128(SystemChance.id())),
        team,
        email,
        role,
        has_password: true,
        has_second_factor: false,
        created_at: now,
    };
    let subject = format!("{} as {}", user.email, role.as_str());
    store.note(team, &Deed::new(now, ADMIN, "person.add", &subject)).await.map_err(explain)?;
    if !store.add_user(&user, Some(&hash), now).await.map_err(explain)? {
        return Err(format!("somebody has the address {} already", user.email).into());
    }
    Ok(json!({ "userId": user.id, "password": password.expose() }))
}

/// Four groups of six that can be typed.
fn password() -> Secret {
    let bits = SystemChance.bits();
    let text = TotpCodes.secret(bits.first_chunk().copied().unwrap_or_default());
    let text: Vec<_> = text.expose().to_lowercase().chars().take(PASSWORD).collect();
    let groups: Vec<String> = text.chunks(6).map(|group| group.iter().collect()).collect();
    Secret::new(groups.join("-"))
}
