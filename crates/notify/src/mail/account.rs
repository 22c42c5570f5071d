//! What a mail to a person of the portal says.

use domain::account::LinkPurpose;
use minijinja::context;
use ports::notifier::{AccountMail, RenderedMail};

use super::words::{Look, SERVICE, render};
use crate::one_line;

pub(super) fn write(mail: &AccountMail) -> Result<RenderedMail, minijinja::Error> {
    // A subject is one line, whatever a team calls itself (RFC 5322, section 2.2).
    let team = one_line(&mail.team);
    let until = mail.expires_at.format("%Y-%m-%d %H:%M UTC");
    let once = format!("The link opens once, until {until}.");
    let (subject, body, button, expires) = match mail.purpose {
        LinkPurpose::Invitation if mail.is_taken => (
            format!("You are invited to {team} at {SERVICE}"),
            format!(
                "{team} uses {SERVICE} to confirm that its applicants own their accounts, and \
                 would like you to take part. Your address has an account in another team \
                 already, and an account is in one team. To accept, give {team} another address, \
                 or have an owner of your present team remove you."
            ),
            "Sign in",
            format!("{team} is not told that you have an account."),
        ),
        LinkPurpose::Invitation => (
            format!("You are invited to {team} at {SERVICE}"),
            format!(
                "{team} uses {SERVICE} to confirm that its applicants own their accounts, and \
                 would like you to take part. Choose a password to come in."
            ),
            "Choose a password",
            once,
        ),
        LinkPurpose::Reset => (
            format!("Choose a new password for {SERVICE}"),
            format!(
                "Somebody, you we hope, asked for a new password for {}. It ends all of your \
                 sign-ins.",
                mail.address
            ),
            "Choose a new password",
            once,
        ),
    };
    render(
        &Look::OURS,
        &context! {
            language => "en",
            direction => "ltr",
            subject,
            content => (),
            greeting => "Hello,",
            body,
            button,
            link => mail.link.expose(),
            expires,
            unexpected => "If you did not expect this, you need not do anything.",
            sent_by => format!("Sent by {SERVICE}."),
            choice => "",
        },
    )
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use domain::{id::AccountLinkId, secret::Secret};
    use uuid::Uuid;

    use super::*;

    fn mail(purpose: LinkPurpose, team: &str) -> AccountMail {
        AccountMail {
            id: AccountLinkId::from_uuid(Uuid::nil()),
            address: "ada@lender.example".parse().unwrap(),
            purpose,
            team: team.into(),
            link: Secret::new("https://avouch.example/portal/password?link=1.a".into()),
            is_taken: false,
            expires_at: DateTime::UNIX_EPOCH,
        }
    }

    #[test]
    fn each_says_what_it_is_for_and_until_when() {
        for (purpose, subject) in [
            (LinkPurpose::Invitation, "You are invited to Lender & Sons at Avouch"),
            (LinkPurpose::Reset, "Choose a new password for Avouch"),
        ] {
            let written = write(&mail(purpose, "Lender & Sons")).unwrap();
            assert_eq!(written.subject, subject);
            let link = "\nhttps://avouch.example/portal/password?link=1.a\n";
            assert!(written.text.contains(link), "{}", written.text);
            assert!(written.text.contains("until 1970-01-01 00:00 UTC"));
        }
    }

    #[test]
    fn who_has_an_account_elsewhere_gets_no_link_to_a_password() {
        let link = Secret::new("https://avouch.example/portal/sign-in".into());
        let mail = AccountMail { link, is_taken: true, ..mail(LinkPurpose::Invitation, "Lender") };
        let written = write(&mail).unwrap();
        assert_eq!(written.subject, "You are invited to Lender at Avouch");
        assert!(written.text.contains("in another team"), "{}", written.text);
        assert!(!written.text.contains("/portal/password"), "{}", written.text);
    }

    #[test]
    fn a_teams_name_is_text_on_one_line() {
        let name = "{{ link }}<img src=x>\r\nBcc: all@example.org";
        let written = write(&mail(LinkPurpose::Invitation, name)).unwrap();
        assert!(!written.html.contains("<img"), "{}", written.html);
        assert!(written.html.contains("{{ link }}&lt;img"), "{}", written.html);
        assert!(!written.subject.contains(['\r', '\n']), "{}", written.subject);
    }
}
