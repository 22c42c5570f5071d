//! The validation and the rendering of teams' own templates.

use domain::language::Language;
use proptest::prelude::*;

use super::*;
use crate::mail::translations::Appearance;

const CONTEXT: MailContext<'static> = MailContext {
    sender: "Lender & Sons",
    name: "Ada",
    platform: "Acme",
    link: "https://avouch.example/embed/1?token=a&b",
    expires: "2030-01-31 12:00 UTC",
    choice: "https://avouch.example/unsubscribe/ab?lang=en",
    appearance: Appearance::DEFAULT,
};
const BODY: &str = "# Hello{% if name %} {{ name }}{% endif %}\n\nPlease **confirm** at {{ platform }}:\n\n\
    - [Confirm account]({{ link }})\n- or open {{ link }}\n\n1. [Help](https://lender.example/help)\n2. wait";

fn wording(subject: &str, body: &str) -> TemplateText {
    TemplateText { language: Language::ENGLISH, subject: subject.into(), body: body.into() }
}

fn rendered(body: &str, context: &MailContext) -> RenderedMail {
    let wording = wording("{{ sender }} asks {{ name }}", body);
    assert_eq!(validate(&wording, context), [""; 0], "{body}");
    render(&wording, context).unwrap()
}

#[test]
fn a_template_is_rendered_as_html_and_as_text() {
    let mail = rendered(BODY, &CONTEXT);
    assert_eq!(mail.subject, "Lender & Sons asks Ada");
    let link = "href=\"https:&#x2f;&#x2f;avouch.example&#x2f;embed&#x2f;1?token=a&amp;b\"";
    assert_eq!(mail.html.matches(link).count(), 2, "{}", mail.html);
    assert!(mail.html.contains("<h1>Hello Ada</h1>"), "{}", mail.html);
    assert!(mail.html.contains("<strong>confirm</strong> at Acme"));
    assert!(mail.html.contains("This link is valid until 2030-01-31 12:00 UTC."));
    assert!(mail.html.contains("Sent by Avouch for Lender &amp; Sons."));
    let text = "Hello Ada\n\nPlease confirm at Acme:\n\n\
        - Confirm account: https://avouch.example/embed/1?token=a&b\n\
        - or open https://avouch.example/embed/1?token=a&b\n\n\
        1. Help: https://lender.example/help\n2. wait\n";
    assert!(mail.text.starts_with(text), "{}", mail.text);
    let nameless = rendered(BODY, &MailContext { name: "", ..CONTEXT });
    assert!(nameless.html.contains("<h1>Hello</h1>"), "{}", nameless.html);
    let once = rendered("Until {{ expires }}: {{ link }}", &CONTEXT);
    assert_eq!(once.text.matches("2030-01-31").count(), 1, "{}", once.text);
}

#[test]
fn a_recipients_name_is_not_markup() {
    for name in [
        "<script>alert(1)</script>",
        "**bold** [x](https://evil.example)",
        "{{ link }}{% if x %}",
        "\n\n# Title\n\n<img src=x>",
        "\u{F8F3}\u{F8F0}",
    ] {
        let mail = rendered(BODY, &MailContext { name, ..CONTEXT });
        for markup in ["<script", "<img", "<strong>bold", "evil.example\"", "<h1>Title"] {
            assert!(!mail.html.contains(markup), "{name}: {}", mail.html);
        }
        assert!(mail.text.contains(name), "{name}: {}", mail.text);
    }
}

#[test]
fn an_invalid_template_is_refused_with_a_reason() {
    let fine = "{{ link }}";
    for (subject, body, reason) in [
        ("A", "No link", "{{ link }} is missing"),
        ("A", "{% if name %}{{ link }}{% endif %}", "{{ link }} is missing"),
        ("{{ link }}", fine, "can't contain the link"),
        ("{% if name %}A{% endif %}", fine, "empty for some"),
        ("{{ password }}", fine, "`password` isn't supported"),
        ("A", "{{ link }}{{ name.len }}", "`name.len` isn't supported"),
        ("A", "{{ link }}{{ name|upper }}", "`name|upper` isn't supported"),
        ("A", "{{ link }}{{ 'a' * 9999999 }}", "isn't supported"),
        ("A", "{{ link }}{% for a in name %}{% endfor %}", "`for a in name` isn't supported"),
        ("A", "{{ link }}{% include 'letter.html' %}", "isn't supported"),
        ("A", "{{ link }}{% set link = 1 %}", "isn't supported"),
        ("A", "{{ link }}{{{ name }}}", "isn't supported"),
        ("A", "{{ link }}{# note #}", "`{#` isn't supported"),
        ("A", "{{ link }}{{ name", "`}}` is missing"),
        ("A", "{{ link }}{% if name %}", "has a syntax error"),
        ("A", "{{ link }}{% endif %}", "has a syntax error"),
        ("A", "{{ link }}<b>now</b>", "HTML isn't supported"),
        ("A", "{{ link }}\n\n<script>alert(1)</script>", "HTML isn't supported"),
        ("A", "{{ link }}![](https://evil.example/pixel.png)", "an image isn't supported"),
        ("A", "{{ link }}\n\n    code", "a code block"),
        ("A", "{{ link }}\n\n> said", "a block quote"),
        ("A", "{{ link }}\n\n---", "a horizontal rule"),
        ("A", "{{ link }}[x](http://lender.example)", "links must go to"),
        ("A", "{{ link }}[x](javascript:alert(1))", "links must go to"),
        ("A", "{{ link }}[x](https://evil.example/?to={{ link }})", "links must go to"),
        ("A", "{{ link }}<https:///nowhere>", "links must go to"),
        ("A", "{{ link }}\u{F8F3}", "private use"),
    ] {
        let errors = validate(&wording(subject, body), &CONTEXT).join("; ");
        assert!(errors.contains(reason), "{subject} {body}: {errors}");
    }
}

proptest! {
    #[test]
    fn every_valid_template_renders_the_link_and_no_script(
        parts in proptest::collection::vec(prop_oneof![
            Just("{{ link }}"), Just("{{ name }}"), Just("{% if name %}"), Just("{% else %}"),
            Just("{% endif %}"), Just("["), Just("]"), Just("("), Just(")"), Just("<"), Just(">"),
            Just("script"), Just("*"), Just("`"), Just("\n"), Just("- "), Just("{"), Just("}"),
            Just("&lt;"), Just("\\"), Just("https://a.example"), Just("!"), Just("#"), Just(" "),
        ], 0..24),
        name in "[<>\\[\\]()*_`{}%&a-c \n]{0,12}",
    ) {
        let wording = wording("A", &parts.concat());
        if validate(&wording, &CONTEXT).is_empty() {
            let mail = render(&wording, &MailContext { name: &name, ..CONTEXT }).unwrap();
            prop_assert!(mail.text.contains(CONTEXT.link), "{}", mail.text);
            prop_assert!(mail.html.contains("token=a&amp;b"), "{}", mail.html);
            prop_assert!(!mail.html.contains("<script"), "{}", mail.html);
            let has_placeholder = mail.html.chars().any(|c| ('\u{F8F0}'..='\u{F8F5}').contains(&c));
            prop_assert!(!has_placeholder);
        }
    }
}
