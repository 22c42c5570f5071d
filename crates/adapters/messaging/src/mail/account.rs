//! The texts of mails with a link to choose a password.

use domain::account::LinkPurpose;
use minijinja::context;
use ports::notifier::{AccountMail, RenderedMail};

use super::translations::{Appearance, SERVICE_NAME, render};
use crate::one_line;

pub(super) fn render_account_mail(mail: &AccountMail) -> Result<RenderedMail, minijinja::Error> {
    // A subject must be one line, but a team's name may not be (RFC 5322, section 2.2).
    let team = one_line(&mail.team);
    let expiry = mail.expires_at.format("%Y-%m-%d %H:%M UTC");
    let validity = format!("This link can be used once and is valid until {expiry}.");
    let (subject, body, button, expires) = match mail.purpose {
        LinkPurpose::Invitation if mail.is_taken => (
            format!("You're invited to join {team} on {SERVICE_NAME}"),
            format!(
                "{team} invited you to join its team on {SERVICE_NAME}, where it verifies that \
                 applicants own their accounts. Your email already has an account in another team, \
                 and an account can belong to one team only. To accept, ask {team} to invite a \
                 different email, or ask an owner of your current team to remove you."
            ),
            "Sign in",
            format!("We don't tell {team} that you have an account."),
        ),
        LinkPurpose::Invitation => (
            format!("You're invited to join {team} on {SERVICE_NAME}"),
            format!(
                "{team} invited you to join its team on {SERVICE_NAME}, where it verifies that \
                 applicants own their accounts. Set a password to accept the invitation."
            ),
            "Accept invitation",
            validity,
        ),
        LinkPurpose::Reset => (
            format!("Reset your {SERVICE_NAME} password"),
            format!(
                "We received a request to reset the password for {}. A new password signs you out \
                 on all devices.",
                mail.address
            ),
            "Reset password",
            validity,
        ),
    };
    render(
        &Appearance::DEFAULT,
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
            unexpected => "If you didn't expect this email, you can ignore it.",
            sent_by => format!("Sent by {SERVICE_NAME}."),
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
    fn each_purpose_has_its_subject_link_and_expiry() {
        for (purpose, subject) in [
            (LinkPurpose::Invitation, "You're invited to join Lender & Sons on Avouch"),
            (LinkPurpose::Reset, "Reset your Avouch password"),
        ] {
            let rendered = render_account_mail(&mail(purpose, "Lender & Sons")).unwrap();
            assert_eq!(rendered.subject, subject);
            let link = "\nhttps://avouch.example/portal/password?link=1.a\n";
            assert!(rendered.text.contains(link), "{}", rendered.text);
            assert!(rendered.text.contains("until 1970-01-01 00:00 UTC"));
        }
    }

    #[test]
    fn an_address_with_another_account_gets_no_password_link() {
        let link = Secret::new("https://avouch.example/portal/sign-in".into());
        let mail = AccountMail { link, is_taken: true, ..mail(LinkPurpose::Invitation, "Lender") };
        let rendered = render_account_mail(&mail).unwrap();
        assert_eq!(rendered.subject, "You're invited to join Lender on Avouch");
        assert!(rendered.text.contains("in another team"), "{}", rendered.text);
        assert!(!rendered.text.contains("/portal/password"), "{}", rendered.text);
    }

    #[test]
    fn a_teams_name_is_escaped_and_on_one_line() {
        let name = "{{ link }}<img src=x>\r\nBcc: all@example.org";
        let rendered = render_account_mail(&mail(LinkPurpose::Invitation, name)).unwrap();
        assert!(!rendered.html.contains("<img"), "{}", rendered.html);
        assert!(rendered.html.contains("{{ link }}&lt;img"), "{}", rendered.html);
        assert!(!rendered.subject.contains(['\r', '\n']), "{}", rendered.subject);
    }
}
