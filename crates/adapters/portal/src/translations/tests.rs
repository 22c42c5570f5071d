//! The files of translations are complete, without entries that nothing uses, and read correctly.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use domain::{
    account::{PasswordRejected, Role, UnknownRole},
    api_key::{Environment, UnknownEnvironment},
    branding::InvalidBrand,
    error_code::ErrorCode,
    error_remedy::remedy,
    frame_ancestors::InvalidFrameAncestor,
    language::UnknownLanguage,
    notification::NotificationFailure,
    request::Contact,
    session::{Event, Status},
    template::{InvalidDraft, TemplateStatus},
};
use ports::{delivery_log::DeliveryState, driving::PortalError, webhook_sender::FailureCause};

use super::*;
use crate::labels::{event_label, label};

const FILES: [(PageLanguage, &str); 1] =
    [(PageLanguage::German, include_str!("../../locales/de.po"))];

#[test]
fn every_file_can_be_read_and_has_the_values_of_the_english_texts() {
    for (language, file) in FILES {
        let mut known = BTreeSet::new();
        for Entry { context, id, text } in read_entries(file).unwrap() {
            assert_eq!(placeholders(&id), placeholders(&text), "{}: {id}", language.tag());
            assert!(!id.contains('<') && !text.contains('<'), "no markup: {id}");
            let is_sentence = id.contains(' ') && id.ends_with('.');
            assert!(!is_sentence || text.ends_with('.'), "a sentence: {id}");
            assert!(known.insert((context, id.clone())), "twice: {id}");
        }
    }
}

#[test]
fn every_text_has_a_translation_and_every_translation_is_used() {
    let used: BTreeMap<_, _> = texts().into_iter().chain(labels()).collect();
    assert!(used.len() > 400, "only {} texts were found", used.len());
    for (language, file) in FILES {
        let language = language.tag();
        let known = ids(file, None);
        let missing: Vec<_> = used.iter().filter(|(text, _)| !known.contains(*text)).collect();
        assert!(missing.is_empty(), "{language} has no translation of {missing:#?}");
        let unused: Vec<_> = known.iter().filter(|id| !used.contains_key(*id)).collect();
        assert!(unused.is_empty(), "{language} has translations that nothing uses: {unused:#?}");
    }
}

#[test]
fn every_error_has_a_translation_and_every_translation_is_used() {
    let (composed, written) = (composed_errors(), written_errors());
    assert!(written.len() > 40, "only {} errors were found", written.len());
    let literals = literals();
    let blank = |text: &str| {
        let pieces = pieces(text).into_iter();
        let blank = pieces.map(|piece| match piece {
            Piece::Literal(literal) => literal,
            Piece::Placeholder(_) => "{}",
        });
        blank.collect::<String>()
    };
    for (language, file) in FILES {
        let known = language.translations().unwrap();
        for text in &composed {
            assert!(known.error(text).is_some(), "{}: {text}", language.tag());
        }
        let ids = ids(file, Some(ERROR));
        let blanks: BTreeSet<_> = ids.iter().map(|id| blank(id)).collect();
        let missing: Vec<_> = written.iter().filter(|text| !blanks.contains(*text)).collect();
        assert!(missing.is_empty(), "{} has no translation of {missing:#?}", language.tag());
        let is_used = |id: &&String| {
            let is_composed = |text: &String| text == *id || matched(id, text).is_some();
            literals.contains(&blank(id))
                || written.contains(&blank(id))
                || composed.iter().any(is_composed)
        };
        let unused: Vec<_> = ids.iter().filter(|id| !is_used(id)).collect();
        assert!(unused.is_empty(), "{} translates what is no error: {unused:#?}", language.tag());
    }
}

#[test]
fn templates_give_every_value_of_a_text() {
    let mut checked = 0;
    for (path, template) in sources(&package().join("web"), "html") {
        for (text, rest) in calls(&template, "t(") {
            let arguments = arguments(rest);
            for name in placeholders(&text) {
                checked += 1;
                let is_given = arguments.contains(&format!(", {name}="));
                assert!(is_given, "{}: {name} of {text}", path.display());
            }
        }
    }
    assert!(checked > 40, "{checked}");
}

#[test]
fn an_error_is_found_with_its_values() {
    let known = PageLanguage::German.translations().unwrap();
    for (english, german) in [
        ("incorrect email or password", Some("E-Mail-Adresse oder Passwort ist falsch")),
        ("a team can have up to 50 API keys", Some("ein Team kann bis zu 50 API-Schlüssel haben")),
        (
            "enter a name of 1 to 60 characters on one line",
            Some("geben Sie einen einzeiligen Namen mit 1 bis 60 Zeichen ein"),
        ),
        (
            "enter an email or phone number; locale must be a BCP 47 language tag",
            Some(
                "geben Sie eine E-Mail-Adresse oder Telefonnummer ein; geben Sie die Sprache als \
                 BCP-47-Sprachcode ein",
            ),
        ),
        ("enter an email or phone number; and something else", None),
        ("nobody has translated this", None),
        ("", None),
    ] {
        assert_eq!(known.error(english).as_deref(), german, "{english}");
    }
}

#[test]
fn a_pattern_matches_whole_texts() {
    let values = |pattern, text| {
        let found: Option<HashMap<_, _>> = matched(pattern, text);
        found.map(|found| found.into_iter().collect::<BTreeMap<_, _>>())
    };
    assert_eq!(values("up to {max} keys", "up to 7 keys"), Some(BTreeMap::from([("max", "7")])));
    assert_eq!(
        values("{a} of {b}", "1 of 2 of 3"),
        Some(BTreeMap::from([("a", "1"), ("b", "2 of 3")]))
    );
    for (pattern, text) in [
        ("up to {max} keys", "up to 7 keys more"),
        ("up to {max} keys", "at least 7 keys"),
        ("{a}{b}", "12"),
        ("as it is", "as it was"),
    ] {
        assert_eq!(values(pattern, text), None, "{pattern}");
    }
}

#[test]
fn placeholders_are_names_in_braces() {
    use Piece::{Literal, Placeholder};
    for (text, expected) in [
        ("", vec![]),
        ("plain", vec![Literal("plain")]),
        ("{a_b} c", vec![Placeholder("a_b"), Literal(" c")]),
        ("a {b}{c}", vec![Literal("a "), Placeholder("b"), Placeholder("c")]),
        ("{{ link }}", vec![Literal("{{ link }}")]),
        ("{ {A} {} {a", vec![Literal("{ {A} {} {a")]),
        ("é{{a}}", vec![Literal("é{"), Placeholder("a"), Literal("}")]),
    ] {
        assert_eq!(pieces(text), expected, "{text}");
    }
}

#[test]
fn the_format_of_gettext_is_read() {
    let file = "# a comment\nmsgid \"\"\nmsgstr \"\"\n\"Language: de\\n\"\n\n\
        #: a/reference.rs\n#. a note\nmsgid \"a\"\nmsgstr \"b\"\n\
        msgctxt \"error\"\nmsgid \"\"\n\"two \"\n\"parts \\\"quoted\\\"\"\nmsgstr \"c\\\\d\"\n\"e\"\n\
        #, fuzzy\nmsgid \"unsure\"\nmsgstr \"x\"\n\n\
        #~ msgid \"old\"\n#~ msgstr \"alt\"\n\
        msgid \"not translated\"\nmsgstr \"\"\n";
    let entry = |context: Option<&str>, id: &str, text: &str| Entry {
        context: context.map(str::to_owned),
        id: id.to_owned(),
        text: text.to_owned(),
    };
    let expected =
        vec![entry(None, "a", "b"), entry(Some("error"), "two parts \"quoted\"", "c\\de")];
    assert_eq!(read_entries(file), Ok(expected));
    for (line, odd) in [
        (1, "\"nothing before\""),
        (1, "msgstr \"x\""),
        (1, "msgid x"),
        (1, "msgid \"\\q\""),
        (1, "msgid \"a\" \"b\""),
        (2, "msgid \"a\"\nmsgid \"b\""),
        (2, "msgid \"a\"\nmsgid_plural \"b\""),
        (2, "msgid \"a\"\nword"),
    ] {
        assert_eq!(read_entries(odd), Err(InvalidFile { line }), "{odd}");
    }
}

/// Returns the texts of the templates and of the handlers, with a file that has each.
fn texts() -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::new();
    for (folder, extension, function) in [("web", "html", "t("), ("src", "rs", "message(")] {
        for (path, source) in sources(&package().join(folder), extension) {
            for (text, _) in calls(&source, function) {
                found.insert(text, path.clone());
            }
        }
    }
    found
}

/// Returns the texts that come from other crates as they are.
fn labels() -> BTreeMap<String, PathBuf> {
    let names = Status::ALL.iter().map(|status| status.as_str());
    let states = [DeliveryState::Pending, DeliveryState::Delivered, DeliveryState::Exhausted];
    let names = names.chain(states.map(DeliveryState::as_str));
    let names = names.chain(Role::ALL.map(Role::as_str));
    let names =
        names.chain([Environment::Production, Environment::Development].map(Environment::as_str));
    let names = names.chain(TemplateStatus::ALL.map(TemplateStatus::as_str));
    // The states of keys and of webhooks.
    let names = names.chain(["revoked", "active", "expired", "off", "failing"]);
    let causes = [
        FailureCause::Dns,
        FailureCause::Url,
        FailureCause::Blocked,
        FailureCause::Tls,
        FailureCause::Connect,
        FailureCause::Timeout,
        FailureCause::Http,
        FailureCause::Body,
        FailureCause::Request,
    ];
    let names = names.chain(causes.map(FailureCause::as_str));
    // Events that the store adds to those of the session.
    let added = [
        "SessionCreated",
        "DataErased",
        "NotificationQueued",
        "NotificationSent",
        "NotificationFailed",
        "DeviceJoined",
        "ConsentGiven",
        "ConsentRefused",
    ];
    let events = Event::NAMES.iter().copied().chain(added).map(event_label);
    let codes = ErrorCode::ALL.iter().flat_map(|code| [code.partner_text(), remedy(*code)]);
    let all = names.map(label).chain(events).chain(codes.map(str::to_owned));
    all.map(|text| (text, PathBuf::from("the domain"))).collect()
}

/// Returns errors that the domain and the ports compose, with values.
fn composed_errors() -> Vec<String> {
    let long = "x".repeat(300);
    let contacts = [
        Contact::parse("", "nobody", "", ""),
        Contact::parse("", "", "1", "!"),
        Contact::parse("", "", "", ""),
        Contact::parse(&long, "ada@example.com", "", ""),
        Contact::parse("\u{7}", "ada@example.com", "", ""),
    ];
    let findings = contacts.into_iter().filter_map(Result::err);
    let findings = findings.flat_map(|invalid| invalid.0);
    let errors = [
        PortalError::InvalidLink,
        PortalError::Forbidden,
        PortalError::Unconfirmed,
        PortalError::WrongPassword,
        PortalError::PasswordRanOut,
        PortalError::WrongCode,
        PortalError::Restarting,
        PortalError::TooMany { retry_after: 1 },
        PasswordRejected::Short.into(),
        PasswordRejected::Long.into(),
        PasswordRejected::Frequent.into(),
        PasswordRejected::Guessable.into(),
    ];
    let brands = [
        InvalidBrand::Name,
        InvalidBrand::Colour,
        InvalidBrand::Faint,
        InvalidBrand::PrivacyUrl,
        InvalidBrand::Logo,
        InvalidBrand::LargeLogo,
    ];
    let drafts = [InvalidDraft::Name, InvalidDraft::Subject, InvalidDraft::Body];
    let mails = [
        NotificationFailure::UnknownReceiver,
        NotificationFailure::MailboxFull,
        NotificationFailure::Rejected,
        NotificationFailure::Unreachable,
    ];
    let mails = mails.map(|failure| failure.as_str().replace('_', " "));
    let others = [
        UnknownRole.to_string(),
        UnknownEnvironment.to_string(),
        UnknownLanguage.to_string(),
        InvalidFrameAncestor.to_string(),
    ];
    let all = findings.chain(errors.map(|error| error.to_string()));
    let all = all.chain(brands.map(|error| error.to_string()));
    let all = all.chain(drafts.map(|error| error.to_string()));
    all.chain(mails).chain(others).collect()
}

/// Returns the errors that the use cases and the handlers of the portal write, with `{}` for each
/// value.
fn written_errors() -> BTreeSet<String> {
    let crates = package().join("../..");
    let files = [
        sources(&crates.join("application/src/portal"), "rs"),
        sources(&crates.join("authoring/src/studios/drafts.rs"), "rs"),
        sources(&crates.join("authoring/src/studios/versions.rs"), "rs"),
        sources(&crates.join("application/src/webhooks.rs"), "rs"),
        sources(&crates.join("application/src/contacts.rs"), "rs"),
        sources(&crates.join("application/src/template_review.rs"), "rs"),
        sources(&package().join("src"), "rs"),
    ];
    let mut found = BTreeSet::new();
    for (_, source) in files.into_iter().flatten() {
        for place in
            ["Invalid(", "invalid(", "Message::error(", "#[error(", "let why =", "let text ="]
        {
            found.extend(calls(&source, place).map(|(text, _)| blanks(&text)));
        }
        for place in ["Invalid(format!(", "invalid(&format!("] {
            found.extend(calls(&source, place).map(|(text, _)| blanks(&text)));
        }
        for (what, _) in calls(&source, "NotFound(") {
            found.insert(format!("{what} not found"));
        }
    }
    // An error that only passes another one on has no text of its own.
    found.remove("{}");
    found
}

/// Returns all strings of the crates whose errors the portal shows, with `{}` for each value.
fn literals() -> BTreeSet<String> {
    let crates = package().join("../..");
    let folders =
        ["domain", "ports", "application", "authoring", "adapters/messaging", "adapters/portal"];
    let mut found = BTreeSet::new();
    for folder in folders {
        for (_, source) in sources(&crates.join(folder).join("src"), "rs") {
            for (start, end) in strings(&source) {
                let text = unescaped(&source[start..end]);
                found.insert(blanks(&text.replace("{{", "{").replace("}}", "}")));
                found.insert(blanks(&text));
            }
        }
    }
    found
}

/// Replaces the values of a format string by `{}`.
fn blanks(text: &str) -> String {
    let (mut blank, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once('{') {
        blank.push_str(before);
        blank.push('{');
        let inner = after.split_once('}').map_or("", |(inner, _)| inner);
        let is_name = inner.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        rest = after.strip_prefix(inner).filter(|_| is_name).unwrap_or(after);
    }
    blank + rest
}

fn placeholders(text: &str) -> BTreeSet<String> {
    let names = pieces(text).into_iter().filter_map(|piece| match piece {
        Piece::Placeholder(name) => Some(name.to_owned()),
        Piece::Literal(_) => None,
    });
    names.collect()
}

fn ids(file: &str, context: Option<&str>) -> BTreeSet<String> {
    let entries = read_entries(file).unwrap().into_iter();
    entries.filter(|entry| entry.context.as_deref() == context).map(|entry| entry.id).collect()
}

/// Returns each string that is the first argument of a function, and what comes after it.
fn calls<'a>(source: &'a str, function: &str) -> impl Iterator<Item = (String, &'a str)> {
    source.match_indices(function).filter_map(move |(at, _)| {
        let is_longer = |letter: char| letter.is_alphanumeric() || letter == '_';
        let argument = source[at + function.len()..].trim_start();
        let inner = argument.strip_prefix('"').filter(|_| !source[..at].ends_with(is_longer))?;
        let end = end_of_string(inner);
        Some((unescaped(&inner[..end]), &inner[end + 1..]))
    })
}

/// Returns where the quote is that ends a string.
fn end_of_string(inner: &str) -> usize {
    let mut is_escaped = false;
    let end = inner.find(|letter| {
        let ends = letter == '"' && !is_escaped;
        is_escaped = letter == '\\' && !is_escaped;
        ends
    });
    end.expect("the end of a string")
}

/// Returns the ranges between the quotes of each string of a source, but not of its comments.
fn strings(source: &str) -> Vec<(usize, usize)> {
    let bytes = source.as_bytes();
    let (mut found, mut at) = (vec![], 0);
    while at < bytes.len() {
        let rest = &bytes[at..];
        if rest.starts_with(b"//") {
            at += source[at..].find('\n').unwrap_or(rest.len());
        } else if rest.starts_with(b"'\"'") || rest.starts_with(b"'\\\"'") {
            at += 4;
        } else if bytes[at] == b'"' {
            let end = at + 1 + end_of_string(&source[at + 1..]);
            found.push((at + 1, end));
            at = end + 1;
        } else {
            at += 1;
        }
    }
    found
}

/// Returns the value of a string of Rust: a line break after a backslash, and the spaces at the
/// beginning of the next line, are not part of it.
fn unescaped(text: &str) -> String {
    let mut parts = text.split("\\\n");
    let first = parts.next().unwrap_or_default().to_owned();
    let joined = parts.fold(first, |joined, part| joined + part.trim_start());
    joined.replace("\\\"", "\"").replace("\\n", "\n").replace("\\\\", "\\")
}

/// Returns the arguments of a call after its first one, up to the closing parenthesis.
fn arguments(rest: &str) -> String {
    let (mut depth, mut is_quoted) = (0_i32, false);
    for (at, letter) in rest.char_indices() {
        is_quoted ^= letter == '"';
        if is_quoted {
            continue;
        }
        depth += match letter {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        if depth < 0 {
            return rest[..at].to_owned();
        }
    }
    rest.to_owned()
}

/// Returns the files of a folder, or one file, with their content before their tests.
fn sources(path: &Path, extension: &str) -> Vec<(PathBuf, String)> {
    if path.is_dir() {
        let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        let entries = entries.filter(|path| !path.ends_with("tests"));
        return entries.flat_map(|path| sources(&path, extension)).collect();
    }
    if path.extension().is_none_or(|found| found != extension) || path.ends_with("tests.rs") {
        return vec![];
    }
    let source = fs::read_to_string(path).unwrap();
    let code = source.split("#[cfg(test)]").next().unwrap_or_default();
    vec![(path.to_owned(), code.to_owned())]
}

/// Returns the folder of this crate.
fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
