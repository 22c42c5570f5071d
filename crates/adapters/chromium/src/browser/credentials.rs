//! The cookies and the user agent that the browser would send with a request.

use domain::secret::Secret;
use ports::browser::{BrowserCredentials, BrowserError};
use serde::Deserialize;
use serde_json::json;

use super::{Pages, browser_error};

/// The user agent of the page's own requests.
const USER_AGENT: &str = "() => navigator.userAgent";

#[derive(Default, Deserialize)]
struct Cookies {
    cookies: Vec<Cookie>,
}

#[derive(Deserialize)]
struct Cookie {
    name: String,
    value: String,
    path: String,
}

impl Pages {
    /// Returns the credentials for a request to this URL, with the cookies of the longest paths first
    /// (RFC 6265, section 5.4).
    pub(super) async fn credentials(&self, url: &str) -> Result<BrowserCredentials, BrowserError> {
        let (session, _) = self.active().ok_or(BrowserError::Gone)?;
        let params = json!({ "urls": [url] });
        let reply = self.client.call(Some(&session), "Network.getCookies", params).await;
        let Cookies { mut cookies } =
            serde_json::from_value(reply.map_err(browser_error)?).unwrap_or_default();
        cookies.sort_by_key(|cookie| std::cmp::Reverse(cookie.path.len()));
        let pairs = cookies.iter().map(|cookie| format!("{}={}", cookie.name, cookie.value));
        let cookies = Secret::new(pairs.collect::<Vec<_>>().join("; "));
        let user_agent = self.run(USER_AGENT, vec![]).await?;
        let user_agent = user_agent.as_str().map(str::to_owned);
        let user_agent =
            user_agent.ok_or_else(|| BrowserError::Refused("the page has no user agent".into()))?;
        Ok(BrowserCredentials { cookies, user_agent })
    }
}
