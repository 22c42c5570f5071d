//! What a mail server's refusal means (RFC 5321, section 4.2; RFC 3463).

use domain::notification::NotificationFailure;
use lettre::transport::smtp::Error;
use ports::notifier::SendError;

pub(super) fn not_taken(error: &Error) -> SendError {
    let Some(code) = error.status().map(u16::from) else {
        let kind = if error.is_timeout() {
            "the mail server did not answer in time"
        } else if error.is_tls() {
            "there is no TLS with the mail server"
        } else {
            "the mail server cannot be reached"
        };
        return SendError::Transient(kind.to_owned());
    };
    // Its own words are left out: they repeat the receiver's address.
    let enhanced = enhanced(&error.to_string());
    let detail = match enhanced {
        Some((class, subject, detail)) => format!("{code} {class}.{subject}.{detail}"),
        None => code.to_string(),
    };
    match lasting(code, enhanced) {
        Some(why) => SendError::Permanent { why, detail },
        None => SendError::Transient(format!("the mail server answers {detail}")),
    }
}

type Enhanced = (u8, u16, u16);

/// The first enhanced status code of an answer.
fn enhanced(answer: &str) -> Option<Enhanced> {
    answer.split(|c: char| !c.is_ascii_digit() && c != '.').find_map(|word| {
        let mut numbers = word.split('.');
        let class = numbers.next()?.parse().ok().filter(|class| [2, 4, 5].contains(class))?;
        let (subject, detail) = (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?);
        numbers.next().is_none().then_some((class, subject, detail))
    })
}

/// Why the mail will never be taken; none where it may be taken later, or once the operator has
/// mended something.
fn lasting(code: u16, enhanced: Option<Enhanced>) -> Option<NotificationFailure> {
    // Who we are was not believed.
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
    fn refusals_are_told_apart() {
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
            let answer = format!("permanent error ({code}): {text}");
            assert_eq!(lasting(code, enhanced(&answer)), expected, "{code} {text}");
        }
    }

    #[test]
    fn an_enhanced_code_is_found_where_one_is() {
        assert_eq!(enhanced("transient error (451): 4.7.1 come again"), Some((4, 7, 1)));
        assert_eq!(enhanced("permanent error (550): from 192.0.2.1, no"), None);
        assert_eq!(enhanced("permanent error (550): 9.1.1 no"), None);
        assert_eq!(enhanced(""), None);
    }
}
