//! The texts of mails that notify users of events of their account.

use domain::notice::AccountEvent;
use minijinja::context;
use ports::notifier::{AccountNotice, RenderedMail};

use super::translations::{Appearance, SERVICE_NAME, render};
use crate::one_line;

pub(super) fn render_notice(notice: &AccountNotice) -> Result<RenderedMail, minijinja::Error> {
    let (subject, happened) = match notice.event {
        AccountEvent::PasswordChanged => {
            ("Your password was changed", "The password for your account was changed.")
        }
        AccountEvent::CodesTurnedOn => (
            "Two-factor authentication was turned on",
            "An authenticator app was added to your account, and new recovery codes were created.",
        ),
        AccountEvent::CodesTurnedOff => {
            ("Authenticator app removed", "The authenticator app was removed from your account.")
        }
        AccountEvent::PasskeyAdded => {
            ("A passkey was added", "A passkey was added to your account.")
        }
        AccountEvent::PasskeyRemoved => {
            ("A passkey was removed", "A passkey was removed from your account.")
        }
        AccountEvent::NewBrowser => {
            ("New sign-in to your account", "Your account was used to sign in from a new browser.")
        }
    };
    let at = notice.at.format("%Y-%m-%d %H:%M UTC");
    // The length of the user agent was bounded when it was stored.
    let agent = one_line(&notice.from.agent);
    let agent = if agent.is_empty() { "an unknown browser".to_owned() } else { agent };
    let address = notice.from.address;
    render(
        &Appearance::DEFAULT,
        &context! {
            language => "en",
            direction => "ltr",
            subject => format!("{SERVICE_NAME}: {subject}"),
            content => (),
            greeting => "Hello,",
            body => format!("{happened} Time: {at}. IP address: {address}. Browser: {agent}."),
            button => "Review account activity",
            link => &notice.link,
            expires => "",
            unexpected => "If this wasn't you, change your password, sign out everywhere, and contact \
                           an owner of your team.",
            sent_by => format!("Sent by {SERVICE_NAME}."),
            choice => "",
        },
    )
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use domain::id::NoticeId;
    use ports::account_store::RequestOrigin;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn each_event_is_described_with_time_and_origin() {
        for event in AccountEvent::ALL {
            let agent = "Browser <img src=x>\r\nBcc: all@example.org {{ link }}".to_owned();
            let rendered = render_notice(&AccountNotice {
                id: NoticeId::from_uuid(Uuid::nil()),
                address: "ada@lender.example".parse().unwrap(),
                event,
                at: DateTime::UNIX_EPOCH,
                from: RequestOrigin { address: [192, 0, 2, 1].into(), agent },
                link: "https://avouch.example/portal/account".into(),
            });
            let rendered = rendered.unwrap();
            for part in ["1970-01-01 00:00 UTC", "192.0.2.1", "{{ link }}", "/portal/account"] {
                assert!(rendered.text.contains(part), "{}", rendered.text);
            }
            assert!(!rendered.html.contains("<img"), "{}", rendered.html);
            assert!(!rendered.subject.contains(['\r', '\n']), "{}", rendered.subject);
        }
    }
}
