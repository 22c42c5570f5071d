//! Chromium over the DevTools protocol: started, driven, watched, and ended without a trace.
//!
//! **Invariant:** what the applicant types passes through and is neither logged nor kept, and no
//! process outlives the service: Chromium hangs on a pipe that closes with it.

mod browser;
mod client;
mod fleet;
mod forwarder;
mod gate;
mod input;
mod jail;
mod launch;
mod pool;
mod redaction;
mod seats;
mod source;
mod upstream;
mod usage;
mod vessel;
mod warm;
mod watching;
mod ways;

pub use self::{
    client::{CallError, Client, Event},
    fleet::Fleet,
    jail::{
        Installation, InstallationError, Jail, JailError, MissingFeatures, enter as enter_jail,
        write_roots,
    },
    launch::{Chromium, LaunchError, LaunchOptions, Launched},
    pool::{ChromiumPool, PoolOptions},
    redaction::JpegRedactor,
    source::{Here, Source},
};
