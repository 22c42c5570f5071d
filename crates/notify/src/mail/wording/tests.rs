//! What a team's own wording may be, and what becomes of it.

use domain::language::Language;
use proptest::prelude::*;

use super::*;
use crate::mail::words::Look;

const FACTS: Facts<'static> = Facts {
    sender: "Lender & Sons",
    name: "Ada",
    platform: "Acme",
    link: "https://avouch.example/embed/1?token=a&b",
    expires: "2030-01-31 12:00 UTC",
    choice: "https://avouch.example/unsubscribe/ab?lang=en",
    look: Look::OURS,
};
const BODY: &str = "# Hello{% if name %} {{ name }}{% endif %}\n\nPlease **confirm** at {{ platform }}:\n\n\
    - [Confirm account]({{ link }})\n- or open {{ link }}\n\n1. [Help](https://lender.example/help)\n2. wait";

fn wording(subject: &str, body: &str) -> TemplateText {
    TemplateText { language: Language::ENGLISH, subject: subject.into(), body: body.into() }
}

fn written(body: &str, facts: &Facts) -> RenderedMail {
    let wording = wording("{{ sender }} asks {{ name }}", body);
    assert_eq!(flaws(&wording, facts), [""; 0], "{body}");
    write(&wording, facts).unwrap()
}

#[test]
fn a_wording_is_written_as_html_and_as_text() {
    let mail = written(BODY, &FACTS);
    assert_eq!(mail.subject, "Lender & Sons asks Ada");
    let link = "href=\"https:&#x2f;&#x2f;avouch.example&#x2f;embed&#x2f;1?token=a&amp;b\"";
    assert_eq!(mail.html.matches(link).count(), 2, "{}", mail.html);
    assert!(mail.html.contains("<h1>Hello Ada</h1>"), "{}", mail.html);
    assert!(mail.html.contains("<strong>confirm</strong> at Acme"));
    assert!(mail.html.contains("The link works until 2030-01-31 12:00 UTC."));
    assert!(mail.html.contains("Sent by Avouch for Lender &amp; Sons."));
    let text = "Hello Ada\n\nPlease confirm at Acme:\n\n\
        - Confirm account: https://avouch.example/embed/1?token=a&b\n\
        - or open https://avouch.example/embed/1?token=a&b\n\n\
        1. Help: https://lender.example/help\n2. wait\n";
    assert!(mail.text.starts_with(text), "{}", mail.text);
    let nameless = written(BODY, &Facts { name: "", ..FACTS });
    assert!(nameless.html.contains("<h1>Hello</h1>"), "{}", nameless.html);
    let once = written("Until {{ expires }}: {{ link }}", &FACTS);
    assert_eq!(once.text.matches("2030-01-31").count(), 1, "{}", once.text);
}

#[test]
fn what_a_receiver_is_called_is_no_markup() {
    for name in [
        "<script>alert(1)</script>",
        "**bold** [x](https://evil.example)",
        "{{ link }}{% if x %}",
        "\n\n# Title\n\n<img src=x>",
        "\u{F8F3}\u{F8F0}",
    ] {
        let mail = written(BODY, &Facts { name, ..FACTS });
        for markup in ["<script", "<img", "<strong>bold", "evil.example\"", "<h1>Title"] {
            assert!(!mail.html.contains(markup), "{name}: {}", mail.html);
        }
        assert!(mail.text.contains(name), "{name}: {}", mail.text);
    }
}

#[test]
fn what_cannot_be_sent_is_refused_with_a_reason() {
    let fine = "{{ link }}";
    for (subject, body, reason) in [
        ("A", "No link", "{{ link }} is missing"),
        ("A", "{% if name %}{{ link }}{% endif %}", "{{ link }} is missing"),
        ("{{ link }}", fine, "does not belong in the subject"),
        ("{% if name %}A{% endif %}", fine, "empty for some"),
        ("{{ password }}", fine, "`password` is not known"),
        ("A", "{{ link }}{{ name.len }}", "`name.len` is not known"),
        ("A", "{{ link }}{{ name|upper }}", "`name|upper` is not known"),
        ("A", "{{ link }}{{ 'a' * 9999999 }}", "is not known"),
        ("A", "{{ link }}{% for a in name %}{% endfor %}", "`for a in name` is not known"),
        ("A", "{{ link }}{% include 'letter.html' %}", "is not known"),
        ("A", "{{ link }}{% set link = 1 %}", "is not known"),
        ("A", "{{ link }}{{{ name }}}", "is not known"),
        ("A", "{{ link }}{# note #}", "`{#` is not taken"),
        ("A", "{{ link }}{{ name", "a `}}` is missing"),
        ("A", "{{ link }}{% if name %}", "cannot be read"),
        ("A", "{{ link }}{% endif %}", "cannot be read"),
        ("A", "{{ link }}<b>now</b>", "HTML cannot be in a mail"),
        ("A", "{{ link }}\n\n<script>alert(1)</script>", "HTML cannot be in a mail"),
        ("A", "{{ link }}![](https://evil.example/pixel.png)", "a picture cannot be"),
        ("A", "{{ link }}\n\n    code", "a block of code"),
        ("A", "{{ link }}\n\n> said", "a quotation"),
        ("A", "{{ link }}\n\n---", "a line across"),
        ("A", "{{ link }}[x](http://lender.example)", "a link leads to"),
        ("A", "{{ link }}[x](javascript:alert(1))", "a link leads to"),
        ("A", "{{ link }}[x](https://evil.example/?to={{ link }})", "a link leads to"),
        ("A", "{{ link }}<https:///nowhere>", "a link leads to"),
        ("A", "{{ link }}\u{F8F3}", "private use"),
    ] {
        let flaws = flaws(&wording(subject, body), &FACTS).join("; ");
        assert!(flaws.contains(reason), "{subject} {body}: {flaws}");
    }
}

proptest! {
    #[test]
    fn whatever_is_taken_has_the_link_and_no_script(
        parts in proptest::collection::vec(prop_oneof![
            Just("{{ link }}"), Just("{{ name }}"), Just("{% if name %}"), Just("{% else %}"),
            Just("{% endif %}"), Just("["), Just("]"), Just("("), Just(")"), Just("<"), Just(">"),
            Just("script"), Just("*"), Just("`"), Just("\n"), Just("- "), Just("{"), Just("}"),
            Just("&lt;"), Just("\\"), Just("https://a.example"), Just("!"), Just("#"), Just(" "),
        ], 0..24),
        name in "[<>\\[\\]()*_`{}%&a-c \n]{0,12}",
    ) {
        let wording = wording("A", &parts.concat());
        if flaws(&wording, &FACTS).is_empty() {
            let mail = write(&wording, &Facts { name: &name, ..FACTS }).unwrap();
            prop_assert!(mail.text.contains(FACTS.link), "{}", mail.text);
            prop_assert!(mail.html.contains("token=a&amp;b"), "{}", mail.html);
            prop_assert!(!mail.html.contains("<script"), "{}", mail.html);
            let left = mail.html.chars().any(|c| ('\u{F8F0}'..='\u{F8F5}').contains(&c));
            prop_assert!(!left);
        }
    }
}
