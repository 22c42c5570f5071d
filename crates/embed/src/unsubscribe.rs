//! The page on which receivers of mails say that they want no more: without scripts, in ten
//! languages.

use crate::{build, escaped};

/// What it shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mails {
    /// Whether no more are wanted.
    Ask,
    /// That no more come.
    Stopped,
    /// That they come again.
    Resumed,
    /// That the link is none of ours.
    Unknown,
}

struct Words {
    title: &'static str,
    ask: &'static str,
    stop: &'static str,
    stopped: &'static str,
    again: &'static str,
    resumed: &'static str,
    unknown: &'static str,
}

/// By primary subtag (BCP 47); the first one for all others.
const WORDS: [(&str, Words); 10] = [
    (
        "ar",
        Words {
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
        Words {
            title: "E-Mails zur Bestätigung",
            ask: "Möchten Sie von diesem Absender keine E-Mails mehr, die um eine Bestätigung bitten?",
            stop: "Keine E-Mails mehr",
            stopped: "Sie erhalten von diesem Absender keine solchen E-Mails mehr.",
            again: "Wieder erhalten",
            resumed: "Sie erhalten von diesem Absender wieder solche E-Mails.",
            unknown: "Dieser Link funktioniert nicht. Öffnen Sie ihn bitte noch einmal aus der E-Mail.",
        },
    ),
    (
        "en",
        Words {
            title: "Mails that ask you to verify",
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
        Words {
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
        Words {
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
        Words {
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
        Words {
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
        Words {
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
        Words {
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
        Words {
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

/// The page in a language of the ten, written in this direction, for mails of this sender's. `token`
/// is a part of its own address.
#[must_use]
pub fn mails_page(
    language: &str,
    direction: &str,
    sender: Option<&str>,
    shown: Mails,
    token: &str,
) -> String {
    let [first, ..] = &WORDS;
    let (language, words) = WORDS.iter().find(|(tag, _)| *tag == language).unwrap_or(first);
    let (said, way) = match shown {
        Mails::Ask => (words.ask, Some((words.stop, ""))),
        Mails::Stopped => (words.stopped, Some((words.again, "/undo"))),
        Mails::Resumed => (words.resumed, Some((words.stop, ""))),
        Mails::Unknown => (words.unknown, None),
    };
    let form = way.map(|(button, path)| {
        let token = escaped(token);
        format!(
            "<form method=\"post\" action=\"/unsubscribe/{token}{path}?lang={language}\" \
             class=\"actions\"><button class=\"primary\">{button}</button></form>"
        )
    });
    include_str!("../web/mails.html")
        .replace("{build}", build())
        .replace("{language}", language)
        .replace("{direction}", direction)
        .replace("{title}", words.title)
        .replace("{said}", said)
        .replace("{form}", &form.unwrap_or_default())
        .replace("{sender}", &escaped(sender.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_language_has_words_of_its_own() {
        let pages: std::collections::BTreeSet<_> = WORDS
            .iter()
            .map(|(language, words)| {
                let page = mails_page(language, "ltr", None, Mails::Ask, "abc");
                assert!(page.contains(&format!("<html lang=\"{language}\"")), "{page}");
                assert!(page.contains(words.stop) && !page.contains('{'), "{page}");
                words.ask
            })
            .collect();
        assert_eq!(pages.len(), 10);
    }

    #[test]
    fn what_was_given_is_text_and_no_markup() {
        let odd = "\"><script>{title}{form}";
        let page = mails_page("en", "ltr", Some(odd), Mails::Ask, odd);
        assert!(!page.contains("<script>"), "{page}");
        let page = mails_page(odd, "ltr", None, Mails::Unknown, odd);
        assert!(!page.contains("script") && !page.contains("<form"), "{page}");
    }
}
