//! Where the platform has sent a code, as partners see it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const MAX_DOMAIN_CHARS: usize = 64;

/// The element of the page that tells where a code was sent. Partners see the channel and the end of
/// the address, as `sms ***56` or `email ***@example.com`, and nothing else of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChannelHint {
    /// A selector as that of a condition, for the element with the address.
    pub selector: String,
    pub channel: CodeChannel,
}

/// How a code reaches the applicant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CodeChannel {
    Sms,
    Email,
    /// An app that generates or shows codes; its page has no address.
    App,
    Call,
}

impl CodeChannel {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Sms => "sms",
            Self::Email => "email",
            Self::App => "app",
            Self::Call => "call",
        }
    }
}

impl ChannelHint {
    /// Returns what partners see, from the text of the element.
    pub(super) fn masked(&self, text: &str) -> String {
        let channel = self.channel.as_str();
        let end = match self.channel {
            CodeChannel::Sms | CodeChannel::Call => last_digits(text),
            CodeChannel::Email => domain(text),
            CodeChannel::App => None,
        };
        end.map_or_else(|| channel.to_owned(), |end| format!("{channel} ***{end}"))
    }
}

/// Returns the last two digits of the last number; `None` if it has fewer than two.
fn last_digits(text: &str) -> Option<String> {
    let is_part = |character: char| character.is_ascii_digit();
    let end = text.rfind(is_part)?;
    let digits: Vec<_> = text.get(..=end)?.chars().rev().take_while(|c| is_part(*c)).collect();
    let [last, before, ..] = digits.as_slice() else { return None };
    Some([*before, *last].iter().collect())
}

/// Returns the at sign and the domain of the last e-mail address.
fn domain(text: &str) -> Option<String> {
    let (_, rest) = text.rsplit_once('@')?;
    let is_part = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '*' | '•' | '…');
    let domain: String = rest.chars().take_while(is_part).take(MAX_DOMAIN_CHARS).collect();
    let domain = domain.trim_end_matches('.');
    (!domain.is_empty()).then(|| format!("@{domain}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partners_see_the_channel_and_the_end_of_an_address() {
        for (channel, text, shown) in [
            (CodeChannel::Sms, "We sent a code to +49 151 2345 6789.", "sms ***89"),
            (CodeChannel::Sms, "ending in 56", "sms ***56"),
            (CodeChannel::Sms, "•••• 7", "sms"),
            (CodeChannel::Sms, "", "sms"),
            (CodeChannel::Call, "030/1234567", "call ***67"),
            (CodeChannel::Email, "ada.lovelace@example.com.", "email ***@example.com"),
            (CodeChannel::Email, "a•••@e•••.com, valid for 10 minutes", "email ***@e•••.com"),
            (CodeChannel::Email, "your inbox", "email"),
            (CodeChannel::App, "12345678", "app"),
        ] {
            let hint = ChannelHint { selector: "p".to_owned(), channel };
            assert_eq!(hint.masked(text), shown, "{text}");
        }
    }
}
