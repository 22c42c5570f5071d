//! The headers and bodies of composed mails.

use chrono::DateTime;
use domain::{id::NotificationId, notification::Channel};
use uuid::Uuid;

use super::*;

fn letter() -> Notification {
    Notification {
        id: NotificationId::from_uuid(Uuid::nil()),
        channel: Channel::Email,
        address: "ada@example.com".into(),
        name: Some("Ada \"Countess\" Lovelace, <x@example.org>".into()),
        locale: Some("de-DE".into()),
        sender: Some("Müller & Co".into()),
        brand: Brand::default(),
        wording: None,
        platform: "Acme".into(),
        link: "https://avouch.example/embed/1?token=ab".into(),
        choice: "https://avouch.example/unsubscribe/ab?lang=de".into(),
        expires_at: DateTime::UNIX_EPOCH,
    }
}

#[tokio::test]
async fn a_mail_is_written_to_a_file_if_there_is_no_server() {
    let folder = tempfile::tempdir().unwrap();
    let mail = Mail::into_folder(folder.path().to_owned(), "no-reply@avouch.example").unwrap();
    mail.send(&letter()).await.unwrap();
    mail.send(&letter()).await.unwrap();
    let files: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(Result::unwrap).collect();
    assert_eq!(files.len(), 1, "sending it again replaces the file");
    let text = std::fs::read_to_string(files[0].path()).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    for line in [
        "Message-ID: <00000000-0000-0000-0000-000000000000@avouch.example>",
        "Auto-Submitted: auto-generated",
        "MIME-Version: 1.0",
    ] {
        assert!(head.contains(line), "{head}");
    }
    assert!(head.contains("multipart/alternative") && body.contains("text/html"), "{text}");
    assert!(body.contains("embed/1?token=3Dab"), "{body}");
}

#[test]
fn one_click_unsubscribe_is_offered_only_over_tls() {
    let mail = Mail::into_folder("/nowhere".into(), "no-reply@avouch.example").unwrap();
    let head = |letter: &Notification| {
        let text = String::from_utf8(mail.compose(letter).unwrap().formatted()).unwrap();
        text.split("\r\n\r\n").next().unwrap().to_owned()
    };
    let text = head(&letter());
    let header = "\r\nList-Unsubscribe: <https://avouch.example/unsubscribe/ab?lang=de>\r\n";
    assert!(text.contains(header), "{text}");
    assert!(text.contains("\r\nList-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n"), "{text}");
    let plain =
        head(&Notification { choice: "http://127.0.0.1/unsubscribe/ab".into(), ..letter() });
    assert!(plain.contains("List-Unsubscribe: ") && !plain.contains("-Post"), "{plain}");
}

#[test]
fn values_cannot_inject_headers_or_recipients() {
    let mail = Mail::into_folder("/nowhere".into(), "no-reply@avouch.example").unwrap();
    let injection = "x\r\nBcc: eve@example.org\r\n\r\nhello";
    let given =
        Notification { sender: Some(injection.into()), name: Some(injection.into()), ..letter() };
    let message = mail.compose(&given).unwrap();
    let text = String::from_utf8(message.formatted()).unwrap();
    let head = text.split("\r\n\r\n").next().unwrap();
    assert!(!head.contains("\r\nBcc:"), "{head}");
    let to = message.envelope().to();
    assert_eq!(to.iter().map(ToString::to_string).collect::<Vec<_>>(), ["ada@example.com"]);
    let plain = mail.compose(&letter()).unwrap();
    assert_eq!(plain.envelope().to().len(), 1, "a name with an address in it");
    for address in ["ada@example.com, eve@example.org", "ada@example.com>\r\nRCPT TO:<eve@x.org"] {
        let refused =
            mail.compose(&Notification { address: address.into(), ..letter() }).unwrap_err();
        assert!(matches!(refused, SendError::Permanent { .. }), "{address}");
    }
}

#[test]
fn server_urls_are_validated_and_passwords_require_tls() {
    for valid in [
        "smtp://mail.example",
        "smtp://127.0.0.1:2525?tls=none",
        "smtp://user:p%40ss@mail.example:2587",
        "smtps://user:pass@mail.example",
        "smtp://mail.example?tls=required",
    ] {
        assert!(SmtpServer::new(valid, &[]).is_ok(), "{valid}");
    }
    for invalid in [
        "mail.example",
        "http://mail.example",
        "smtp://",
        "smtp://mail.example?tls=maybe",
        "smtp://user:pass@mail.example?tls=none",
        "smtp://user:pass@mail.example?tls=opportunistic",
        "smtps://mail.example?tls=none",
    ] {
        assert!(SmtpServer::new(invalid, &[]).is_err(), "{invalid}");
    }
}
