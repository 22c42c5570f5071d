//! From a definition's plan to what the attestor has to allow, and to the request.

use std::fmt::Write as _;

use attestation::descriptor::{Claim, Descriptor, Mode};
use domain::workflow::{Attest, AttestMode, Definition};
use ports::attestor::AttestOrder;

const COOKIE: &str = "cookie";
const USER_AGENT: &str = "user-agent";

/// What an attestor has to allow for a definition; none where it attests nothing.
#[must_use]
pub fn descriptor(definition: &Definition) -> Option<Descriptor> {
    let plan = definition.attest.as_ref()?;
    of(plan, &definition.requests.get(&plan.request)?.url)
}

/// The descriptor of a plan whose request has this URL.
pub(crate) fn of(plan: &Attest, url: &str) -> Option<Descriptor> {
    let chosen = plan.mode()?;
    let rest = url.strip_prefix("https://")?;
    let (host, target) = rest.find(['/', '?']).map_or((rest, ""), |at| rest.split_at(at));
    let slash = if target.starts_with('/') { "" } else { "/" };
    let own = [COOKIE, USER_AGENT].into_iter().map(str::to_owned);
    let claim = |(field, pointer): (&String, &String)| Claim {
        field: field.clone(),
        pointer: pointer.clone(),
    };
    Some(Descriptor {
        platform: plan.platform,
        version: plan.version,
        host: host.to_owned(),
        target: format!("{slash}{target}"),
        headers: own.chain(plan.headers.keys().cloned()).collect(),
        hidden: vec![COOKIE.to_owned()],
        values: plan.headers.clone(),
        content_type: "application/json".to_owned(),
        modes: vec![mode(chosen)],
        claims: plan.fields.iter().map(claim).collect(),
    })
}

pub(crate) const fn mode(mode: AttestMode) -> Mode {
    match mode {
        AttestMode::ZktlsFull => Mode::ZktlsFull,
        AttestMode::ZktlsRequest => Mode::ZktlsRequest,
        AttestMode::FullReveal => Mode::FullReveal,
    }
}

/// The length of hidden values is a multiple of this, so that little can be told from it.
const SIZE_CLASS: usize = 64;

/// The bytes of the one request. The length of what is hidden is public: it is padded with spaces,
/// which no server counts to a header's value (RFC 9110, section 5.5).
#[must_use]
pub fn request(order: &AttestOrder, descriptor: &Descriptor) -> Vec<u8> {
    let Descriptor { host, target, .. } = descriptor;
    let mut text = format!(
        "GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nAccept-Encoding: identity\r\n"
    );
    let own = [(COOKIE, order.cookies.expose()), (USER_AGENT, order.user_agent.as_str())];
    let given = order.plan.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    for (name, value) in own.into_iter().chain(given).filter(|(_, value)| !value.is_empty()) {
        let hidden = descriptor.hidden.iter().any(|hidden| hidden == name);
        let length = if hidden { value.len().next_multiple_of(SIZE_CLASS) } else { 0 };
        let _ = write!(text, "{name}: {value:<length$}\r\n");
    }
    text.push_str("\r\n");
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use attestation::http::request::to_hide;
    use domain::{
        id::{SessionId, TeamId},
        secret::Secret,
    };

    use super::*;

    /// Finding 10: of the length of the cookies a size class is public.
    #[test]
    fn the_length_of_cookies_is_a_size_class() {
        for (length, class) in [(1, 64), (63, 64), (64, 64), (65, 128), (700, 704)] {
            let order = order(&"a".repeat(length));
            let descriptor = of(&order.plan, &order.url).unwrap();
            let hidden = to_hide(&request(&order, &descriptor), &descriptor).unwrap();
            assert_eq!(hidden.iter().map(ExactSizeIterator::len).collect::<Vec<_>>(), [class]);
        }
    }

    #[test]
    fn a_request_is_what_its_descriptor_says() {
        let plan = order("sid=1; theme=dark").plan;
        for (url, target) in [
            ("https://platform.test/api/me?x=1", "/api/me?x=1"),
            ("https://platform.test", "/"),
            ("https://platform.test?x", "/?x"),
        ] {
            let descriptor = of(&plan, url).unwrap();
            assert_eq!((descriptor.check(), descriptor.target.as_str()), (Ok(()), target));
            let order = AttestOrder { url: url.into(), ..order("sid=1; theme=dark") };
            let bytes = request(&order, &descriptor);
            let hidden = to_hide(&bytes, &descriptor).unwrap();
            let hidden: Vec<_> = hidden.into_iter().map(|range| &bytes[range]).collect();
            assert_eq!(hidden, [format!("{:<64}", "sid=1; theme=dark").as_bytes()]);
            let none = AttestOrder { cookies: Secret::new(String::new()), ..order };
            assert_eq!(to_hide(&request(&none, &descriptor), &descriptor).unwrap(), []);
        }
        assert_eq!(of(&plan, "http://platform.test/"), None);
    }

    fn order(cookies: &str) -> AttestOrder {
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
        AttestOrder {
            session: SessionId::from_uuid(uuid::Uuid::nil()),
            partner: TeamId::from_uuid(uuid::Uuid::nil()),
            challenge: vec![],
            url: "https://platform.test/api/me".into(),
            plan,
            cookies: Secret::new(cookies.into()),
            user_agent: "Browser/1".into(),
        }
    }
}
