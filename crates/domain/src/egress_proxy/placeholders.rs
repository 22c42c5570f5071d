//! The placeholders in the credentials of an egress proxy.

/// Decodes percent-encoding (RFC 3986, section 2.1).
pub(super) fn percent_decode(text: &str) -> Result<String, &'static str> {
    const PROBLEM: &str = "has credentials with an invalid percent-encoding";
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, after) = after.split_at_checked(2).ok_or(PROBLEM)?;
        let digits = str::from_utf8(digits).map_err(|_| PROBLEM)?;
        bytes.push(u8::from_str_radix(digits, 16).map_err(|_| PROBLEM)?);
        rest = after;
    }
    String::from_utf8(bytes).map_err(|_| PROBLEM)
}

/// The values of the placeholders; empty if not known.
#[derive(Default)]
pub(super) struct Values {
    pub(super) country: String,
    pub(super) region: String,
    pub(super) city: String,
    pub(super) session: String,
}

/// Replaces the placeholders of a template.
pub(super) fn expand(template: &str, values: &Values) -> Result<String, &'static str> {
    let (mut text, mut group) = (String::new(), None::<(String, bool)>);
    let mut rest = template;
    while let Some(next) = rest.chars().next() {
        let after = rest.get(next.len_utf8()..).unwrap_or_default();
        rest = after;
        match next {
            '[' if group.is_none() => group = Some((String::new(), true)),
            ']' => {
                let (inner, known) = group.take().ok_or("has an unmatched closing bracket")?;
                if known {
                    text.push_str(&inner);
                }
            }
            '[' => return Err("has nested brackets"),
            '{' => {
                let (name, after) = after.split_once('}').ok_or("has an unclosed brace")?;
                rest = after;
                let value = match name {
                    "country" => &values.country,
                    "region" => &values.region,
                    "city" => &values.city,
                    "session" => &values.session,
                    _ => return Err("has an unknown placeholder"),
                };
                let (to, known) = group.as_mut().map_or((&mut text, None), |(t, k)| (t, Some(k)));
                to.push_str(value);
                if let Some(known) = known {
                    *known &= !value.is_empty();
                }
            }
            letter => group.as_mut().map_or(&mut text, |(inner, _)| inner).push(letter),
        }
    }
    if group.is_some() { Err("has an unclosed bracket") } else { Ok(text) }
}

/// Writes a value as proxies expect it: in lower case, with an underscore for every character that
/// is not an ASCII letter or digit.
pub(super) fn normalize(text: &str) -> String {
    let normal = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    text.chars().map(normal).collect()
}
