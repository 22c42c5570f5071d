//! Chromium over the DevTools protocol: starts it, drives and observes its pages, and ends it with
//! all its processes and files.
//!
//! **Invariant:** the applicant's input is passed on and is neither logged nor stored, and no process
//! outlives the service: Chromium exits when the pipe that the service holds is closed.

mod backend;
mod browser;
mod client;
mod devtools_pipes;
mod diagnostic;
mod factory;
mod fleet;
mod fleet_address;
mod fleet_certificate;
mod fleet_proxy;
mod forwarder;
mod host;
mod hosted;
mod input;
mod launch;
mod memory_usage;
mod page_frames;
mod page_tracker;
mod pool;
mod redaction;
mod route;
mod sandbox;
mod slots;
mod upstream;
mod warm_pool;

pub use self::{
    client::{DevToolsClient, DevToolsError, DevToolsEvent},
    diagnostic::{
        BrowserDiagnostic, EgressDiagnostic, ExaminedBrowser, FleetDiagnostic, SandboxDiagnostic,
    },
    factory::{BrowserSource, LocalBrowsers},
    fleet::{Fleet, FleetSetupError},
    fleet_address::{
        CertificateFiles, EndpointKind, FleetAddress, FleetEndpoint, InvalidFleetAddress,
    },
    fleet_certificate::ProxyCertificateError,
    host::{BrowserHandle, BrowserHost, LocalBrowser},
    hosted::{BrowserHosts, ByteStream, Duplex, HostError, HostGuard, HostedBrowser},
    launch::{Chromium, LaunchError, LaunchOptions, Launched},
    pool::{ChromiumPool, PoolOptions},
    redaction::JpegRedactor,
    sandbox::{
        Installation, InstallationError, MissingFeatures, Sandbox, SandboxError,
        enter as enter_sandbox, write_root_certificates,
    },
};
