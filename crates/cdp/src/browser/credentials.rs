//! What the browser would send with a request of its own.

use domain::secret::Secret;
use ports::browser::{BrowserError, Credentials};
use serde::Deserialize;
use serde_json::json;

use super::{Pages, told};

/// What the page's own requests say of the browser.
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
    /// For a request to this URL (RFC 6265, section 5.4): the longest paths first.
    pub(super) async fn credentials(&self, url: &str) -> Result<Credentials, BrowserError> {
        let (session, _) = self.top().ok_or(BrowserError::Gone)?;
        let asked = json!({ "urls": [url] });
        let reply = self.client.call(Some(&session), "Network.getCookies", asked).await;
        let Cookies { mut cookies } =
            serde_json::from_value(reply.map_err(told)?).unwrap_or_default();
        cookies.sort_by_key(|cookie| std::cmp::Reverse(cookie.path.len()));
        let pairs = cookies.iter().map(|cookie| format!("{}={}", cookie.name, cookie.value));
        let cookies = Secret::new(pairs.collect::<Vec<_>>().join("; "));
        let user_agent = self.run(USER_AGENT, vec![]).await?;
        let user_agent = user_agent.as_str().map(str::to_owned);
        let user_agent = user_agent
            .ok_or_else(|| BrowserError::Refused("a page without a user agent".into()))?;
        Ok(Credentials { cookies, user_agent })
    }
}
