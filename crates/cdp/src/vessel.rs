//! What a session's browser is in: a process of ours, or a context in a browser elsewhere.

use crate::{client::Client, fleet::Berth, forwarder::Forwarder, gate::Pass, launch::Chromium};

pub(crate) enum Vessel {
    Process(Box<Chromium>),
    Context(Berth),
}

impl Vessel {
    pub(crate) fn client(&self) -> &Client {
        match self {
            Self::Process(chromium) => &chromium.client,
            Self::Context(berth) => &berth.client,
        }
    }

    /// The process group of all its processes, where they are here.
    pub(crate) fn pid(&self) -> Option<i32> {
        match self {
            Self::Process(chromium) => chromium.pid(),
            Self::Context(_) => None,
        }
    }

    /// The browser context; none where the whole browser is the session's.
    pub(crate) fn context(&self) -> Option<&str> {
        match self {
            Self::Process(_) => None,
            Self::Context(berth) => Some(&berth.context),
        }
    }

    pub(crate) async fn end(&self) {
        match self {
            Self::Process(chromium) => chromium.end().await,
            Self::Context(berth) => berth.end().await,
        }
    }
}

/// What a browser's way out hangs on; it is shut when this is dropped.
pub(crate) enum WayOut {
    #[expect(dead_code, reason = "held for its end")]
    Own(Forwarder),
    #[expect(dead_code, reason = "held for its end")]
    Shared(Pass),
}
