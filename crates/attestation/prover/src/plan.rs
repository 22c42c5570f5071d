//! Builds the descriptor that the attestor has to allow, and the request, from a definition's plan.

use std::fmt::Write as _;

use attestation::{
    descriptor::{ClaimDescriptor, Descriptor, RevealMode},
    http::{
        RedactedBytes,
        request::{RequestError, hidden_ranges, read},
    },
};
use domain::workflow::{Attest, AttestMode, Definition};
use ports::{
    attestation_descriptors::{AttestationDescriptors, InvalidDescriptor},
    attestor::AttestationOrder,
};

const COOKIE: &str = "cookie";
const USER_AGENT: &str = "user-agent";

/// Returns the descriptor that an attestor has to allow for a definition, or `None` if the
/// definition attests nothing.
#[must_use]
pub fn descriptor(definition: &Definition) -> Option<Descriptor> {
    let plan = definition.attest.as_ref()?;
    descriptor_for(plan, &definition.requests.get(&plan.request)?.url)
}

/// Derives descriptors from the plans of definitions.
pub struct PlanDescriptors;

impl AttestationDescriptors for PlanDescriptors {
    fn descriptor(&self, definition: &Definition) -> Result<Option<String>, InvalidDescriptor> {
        let Some(descriptor) = descriptor(definition) else { return Ok(None) };
        descriptor.check().map_err(|error| InvalidDescriptor(error.to_string()))?;
        let text = serde_json::to_string_pretty(&descriptor);
        text.map(Some).map_err(|error| InvalidDescriptor(error.to_string()))
    }
}

/// Returns the descriptor of a plan whose request has this URL.
pub(crate) fn descriptor_for(plan: &Attest, url: &str) -> Option<Descriptor> {
    let chosen_mode = plan.mode()?;
    let rest = url.strip_prefix("https://")?;
    let (host, target) = rest.find(['/', '?']).map_or((rest, ""), |at| rest.split_at(at));
    let slash = if target.starts_with('/') { "" } else { "/" };
    let own = [COOKIE, USER_AGENT].into_iter().map(str::to_owned);
    let claim = |(field, pointer): (&String, &String)| ClaimDescriptor {
        field: field.clone(),
        pointer: pointer.clone(),
    };
    Some(Descriptor {
        platform: plan.platform,
        version: plan.version,
        host: host.to_owned(),
        target: format!("{slash}{target}"),
        headers: own.chain(plan.headers.keys().cloned()).collect(),
        hidden: vec![COOKIE.to_owned(), USER_AGENT.to_owned()],
        values: plan.headers.clone(),
        content_type: "application/json".to_owned(),
        modes: vec![to_mode(chosen_mode)],
        claims: plan.fields.iter().map(claim).collect(),
    })
}

pub(crate) const fn to_mode(mode: AttestMode) -> RevealMode {
    match mode {
        AttestMode::ZktlsFull => RevealMode::ZktlsFull,
        AttestMode::ZktlsRequest => RevealMode::ZktlsRequest,
        AttestMode::FullReveal => RevealMode::FullReveal,
    }
}

/// Hidden values are padded to a multiple of this length, so that their length reveals little.
const PADDING_BYTES: usize = 64;

/// Builds the bytes of the request. The length of a hidden value is public: it is padded with
/// spaces, which servers do not count as part of a header's value (RFC 9110, section 5.5).
#[must_use]
pub fn request(order: &AttestationOrder, descriptor: &Descriptor) -> Vec<u8> {
    let Descriptor { host, target, .. } = descriptor;
    let mut text = format!(
        "GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nAccept-Encoding: identity\r\n"
    );
    let own = [(COOKIE, order.cookies.expose()), (USER_AGENT, order.user_agent.as_str())];
    let given = order.plan.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    for (name, value) in own.into_iter().chain(given).filter(|(_, value)| !value.is_empty()) {
        let hidden = descriptor.hidden.iter().any(|hidden| hidden == name);
        let length = value.len();
        let padding = if hidden { length.next_multiple_of(PADDING_BYTES) - length } else { 0 };
        let _ = write!(text, "{name}: {value}{:padding$}\r\n", "");
    }
    text.push_str("\r\n");
    text.into_bytes()
}

/// Checks that the attestor would accept a request, before any of it is sent.
pub(crate) fn check_request(
    request: &[u8],
    descriptor: &Descriptor,
    mode: RevealMode,
) -> Result<(), RequestError> {
    match mode {
        RevealMode::FullReveal => {
            read(RedactedBytes { bytes: request, hidden: &[] }, descriptor).map(drop)
        }
        RevealMode::ZktlsRequest | RevealMode::ZktlsFull => {
            hidden_ranges(request, descriptor).map(drop)
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::{
        api_key::Environment,
        fairness::Tenant,
        id::{SessionId, TeamId},
        secret::Secret,
    };

    use super::*;

    /// Finding 10: only a size class of the cookies' length is public.
    #[test]
    fn hidden_values_are_padded_to_a_size_class() {
        for (length, class) in [(1, 64), (63, 64), (64, 64), (65, 128), (700, 704)] {
            let order = order(&"a".repeat(length));
            let descriptor = descriptor_for(&order.plan, &order.url).unwrap();
            let hidden = hidden_ranges(&request(&order, &descriptor), &descriptor).unwrap();
            let lengths: Vec<_> = hidden.iter().map(ExactSizeIterator::len).collect();
            assert_eq!(lengths, [class, 64], "the user agent has a size class too");
        }
    }

    #[test]
    fn a_request_conforms_to_its_descriptor() {
        let plan = order("sid=1; theme=dark").plan;
        for (url, target) in [
            ("https://platform.test/api/me?x=1", "/api/me?x=1"),
            ("https://platform.test", "/"),
            ("https://platform.test?x", "/?x"),
        ] {
            let descriptor = descriptor_for(&plan, url).unwrap();
            assert_eq!((descriptor.check(), descriptor.target.as_str()), (Ok(()), target));
            let order = AttestationOrder { url: url.into(), ..order("sid=1; theme=dark") };
            let bytes = request(&order, &descriptor);
            let hidden = hidden_ranges(&bytes, &descriptor).unwrap();
            let hidden: Vec<_> = hidden.into_iter().map(|range| &bytes[range]).collect();
            let whole = ["sid=1; theme=dark", "Browser/1"].map(|value| format!("{value:<64}"));
            assert_eq!(hidden, whole.each_ref().map(String::as_bytes));
            let (cookies, user_agent) = (Secret::new(String::new()), String::new());
            let none = AttestationOrder { cookies, user_agent, ..order };
            assert!(hidden_ranges(&request(&none, &descriptor), &descriptor).unwrap().is_empty());
        }
        assert_eq!(descriptor_for(&plan, "http://platform.test/"), None);
    }

    /// Any cookie that a browser stores is hidden completely (RFC 6265bis, section 5.7). A cookie
    /// that could be read as another line is an error, and never a reason to hide less.
    #[test]
    fn every_cookie_is_hidden_completely_or_refused() {
        for cookies in ["name=J\u{f6}rg; sid=1", "\u{80}\u{10ffff}=\u{7f}", "sid=1 \u{e9}"] {
            let order = order(cookies);
            let descriptor = descriptor_for(&order.plan, &order.url).unwrap();
            let bytes = request(&order, &descriptor);
            let hidden = hidden_ranges(&bytes, &descriptor).unwrap();
            assert!(bytes[hidden[0].clone()].starts_with(cookies.as_bytes()), "{cookies:?}");
            assert_eq!(hidden[0].len() % PADDING_BYTES, 0, "{cookies:?}");
            assert_eq!(check_request(&bytes, &descriptor, RevealMode::ZktlsFull), Ok(()));
            let opened = check_request(&bytes, &descriptor, RevealMode::FullReveal);
            assert_eq!(opened, Err(RequestError::Header), "a revealed header must be readable");
        }
        for cookies in ["sid=1\t", "a=\0", "a=\u{1f}b", "a=b\nc", "a\r"] {
            let order = order(cookies);
            let descriptor = descriptor_for(&order.plan, &order.url).unwrap();
            let refused = hidden_ranges(&request(&order, &descriptor), &descriptor);
            assert_eq!(refused, Err(RequestError::Control("cookie".into())), "{cookies:?}");
        }
        let lines = ["a\r\nX-Evil: 1", "a\r\naccept: b", "a\r\ncookie: b", "a\r\n\r\n"];
        for cookies in lines {
            let order = order(cookies);
            let descriptor = descriptor_for(&order.plan, &order.url).unwrap();
            assert!(
                hidden_ranges(&request(&order, &descriptor), &descriptor).is_err(),
                "{cookies:?}"
            );
        }
    }

    fn order(cookies: &str) -> AttestationOrder {
        let pairs = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(name, to)| ((*name).to_owned(), (*to).to_owned())).collect()
        };
        let plan = Attest {
            request: "me".into(),
            platform: 7,
            version: 1,
            headers: pairs(&[("accept", "application/json")]),
            modes: vec![AttestMode::ZktlsRequest],
            fields: pairs(&[("id", "/id")]),
        };
        AttestationOrder {
            session: SessionId::from_uuid(uuid::Uuid::nil()),
            tenant: Tenant {
                team: TeamId::from_uuid(uuid::Uuid::nil()),
                environment: Environment::Production,
            },
            challenge: vec![],
            url: "https://platform.test/api/me".into(),
            plan,
            cookies: Secret::new(cookies.into()),
            user_agent: "Browser/1".into(),
        }
    }
}
