//! The key of a studio, which is part of its address.

use domain::id::InstanceId;

/// The length of an instance's identifier in hexadecimal digits.
const INSTANCE_CHARS: usize = 32;
/// The length of the random part: 256 bits in hexadecimal digits.
const SECRET_CHARS: usize = 64;

/// The instance that has a studio, unless the process is alone, and 256 random bits. Whoever has the key can
/// use a studio without an author, so that it has no `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct StudioKey {
    instance: Option<InstanceId>,
    /// In lower-case hexadecimal digits.
    secret: String,
}

impl StudioKey {
    pub(super) fn new(instance: Option<InstanceId>, random: [u8; 32]) -> Self {
        let hex = |text: String, byte: u8| text + &format!("{byte:02x}");
        Self { instance, secret: random.into_iter().fold(String::new(), hex) }
    }

    /// Parses the text of a key; `None` if it is none.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if !text.bytes().all(is_hex) {
            return None;
        }
        let (instance, secret) = text.split_at_checked(text.len().checked_sub(SECRET_CHARS)?)?;
        let instance = match instance.len() {
            0 => None,
            INSTANCE_CHARS => Some(InstanceId::from_u128(u128::from_str_radix(instance, 16).ok()?)),
            _ => return None,
        };
        Some(Self { instance, secret: secret.to_owned() })
    }

    pub(super) const fn instance(&self) -> Option<InstanceId> {
        self.instance
    }

    /// Returns the text of the key: the instance in 32 hexadecimal digits, if there is one, and the random
    /// part in 64.
    pub(super) fn expose(&self) -> String {
        let instance = self.instance.map(|id| id.as_uuid().simple().to_string());
        instance.unwrap_or_default() + &self.secret
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_key_names_its_instance_unless_the_process_is_alone() {
        let alone = StudioKey::new(None, [0xa; 32]).expose();
        assert_eq!(alone, "0a".repeat(32));
        assert!(StudioKey::parse(&alone).is_some_and(|key| key.instance().is_none()));
        let instance = InstanceId::from_u128(0xb);
        let key = StudioKey::new(Some(instance), [0xa; 32]).expose();
        assert_eq!(key, format!("{}b{alone}", "0".repeat(31)));
        assert_eq!(StudioKey::parse(&key).and_then(|key| key.instance()), Some(instance));
    }

    #[test]
    fn what_is_no_key_is_not_parsed() {
        let alone = "0a".repeat(32);
        let (short, long) = ("0".repeat(63), "0".repeat(97));
        let between = "0".repeat(95);
        let (upper, wide) = (alone.to_uppercase(), "é".repeat(32));
        let signed = format!("+{}{alone}", "0".repeat(31));
        for text in ["", "api", &short, &between, &long, &upper, &wide, &signed] {
            assert!(StudioKey::parse(text).is_none(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_key_is_read_as_it_was_written(
            instance in any::<Option<u128>>(),
            random in any::<[u8; 32]>(),
        ) {
            let key = StudioKey::new(instance.map(InstanceId::from_u128), random);
            prop_assert!(StudioKey::parse(&key.expose()) == Some(key));
        }

        #[test]
        fn any_text_is_read_without_a_panic(
            text in any::<String>(),
            digits in "[0-9a-f]{60,100}",
        ) {
            for text in [text, digits] {
                let parsed = StudioKey::parse(&text);
                prop_assert!(parsed.is_none_or(|key| key.expose() == text));
            }
        }
    }
}
