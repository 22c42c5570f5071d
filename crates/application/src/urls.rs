//! The URLs of a session.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta};
use domain::session::{Session, State};
use ports::{clock::Clock, driving::SessionView, tokens::TokenIssuer};

use crate::settings::Addresses;

/// How long a stream token is valid: between a minute less than this and all of it, because tokens
/// are issued by the full minute.
const STREAM_TOKEN_TTL: TimeDelta = TimeDelta::minutes(5);

/// Makes the URLs that belong to a session.
pub struct Urls {
    pub addresses: Addresses,
    pub tokens: Arc<dyn TokenIssuer>,
    pub clock: Arc<dyn Clock>,
}

impl Urls {
    /// Returns a session with its URLs.
    #[must_use]
    pub fn with_urls(&self, session: Session) -> SessionView {
        SessionView {
            embed_url: self.embed_url(&session),
            stream_url: self.stream_url(&session),
            session,
        }
    }

    /// Returns the base URL of a session's pages. Those of a draft are part of the portal's page.
    fn origin_of(&self, session: &Session) -> &str {
        if session.terms.platform.is_of_drafts() {
            return &self.addresses.public;
        }
        self.addresses.of(session.terms.worker_region)
    }

    /// Returns the URL of the session's embed page.
    #[must_use]
    pub fn embed_url(&self, session: &Session) -> String {
        let origin = self.origin_of(session);
        format!(
            "{origin}/embed/{}?token={}",
            session.id,
            self.tokens.embed_token(session.id).expose()
        )
    }

    /// Returns the URL at which a live session can be observed. It changes once a minute and not
    /// with each call, so that a partner who polls sees no change where there is none.
    #[must_use]
    pub fn stream_url(&self, session: &Session) -> Option<String> {
        if !matches!(session.state, State::Live { .. }) {
            return None;
        }
        let now = self.clock.now().timestamp();
        let expires_at = DateTime::from_timestamp(now - now.rem_euclid(60), 0)? + STREAM_TOKEN_TTL;
        let (id, token) = (session.id, self.tokens.stream_token(session.id, expires_at));
        let origin = self.origin_of(session);
        Some(format!("{origin}/watch/{id}?pass={}", token.expose()))
    }
}
