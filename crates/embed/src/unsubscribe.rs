//! The page on which recipients of mails unsubscribe and subscribe again, without scripts and in ten
//! languages.

use crate::{build, escape};

/// The state that the page shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnsubscribePage {
    /// The question whether to unsubscribe.
    Ask,
    /// The recipient has unsubscribed.
    Stopped,
    /// The recipient has subscribed again.
    Resumed,
    /// The link is invalid.
    Unknown,
}

/// The texts of one language.
struct Translation {
    title: &'static str,
    ask: &'static str,
    stop: &'static str,
    stopped: &'static str,
    again: &'static str,
    resumed: &'static str,
    unknown: &'static str,
}

/// The texts by primary subtag (BCP 47); the first entry is the fallback.
const TRANSLATIONS: [(&str, Translation); 10] = [
    (
        "ar",
        Translation {
            title: "رسائل التحقق",
            ask: "ألا تريد تلقي المزيد من رسائل التحقق من هذا المرسل؟",
            stop: "إيقاف الرسائل",
            stopped: "لن تتلقى المزيد من رسائل التحقق من هذا المرسل.",
            again: "تلقي الرسائل مجددًا",
            resumed: "ستتلقى رسائل التحقق من هذا المرسل مجددًا.",
            unknown: "هذا الرابط لا يعمل. افتحه مرة أخرى من الرسالة.",
        },
    ),
    (
        "de",
        Translation {
            title: "E-UnsubscribePage zur Bestätigung",
            ask: "Möchten Sie von diesem Absender keine E-UnsubscribePage mehr, die um eine Bestätigung bitten?",
            stop: "Keine E-UnsubscribePage mehr",
            stopped: "Sie erhalten von diesem Absender keine solchen E-UnsubscribePage mehr.",
            again: "Wieder erhalten",
            resumed: "Sie erhalten von diesem Absender wieder solche E-UnsubscribePage.",
            unknown: "Dieser Link funktioniert nicht. Öffnen Sie ihn bitte noch einmal aus der E-Mail.",
        },
    ),
    (
        "en",
        Translation {
            title: "UnsubscribePage that ask you to verify",
            ask: "Do you want no more mails from this sender that ask you to verify something?",
            stop: "No more mails",
            stopped: "You get no more of these mails from this sender.",
            again: "Get them again",
            resumed: "You get these mails from this sender again.",
            unknown: "This link does not work. Please open it from the mail once more.",
        },
    ),
    (
        "es",
        Translation {
            title: "Correos de verificación",
            ask: "¿No quiere recibir más correos de este remitente que le pidan una verificación?",
            stop: "No recibir más correos",
            stopped: "Ya no recibirá estos correos de este remitente.",
            again: "Volver a recibirlos",
            resumed: "Volverá a recibir estos correos de este remitente.",
            unknown: "Este enlace no funciona. Ábralo de nuevo desde el correo.",
        },
    ),
    (
        "fr",
        Translation {
            title: "E-mails de vérification",
            ask: "Ne souhaitez-vous plus recevoir d’e-mails de vérification de cet expéditeur ?",
            stop: "Ne plus recevoir d’e-mails",
            stopped: "Vous ne recevrez plus ces e-mails de cet expéditeur.",
            again: "Les recevoir à nouveau",
            resumed: "Vous recevrez à nouveau ces e-mails de cet expéditeur.",
            unknown: "Ce lien ne fonctionne pas. Ouvrez-le de nouveau depuis l’e-mail.",
        },
    ),
    (
        "it",
        Translation {
            title: "Email di verifica",
            ask: "Non vuoi più ricevere da questo mittente email che chiedono una verifica?",
            stop: "Non ricevere più email",
            stopped: "Non riceverai più queste email da questo mittente.",
            again: "Ricevile di nuovo",
            resumed: "Riceverai di nuovo queste email da questo mittente.",
            unknown: "Questo link non funziona. Aprilo di nuovo dall’email.",
        },
    ),
    (
        "nl",
        Translation {
            title: "E-mails met een verzoek om bevestiging",
            ask: "Wilt u van deze afzender geen e-mails meer die om een bevestiging vragen?",
            stop: "Geen e-mails meer",
            stopped: "U krijgt deze e-mails niet meer van deze afzender.",
            again: "Weer ontvangen",
            resumed: "U krijgt deze e-mails weer van deze afzender.",
            unknown: "Deze link werkt niet. Open hem nog eens vanuit de e-mail.",
        },
    ),
    (
        "pl",
        Translation {
            title: "Wiadomości z prośbą o potwierdzenie",
            ask: "Nie chcesz więcej dostawać od tego nadawcy wiadomości z prośbą o potwierdzenie?",
            stop: "Nie wysyłajcie więcej",
            stopped: "Nie będziesz już dostawać tych wiadomości od tego nadawcy.",
            again: "Chcę je znów dostawać",
            resumed: "Znów będziesz dostawać te wiadomości od tego nadawcy.",
            unknown: "Ten link nie działa. Otwórz go jeszcze raz z wiadomości.",
        },
    ),
    (
        "pt",
        Translation {
            title: "E-mails de verificação",
            ask: "Não quer receber mais e-mails deste remetente que pedem uma verificação?",
            stop: "Não receber mais e-mails",
            stopped: "Já não receberá estes e-mails deste remetente.",
            again: "Voltar a recebê-los",
            resumed: "Voltará a receber estes e-mails deste remetente.",
            unknown: "Esta ligação não funciona. Abra-a novamente a partir do e-mail.",
        },
    ),
    (
        "tr",
        Translation {
            title: "Doğrulama e-postaları",
            ask: "Bu göndericiden doğrulama isteyen e-postaları artık almak istemiyor musunuz?",
            stop: "E-posta gönderilmesin",
            stopped: "Bu göndericiden artık bu e-postaları almayacaksınız.",
            again: "Yeniden al",
            resumed: "Bu göndericiden bu e-postaları yeniden alacaksınız.",
            unknown: "Bu bağlantı çalışmıyor. Lütfen e-postadan yeniden açın.",
        },
    ),
];

/// Renders the page in one of the ten languages and its direction, for mails of this sender. `token` is
/// part of the page's path.
#[must_use]
pub fn unsubscribe_page(
    language: &str,
    direction: &str,
    sender: Option<&str>,
    state: UnsubscribePage,
    token: &str,
) -> String {
    let [first, ..] = &TRANSLATIONS;
    let (language, texts) = TRANSLATIONS.iter().find(|(tag, _)| *tag == language).unwrap_or(first);
    let (message, action) = match state {
        UnsubscribePage::Ask => (texts.ask, Some((texts.stop, ""))),
        UnsubscribePage::Stopped => (texts.stopped, Some((texts.again, "/undo"))),
        UnsubscribePage::Resumed => (texts.resumed, Some((texts.stop, ""))),
        UnsubscribePage::Unknown => (texts.unknown, None),
    };
    let form = action.map(|(button, path)| {
        let token = escape(token);
        format!(
            "<form method=\"post\" action=\"/unsubscribe/{token}{path}?lang={language}\" \
             class=\"actions\"><button class=\"primary\">{button}</button></form>"
        )
    });
    include_str!("../web/unsubscribe.html")
        .replace("{build}", build())
        .replace("{language}", language)
        .replace("{direction}", direction)
        .replace("{title}", texts.title)
        .replace("{said}", message)
        .replace("{form}", &form.unwrap_or_default())
        .replace("{sender}", &escape(sender.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_language_has_texts_of_its_own() {
        let pages: std::collections::BTreeSet<_> = TRANSLATIONS
            .iter()
            .map(|(language, texts)| {
                let page = unsubscribe_page(language, "ltr", None, UnsubscribePage::Ask, "abc");
                assert!(page.contains(&format!("<html lang=\"{language}\"")), "{page}");
                assert!(page.contains(texts.stop) && !page.contains('{'), "{page}");
                texts.ask
            })
            .collect();
        assert_eq!(pages.len(), 10);
    }

    #[test]
    fn values_are_escaped() {
        let hostile = "\"><script>{title}{form}";
        let page = unsubscribe_page("en", "ltr", Some(hostile), UnsubscribePage::Ask, hostile);
        assert!(!page.contains("<script>"), "{page}");
        let page = unsubscribe_page(hostile, "ltr", None, UnsubscribePage::Unknown, hostile);
        assert!(!page.contains("script") && !page.contains("<form"), "{page}");
    }
}
