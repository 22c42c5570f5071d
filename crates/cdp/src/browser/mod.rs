//! One session's browser: drives its pages, watches them, and passes pictures and input on.

mod credentials;
mod events;
mod inputs;
mod pages;
mod scene;
mod scripts;
mod setup;
mod waiting;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use async_trait::async_trait;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use domain::{egress_proxy::parse_country_response, workflow::Observation};
use ports::browser::{Browser, BrowserError, Credentials, Fetched, Frame, Input, PageState};
use serde::Deserialize;
use serde_json::{Value, json};

use self::{
    inputs::Inputs,
    pages::Pages,
    scripts::{FETCH, FILL, LOOK, TEXTS},
};
pub(crate) use self::{scene::Open, waiting::WaitingBrowser};
use crate::{
    client::CallError,
    vessel::{Vessel, WayOut},
};

/// The world of our scripts, apart from the page's own.
const WORLD: &str = "avouch";
/// How long `changed` waits when nothing tells of a change.
const LOOK_AGAIN: Duration = Duration::from_millis(250);
const RESPONSE_PATIENCE: Duration = Duration::from_secs(5);
const LOAD_PATIENCE: Duration = Duration::from_secs(30);
/// Bytes read of what tells our country.
const LONGEST_COUNTRY: u32 = 8192;

/// A session's browser.
pub(crate) struct RemoteBrowser {
    vessel: Vessel,
    pages: Arc<Pages>,
    inputs: Inputs,
    /// Lives as long as the browser: its only way out.
    _way_out: WayOut,
}

impl RemoteBrowser {
    /// The country that a service says we come from; `None` where it does not answer.
    pub(crate) async fn country(&self, url: &str) -> Option<String> {
        let (session, target) = self.pages.top()?;
        let client = &self.pages.client;
        let load = json!({
            "frameId": target, "url": url,
            "options": { "disableCache": true, "includeCredentials": false },
        });
        let loaded = client.call(Some(&session), "Network.loadNetworkResource", load).await.ok()?;
        let resource = loaded.get("resource")?;
        let handle = resource.get("stream")?.as_str()?;
        let read = json!({ "handle": handle, "size": LONGEST_COUNTRY });
        let read = client.call(Some(&session), "IO.read", read).await;
        client.fire(Some(&session), "IO.close", json!({ "handle": handle }));
        let read = read.ok()?;
        let text = read.get("data")?.as_str()?;
        let plain = read.get("base64Encoded").and_then(Value::as_bool) != Some(true);
        let text = if plain { text.as_bytes().to_vec() } else { STANDARD.decode(text).ok()? };
        let fine = resource.get("httpStatusCode").and_then(Value::as_u64) == Some(200);
        parse_country_response(str::from_utf8(&text).ok()?).filter(|_| fine)
    }

    /// The process group of all of the browser's processes.
    pub(crate) fn pid(&self) -> Option<i32> {
        self.vessel.pid()
    }

    pub(crate) async fn end(&self) {
        self.vessel.end().await;
    }
}

impl Pages {
    /// Runs a function in our world of the page on top.
    async fn run(&self, function: &str, arguments: Vec<Value>) -> Result<Value, BrowserError> {
        let (session, target) = self.top().ok_or(BrowserError::Gone)?;
        let client = &self.client;
        let world = json!({ "frameId": target, "worldName": WORLD });
        let made = client.call(Some(&session), "Page.createIsolatedWorld", world).await;
        let world = made.map_err(told)?;
        let arguments: Vec<_> =
            arguments.into_iter().map(|value| json!({ "value": value })).collect();
        let call = json!({
            "functionDeclaration": function,
            "executionContextId": world.get("executionContextId"),
            "arguments": arguments,
            "awaitPromise": true,
            "returnByValue": true,
        });
        let mut reply =
            client.call(Some(&session), "Runtime.callFunctionOn", call).await.map_err(told)?;
        if reply.get("exceptionDetails").is_some() {
            return Err(BrowserError::Refused("a script failed in the page".into()));
        }
        Ok(reply.pointer_mut("/result/value").map(Value::take).unwrap_or_default())
    }
}

fn told(error: CallError) -> BrowserError {
    match error {
        CallError::Gone => BrowserError::Gone,
        CallError::TimedOut(_) => BrowserError::TimedOut,
        CallError::Refused(why) => BrowserError::Refused(why),
    }
}

#[async_trait]
impl Browser for RemoteBrowser {
    async fn navigate(&self, url: &str) -> Result<(), BrowserError> {
        let (session, _) = self.pages.top().ok_or(BrowserError::Gone)?;
        let client = &self.pages.client;
        let reply = client.call(Some(&session), "Page.navigate", json!({ "url": url })).await;
        if reply.map_err(told)?.get("errorText").is_some() {
            return Err(BrowserError::Refused("the page cannot be reached".into()));
        }
        let loaded = async {
            while !self.pages.settled() {
                self.changed().await;
            }
        };
        // A page that loads for ever can still be used.
        let _ = tokio::time::timeout(LOAD_PATIENCE, loaded).await;
        Ok(())
    }

    async fn observe(&self) -> Result<Observation, BrowserError> {
        let (session, _) = self.pages.top().ok_or(BrowserError::Gone)?;
        let settled = self.pages.settled();
        let document = self.pages.watching().page(&session).map(|page| page.document);
        let selectors = json!(self.pages.spec.get().map(|spec| &spec.watch.selectors));
        let look = self.pages.run(LOOK, vec![selectors]).await;
        let seen: Look = match look {
            Ok(value) => serde_json::from_value(value).unwrap_or_default(),
            // The page went away under our hands; the next look finds its successor.
            Err(BrowserError::Refused(_)) => Look::default(),
            Err(error) => return Err(error),
        };
        let cookies = self.pages.client.call(Some(&session), "Network.getCookies", json!({})).await;
        let cookies: Cookies =
            serde_json::from_value(cookies.unwrap_or_default()).unwrap_or_default();
        let mut watching = self.pages.watching();
        let page = watching.page(&session).ok_or(BrowserError::Gone)?;
        // What was seen of a document that is gone is not what is there now.
        let seen = if document == Some(page.document) { seen } else { Look::default() };
        Ok(Observation {
            url: page.url.clone(),
            document: page.document,
            settled: settled && seen.ready == "complete" && page.settled(),
            http_status: page.http_status,
            cookies: cookies.cookies.into_iter().map(|cookie| cookie.name).collect(),
            present: seen.present,
            responses: page.responses(),
        })
    }

    async fn changed(&self) {
        let _ = tokio::time::timeout(LOOK_AGAIN, self.pages.changed.notified()).await;
    }

    async fn fetch(&self, url: &str, max_bytes: u32) -> Result<Fetched, BrowserError> {
        let value = self.pages.run(FETCH, vec![json!(url), json!(max_bytes)]).await?;
        let answer: FetchAnswer = serde_json::from_value(value)
            .map_err(|_| BrowserError::Refused("an answer that cannot be read".into()))?;
        Ok(Fetched { status: answer.status, body: answer.body })
    }

    async fn credentials(&self, url: &str) -> Result<Credentials, BrowserError> {
        self.pages.credentials(url).await
    }

    async fn response(&self, pattern: &str) -> Result<Option<String>, BrowserError> {
        let ends = tokio::time::Instant::now() + RESPONSE_PATIENCE;
        loop {
            let (session, _) = self.pages.top().ok_or(BrowserError::Gone)?;
            let found = {
                let mut watching = self.pages.watching();
                let seen = watching.page(&session).and_then(|page| page.response(pattern).cloned());
                seen.map(|seen| (seen.response.status, seen.text))
            };
            match found {
                Some((200..=299, text)) => return Ok(Some(text)),
                Some(_) => return Ok(None),
                None if tokio::time::Instant::now() >= ends => return Ok(None),
                None => self.changed().await,
            }
        }
    }

    async fn texts(&self, selectors: &[String]) -> Result<Vec<Option<String>>, BrowserError> {
        let value = self.pages.run(TEXTS, vec![json!(selectors)]).await?;
        serde_json::from_value(value)
            .map_err(|_| BrowserError::Refused("texts that cannot be read".into()))
    }

    async fn frame(&self, after: u64) -> Option<Arc<Frame>> {
        let mut frames = self.pages.frames.subscribe();
        let newer = |frame: &Option<Arc<Frame>>| frame.as_ref().is_some_and(|f| f.seq > after);
        tokio::select! {
            frame = frames.wait_for(newer) => frame.ok().and_then(|frame| frame.clone()),
            () = self.pages.client.closed() => None,
        }
    }

    async fn scene(&self, after: u64) -> Option<Arc<PageState>> {
        let mut scenes = self.pages.scenes.subscribe();
        tokio::select! {
            scene = scenes.wait_for(|scene| scene.seq > after) => scene.ok().map(|scene| scene.clone()),
            () = self.pages.client.closed() => None,
        }
    }

    fn input(&self, input: Input) {
        let Some((session, target)) = self.pages.top() else { return };
        if self.inputs.take(session, &input) {
            return;
        }
        if let Input::Answer { dialog, accept, text } = &input {
            self.pages.answer(*dialog, *accept, text);
        } else if let Input::Fill(value) = input {
            let (pages, value) = (self.pages.clone(), json!(value));
            // What cannot be filled stays as it is; the applicant sees that.
            tokio::spawn(async move { pages.run(FILL, vec![value]).await.map(drop) });
        } else if let Input::Resize(viewport) = input {
            self.pages.resize(viewport);
        } else if self.pages.watching().count() > 1 {
            self.pages.client.fire(None, "Target.closeTarget", json!({ "targetId": target }));
        }
    }

    async fn ended(&self) {
        self.pages.client.closed().await;
    }
}

#[derive(Default, Deserialize)]
struct Look {
    ready: String,
    present: BTreeSet<String>,
}

#[derive(Default, Deserialize)]
struct Cookies {
    cookies: Vec<Cookie>,
}

#[derive(Deserialize)]
struct Cookie {
    name: String,
}

#[derive(Deserialize)]
struct FetchAnswer {
    status: u16,
    body: String,
}
