//! Addresses of Browserless 2, which starts a browser for each DevTools connection.

use std::{sync::Arc, time::Duration};

use rustls::ClientConfig;
use serde::Deserialize;
use serde_json::json;
use url::Url;

use crate::client::{HttpMethod, HttpRequest, SocketError};

const PRESSURE_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_PRESSURE_BYTES: usize = 64 * 1024;
/// Milliseconds for which Browserless keeps a connection, unless the endpoint says otherwise: longer than
/// any session. By default it is 30 s.
const CONNECTION_MILLIS: &str = "86400000";

/// Returns the address of a new browser with these arguments. What the endpoint's own query says takes
/// precedence.
pub(super) fn browser_url(url: &str, arguments: &[String]) -> Result<String, SocketError> {
    let mut url = Url::parse(url).map_err(|_| SocketError::Address)?;
    let given: Vec<_> = url.query_pairs().map(|(name, _)| name.into_owned()).collect();
    let is_given = |name: &str| given.iter().any(|given| given == name);
    if !is_given("launch") {
        let launch = json!({ "headless": true, "args": arguments }).to_string();
        url.query_pairs_mut().append_pair("launch", &launch);
    }
    if !is_given("timeout") {
        url.query_pairs_mut().append_pair("timeout", CONNECTION_MILLIS);
    }
    Ok(url.into())
}

/// Whether all browsers of an endpoint are in use: it would keep a connection in its queue. An endpoint
/// that does not tell is not full.
pub(super) async fn is_full(url: &str, tls: &Arc<ClientConfig>) -> Result<bool, SocketError> {
    let mut url = Url::parse(url).map_err(|_| SocketError::Address)?;
    url.set_path("/pressure");
    let token = url.query_pairs().find(|(name, _)| name == "token");
    let token = token.map(|(_, token)| token.into_owned());
    url.set_query(None);
    if let Some(token) = token {
        url.query_pairs_mut().append_pair("token", &token);
    }
    let request = HttpRequest {
        method: HttpMethod::Get,
        url: url.as_str(),
        authorization: None,
        body: String::new(),
        timeout: PRESSURE_TIMEOUT,
        max_bytes: MAX_PRESSURE_BYTES,
    };
    let reply = request.send(tls).await?;
    let told = serde_json::from_slice::<Told>(&reply.body).ok().filter(|_| reply.status == 200);
    Ok(told.is_some_and(|Told { pressure }| {
        !pressure.is_available || pressure.running >= pressure.max_concurrent
    }))
}

#[derive(Deserialize)]
struct Told {
    pressure: Pressure,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Pressure {
    is_available: bool,
    running: u32,
    max_concurrent: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_launch_options_are_ours_unless_the_endpoint_has_some() {
        let arguments = ["--a=b c".to_owned()];
        let url = browser_url("wss://fleet/chromium?token=x", &arguments).unwrap();
        let url = Url::parse(&url).unwrap();
        let pairs: Vec<_> =
            url.query_pairs().map(|(a, b)| (a.into_owned(), b.into_owned())).collect();
        let pairs: Vec<_> = pairs.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        assert_eq!(
            pairs,
            [
                ("token", "x"),
                ("launch", r#"{"args":["--a=b c"],"headless":true}"#),
                ("timeout", CONNECTION_MILLIS),
            ]
        );
        let given = "wss://fleet/?launch={}&timeout=60000";
        let url = browser_url(given, &arguments).unwrap();
        assert!(!url.contains("--a") && url.ends_with("timeout=60000"), "{url}");
    }
}
