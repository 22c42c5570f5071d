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
        content_type: "application/json".to_owned(),
        modes: vec![mode(chosen)],
        claims: plan.fields.iter().map(claim).collect(),
    })
}

pub(crate) const fn mode(mode: AttestMode) -> Mode {
    match mode {
        AttestMode::ZktlsRequest => Mode::ZktlsRequest,
        AttestMode::FullReveal => Mode::FullReveal,
    }
}

/// The length of hidden values is a multiple of this, so that little can be told from it.
const SIZE_CLASS: usize = 64;

/// The bytes of the one request. The length of what is hidden is public: it is padded with spaces,
/// which no server counts to a header's value (RFC 9110, section 5.5).
pub(crate) fn request(order: &AttestOrder, descriptor: &Descriptor) -> Vec<u8> {
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
mod tests;
