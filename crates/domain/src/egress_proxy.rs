//! Residential exits: the proxies through which browsers leave, as the operator names them, and the
//! one that fits a place.

use std::{fmt, str::FromStr};

use crate::{request::Location, secret::Secret};

/// Exits tried for one browser; more are of no use while an applicant waits.
const MOST_TRIED: usize = 4;

/// All exits of a deployment, in the order of preference.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct EgressProxies(Vec<Template>);

/// Not what is in it: passwords are.
impl fmt::Debug for EgressProxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Exits({})", self.0.len())
    }
}

#[derive(Clone, PartialEq, Eq)]
struct Template {
    /// Alpha-2 codes, upper case; none stands for all countries.
    countries: Vec<String>,
    scheme: Scheme,
    host: String,
    port: u16,
    /// User name and password, with their placeholders.
    credentials: Option<(String, String)>,
}

/// How a proxy is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// CONNECT (RFC 9110, section 9.3.6), with Basic credentials.
    Http,
    /// RFC 1928, names resolved at the other end, with credentials of RFC 1929.
    Socks5,
}

/// One way out, for one browser.
#[derive(Clone, PartialEq, Eq)]
pub struct EgressProxy {
    pub scheme: Scheme,
    pub host: String,
    pub port: u16,
    pub credentials: Option<(Secret, Secret)>,
}

/// Why an entry cannot be used. Never the entry itself, which has a password in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("exit {number} {fault}")]
pub struct InvalidEgressProxy {
    /// Counted from one.
    number: usize,
    fault: &'static str,
}

/// Entries with spaces in between, each `[CC,CC=]SCHEME://[USER:PASSWORD@]HOST:PORT`. In user name and
/// password `{country}`, `{region}`, `{city}` and `{session}` are filled in; what stands in brackets
/// is left out where one of those in it is not known.
impl FromStr for EgressProxies {
    type Err = InvalidEgressProxy;

    fn from_str(list: &str) -> Result<Self, InvalidEgressProxy> {
        let entries = list.split_whitespace().enumerate();
        let templates = entries.map(|(at, entry)| {
            template(entry)
                .map_err(|fault| InvalidEgressProxy { number: at.saturating_add(1), fault })
        });
        Ok(Self(templates.collect::<Result<_, _>>()?))
    }
}

fn template(entry: &str) -> Result<Template, &'static str> {
    let (before, rest) = entry.split_once("://").ok_or("has no SCHEME://")?;
    let (countries, scheme) = before.rsplit_once('=').unwrap_or(("", before));
    let scheme = match scheme {
        "http" => Scheme::Http,
        "socks5" | "socks5h" => Scheme::Socks5,
        _ => return Err("must begin with http:// or socks5://"),
    };
    let countries: Vec<_> =
        countries.split(',').filter(|code| !code.is_empty()).map(str::to_ascii_uppercase).collect();
    let is_code = |code: &String| code.len() == 2 && code.bytes().all(|b| b.is_ascii_uppercase());
    if !countries.iter().all(is_code) {
        return Err("names a country that is no code of two letters");
    }
    let (credentials, authority) = match rest.rsplit_once('@') {
        Some((credentials, authority)) => (Some(credentials), authority),
        None => (None, rest),
    };
    let credentials = credentials.map(credentials_of).transpose()?;
    let (host, port) = authority.trim_end_matches('/').rsplit_once(':').ok_or("has no port")?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if host.is_empty() {
        return Err("has no host");
    }
    let port = port.parse().map_err(|_| "has a port that is no number")?;
    Ok(Template { countries, scheme, host: host.to_owned(), port, credentials })
}

/// User name and password, each of which can be filled in.
fn credentials_of(text: &str) -> Result<(String, String), &'static str> {
    let (user, password) = text.split_once(':').unwrap_or((text, ""));
    let (user, password) = (decoded(user)?, decoded(password)?);
    filled(&user, &Values::default())?;
    filled(&password, &Values::default())?;
    Ok((user, password))
}

/// Undoes percent-encoding (RFC 3986, section 2.1).
fn decoded(text: &str) -> Result<String, &'static str> {
    const FAULT: &str = "has credentials with a broken percent-encoding";
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, after) = after.split_at_checked(2).ok_or(FAULT)?;
        let digits = str::from_utf8(digits).map_err(|_| FAULT)?;
        bytes.push(u8::from_str_radix(digits, 16).map_err(|_| FAULT)?);
        rest = after;
    }
    String::from_utf8(bytes).map_err(|_| FAULT)
}

/// What is filled in; empty where it is not known.
#[derive(Default)]
struct Values {
    country: String,
    region: String,
    city: String,
    session: String,
}

/// A template with its placeholders filled in.
fn filled(template: &str, values: &Values) -> Result<String, &'static str> {
    let (mut text, mut group) = (String::new(), None::<(String, bool)>);
    let mut rest = template;
    while let Some(next) = rest.chars().next() {
        let after = rest.get(next.len_utf8()..).unwrap_or_default();
        rest = after;
        match next {
            '[' if group.is_none() => group = Some((String::new(), true)),
            ']' => {
                let (inner, known) = group.take().ok_or("has a bracket too many")?;
                if known {
                    text.push_str(&inner);
                }
            }
            '[' => return Err("has brackets in brackets"),
            '{' => {
                let (name, after) = after.split_once('}').ok_or("has an open brace")?;
                rest = after;
                let value = match name {
                    "country" => &values.country,
                    "region" => &values.region,
                    "city" => &values.city,
                    "session" => &values.session,
                    _ => return Err("has a placeholder that is none"),
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
    if group.is_some() { Err("has an open bracket") } else { Ok(text) }
}

/// As proxies write places: lower case, an underscore for all that is no letter or digit.
fn word(text: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    text.chars().map(letter).collect()
}

impl EgressProxies {
    /// Whether browsers leave through exits at all.
    #[must_use]
    pub const fn are_used(&self) -> bool {
        !self.0.is_empty()
    }

    /// The exits for a place, those for its country before those for all; `session` is the same for
    /// as long as the exit is to be, of letters and digits.
    #[must_use]
    pub fn at(&self, place: &Location, session: &str) -> Vec<EgressProxy> {
        let values = Values {
            country: word(&place.country),
            region: place.region.as_deref().map(word).unwrap_or_default(),
            city: place.city.as_deref().map(word).unwrap_or_default(),
            session: word(session),
        };
        let own = |template: &&Template| template.countries.contains(&place.country);
        let any = |template: &&Template| template.countries.is_empty();
        let fitting = self.0.iter().filter(own).chain(self.0.iter().filter(any));
        let exit = |template: &Template| {
            let fill = |text: &str| Some(Secret::new(filled(text, &values).ok()?));
            let credentials = template.credentials.as_ref();
            let credentials = credentials.map(|(user, password)| fill(user).zip(fill(password)));
            EgressProxy {
                scheme: template.scheme,
                host: template.host.clone(),
                port: template.port,
                credentials: credentials.flatten(),
            }
        };
        fitting.take(MOST_TRIED).map(exit).collect()
    }
}

/// The country that a service says an address is in: the code alone, or JSON with the code under one
/// of the usual names.
#[must_use]
pub fn parse_country_response(answer: &str) -> Option<String> {
    let code = |text: &str| {
        let text = text.trim();
        let two = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_alphabetic());
        two.then(|| text.to_ascii_uppercase())
    };
    if let Some(code) = code(answer) {
        return Some(code);
    }
    let told: serde_json::Value = serde_json::from_str(answer).ok()?;
    ["country_code", "countryCode", "country", "country_iso", "loc"]
        .iter()
        .find_map(|name| code(told.get(name)?.as_str()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(country: &str, region: Option<&str>, city: Option<&str>) -> Location {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        Location { country: country.to_owned(), region: owned(region), city: owned(city) }
    }

    /// Host, user and password of each exit for a place.
    fn told(list: &str, place: &Location) -> Vec<String> {
        let exits = list.parse::<EgressProxies>().unwrap().at(place, "ab12");
        let line = |exit: EgressProxy| {
            let credentials = exit.credentials;
            let credentials = credentials.map(|(u, p)| format!("{}:{}@", u.expose(), p.expose()));
            format!("{}{}:{}", credentials.unwrap_or_default(), exit.host, exit.port)
        };
        exits.into_iter().map(line).collect()
    }

    #[test]
    fn a_template_is_filled_for_the_place() {
        let list =
            "http://cc-{country}[-st-{region}][-city-{city}]-s-{session}:p%40ss@exit.test:7000";
        for (place, expected) in [
            (place("DE", None, None), "cc-de-s-ab12:p@ss@exit.test:7000"),
            (place("US", Some("US-CA"), None), "cc-us-st-us_ca-s-ab12:p@ss@exit.test:7000"),
            (
                place("US", Some("US-CA"), Some("San José")),
                "cc-us-st-us_ca-city-san_jos_-s-ab12:p@ss@exit.test:7000",
            ),
        ] {
            assert_eq!(told(list, &place), [expected]);
        }
    }

    #[test]
    fn the_countrys_own_exits_come_before_those_for_all() {
        let list = "http://all.test:1 DE,AT=socks5://german.test:2 FR=http://french.test:3";
        assert_eq!(told(list, &place("AT", None, None)), ["german.test:2", "all.test:1"]);
        assert_eq!(told(list, &place("BR", None, None)), ["all.test:1"]);
        assert_eq!(told("FR=http://french.test:3", &place("BR", None, None)), [""; 0]);
    }

    #[test]
    fn faults_are_told_without_the_password() {
        for (entry, fault) in [
            ("exit.test:1", "SCHEME"),
            ("ftp://exit.test:1", "http:// or socks5://"),
            ("http://u:geheim@exit.test", "port"),
            ("http://u:geheim@:1", "host"),
            ("http://u:{geheim}@exit.test:1", "placeholder"),
            ("http://u[-{city}:geheim@exit.test:1", "bracket"),
            ("http://u:geheim%4@exit.test:1", "percent"),
            ("GERMANY=http://u:geheim@exit.test:1", "two letters"),
        ] {
            let error = format!("http://fine.test:1 {entry}").parse::<EgressProxies>().unwrap_err();
            let error = error.to_string();
            assert!(error.starts_with("exit 2 ") && error.contains(fault), "{entry}: {error}");
            assert!(!error.contains("geheim"), "{error}");
        }
        let exits: EgressProxies = "http://u:geheim@exit.test:1".parse().unwrap();
        assert!(!format!("{exits:?}").contains("geheim"));
    }

    #[test]
    fn a_country_is_read_however_it_is_told() {
        for answer in
            ["DE\n", "de", r#"{"ip":"1.2.3.4","country":"DE"}"#, r#"{"countryCode":"de"}"#]
        {
            assert_eq!(parse_country_response(answer).as_deref(), Some("DE"), "{answer}");
        }
        for answer in ["", "Germany", "{}", r#"{"country":"Germany"}"#, "<html>"] {
            assert_eq!(parse_country_response(answer), None, "{answer}");
        }
    }
}
