//! The meaning of a mail server's errors (RFC 5321, section 4.2; RFC 3463).

use domain::notification::NotificationFailure;
use lettre::transport::smtp::Error;
use ports::notifier::SendError;

/// Converts an SMTP error into a permanent or a temporary one.
pub(super) fn send_error(error: &Error) -> SendError {
    let Some(code) = error.status().map(u16::from) else {
        let kind = if error.is_timeout() {
            "the mail server did not reply in time"
        } else if error.is_tls() {
            "the TLS handshake with the mail server failed"
        } else {
            "failed to connect to the mail server"
        };
        return SendError::Transient(kind.to_owned());
    };
    // The text of the reply is left out, because it repeats the recipient's address.
    let enhanced = enhanced_code(&error.to_string());
    let detail = match enhanced {
        Some((class, subject, detail)) => format!("{code} {class}.{subject}.{detail}"),
        None => code.to_string(),
    };
    match permanent_reason(code, enhanced) {
        Some(why) => SendError::Permanent { why, detail },
        None => SendError::Transient(format!("the mail server replied {detail}")),
    }
}

/// An enhanced status code: class, subject and detail.
type EnhancedCode = (u8, u16, u16);

/// Returns the first enhanced status code of a reply.
fn enhanced_code(reply: &str) -> Option<EnhancedCode> {
    reply.split(|c: char| !c.is_ascii_digit() && c != '.').find_map(|word| {
        let mut numbers = word.split('.');
        let class = numbers.next()?.parse().ok().filter(|class| [2, 4, 5].contains(class))?;
        let (subject, detail) = (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?);
        numbers.next().is_none().then_some((class, subject, detail))
    })
}

/// Returns the reason why the mail will never be accepted; `None` if it may be accepted later, or after
/// the operator has corrected something.
fn permanent_reason(code: u16, enhanced: Option<EnhancedCode>) -> Option<NotificationFailure> {
    // Temporary failures, and failed authentication.
    if !(500..600).contains(&code) || [530, 534, 535, 538].contains(&code) {
        return None;
    }
    Some(match (enhanced, code) {
        (Some((_, 2, 2)), _) => NotificationFailure::MailboxFull,
        (Some((_, 1, 0..=6 | 10) | (_, 2, 0 | 1)), _) => NotificationFailure::UnknownReceiver,
        (Some(_), _) => NotificationFailure::Rejected,
        (None, 552) => NotificationFailure::MailboxFull,
        (None, 550 | 551 | 553) => NotificationFailure::UnknownReceiver,
        (None, _) => NotificationFailure::Rejected,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_codes_are_classified() {
        use NotificationFailure::{MailboxFull, Rejected, UnknownReceiver};
        let cases = [
            (550, "5.1.1 <ada@example.com>: no such user", Some(UnknownReceiver)),
            (550, "no such user", Some(UnknownReceiver)),
            (550, "5.7.1 we do not like you", Some(Rejected)),
            (550, "5.2.1 disabled", Some(UnknownReceiver)),
            (552, "5.2.2 full", Some(MailboxFull)),
            (552, "full", Some(MailboxFull)),
            (554, "spam", Some(Rejected)),
            (451, "4.7.1 greylisted", None),
            (452, "4.2.2 full", None),
            (535, "5.7.8 who are you", None),
            (421, "later", None),
        ];
        for (code, text, expected) in cases {
            let reply = format!("permanent error ({code}): {text}");
            assert_eq!(permanent_reason(code, enhanced_code(&reply)), expected, "{code} {text}");
        }
    }

    #[test]
    fn an_enhanced_code_is_parsed_if_there_is_one() {
        assert_eq!(enhanced_code("transient error (451): 4.7.1 come again"), Some((4, 7, 1)));
        assert_eq!(enhanced_code("permanent error (550): from 192.0.2.1, no"), None);
        assert_eq!(enhanced_code("permanent error (550): 9.1.1 no"), None);
        assert_eq!(enhanced_code(""), None);
    }
}
