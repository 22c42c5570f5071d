//! The functions and filters of the templates, which write texts in the language of the page.

use minijinja::{
    Environment, HtmlEscape, Value,
    value::{Kwargs, Serde},
};

use crate::{
    labels::{event_label, label},
    language::PageLanguage,
    message::{Message, Text, text_html},
};

/// Adds the functions and filters for a language:
///
/// - `t("Text with {value}", value=…)` translates a text of the template; `t(message)` a message.
/// - `sentence(error)` translates an error, with a capital letter at its beginning.
/// - `name | label` and `name | event_label` are the labels of names of the API; `names | labelled`
///   are pairs of each name with its label.
pub(crate) fn add_functions(environment: &mut Environment<'static>, language: PageLanguage) {
    environment.add_function("t", move |text: Serde<Text>, values: Kwargs| {
        translate(&text.0, &values, language)
    });
    environment.add_function("sentence", move |text: Serde<Text>| {
        let message = match text.0 {
            Text::Key(error) => Message::error(error),
            Text::Message(message) => message,
        };
        Value::from_safe_string(message.sentence_html(language))
    });
    environment.add_filter("label", move |name: &str| translated(&label(name), language));
    environment
        .add_filter("event_label", move |name: &str| translated(&event_label(name), language));
    environment.add_filter("labelled", move |names: Vec<String>| {
        let pair = |name: String| {
            Value::from(vec![Value::from(&*name), translated(&label(&name), language)])
        };
        Value::from(names.into_iter().map(pair).collect::<Vec<_>>())
    });
}

fn translated(text: &str, language: PageLanguage) -> Value {
    Value::from_safe_string(text_html(text, language, |_| None))
}

fn translate(text: &Text, values: &Kwargs, language: PageLanguage) -> Value {
    let html = match text {
        Text::Key(key) => {
            let value = |name: &str| values.get::<Value>(name).ok().map(|value| value_html(&value));
            text_html(key, language, value)
        }
        Text::Message(message) => message.html(language),
    };
    Value::from_safe_string(html)
}

/// Returns a value as HTML. What a macro has written is HTML already.
fn value_html(value: &Value) -> String {
    let text = value.to_string();
    if value.is_safe() { text } else { HtmlEscape(&text).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_escaped_unless_a_macro_has_written_them() {
        let mut environment = Environment::new();
        add_functions(&mut environment, PageLanguage::German);
        let template = "{% macro b(text) %}<b>{{ text }}</b>{% endmacro %}\
            {{ t(\"{count} days\", count=b(\"<7>\")) }}, {{ t(\"{count} days\", count=\"<7>\") }}, \
            {{ t(\"{count} days\", count=7) }}, {{ \"PARTIAL_COMPLETE\" | label }}";
        let html = environment.add_template("a.html", template).and_then(|()| {
            let page = environment.get_template("a.html")?;
            page.render(())
        });
        let expected =
            "<b>&lt;7&gt;</b> Tage, &lt;7&gt; Tage, 7 Tage, Teilweise abgeschlossen".to_owned();
        assert_eq!(html.ok(), Some(expected));
    }
}
