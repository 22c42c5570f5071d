//! Time, randomness and tokens.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::{DateTime, SubsecRound as _, Utc};
use domain::{
    binding::SecretHash,
    id::{AccountLinkId, SessionId, TeamId},
    notification::Mailbox,
    secret::Secret,
};
use ports::{clock::Clock, random::RandomSource, tokens::TokenIssuer};
use ring::hmac;
use subtle::ConstantTimeEq as _;
use uuid::Uuid;

/// The system clock.
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the clock")]
    fn now(&self) -> DateTime<Utc> {
        Utc::now().trunc_subsecs(6)
    }
}

/// The operating system's random number generator.
pub struct SystemRandom;

impl RandomSource for SystemRandom {
    #[expect(clippy::disallowed_methods, reason = "the one place that makes identifiers")]
    fn new_id(&self) -> u128 {
        Uuid::now_v7().as_u128()
    }

    fn random_u16(&self) -> u16 {
        let [high, low, ..] = self.random_bytes();
        u16::from_be_bytes([high, low])
    }

    fn random_bytes(&self) -> [u8; 32] {
        let [a, b] = [Uuid::new_v4(), Uuid::new_v4()];
        let mut bits = [0; 32];
        if getrandom::fill(&mut bits).is_err() {
            // Does not fail on Linux after boot; the UUIDs above would have panicked before.
            bits = [a.into_bytes(), b.into_bytes()].concat().try_into().unwrap_or(bits);
        }
        bits
    }
}

/// Issues tokens that are keyed hashes (HMAC-SHA256) of identifiers: they are not stored, and
/// cannot be forged without the key.
pub struct HmacTokenIssuer {
    key: hmac::Key,
    /// The earlier signing key, whose tokens are still accepted.
    earlier: Option<hmac::Key>,
    /// The key of hashes in the database, which cannot be recomputed with another key.
    lasting: hmac::Key,
}

impl HmacTokenIssuer {
    #[must_use]
    pub fn new(key: [u8; 32]) -> Self {
        Self::with(key, None, key)
    }

    /// Signs with the first key, also accepts tokens of the earlier one, and hashes stored values
    /// with the last key.
    #[must_use]
    pub fn with(key: [u8; 32], earlier: Option<[u8; 32]>, lasting: [u8; 32]) -> Self {
        let hmac = |key: [u8; 32]| hmac::Key::new(hmac::HMAC_SHA256, &key);
        Self { key: hmac(key), earlier: earlier.map(hmac), lasting: hmac(lasting) }
    }

    /// Returns whether a signing key, current or earlier, gives this token.
    fn made(&self, token: &str, make: impl Fn(&hmac::Key) -> String) -> bool {
        let mut keys = [Some(&self.key), self.earlier.as_ref()].into_iter().flatten();
        keys.any(|key| bool::from(make(key).as_bytes().ct_eq(token.as_bytes())))
    }
}

fn embed_token(key: &hmac::Key, session: SessionId) -> String {
    let text = [b"embed:".as_slice(), session.as_uuid().as_bytes()].concat();
    URL_SAFE_NO_PAD.encode(hmac::sign(key, &text))
}

fn watch_pass(key: &hmac::Key, session: SessionId, until: i64) -> String {
    let (id, end) = (session.as_uuid(), until.to_be_bytes());
    let text = [b"watch:".as_slice(), id.as_bytes(), &end].concat();
    format!("{until}.{}", URL_SAFE_NO_PAD.encode(hmac::sign(key, &text)))
}

fn account_token(key: &hmac::Key, id: AccountLinkId) -> String {
    let text = [b"account:".as_slice(), id.as_uuid().as_bytes()].concat();
    format!("{id}.{}", URL_SAFE_NO_PAD.encode(hmac::sign(key, &text)))
}

impl TokenIssuer for HmacTokenIssuer {
    fn embed_token(&self, session: SessionId) -> Secret {
        Secret::new(embed_token(&self.key, session))
    }

    fn verify_embed_token(&self, session: SessionId, token: &str) -> bool {
        self.made(token, |key| embed_token(key, session))
    }

    fn stream_token(&self, session: SessionId, until: DateTime<Utc>) -> Secret {
        Secret::new(watch_pass(&self.key, session, until.timestamp()))
    }

    fn verify_stream_token(&self, session: SessionId, pass: &str, now: DateTime<Utc>) -> bool {
        let until = pass.split_once('.').and_then(|(until, _)| until.parse().ok());
        let until = until.and_then(|until| DateTime::from_timestamp(until, 0));
        let until = until.unwrap_or_default();
        self.made(pass, |key| watch_pass(key, session, until.timestamp())) && now < until
    }

    fn hash_secret(&self, session: SessionId, secret: &str) -> SecretHash {
        let named = [b"device:".as_slice(), session.as_uuid().as_bytes(), secret.as_bytes()];
        let mut hash = [0; 32];
        let tag = hmac::sign(&self.lasting, &named.concat());
        hash.iter_mut().zip(tag.as_ref()).for_each(|(to, from)| *to = *from);
        SecretHash(hash)
    }

    fn account_link_token(&self, id: AccountLinkId) -> Secret {
        Secret::new(account_token(&self.key, id))
    }

    fn verify_account_link_token(&self, token: &str) -> Option<AccountLinkId> {
        let id = token.split_once('.')?.0.parse().ok()?;
        self.made(token, |key| account_token(key, id)).then_some(id)
    }

    fn mailbox(&self, team: TeamId, address: &str) -> Mailbox {
        let address = address.to_lowercase();
        let text = [b"mailbox:".as_slice(), team.as_uuid().as_bytes(), address.as_bytes()].concat();
        Mailbox { team, mark: first_half(&hmac::sign(&self.lasting, &text)) }
    }

    fn mailbox_token(&self, mailbox: &Mailbox) -> Secret {
        let named = [mailbox.team.as_uuid().as_bytes().as_slice(), &mailbox.mark].concat();
        let text = [b"mails:".as_slice(), &named].concat();
        let mark = first_half(&hmac::sign(&self.lasting, &text));
        Secret::new(URL_SAFE_NO_PAD.encode([named.as_slice(), &mark].concat()))
    }

    fn verify_mailbox_token(&self, token: &str) -> Option<Mailbox> {
        let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
        let (team, mark) = (bytes.get(..16)?, bytes.get(16..32)?);
        let team = TeamId::from_uuid(Uuid::from_slice(team).ok()?);
        let mailbox = Mailbox { team, mark: mark.try_into().ok()? };
        let same = self.mailbox_token(&mailbox).expose().as_bytes().ct_eq(token.as_bytes());
        bool::from(same).then_some(mailbox)
    }
}

/// Returns 128 bits of a hash, enough that no second text with this hash can be found during the
/// life of a mail.
fn first_half(tag: &hmac::Tag) -> [u8; 16] {
    let mut half = [0; 16];
    half.iter_mut().zip(tag.as_ref()).for_each(|(to, from)| *to = *from);
    half
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    #[test]
    fn a_link_is_known_by_its_mark() {
        let tokens = HmacTokenIssuer::new([7; 32]);
        let id = AccountLinkId::from_u128(1);
        let link = tokens.account_link_token(id);
        let text = link.expose();
        assert_eq!(tokens.verify_account_link_token(text), Some(id));
        assert_eq!(HmacTokenIssuer::new([8; 32]).verify_account_link_token(text), None);
        let other = text.replacen("000000000001", "000000000002", 1);
        // Another notation of the same identifier is another text.
        let upper = Uuid::from_u128(10).to_string().to_uppercase();
        for odd in ["", ".", "1.", &text[..40], &format!("{text}A"), &other, &upper] {
            assert_eq!(tokens.verify_account_link_token(odd), None, "{odd}");
        }
    }

    #[test]
    fn a_mailbox_is_known_by_its_token() {
        let tokens = HmacTokenIssuer::new([7; 32]);
        let team = |number| TeamId::from_u128(number);
        let mailbox = tokens.mailbox(team(1), "Ada@Example.com");
        assert_eq!(mailbox, tokens.mailbox(team(1), "ada@example.COM"));
        let others =
            [tokens.mailbox(team(2), "ada@example.com"), tokens.mailbox(team(1), "ada@b.c")];
        assert!(others.iter().all(|other| other.mark != mailbox.mark));
        let token = tokens.mailbox_token(&mailbox);
        let text = token.expose();
        assert_eq!((text.len(), tokens.verify_mailbox_token(text)), (64, Some(mailbox)));
        assert_eq!(HmacTokenIssuer::new([8; 32]).verify_mailbox_token(text), None);
        for at in 0..text.len() {
            let mut odd = text.to_owned();
            let letter = if odd.as_bytes()[at] == b'A' { "B" } else { "A" };
            odd.replace_range(at..=at, letter);
            assert_eq!(tokens.verify_mailbox_token(&odd), None, "{odd}");
        }
        for odd in
            ["", "A", &text[..63], &format!("{text}A"), &format!("{text}AAAA"), &format!("{text}=")]
        {
            assert_eq!(tokens.verify_mailbox_token(odd), None, "{odd}");
        }
    }

    #[test]
    fn what_an_earlier_key_signed_is_taken_until_it_goes() {
        let old = HmacTokenIssuer::new([7; 32]);
        let turned = HmacTokenIssuer::with([8; 32], Some([7; 32]), [7; 32]);
        let after = HmacTokenIssuer::with([8; 32], None, [7; 32]);
        let session = SessionId::from_u128(1);
        let link = AccountLinkId::from_u128(2);
        let now = DateTime::from_timestamp(1_000_000_000, 0).unwrap_or_default();
        let end = now + TimeDelta::minutes(1);
        let (token, pass, mailed) = (
            old.embed_token(session),
            old.stream_token(session, end),
            old.account_link_token(link),
        );
        for (tokens, taken) in [(&turned, true), (&after, false)] {
            assert_eq!(tokens.verify_embed_token(session, token.expose()), taken);
            assert_eq!(tokens.verify_stream_token(session, pass.expose(), now), taken);
            assert_eq!(tokens.verify_account_link_token(mailed.expose()).is_some(), taken);
            assert_ne!(
                tokens.embed_token(session).expose(),
                token.expose(),
                "signed with the new one"
            );
        }
        assert!(!old.verify_embed_token(session, turned.embed_token(session).expose()));
        // Hashes in the database do not change.
        let team = TeamId::from_u128(3);
        assert!(after.hash_secret(session, "x") == old.hash_secret(session, "x"));
        assert_eq!(after.mailbox(team, "a@b.c"), old.mailbox(team, "a@b.c"));
        let token = old.mailbox_token(&old.mailbox(team, "a@b.c"));
        assert!(after.verify_mailbox_token(token.expose()).is_some());
    }

    #[test]
    fn a_pass_is_for_one_session_until_one_moment() {
        let tokens = HmacTokenIssuer::new([7; 32]);
        let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let (one, other) = (SessionId::from_uuid(one), SessionId::from_uuid(other));
        let now = DateTime::from_timestamp(1_000_000_000, 0).unwrap_or_default();
        let pass = tokens.stream_token(one, now + TimeDelta::minutes(5));
        let text = pass.expose();
        assert!(tokens.verify_stream_token(one, text, now));
        assert!(!tokens.verify_stream_token(other, text, now));
        assert!(!tokens.verify_stream_token(one, text, now + TimeDelta::minutes(5)));
        assert!(!tokens.verify_stream_token(one, &text.replacen("10000003", "10000004", 1), now));
        assert!(!tokens.verify_stream_token(one, tokens.embed_token(one).expose(), now));
        assert!(!tokens.verify_embed_token(one, text));
        assert!(!HmacTokenIssuer::new([8; 32]).verify_stream_token(one, text, now));
        for odd in
            ["", ".", "1", "-1.", "99999999999999999999.a", text.trim_end_matches(|c| c != '.')]
        {
            assert!(!tokens.verify_stream_token(one, odd, now), "{odd}");
        }
    }
}
