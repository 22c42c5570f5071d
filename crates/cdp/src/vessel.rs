//! What a session's browser is in: a process of ours, or a context in a browser elsewhere.

use std::sync::Arc;

use crate::{
    client::Client, fleet::Berth, forwarder::Forwarder, gate::Pass, launch::Chromium, ways::Ways,
};

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

/// A browser's way out; it is shut when this is dropped.
pub(crate) enum WayOut {
    Own(Forwarder),
    Shared(Pass),
}

impl WayOut {
    /// From now on new connections go these ways.
    pub(crate) fn lead(&self, ways: Arc<Ways>) {
        match self {
            Self::Own(forwarder) => forwarder.lead(ways),
            Self::Shared(pass) => pass.lead(ways),
        }
    }
}
