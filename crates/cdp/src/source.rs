//! Where browsers come from.

use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use ports::browser::{Scale, StartError};
use tokio::net::TcpListener;

use crate::{
    browser::WaitingBrowser,
    client::SocketError,
    fleet::{Berth, Boarded, Fleet, FleetError},
    forwarder::Forwarder,
    jail::{Jail, WAY_OUT},
    launch::{Chromium, LaunchOptions, Launched},
    seats::Taken,
    vessel::{Vessel, WayOut},
};

/// Where browsers come from.
#[derive(Debug)]
pub enum Source {
    /// A Chromium of ours for each session.
    Here(Here),
    /// A context for each session, in browsers that others run.
    Elsewhere(Fleet),
}

/// How browsers run on this machine.
#[derive(Debug, Clone)]
pub struct Here {
    pub executable: PathBuf,
    /// The folder of all browsers of this process; nobody else's.
    pub folder: PathBuf,
    /// Bytes of memory that one browser may have to itself; one that has more is ended.
    pub memory: u64,
    pub jail: Option<Jail>,
}

/// A browser that no session has, and that none has had.
pub(crate) struct Idle {
    pub(crate) browser: WaitingBrowser,
    /// Leads nowhere yet.
    pub(crate) way_out: WayOut,
    pub(crate) seat: Taken,
    pub(crate) scale: Scale,
}

/// Makes browsers, each another one.
pub(crate) struct Supply {
    source: Source,
    made: AtomicU64,
}

impl Supply {
    pub(crate) fn new(source: Source) -> Self {
        Self { source, made: AtomicU64::new(0) }
    }

    /// How fine its pictures can be, for a device of this scale: what a browser that runs already
    /// is told later does not make them any finer.
    pub(crate) fn scale(&self, wanted: Scale) -> Scale {
        match &self.source {
            Source::Here(_) => wanted,
            Source::Elsewhere(_) => Scale::One,
        }
    }

    pub(crate) async fn make(&self, scale: Scale, seat: Taken) -> Result<Idle, StartError> {
        match &self.source {
            Source::Here(here) => self.launch(here, scale, seat).await,
            Source::Elsewhere(fleet) => match Berth::board(fleet).await {
                Ok(Boarded { berth, events, agent, pass }) => {
                    let (vessel, way_out) = (Vessel::Context(berth), WayOut::Shared(pass));
                    let browser = WaitingBrowser::adopt(vessel, events, &agent).await;
                    let browser = browser.map_err(|error| unavailable(&error))?;
                    Ok(Idle { browser, way_out, seat, scale })
                }
                Err(FleetError::Socket(SocketError::Full(_))) => Err(StartError::NoRoom),
                Err(error) => Err(unavailable(&error)),
            },
        }
    }

    async fn launch(&self, here: &Here, scale: Scale, seat: Taken) -> Result<Idle, StartError> {
        // Outside of a jail the way out is in the network that we are in ourselves.
        let outside = match here.jail {
            Some(_) => None,
            None => Some(TcpListener::bind("127.0.0.1:0").await.map_err(|e| unavailable(&e))?),
        };
        let proxy = match &outside {
            Some(listener) => listener.local_addr().map_err(|error| unavailable(&error))?,
            None => WAY_OUT,
        };
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let options = LaunchOptions {
            executable: here.executable.clone(),
            // Short: Chromium binds a socket in it, whose path is bounded.
            folder: here.folder.join(Path::new(&format!("{number:x}"))),
            flags: vec![
                format!("--proxy-server=http://{proxy}"),
                // Without this, loopback addresses are reached around the proxy.
                "--proxy-bypass-list=<-loopback>".to_owned(),
                // Overriding it later does not make pictures any finer.
                format!("--force-device-scale-factor={}", scale.times()),
            ],
            jail: here.jail.clone(),
            seat: seat.seat,
        };
        let launched = Chromium::launch(&options).await.map_err(|error| unavailable(&error))?;
        let Launched { chromium, events, agent, way_out } = launched;
        let way_out = way_out.or(outside);
        let way_out =
            way_out.ok_or_else(|| StartError::Unavailable("there is no way out".into()))?;
        let vessel = Vessel::Process(Box::new(chromium));
        let browser = WaitingBrowser::adopt(vessel, events, &agent).await;
        let browser = browser.map_err(|error| unavailable(&error))?;
        let way_out = WayOut::Own(Forwarder::start(way_out));
        Ok(Idle { browser, way_out, seat, scale })
    }
}

/// With all its causes.
pub(crate) fn unavailable(error: &dyn std::error::Error) -> StartError {
    let mut why = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        why.push_str(": ");
        why.push_str(&cause.to_string());
        source = cause.source();
    }
    StartError::Unavailable(why)
}
