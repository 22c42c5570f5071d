//! A platform with long texts and many fields.

use acceptance::{platform, service::Deployment};
use serde_json::{Map, Value, json};

/// How often each label occurs.
const ROUNDS: usize = 3;
/// The labels in English, German and Arabic, with the pointer to the value, its type and its format.
const FIELDS: [Field; 7] = [
    (
        "/name",
        "string",
        None,
        [
            "Name of the account holder",
            "Name der Kontoinhaberin oder des Kontoinhabers",
            "اسم صاحب الحساب",
        ],
    ),
    ("/id", "string", None, ["Account number", "Kontonummer", "رقم الحساب"]),
    ("/email", "string", None, ["Email address", "E-Mail-Adresse", "البريد الإلكتروني"]),
    (
        "/memberSince",
        "string",
        Some(("format", "date")),
        ["Date on which the account was opened", "Kontoeröffnungsdatum", "تاريخ فتح الحساب"],
    ),
    ("/cards/0/number", "string", None, ["Card number", "Kreditkartennummer", "رقم البطاقة"]),
    (
        "/cards/0/limit",
        "integer",
        Some(("currency", "EUR")),
        ["Credit limit", "Kreditrahmenobergrenze", "الحد الائتماني"],
    ),
    (
        "/id",
        "string",
        Some(("format", "plain")),
        [
            "Reference of the branch that manages the account and answers questions about it",
            "Zeichen der kontoführenden Filiale, die Fragen zum Konto beantwortet",
            "رمز الفرع الذي يدير الحساب ويجيب عن الأسئلة المتعلقة به",
        ],
    ),
];

type Field = (&'static str, &'static str, Option<(&'static str, &'static str)>, [&'static str; 3]);

const SIGN_IN: [&str; 3] = [
    "Sign in with the user name and the password that you chose when you opened the account. If you have several accounts, sign in to the one that your salary is paid into, and have your phone at hand for the code.",
    "Melden Sie sich mit dem Benutzernamen und dem Passwort an, die Sie bei der Kontoeröffnung gewählt haben. Wenn Sie mehrere Konten haben, nehmen Sie das Gehaltskonto, und halten Sie Ihr Handy für den Code bereit.",
    "سجّل الدخول باسم المستخدم وكلمة المرور اللذين اخترتهما عند فتح الحساب. إذا كان لديك أكثر من حساب فاختر الحساب الذي يُحوَّل إليه راتبك، وأبقِ هاتفك قريبًا منك لاستلام الرمز. وإذا نسيت كلمة المرور فاطلب كلمة جديدة من فرعك قبل أن تتابع هنا، فقد يستغرق ذلك بعض الوقت.",
];

/// Publishes the platform; returns its id.
pub(super) fn publish(deployment: &Deployment) -> Value {
    platform::publish(deployment, "acme-long", |definition| {
        let mut texts = [(); 3].map(|()| Map::new());
        let (mut output, mut pointers, mut order) = (Map::new(), Map::new(), vec![]);
        for round in 1..=ROUNDS {
            for (at, (pointer, kind, reading, labels)) in FIELDS.iter().enumerate() {
                let name = format!("field{round}{at}");
                let mut field = json!({ "type": kind, "required": true, "labelKey": name });
                if let Some((how, value)) = reading {
                    field[how] = json!(value);
                }
                output.insert(name.clone(), field);
                pointers.insert(name.clone(), json!(pointer));
                for (texts, label) in texts.iter_mut().zip(labels) {
                    texts.insert(name.clone(), format!("{label} ({round})").into());
                }
                order.push(name);
            }
        }
        for (texts, sign_in) in texts.iter_mut().zip(SIGN_IN) {
            texts.insert("sign_in".into(), sign_in.into());
        }
        definition["displayName"] = "Acme Savings and Investments Online".into();
        definition["output"] = output.into();
        definition["outputOrder"] = json!(order);
        definition["nodes"]["profile"]["fields"] = pointers.into();
        definition["nodes"]["profile"]["next"] = "review".into();
        let nodes = definition["nodes"].as_object_mut().expect("nodes");
        nodes.retain(|name, _| name != "badge" && name != "stats");
        definition["attest"] = Value::Null;
        for (language, more) in ["en", "de", "ar"].into_iter().zip(texts) {
            let texts = &mut definition["texts"][language];
            let mut all = texts.as_object().cloned().unwrap_or_default();
            all.extend(more);
            *texts = all.into();
        }
    })
}
