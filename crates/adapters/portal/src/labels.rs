//! Labels of names of the API: statuses, states, roles, environments, and events.

use crate::translations::capitalize_first;

/// Returns the label of a status, a state, a role or an environment: in sentence case, in place of
/// its name in the API.
pub(crate) fn label(name: &str) -> String {
    match name {
        "PARTIAL_COMPLETE" => "Partially complete".to_owned(),
        "exhausted" => "Failed".to_owned(),
        "off" => "Disabled".to_owned(),
        _ => capitalize_first(&name.replace('_', " ").to_lowercase()),
    }
}

/// Returns the label of an event: its name in the API as words in sentence case.
pub(crate) fn event_label(event: &str) -> String {
    let mut text = String::new();
    for letter in event.chars() {
        if letter.is_uppercase() && !text.is_empty() {
            text.push(' ');
            text.extend(letter.to_lowercase());
        } else {
            text.push(letter);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_api_have_labels_in_sentence_case() {
        for (name, expected) in [
            ("AWAITING_USER", "Awaiting user"),
            ("PARTIAL_COMPLETE", "Partially complete"),
            ("exhausted", "Failed"),
            ("off", "Disabled"),
            ("development", "Development"),
            ("", ""),
        ] {
            assert_eq!(label(name), expected, "{name}");
        }
    }

    #[test]
    fn an_events_name_becomes_words() {
        assert_eq!(event_label("TerminatedByPartner"), "Terminated by partner");
        assert_eq!(event_label("Failed"), "Failed");
        assert_eq!(event_label(""), "");
    }
}
