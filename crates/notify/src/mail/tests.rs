//! Mails as they are written.

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
async fn a_mail_becomes_a_file_where_there_is_no_server() {
    let folder = tempfile::tempdir().unwrap();
    let mail = Mail::into_folder(folder.path().to_owned(), "no-reply@avouch.example").unwrap();
    mail.send(&letter()).await.unwrap();
    mail.send(&letter()).await.unwrap();
    let files: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(Result::unwrap).collect();
    assert_eq!(files.len(), 1, "sent twice, there once");
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
fn one_click_is_offered_where_it_is_safe() {
    let mail = Mail::into_folder("/nowhere".into(), "no-reply@avouch.example").unwrap();
    let head = |letter: &Notification| {
        let text = String::from_utf8(mail.compose(letter).unwrap().formatted()).unwrap();
        text.split("\r\n\r\n").next().unwrap().to_owned()
    };
    let text = head(&letter());
    let way = "\r\nList-Unsubscribe: <https://avouch.example/unsubscribe/ab?lang=de>\r\n";
    assert!(text.contains(way), "{text}");
    assert!(text.contains("\r\nList-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n"), "{text}");
    let plain =
        head(&Notification { choice: "http://127.0.0.1/unsubscribe/ab".into(), ..letter() });
    assert!(plain.contains("List-Unsubscribe: ") && !plain.contains("-Post"), "{plain}");
}

#[test]
fn nothing_that_was_given_becomes_a_header_or_another_receiver() {
    let mail = Mail::into_folder("/nowhere".into(), "no-reply@avouch.example").unwrap();
    let evil = "x\r\nBcc: eve@example.org\r\n\r\nhello";
    let given = Notification { sender: Some(evil.into()), name: Some(evil.into()), ..letter() };
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
fn servers_are_named_by_urls_and_passwords_never_go_in_the_clear() {
    for fine in [
        "smtp://mail.example",
        "smtp://127.0.0.1:2525?tls=none",
        "smtp://user:p%40ss@mail.example:2587",
        "smtps://user:pass@mail.example",
        "smtp://mail.example?tls=required",
    ] {
        assert!(Server::new(fine, &[]).is_ok(), "{fine}");
    }
    for wrong in [
        "mail.example",
        "http://mail.example",
        "smtp://",
        "smtp://mail.example?tls=maybe",
        "smtp://user:pass@mail.example?tls=none",
        "smtp://user:pass@mail.example?tls=opportunistic",
        "smtps://mail.example?tls=none",
    ] {
        assert!(Server::new(wrong, &[]).is_err(), "{wrong}");
    }
}
