//! The second factor: one-time codes, and recovery codes for who has lost them.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::TimeDelta;
use domain::{notice::AccountEvent, secret::Secret};
use ports::{
    account_store::{CodeHash, SecondFactor},
    driving::{PortalError, SignedInUser, TotpSetup},
};

use super::{People, accounts::hash_of};

/// How long an offered secret can be taken.
const SETUP_TTL: TimeDelta = TimeDelta::minutes(30);
const RECOVERY_CODES: usize = 10;
/// Characters of a recovery code: 120 bits in base32, enough for a plain hash of it to be kept.
/// Those that earlier versions made have 16, and count as they did.
const RECOVERY: usize = 24;

impl People {
    pub(super) fn offer(&self, visitor: &SignedInUser, before: Option<&str>) -> TotpSetup {
        let known = before.and_then(|sealed| self.offered(visitor, sealed).zip(Some(sealed)));
        let (secret, sealed) = if let Some((secret, sealed)) = known {
            (secret, sealed.to_owned())
        } else {
            let bits = self.core.random.random_bytes();
            let secret = self.codes.secret(bits.first_chunk().copied().unwrap_or_default());
            let until = (self.core.clock.now() + SETUP_TTL).timestamp();
            let text = format!("{until}.{}", secret.expose());
            // What cannot be sealed cannot be taken later.
            let sealed = self.cipher.encrypt_text(&place(visitor), &text).unwrap_or_default();
            (secret, URL_SAFE_NO_PAD.encode(sealed))
        };
        let url = self.codes.url(&secret, &visitor.email);
        TotpSetup { secret, url, sealed: Secret::new(sealed) }
    }

    /// The secret of an offer that this visitor was made a while ago.
    fn offered(&self, visitor: &SignedInUser, sealed: &str) -> Option<Secret> {
        let sealed = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let text = self.cipher.decrypt_text(&place(visitor), &sealed).ok()?;
        let (until, secret) = text.split_once('.')?;
        let until: i64 = until.parse().ok()?;
        (self.core.clock.now().timestamp() < until).then(|| Secret::new(secret.to_owned()))
    }

    pub(super) async fn take_offer(
        &self,
        visitor: &SignedInUser,
        offer: &str,
        code: &str,
    ) -> Result<Vec<Secret>, PortalError> {
        let totp = self.offered(visitor, offer);
        let late = || PortalError::Invalid("that took too long: scan the new picture".into());
        let totp = totp.ok_or_else(late)?;
        let now = self.core.clock.now();
        let step = self.codes.step(&totp, code, now).ok_or(PortalError::WrongCode)?;
        let (codes, recovery) = self.fresh_recovery_codes();
        self.note(visitor, "second-factor.keep", "").await?;
        let factor = SecondFactor { totp, step, recovery };
        self.users.set_second_factor(visitor.user, Some(&factor)).await?;
        // Whoever was in without it is so no longer.
        self.sign_ins.end_other_sign_ins(visitor.user, Some(visitor.sign_in)).await?;
        self.tell(visitor.user, AccountEvent::CodesTurnedOn, &visitor.from).await?;
        Ok(codes)
    }

    /// Codes for who has lost their second factor, and what is kept of them.
    pub(super) fn fresh_recovery_codes(&self) -> (Vec<Secret>, Vec<CodeHash>) {
        let codes: Vec<_> =
            std::iter::repeat_with(|| self.recovery_code()).take(RECOVERY_CODES).collect();
        let hashes = codes.iter().map(|code| hash_of(&tidy(code.expose()))).collect();
        (codes, hashes)
    }

    /// Six groups of four, to be written down.
    fn recovery_code(&self) -> Secret {
        let bits = self.core.random.random_bytes();
        let text = self.codes.secret(bits.first_chunk().copied().unwrap_or_default());
        let text: Vec<_> = text.expose().to_lowercase().chars().take(RECOVERY).collect();
        let groups: Vec<String> = text.chunks(4).map(|group| group.iter().collect()).collect();
        Secret::new(groups.join("-"))
    }
}

/// A recovery code as it is hashed, however it was typed.
pub(super) fn tidy(code: &str) -> Secret {
    let plain = code.chars().filter(char::is_ascii_alphanumeric).take(RECOVERY + 1);
    Secret::new(plain.map(|c| c.to_ascii_lowercase()).collect())
}

fn place(visitor: &SignedInUser) -> String {
    format!("portal.offer.{}", visitor.user)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recovery_code_is_read_however_it_is_typed() {
        for (typed, code) in [
            ("abcd-efgh-ijkl-mnop-qrst-2345", "abcdefghijklmnopqrst2345"),
            (" ABCD efgh\u{2013}ijkl mnopQRST\t2345 ", "abcdefghijklmnopqrst2345"),
            ("Abcd-efgh-ijkl-mnop", "abcdefghijklmnop"),
        ] {
            assert_eq!(tidy(typed).expose(), code, "{typed}");
        }
        assert_eq!(tidy(&"a".repeat(1000)).expose().len(), RECOVERY + 1, "too long is wrong");
    }
}
