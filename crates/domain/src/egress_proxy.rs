//! Residential egress proxies: their configuration by the operator, and the choice of proxies for
//! a place.

mod placeholders;

use std::{fmt, str::FromStr};

use self::placeholders::{Values, expand, normalize, percent_decode};
use crate::{request::Location, secret::Secret};

/// The maximum number of proxies tried for one browser; more would take too long for a waiting
/// applicant.
const MAX_CANDIDATES: usize = 4;

/// The egress proxies of a deployment, in the order of preference.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct EgressProxies(Vec<Template>);

/// Omits the entries, which contain passwords.
impl fmt::Debug for EgressProxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EgressProxies({})", self.0.len())
    }
}

#[derive(Clone, PartialEq, Eq)]
struct Template {
    /// ISO 3166-1 alpha-2 codes in upper case; an empty list means all countries.
    countries: Vec<String>,
    scheme: Scheme,
    host: String,
    port: u16,
    /// User name and password, with their placeholders.
    credentials: Option<(String, String)>,
}

/// The protocol of a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// HTTP CONNECT (RFC 9110, section 9.3.6), with Basic credentials.
    Http,
    /// SOCKS5 (RFC 1928) with names resolved by the proxy, and with credentials of RFC 1929.
    Socks5,
}

/// An egress proxy for one browser.
#[derive(Clone, PartialEq, Eq)]
pub struct EgressProxy {
    pub scheme: Scheme,
    pub host: String,
    pub port: u16,
    pub credentials: Option<(Secret, Secret)>,
}

/// Why an entry is invalid. The error does not contain the entry, which may have a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("egress proxy {number} {problem}")]
pub struct InvalidEgressProxy {
    /// The number of the entry, from 1.
    number: usize,
    problem: &'static str,
}

/// Parses entries separated by spaces, each `[CC,CC=]SCHEME://[USER:PASSWORD@]HOST:PORT`. In user
/// name and password the placeholders `{country}`, `{region}`, `{city}` and `{session}` are
/// replaced. Text in brackets is omitted if the value of a placeholder in it is not known.
impl FromStr for EgressProxies {
    type Err = InvalidEgressProxy;

    fn from_str(list: &str) -> Result<Self, InvalidEgressProxy> {
        let entries = list.split_whitespace().enumerate();
        let templates = entries.map(|(index, entry)| {
            template(entry)
                .map_err(|problem| InvalidEgressProxy { number: index.saturating_add(1), problem })
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
        return Err("names a country that is not a code of two letters");
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
    let port = port.parse().map_err(|_| "has a port that is not a number")?;
    Ok(Template { countries, scheme, host: host.to_owned(), port, credentials })
}

/// Parses user name and password, and checks their placeholders.
fn credentials_of(text: &str) -> Result<(String, String), &'static str> {
    let (user, password) = text.split_once(':').unwrap_or((text, ""));
    let (user, password) = (percent_decode(user)?, percent_decode(password)?);
    expand(&user, &Values::default())?;
    expand(&password, &Values::default())?;
    Ok((user, password))
}

impl EgressProxies {
    /// Returns whether the deployment has egress proxies.
    #[must_use]
    pub const fn are_used(&self) -> bool {
        !self.0.is_empty()
    }

    /// Returns the proxies for a place, those of its country before those of all countries.
    /// `session`, of letters and digits, stays the same as long as the proxy has to.
    #[must_use]
    pub fn at(&self, place: &Location, session: &str) -> Vec<EgressProxy> {
        let of_country = |template: &&Template| template.countries.contains(&place.country);
        let of_all = |template: &&Template| template.countries.is_empty();
        let candidates = self.0.iter().filter(of_country).chain(self.0.iter().filter(of_all));
        candidates.take(MAX_CANDIDATES).map(|template| template.proxy(place, session)).collect()
    }

    /// Returns a proxy of each entry, in their order, to be examined: in the first country of the entry, or
    /// in the United States.
    #[must_use]
    pub fn of_each_entry(&self, session: &str) -> Vec<EgressProxy> {
        let proxy = |template: &Template| {
            let country = template.countries.first().map_or("US", String::as_str).to_owned();
            template.proxy(&Location { country, region: None, city: None }, session)
        };
        self.0.iter().map(proxy).collect()
    }
}

impl Template {
    fn proxy(&self, place: &Location, session: &str) -> EgressProxy {
        let values = Values {
            country: normalize(&place.country),
            region: place.region.as_deref().map(normalize).unwrap_or_default(),
            city: place.city.as_deref().map(normalize).unwrap_or_default(),
            session: normalize(session),
        };
        let secret = |text: &str| Some(Secret::new(expand(text, &values).ok()?));
        let credentials = self.credentials.as_ref();
        let credentials = credentials.map(|(user, password)| secret(user).zip(secret(password)));
        EgressProxy {
            scheme: self.scheme,
            host: self.host.clone(),
            port: self.port,
            credentials: credentials.flatten(),
        }
    }
}

/// Parses the answer of a geolocation service to a country code: the code alone, or JSON with the
/// code under one of the usual names.
#[must_use]
pub fn parse_country_response(answer: &str) -> Option<String> {
    let code = |text: &str| {
        let text = text.trim();
        let is_code = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_alphabetic());
        is_code.then(|| text.to_ascii_uppercase())
    };
    if let Some(code) = code(answer) {
        return Some(code);
    }
    let object: serde_json::Value = serde_json::from_str(answer).ok()?;
    ["country_code", "countryCode", "country", "country_iso", "loc"]
        .iter()
        .find_map(|name| code(object.get(name)?.as_str()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(country: &str, region: Option<&str>, city: Option<&str>) -> Location {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        Location { country: country.to_owned(), region: owned(region), city: owned(city) }
    }

    /// Returns the credentials and the authority of each proxy for a place.
    fn authorities(list: &str, place: &Location) -> Vec<String> {
        let proxies = list.parse::<EgressProxies>().unwrap().at(place, "ab12");
        let line = |proxy: EgressProxy| {
            let credentials = proxy.credentials;
            let credentials = credentials.map(|(u, p)| format!("{}:{}@", u.expose(), p.expose()));
            format!("{}{}:{}", credentials.unwrap_or_default(), proxy.host, proxy.port)
        };
        proxies.into_iter().map(line).collect()
    }

    #[test]
    fn the_placeholders_of_a_template_are_replaced_for_the_place() {
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
            assert_eq!(authorities(list, &place), [expected]);
        }
    }

    #[test]
    fn proxies_of_the_country_come_before_those_of_all_countries() {
        let list = "http://all.test:1 DE,AT=socks5://german.test:2 FR=http://french.test:3";
        assert_eq!(authorities(list, &place("AT", None, None)), ["german.test:2", "all.test:1"]);
        assert_eq!(authorities(list, &place("BR", None, None)), ["all.test:1"]);
        assert_eq!(authorities("FR=http://french.test:3", &place("BR", None, None)), [""; 0]);
    }

    #[test]
    fn errors_do_not_reveal_the_password() {
        for (entry, problem) in [
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
            assert!(error.starts_with("egress proxy 2 "), "{entry}: {error}");
            assert!(error.contains(problem), "{entry}: {error}");
            assert!(!error.contains("geheim"), "{error}");
        }
        let proxies: EgressProxies = "http://u:geheim@exit.test:1".parse().unwrap();
        assert!(!format!("{proxies:?}").contains("geheim"));
    }

    #[test]
    fn a_country_is_parsed_from_the_usual_forms() {
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
