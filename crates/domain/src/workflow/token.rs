//! Texts that look like access tokens: by their form, or by a label beside them.

use std::{borrow::Cow, collections::BTreeSet, ops::Range};

use serde_json::Value;

use super::mask::is_position;

/// How a mask begins. A number follows.
const MASK: &str = "masked-";
/// The length of the longest label.
const MAX_LABEL_BYTES: usize = 60;
/// The length of the longest text that has both a label and what it names.
const MAX_LABELLED_BYTES: usize = 200;
/// Parts of labels and names, in lower case and without what is between their words.
const SECRET_LABELS: &[&str] =
    &["accesskey", "apikey", "passphrase", "password", "privatekey", "secret", "token"];
/// Those of codes, which may be of digits alone.
const CODE_LABELS: &[&str] = &["backupcode", "recoverycode"];
/// Parts of the names of members that have a hash of something known.
const DIGEST_NAMES: &[&str] = &[
    "checksum",
    "commit",
    "digest",
    "etag",
    "fingerprint",
    "hash",
    "integrity",
    "md5",
    "sha1",
    "sha2",
    "sha5",
];
/// The length of the shortest text that is told by its form alone.
const MIN_FORM_BYTES: usize = 32;
/// The length of the shortest random part of a key that begins with a name.
const MIN_KEY_BYTES: usize = 16;
/// The length of the longest text that is told by its label.
const MAX_LABELLED_WORD_BYTES: usize = 512;
/// The length of the longest header of a JSON Web Token.
const MAX_HEADER_BYTES: usize = 4096;
const BASE64URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// What a label tells of the text that it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Label {
    Other,
    /// A token, a key or a password.
    Secret,
    /// A code, which may be of digits alone.
    Code,
}

impl Label {
    /// Returns what a label or a name tells, if it has at most 60 bytes.
    pub(super) fn of(text: &str) -> Self {
        Self::up_to(MAX_LABEL_BYTES, text)
    }

    /// Returns what a label in a text tells of the rest of the text, which has at most 200 bytes.
    pub(super) fn within(text: &str) -> Self {
        Self::up_to(MAX_LABELLED_BYTES, text)
    }

    fn up_to(limit: usize, text: &str) -> Self {
        // A mask may be shorter than the encoded text in its place, so that a label must not depend on it.
        if text.len() > limit || text.contains('%') || text.contains(MASK) || is_position(text) {
            return Self::Other;
        }
        let letters = text.chars().filter(char::is_ascii_alphanumeric);
        let plain: String = letters.map(|letter| letter.to_ascii_lowercase()).collect();
        let has = |parts: &[&str]| parts.iter().any(|part| plain.contains(part));
        if has(CODE_LABELS) {
            Self::Code
        } else if has(SECRET_LABELS) {
            Self::Secret
        } else {
            Self::Other
        }
    }
}

/// Where a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Text,
    /// The address of a page or a request. Its path has identifiers, which are no tokens by their form.
    Address,
    /// The address of an image, a script or a style, which has hashes.
    Asset,
}

/// A token in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundToken {
    /// Where it stands in the text, in bytes.
    pub(super) range: Range<usize>,
    /// The token. In addresses its characters may be encoded.
    pub(super) token: String,
}

/// Returns the mask of a token: at least as long, and another one for each number. No mask looks like a
/// token, and none has characters that are encoded in an address.
pub(super) fn mask_of(number: usize, token: &str) -> String {
    let mut mask = format!("{MASK}{number}");
    if mask.len() < token.len() {
        mask.push('-');
        mask.extend(std::iter::repeat_n('x', token.len().saturating_sub(mask.len())));
    }
    mask
}

/// Returns whether the value of a member is a hash of something known, by the member's name.
pub(super) fn is_digest(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let has_part = DIGEST_NAMES.iter().any(|part| name.contains(part));
    (has_part || name == "sha") && Label::of(&name) == Label::Other
}

/// Returns whether a text is codes and nothing else, so that the text after it may go on with them.
pub(super) fn is_list_of_codes(text: &str) -> bool {
    let is_mask = |word: &str| {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        word.starts_with(MASK) && word.bytes().all(is_part)
    };
    let is_code = |word: &str| {
        let token = decoded(word);
        is_mask(word) || is_named_secret(&token, Label::Code) || is_token(&token)
    };
    !text.trim().is_empty() && text.split_whitespace().all(is_code)
}

/// Returns the tokens in a text, in order: those by their form, those that `label` or a name before them
/// tells, and those that are known. Takes time linear in the length of the text.
pub(super) fn find_tokens(
    text: &str,
    place: Place,
    label: Label,
    is_known: &dyn Fn(&str) -> bool,
) -> Vec<FoundToken> {
    if text.trim_start().starts_with("data:") {
        return vec![];
    }
    let label = match place {
        Place::Text => label.max(Label::within(text)),
        Place::Address | Place::Asset => Label::Other,
    };
    let mut search = Search { place, label, is_known, found: vec![] };
    let path_end = match place {
        Place::Text => 0,
        Place::Address | Place::Asset => text.find(['?', '#']).unwrap_or(text.len()),
    };
    let (path, rest) = text.split_at_checked(path_end).unwrap_or(("", text));
    if !path.contains(MASK) {
        search.path(0, path);
    }
    for (start, run) in runs(rest) {
        let end = start.saturating_add(run.len());
        let before = rest.get(..start).unwrap_or_default();
        let after = rest.get(end..).unwrap_or_default();
        // An address of mail, or a data URL with its content.
        let is_mail = before.ends_with('@') || after.starts_with('@');
        let is_other = is_mail || run == "base64" || before.ends_with(";base64,");
        // What stands beside a mask was looked at before.
        if !is_other && !run.contains(MASK) {
            search.run(path_end.saturating_add(start), run);
        }
    }
    search.found
}

/// Returns the parts of a text that have only characters of tokens and of addresses, and where they begin.
fn runs(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let ends = |c: char| !c.is_ascii_alphanumeric() && !"_-+/=.:~%".contains(c);
    let mut at = 0_usize;
    text.split_inclusive(ends).filter_map(move |piece| {
        let start = at;
        at = at.saturating_add(piece.len());
        let run = piece.trim_end_matches(ends);
        (!run.is_empty()).then_some((start, run))
    })
}

struct Search<'a> {
    place: Place,
    label: Label,
    is_known: &'a dyn Fn(&str) -> bool,
    found: Vec<FoundToken>,
}

impl Search<'_> {
    fn run(&mut self, start: usize, run: &str) {
        if run.contains("://") || run.starts_with(['/', '.']) {
            return self.path(start, run);
        }
        let pair = run.split_once('=');
        match pair.filter(|(_, value)| value.bytes().any(|byte| byte != b'=')) {
            Some((name, value)) => {
                let value_start = start.saturating_add(name.len()).saturating_add(1);
                let label = self.label.max(Label::of(name));
                // The parameters of an asset are versions of it, unless they are named otherwise.
                if self.place != Place::Asset || label != Label::Other {
                    self.word(start, name, self.label);
                    self.word(value_start, value, label);
                }
            }
            None if self.place == Place::Asset => (),
            None => self.word(start, run, self.label),
        }
    }

    /// Looks for known tokens in the path of an address.
    fn path(&mut self, start: usize, path: &str) {
        let mut at = start;
        for segment in path.split_inclusive('/') {
            let name = segment.trim_end_matches('/');
            let token = decoded(name);
            if !token.is_empty() && (self.is_known)(&token) {
                self.push(at, name, &token);
            }
            at = at.saturating_add(segment.len());
        }
    }

    /// Looks for a token that is the word, or a part of it between colons.
    fn word(&mut self, start: usize, word: &str, label: Label) {
        let whole = word.trim_end_matches(['.', ':']);
        if self.is_secret(&decoded(whole), label) {
            return self.push(start, whole, &decoded(whole));
        }
        let mut at = start;
        let mut label = label;
        for part in word.split_inclusive(':') {
            let name = part.trim_end_matches(['.', ':']);
            let token = decoded(name);
            if self.is_secret(&token, label) {
                self.push(at, name, &token);
            }
            label = label.max(Label::of(name));
            at = at.saturating_add(part.len());
        }
    }

    fn is_secret(&self, token: &str, label: Label) -> bool {
        !token.is_empty()
            && (is_token(token) || is_named_secret(token, label) || (self.is_known)(token))
    }

    fn push(&mut self, start: usize, written: &str, token: &str) {
        let range = start..start.saturating_add(written.len());
        self.found.push(FoundToken { range, token: token.to_owned() });
    }
}

/// Returns whether a word is what a label of secrets says.
fn is_named_secret(word: &str, label: Label) -> bool {
    let min = match label {
        Label::Other => return false,
        Label::Secret => 8,
        Label::Code => 6,
    };
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"_-+/=.~".contains(&byte);
    let has_digit = word.bytes().any(|byte| byte.is_ascii_digit());
    let has_letter = word.bytes().any(|byte| byte.is_ascii_alphabetic());
    let is_number = word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    (min..=MAX_LABELLED_WORD_BYTES).contains(&word.len())
        && word.bytes().all(is_part)
        && has_digit
        && (has_letter || (label == Label::Code && is_number))
        && !word.starts_with('/')
        && !word.starts_with(MASK)
        && !is_date(word)
}

/// Returns whether a word begins with a date such as `2026-12-01`.
fn is_date(word: &str) -> bool {
    let bytes = word.as_bytes();
    let is_digits = |range: Range<usize>| {
        bytes.get(range).is_some_and(|part| part.iter().all(u8::is_ascii_digit))
    };
    let is_dash = |at: usize| bytes.get(at) == Some(&b'-');
    is_digits(0..4) && is_dash(4) && is_digits(5..7) && is_dash(7) && is_digits(8..10)
}

/// Returns whether a word is a token by its form. No mask is one.
pub(super) fn is_token(word: &str) -> bool {
    !word.contains(MASK)
        && (is_web_token(word)
            || is_hex(word)
            || is_pair(word)
            || is_base64(word)
            || is_lower_case(word)
            || is_prefixed_key(word))
}

/// Returns whether a word is a JSON Web Token (RFC 7519): its first part is a JSON object with `alg`.
fn is_web_token(word: &str) -> bool {
    let mut parts = word.split('.');
    let Some(header) = parts.next().filter(|part| (8..=MAX_HEADER_BYTES).contains(&part.len()))
    else {
        return false;
    };
    let is_base64url = |part: &str| part.bytes().all(|byte| BASE64URL.contains(&byte));
    if word.split('.').count() != 3 || !parts.all(is_base64url) {
        return false;
    }
    let header = base64url(header).and_then(|json| serde_json::from_slice::<Value>(&json).ok());
    header.is_some_and(|header| header.get("alg").is_some())
}

fn base64url(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0_u32, 0_u32);
    for byte in text.bytes() {
        let value = BASE64URL.iter().position(|known| *known == byte)?;
        bits = ((bits & 0xff) << 6) | u32::try_from(value).ok()?;
        count = count.saturating_add(6);
        if count >= 8 {
            count = count.saturating_sub(8);
            bytes.push(u8::try_from((bits >> count) & 0xff).ok()?);
        }
    }
    Some(bytes)
}

fn is_hex(word: &str) -> bool {
    word.len() >= MIN_FORM_BYTES && is_hex_part(word)
}

fn is_hex_part(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_hexdigit())
        && word.bytes().any(|byte| byte.is_ascii_digit())
        && word.bytes().any(|byte| byte.is_ascii_alphabetic())
        && distinct(word) >= 6
}

/// Returns whether a word is an identifier and a secret of hexadecimal digits, with a colon between.
fn is_pair(word: &str) -> bool {
    word.split_once(':')
        .is_some_and(|(id, secret)| id.len() >= MIN_KEY_BYTES && is_hex_part(id) && is_hex(secret))
}

/// Returns whether a word is base64 or base64url of something random (RFC 4648). Words in camel case have
/// fewer changes between kinds of characters.
fn is_base64(word: &str) -> bool {
    let content = word.trim_end_matches('=');
    let is_of = |more: &[u8]| {
        content.bytes().all(|byte| byte.is_ascii_alphanumeric() || more.contains(&byte))
    };
    let has = |is_kind: fn(&u8) -> bool| content.bytes().any(|byte| is_kind(&byte));
    content.len() >= MIN_FORM_BYTES
        && word.len().saturating_sub(content.len()) <= 2
        && (is_of(b"+/") || is_of(b"-_"))
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_lowercase)
        && has(u8::is_ascii_digit)
        && changes_in_percent(content) >= 40
        && distinct(content) >= 14
}

/// Returns whether a word is random letters of one case and digits.
fn is_lower_case(word: &str) -> bool {
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let percent = digits.saturating_mul(100).checked_div(word.len()).unwrap_or_default();
    word.len() >= MIN_FORM_BYTES
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && (10..=65).contains(&percent)
        && changes_in_percent(word) >= 25
        && distinct(word) >= 8
}

/// Returns whether a word is a key that begins with the name of what it is for, such as `shop_live_`.
fn is_prefixed_key(word: &str) -> bool {
    let Some((prefix, key)) = word.rsplit_once(['_', '-']) else { return false };
    let mut parts = prefix.split(['_', '-']);
    let is_name = |part: &str| {
        (2..=12).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    let begins_with_name = parts.next().is_some_and(|first| {
        is_name(first) && first.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic())
    });
    let is_short = |part: &str| {
        (1..=24).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    let digits = key.bytes().filter(u8::is_ascii_digit).count();
    let has_cases = key.bytes().any(|byte| byte.is_ascii_uppercase())
        && key.bytes().any(|byte| byte.is_ascii_lowercase());
    let changes = changes_in_percent(key);
    begins_with_name
        && prefix.split(['_', '-']).count() <= 4
        && parts.all(is_short)
        && key.len() >= MIN_KEY_BYTES
        && key.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && key.bytes().any(|byte| byte.is_ascii_alphabetic())
        && ((digits >= 2 && changes >= 25) || (digits >= 1 && has_cases && changes >= 40))
        && distinct(key) >= 8
}

/// Returns how many different bytes a word has.
fn distinct(word: &str) -> usize {
    word.bytes().collect::<BTreeSet<_>>().len()
}

/// Returns how many of the characters of a word are of another kind than the one before, in percent.
fn changes_in_percent(word: &str) -> usize {
    let kind =
        |byte: u8| (byte.is_ascii_uppercase(), byte.is_ascii_lowercase(), byte.is_ascii_digit());
    let kinds = || word.bytes().map(kind);
    let changes = kinds().zip(kinds().skip(1)).filter(|(before, after)| before != after).count();
    let pairs = word.len().saturating_sub(1);
    changes.saturating_mul(100).checked_div(pairs).unwrap_or_default()
}

/// Returns a part of an address without its encoding (RFC 3986, section 2.1). A text that has none stays.
fn decoded(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let mut ahead = rest.clone();
        let mut digit = || ahead.next().and_then(|digit| char::from(digit).to_digit(16));
        let pair = digit().zip(digit()).filter(|_| byte == b'%');
        let code = pair.and_then(|(high, low)| u8::try_from(high.saturating_mul(16) | low).ok());
        match code {
            Some(code) => {
                bytes.push(code);
                rest = ahead;
            }
            None => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).map_or(Cow::Borrowed(text), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HEX: &str = "9a7b3c5d1e2f4a6b8c0d9e1f3a5b7c9d1e2f3a4b5c6d7e8f9a0b1c2d3e4f5a6b";
    const WEB_TOKEN: &str =
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1g";
    const BASE64: &str = "q8Zt3vLw9XcR2mKp7YbN5sHd1GfJ4aTe+U6o/Ei0";

    fn found(text: &str, place: Place, label: Label) -> Vec<String> {
        let found = find_tokens(text, place, label, &|_| false);
        found.into_iter().map(|found| found.token).collect()
    }

    #[test]
    fn tokens_are_told_by_their_form_and_by_labels() {
        let pair = format!("5f3c1a2b4d6e8f0a1b2c3d4e:{HEX}");
        let (upper, padded) = (HEX.to_ascii_uppercase(), format!("{BASE64}=="));
        let encoded = BASE64.replace('/', "%2F").replace('+', "%2B");
        let cases: [(&str, &str); 17] = [
            (HEX, HEX),
            (&upper, &upper),
            (&format!("Staff access token: {pair}"), &pair),
            (&pair, &pair),
            (&format!("Bearer {WEB_TOKEN}"), WEB_TOKEN),
            (&format!("Your token is {WEB_TOKEN}."), WEB_TOKEN),
            (BASE64, BASE64),
            (&padded, &padded),
            ("shop_live_51HxY2eKq8Zt3vLw9XcR", "shop_live_51HxY2eKq8Zt3vLw9XcR"),
            ("use shop_16C7e42F292c6912E7710c838347 here", "shop_16C7e42F292c6912E7710c838347"),
            ("(shop-a8Kd93jsLq02mZx7Pq5T)", "shop-a8Kd93jsLq02mZx7Pq5T"),
            ("k3j4h5g6f7d8s9a0q1w2e3r4t5y6u7i8o9", "k3j4h5g6f7d8s9a0q1w2e3r4t5y6u7i8o9"),
            ("API key: ab12cd34", "ab12cd34"),
            ("Recovery code 483920", "483920"),
            ("https://a.test/in?api_key=ab12cd34ef&n=2", "ab12cd34ef"),
            (&format!("Authorization: token={BASE64}"), BASE64),
            (&format!("a={encoded}"), BASE64),
        ];
        for (text, expected) in cases {
            assert_eq!(found(text, Place::Text, Label::Other), [expected], "{text}");
        }
        for (text, label, expected) in [
            ("abcd-1234", Label::Secret, "abcd-1234"),
            ("4839-2017", Label::Code, "4839-2017"),
            (
                "0b9ab1a6-2c5c-4a86-9e0a-7d3f0c1b2a3d",
                Label::Secret,
                "0b9ab1a6-2c5c-4a86-9e0a-7d3f0c1b2a3d",
            ),
        ] {
            assert_eq!(found(text, Place::Text, label), [expected], "{text}");
        }
        let address = format!("/orders/7?key={HEX}");
        assert_eq!(found(&address, Place::Address, Label::Other), [HEX]);
        let asset = format!("/a.js?v={HEX}&token=ab12cd34");
        assert_eq!(found(&asset, Place::Asset, Label::Other), ["ab12cd34"]);
    }

    #[test]
    fn other_texts_are_no_tokens() {
        for text in [
            "Ada Lovelace",
            "",
            "0b9ab1a6-2c5c-4a86-9e0a-7d3f0c1b2a3d",
            "12345678901234567890123456789012345678",
            "getUserAccountSettingsPageTemplate2",
            "my-article-about-the-budget-of-2024-and-of-2025",
            "https://a.test/orders/9a7b3c5d1e2f4a6b8c0d9e1f3a5b7c9d",
            "/assets/9a7b3c5d1e2f4a6b8c0d9e1f3a5b7c9d.js",
            "assets/app.9a7b3c5d1e2f4a6b8c0d9e1f3a5b7c9d.js",
            "data:image/png;base64,q8Zt3vLw9XcR2mKp7YbN5sHd1GfJ4aTe+U6o/Ei0",
            "url(data:font/woff2;base64,q8Zt3vLw9XcR2mKp7YbN5sHd1GfJ4aTe+U6o/Ei0)",
            "Forgot your password?",
            "Password changed on 2026-12-01",
            "Token expires 2026-12-01T10:00:00Z",
            "Tokens used: 1200000",
            "Secret Santa",
            "ada12345@shop.test has a password",
            "DE89370400440532013000",
            "DE89 3704 0044 0532 0130 00",
            "+49 30 1234567",
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1",
            "eyJhbGciOiJIUzI1NiJ9.only",
            "order_confirmationEmailTemplate",
            "masked-1-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            "token=masked",
        ] {
            assert_eq!(found(text, Place::Text, Label::Other), Vec::<String>::new(), "{text}");
        }
        let hashed = format!("/{HEX}/app.js?v={HEX}");
        assert_eq!(found(&hashed, Place::Asset, Label::Other), Vec::<String>::new());
        let order = format!("/orders/{HEX}?page=2");
        assert_eq!(found(&order, Place::Address, Label::Other), Vec::<String>::new());
        for label in [Label::of("nextPageToken"), Label::of("name"), Label::of("50% of tokens")] {
            assert_eq!(label, Label::Other);
        }
        assert!(is_digest("commitSha") && is_digest("etag") && !is_digest("tokenHash"));
    }

    #[test]
    fn a_known_token_is_found_in_a_path_and_in_encoded_form() {
        let is_known = |text: &str| text == "ab/12";
        let found = |text: &str, place| {
            let found = find_tokens(text, place, Label::Other, &is_known);
            found.into_iter().map(|found| text[found.range].to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(found("/keys/ab%2F12/edit", Place::Address), ["ab%2F12"]);
        assert_eq!(found("https://a.test/x?k=ab%2F12#ab/12", Place::Address), ["ab%2F12", "ab/12"]);
        assert_eq!(found("is ab/12, or ab/123", Place::Text), ["ab/12"]);
    }

    proptest! {
        /// No text makes the search panic, what is found is in order, and a mask is never found.
        #[test]
        fn the_search_is_total(text in "\\PC{0,80}|[a-zA-Z0-9_=./:%&?-]{0,120}", number in 1_usize..9999) {
            for place in [Place::Text, Place::Address, Place::Asset] {
                for label in [Label::Other, Label::Secret, Label::Code] {
                    let found = find_tokens(&text, place, label, &|_| false);
                    let mut at = 0;
                    for FoundToken { range, .. } in found {
                        prop_assert!(range.start >= at && text.get(range.clone()).is_some());
                        at = range.end;
                    }
                }
            }
            let mask = mask_of(number, &text);
            prop_assert!(mask.len() >= text.len());
            prop_assert_eq!(find_tokens(&mask, Place::Text, Label::Code, &|_| false), vec![]);
        }
    }
}
