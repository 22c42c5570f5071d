//! The settings of the identity provider.

use std::collections::BTreeMap;

use identity::ClientRegistration;
use url::Url;

pub(super) fn identity(
    values: &BTreeMap<String, String>,
    faults: &mut Vec<String>,
) -> Option<ClientRegistration> {
    let keys = ["oidc_issuer", "oidc_client_id", "oidc_client_secret"];
    let [issuer, client, secret] = super::values::together(values, keys, faults)?;
    let host = Url::parse(issuer).ok().and_then(|url| url.host_str().map(str::to_owned));
    let name = values.get("oidc_name").cloned().or(host).unwrap_or_default();
    let account = ClientRegistration::new(issuer, client, secret, &name);
    account.map_err(|error| faults.push(format!("oidc_{error}"))).ok()
}
