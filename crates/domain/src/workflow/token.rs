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
/// What stands between a name and its value, also encoded (RFC 3986, section 2.1).
const ASSIGNMENTS: &[&str] = &["=", ":", "%3D", "%3d", "%3A", "%3a"];
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

/// Returns whether a text is codes and nothing else but their numbers, so that the text after it may go on
/// with them.
pub(super) fn is_list_of_codes(text: &str) -> bool {
    let is_mask = |word: &str| {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        word.starts_with(MASK) && word.bytes().all(is_part)
    };
    let is_code = |word: &str| {
        if word.contains(MASK) {
            return is_mask(word);
        }
        let token = decoded(word);
        is_named_secret(&token, Label::Code) || is_token(&token)
    };
    let is_number = |word: &str| word.len() <= 3 && !word.bytes().any(|b| b.is_ascii_alphabetic());
    let is_part = |word: &str| is_number(word) || is_code(word.trim_end_matches([',', ';']));
    !text.trim().is_empty()
        && (is_in_groups(text, Label::Code) || text.split_whitespace().all(is_part))
}

/// Returns whether a text is one secret in groups of the same length, such as `ab12 cd34 ef56`.
fn is_in_groups(text: &str, label: Label) -> bool {
    let groups = || text.split_whitespace();
    let length = groups().next().map(str::len).unwrap_or_default();
    let is_group = |group: &str| {
        group.len() == length && group.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    let with_digit = groups().filter(|group| group.bytes().any(|byte| byte.is_ascii_digit()));
    let has_letter = text.bytes().any(|byte| byte.is_ascii_alphabetic());
    text.len() <= MAX_LABELLED_BYTES
        && (3..=5).contains(&length)
        && groups().all(is_group)
        && with_digit.count() >= 2
        && match label {
            Label::Other => false,
            Label::Secret => has_letter,
            Label::Code => true,
        }
}

/// Returns whether a text is a data URL (RFC 2397).
fn is_data_url(text: &str) -> bool {
    let content = text.trim_start().strip_prefix("data:").and_then(|rest| rest.split_once(','));
    let is_of_type = |byte: u8| byte.is_ascii_alphanumeric() || b"/+-.;=_".contains(&byte);
    content.is_some_and(|(kind, _)| kind.bytes().all(is_of_type))
}

/// Returns the tokens in a text, in order: those by their form, those that `label` or a name before them
/// tells, and those that are known. Takes time linear in the length of the text.
pub(super) fn find_tokens(
    text: &str,
    place: Place,
    label: Label,
    is_known: &dyn Fn(&str) -> bool,
) -> Vec<FoundToken> {
    if is_data_url(text) {
        return vec![];
    }
    let is_script = text.trim_start().starts_with("javascript:");
    let place = if is_script { Place::Text } else { place };
    let whole = text.trim();
    if place == Place::Text
        && whole.contains(char::is_whitespace)
        && (is_in_groups(whole, label) || is_known(whole))
    {
        let start = text.len().saturating_sub(text.trim_start().len());
        let range = start..start.saturating_add(whole.len());
        return vec![FoundToken { range, token: whole.to_owned() }];
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
    search.rest(path_end, rest);
    search.found.sort_by_key(|found| found.range.start);
    search.found
}

/// Returns the parts of a text that have only characters of tokens and of addresses, also encoded, and
/// where they begin.
fn runs(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0_usize;
    std::iter::from_fn(move || {
        let mut rest = text.get(at..)?;
        while let Some(length) = separator_at(rest) {
            at = at.saturating_add(length);
            rest = text.get(at..)?;
        }
        let start = at;
        while !rest.is_empty() && separator_at(rest).is_none() {
            // The characters of runs are ASCII.
            at = at.saturating_add(1);
            rest = text.get(at..)?;
        }
        text.get(start..at).filter(|run| !run.is_empty()).map(|run| (start, run))
    })
}

/// Returns the length of the character with which a text begins, if it belongs to no run. It may be
/// encoded.
fn separator_at(text: &str) -> Option<usize> {
    let is_of_run = |c: char| c.is_ascii_alphanumeric() || "_-+/=.:~%".contains(c);
    let first = text.chars().next()?;
    match encoded_byte(text) {
        Some(byte) => (byte.is_ascii() && !is_of_run(char::from(byte))).then_some(3),
        None => (!is_of_run(first)).then(|| first.len_utf8()),
    }
}

/// Returns the byte that the first three characters of a text stand for, if it is encoded.
fn encoded_byte(text: &str) -> Option<u8> {
    let mut digits = text.strip_prefix('%')?.chars().map(|digit| digit.to_digit(16));
    let (high, low) = digits.next()?.zip(digits.next()?)?;
    u8::try_from(high.saturating_mul(16) | low).ok()
}

/// Returns a name and its value, which is not only the padding of base64.
fn pair(run: &str) -> Option<(&str, &str)> {
    let signs = ["=", "%3D", "%3d"].into_iter();
    let (at, sign) = signs.filter_map(|sign| Some((run.find(sign)?, sign))).min()?;
    let (name, rest) = run.split_at_checked(at)?;
    let value = rest.strip_prefix(sign)?;
    decoded(value).bytes().any(|byte| byte != b'=').then_some((name, value))
}

struct Search<'a> {
    place: Place,
    label: Label,
    is_known: &'a dyn Fn(&str) -> bool,
    found: Vec<FoundToken>,
}

impl Search<'_> {
    /// Looks for tokens behind the path of an address, or in another text. `offset` is where it begins.
    fn rest(&mut self, offset: usize, text: &str) {
        let (mut last_end, mut name, mut is_assigned) = (0_usize, Label::Other, false);
        for (start, run) in runs(text) {
            let end = start.saturating_add(run.len());
            let between = text.get(last_end..start).unwrap_or_default();
            last_end = end;
            // In JSON, a name and its value are in quotes; in a query, a name may be in brackets.
            let is_near = |c: char| c.is_whitespace() || "\"'\\[]".contains(c);
            if !decoded(between).chars().all(is_near) {
                (name, is_assigned) = (Label::Other, false);
            }
            let mut value = run;
            while let Some(rest) = ASSIGNMENTS.iter().find_map(|sign| value.strip_prefix(*sign)) {
                (value, is_assigned) = (rest, true);
            }
            if value.is_empty() {
                continue;
            }
            let label = if is_assigned { self.label.max(name) } else { self.label };
            let value_start = end.saturating_sub(value.len());
            let before = text.get(..start).unwrap_or_default();
            let after = text.get(end..).unwrap_or_default();
            // An address of mail, or a data URL with its content.
            let is_mail_end = ["@", "%40"].iter().any(|at| before.ends_with(at));
            let is_before_at = ["@", "%40"].iter().any(|at| after.starts_with(at));
            let is_content = value == "base64" || before.ends_with(";base64,");
            let at = offset.saturating_add(value_start);
            // What stands beside a mask was looked at before.
            let is_other = value.contains(MASK) || is_mail_end || is_content;
            if !is_other && !is_before_at {
                self.run(at, value, label);
            } else if !is_other && let Some((scheme, user)) = value.split_once("://") {
                self.user(at.saturating_add(scheme.len()).saturating_add(3), user);
            }
            name = Label::of(value);
            is_assigned = ASSIGNMENTS.iter().any(|sign| value.ends_with(sign));
        }
    }

    fn run(&mut self, start: usize, run: &str, label: Label) {
        let plain = decoded(run);
        // Paths have neither the padding nor the plus signs of base64.
        let is_base64 = run.contains(['+', '=']) && is_base64(run);
        if plain.contains("://") || (plain.starts_with(['/', '.']) && !is_base64) {
            return self.path(start, run);
        }
        match pair(run) {
            Some((name, value)) => {
                let value_start = run.len().saturating_sub(value.len());
                self.word(start, name, label);
                let value_label = label.max(Label::of(name));
                self.word(start.saturating_add(value_start), value, value_label);
            }
            None => self.word(start, run, label),
        }
    }

    /// Looks for known tokens in the path of an address, and for the credentials before its host.
    fn path(&mut self, start: usize, path: &str) {
        if let Some((scheme, rest)) = path.split_once("://")
            && let Some((user, _)) = rest.split('/').next().and_then(|host| host.rsplit_once('@'))
        {
            self.user(start.saturating_add(scheme.len()).saturating_add(3), user);
        }
        let mut at = start;
        for segment in path.split_inclusive('/') {
            let name = segment.trim_end_matches('/');
            let token = decoded(name);
            if !token.is_empty() && (self.is_known)(&token) {
                self.push(at, name, &token);
            } else if token.contains('/') {
                self.encoded_path(at, name);
            }
            at = at.saturating_add(segment.len());
        }
    }

    /// Looks for known tokens in a path whose slashes are encoded.
    fn encoded_path(&mut self, start: usize, path: &str) {
        let mut at = 0_usize;
        for segment in path.to_ascii_lowercase().split("%2f") {
            let end = at.saturating_add(segment.len());
            let name = path.get(at..end).unwrap_or_default();
            let token = decoded(name);
            if !token.is_empty() && (self.is_known)(&token) {
                self.push(start.saturating_add(at), name, &token);
            }
            at = end.saturating_add(3);
        }
    }

    /// Looks at the user and the password before the host of an address (RFC 3986, section 3.2.1).
    fn user(&mut self, start: usize, user: &str) {
        let (name, password) = user.split_once(':').unwrap_or((user, ""));
        self.word(start, name, Label::Other);
        let password_start = user.len().saturating_sub(password.len());
        self.word(start.saturating_add(password_start), password, Label::Secret);
    }

    /// Looks for a token that is the word, or a part of it between colons or plus signs.
    fn word(&mut self, start: usize, word: &str, label: Label) {
        let whole = word.trim_end_matches(['.', ':']);
        if self.is_secret(&decoded(whole), label) {
            return self.push(start, whole, &decoded(whole));
        }
        let mut at = start;
        let mut label = label;
        for part in word.split_inclusive([':', '+']) {
            let name = part.trim_end_matches(['.', ':', '+']);
            let token = decoded(name);
            if self.is_secret(&token, label) {
                self.push(at, name, &token);
            }
            label = label.max(Label::of(name));
            at = at.saturating_add(part.len());
        }
    }

    fn is_secret(&self, token: &str, label: Label) -> bool {
        // The parameters of an asset are versions of it, unless they are named otherwise.
        let has_form = if self.place == Place::Asset && label == Label::Other {
            !token.contains(MASK) && is_web_token(token)
        } else {
            is_token(token)
        };
        !token.is_empty() && (has_form || is_named_secret(token, label) || (self.is_known)(token))
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
        && (has_digit || (label == Label::Code && has_equal_parts(word)))
        && (has_letter || (label == Label::Code && is_number))
        && !word.starts_with('/')
        && !word.starts_with(MASK)
        && !is_date(word)
}

/// Returns whether a word has parts of the same length with hyphens between, such as `abcd-efgh`.
fn has_equal_parts(word: &str) -> bool {
    let length = word.split('-').next().map(str::len).unwrap_or_default();
    let is_part =
        |part: &str| part.len() == length && part.bytes().all(|byte| byte.is_ascii_alphanumeric());
    length >= 4 && word.contains('-') && word.split('-').all(is_part)
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
            || is_base32(word)
            || is_lower_case(word)
            || is_dotted(word)
            || is_prefixed_key(word))
}

/// Returns whether a word is a JSON Web Token (RFC 7519): its first part is a JSON object with `alg`. A signed
/// one has three parts, an encrypted one five.
fn is_web_token(word: &str) -> bool {
    let mut parts = word.split('.');
    let Some(header) = parts.next().filter(|part| (8..=MAX_HEADER_BYTES).contains(&part.len()))
    else {
        return false;
    };
    let is_base64url = |part: &str| part.bytes().all(|byte| BASE64URL.contains(&byte));
    if !matches!(word.split('.').count(), 3 | 5) || !parts.all(is_base64url) {
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

/// Returns whether a word is base32 of something random (RFC 4648), such as the secret of an authenticator.
fn is_base32(word: &str) -> bool {
    let content = word.trim_end_matches('=');
    content.len() >= MIN_FORM_BYTES
        && word.len().saturating_sub(content.len()) <= 6
        && content.bytes().all(|byte| byte.is_ascii_uppercase() || (b'2'..=b'7').contains(&byte))
        && content.bytes().filter(u8::is_ascii_digit).count() >= 2
        && content.bytes().any(|byte| byte.is_ascii_uppercase())
        && distinct(content) >= 12
}

/// Returns whether a word is parts of base64url with dots between, the last one something random.
fn is_dotted(word: &str) -> bool {
    let Some((first, last)) = word.rsplit_once('.') else { return false };
    let has = |is_kind: fn(&u8) -> bool| last.bytes().any(|byte| is_kind(&byte));
    word.len() >= MIN_FORM_BYTES
        && last.len() >= 20
        && !first.is_empty()
        && first.split('.').count() <= 4
        && word.bytes().all(|byte| byte == b'.' || BASE64URL.contains(&byte))
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_lowercase)
        && has(u8::is_ascii_digit)
        && changes_in_percent(last) >= 45
        && distinct(last) >= 12
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
        && (key.bytes().all(|byte| byte.is_ascii_alphanumeric()) || is_base64(key))
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
    let mut skipped = 0_usize;
    for (at, byte) in text.bytes().enumerate() {
        if skipped > 0 {
            skipped = skipped.saturating_sub(1);
            continue;
        }
        let code = text.get(at..).and_then(encoded_byte);
        skipped = if code.is_some() { 2 } else { 0 };
        bytes.push(code.unwrap_or(byte));
    }
    String::from_utf8(bytes).map_or(Cow::Borrowed(text), Cow::Owned)
}
