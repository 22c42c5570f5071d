//! The accounts at providers of short messages.

use std::collections::BTreeMap;

use messaging::{SmsAccount, WhatsappAccount};

use super::values::together;

/// The configured providers of short messages.
#[derive(Debug, Clone, Default)]
pub struct MessageConfig {
    pub(crate) whatsapp: Option<WhatsappAccount>,
    pub(crate) sms: Option<SmsAccount>,
}

pub(super) fn messages(
    values: &BTreeMap<String, String>,
    faults: &mut Vec<String>,
) -> MessageConfig {
    let whatsapp =
        together(values, ["whatsapp_url", "whatsapp_token", "whatsapp_template"], faults)
            .map(|[url, token, template]| WhatsappAccount::new(url, token, template))
            .transpose();
    let sms = together(values, ["sms_url", "sms_key", "sms_from"], faults)
        .map(|[url, key, from]| SmsAccount::new(url, key, from))
        .transpose();
    MessageConfig {
        whatsapp: whatsapp.map_err(|e| faults.push(format!("whatsapp_{e}"))).ok().flatten(),
        sms: sms.map_err(|e| faults.push(format!("sms_{e}"))).ok().flatten(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_given_whole_or_not_at_all() {
        let mut faults = vec![];
        let none = messages(&BTreeMap::new(), &mut faults);
        assert!(none.whatsapp.is_none() && none.sms.is_none() && faults.is_empty());
        let half = [("sms_url", "https://api.example/1"), ("whatsapp_token", "x")];
        let half = half.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        messages(&half, &mut faults);
        assert_eq!(faults.len(), 2, "{faults:?}");
    }

    #[test]
    fn a_fault_names_its_key() {
        let values = [("sms_url", "http://api.example/1"), ("sms_key", "a:b"), ("sms_from", "+1")];
        let values = values.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        let mut faults = vec![];
        assert!(messages(&values, &mut faults).sms.is_none());
        assert!(
            faults.first().is_some_and(|fault| fault.starts_with("sms_url must")),
            "{faults:?}"
        );
    }
}
