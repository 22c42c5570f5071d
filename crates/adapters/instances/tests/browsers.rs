//! Browsers of browser hosts over real TLS connections: what is passed on, who is refused, and what ends
//! what. The browsers are streams of bytes.
#![expect(clippy::unwrap_used, reason = "tests panic to fail")]

use std::{
    fs,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use async_trait::async_trait;
use instances::{
    CertificateDiagnostic, HostsDiagnostic, IdentityFiles, InstanceIdentity, TlsLinks,
    browsers::{
        BrowserHosts, ByteStream, HostSettings, HostedBrowser, HostedBrowsers, OpenError,
        OpenedBrowser, StartError, serve,
    },
};
use ports::{
    diagnostic::{DiagnosisState, Diagnostic as _},
    instances::{InstanceLinks as _, SocketKind, SocketRequest},
};
use tempfile::TempDir;
use testkit::certificates::{Authority, Certified};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex},
    net::TcpListener,
    sync::mpsc,
};
use tokio_util::sync::CancellationToken;

const INSTANCE: &str = "instance.avouch.internal";
const HOST: &str = "browser-host.avouch.internal";
const TIMEOUT: Duration = Duration::from_secs(60);

fn identity(authority: &Authority, name: &str, peer: &str) -> (TempDir, Arc<InstanceIdentity>) {
    let (folder, files) = files(authority, &authority.valid(&[name]), (name, peer));
    (folder, InstanceIdentity::open(files).unwrap())
}

fn files(
    authority: &Authority,
    certified: &Certified,
    (name, peer): (&str, &str),
) -> (TempDir, IdentityFiles) {
    let folder = tempfile::tempdir().unwrap();
    let path = |file: &str| folder.path().join(file);
    fs::write(path("roots.pem"), authority.pem()).unwrap();
    fs::write(path("cert.pem"), &certified.certificate).unwrap();
    fs::write(path("key.pem"), &certified.key).unwrap();
    let files = IdentityFiles {
        certificate: path("cert.pem"),
        key: path("key.pem"),
        roots: path("roots.pem"),
        name: name.to_owned(),
        peer: peer.to_owned(),
    };
    (folder, files)
}

/// A browser as the host has it.
struct Started {
    scale: u8,
    devtools: DuplexStream,
    connections: mpsc::Sender<ByteStream>,
}

/// Hands the browsers that it starts to the test.
struct Browsers {
    slots: u32,
    used: Arc<AtomicU32>,
    started: mpsc::UnboundedSender<Started>,
    failure: Option<String>,
}

struct Used(Arc<AtomicU32>);

impl Drop for Used {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[async_trait]
impl HostedBrowsers for Browsers {
    async fn start(&self, scale: u8) -> Result<HostedBrowser, StartError> {
        if let Some(failure) = &self.failure {
            return Err(StartError::Failed(failure.clone()));
        }
        if self.used.fetch_add(1, Ordering::SeqCst) >= self.slots {
            self.used.fetch_sub(1, Ordering::SeqCst);
            return Err(StartError::Full);
        }
        let (ours, devtools) = duplex(64 * 1024);
        let (sender, connections) = mpsc::channel(8);
        let started = Started { scale, devtools: ours, connections: sender };
        self.started.send(started).unwrap();
        let guard = Box::new(Used(self.used.clone()));
        Ok(HostedBrowser { devtools: Box::new(devtools), connections, guard })
    }

    fn slots(&self) -> u32 {
        self.slots
    }

    fn used(&self) -> u32 {
        self.used.load(Ordering::SeqCst)
    }
}

/// A browser host that serves.
struct Host {
    address: SocketAddr,
    started: mpsc::UnboundedReceiver<Started>,
    used: Arc<AtomicU32>,
    draining: CancellationToken,
    stop: CancellationToken,
    _files: TempDir,
}

impl Host {
    async fn start(authority: &Authority, slots: u32) -> Self {
        Self::with(authority, slots, HOST, None, None).await
    }

    async fn with(
        authority: &Authority,
        slots: u32,
        name: &str,
        region: Option<&str>,
        failure: Option<&str>,
    ) -> Self {
        let (files, identity) = identity(authority, name, INSTANCE);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, started) = mpsc::unbounded_channel();
        let used = Arc::new(AtomicU32::new(0));
        let failure = failure.map(str::to_owned);
        let browsers = Arc::new(Browsers { slots, used: used.clone(), started: sender, failure });
        let settings =
            HostSettings { region: region.map(str::to_owned), version: "1.2.3".to_owned() };
        let (draining, stop) = (CancellationToken::new(), CancellationToken::new());
        let ends = (draining.clone(), stop.clone());
        tokio::spawn(async move { serve(listener, identity, browsers, settings, ends).await });
        Self { address, started, used, draining, stop, _files: files }
    }

    async fn until_used(&self, count: u32) {
        let deadline = Instant::now() + TIMEOUT;
        while self.used.load(Ordering::SeqCst) != count {
            assert!(Instant::now() < deadline, "{:?} and not {count}", self.used);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// Connects an instance to hosts.
async fn connect(authority: &Authority, hosts: &[&Host]) -> (TempDir, BrowserHosts) {
    connect_as(authority, INSTANCE, None, hosts).await
}

async fn connect_as(
    authority: &Authority,
    name: &str,
    region: Option<&str>,
    hosts: &[&Host],
) -> (TempDir, BrowserHosts) {
    let (files, identity) = identity(authority, name, HOST);
    let names = hosts.iter().map(|host| host.address.to_string()).collect();
    let hosts = BrowserHosts::connect(identity, names, region.map(str::to_owned)).await;
    (files, hosts)
}

/// Gets a browser once a slot that became free has been reported.
async fn open_again(hosts: &BrowserHosts) -> OpenedBrowser {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        match hosts.open(1).await {
            Ok(browser) => return browser,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn send(stream: &mut (impl tokio::io::AsyncWrite + Unpin), text: &str) {
    stream.write_all(text.as_bytes()).await.unwrap();
    stream.flush().await.unwrap();
}

async fn expect(stream: &mut (impl tokio::io::AsyncRead + Unpin), text: &str) {
    let mut read = vec![0; text.len()];
    tokio::time::timeout(TIMEOUT, stream.read_exact(&mut read)).await.unwrap().unwrap();
    assert_eq!(String::from_utf8_lossy(&read), text);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_and_connections_of_a_browser_are_passed_on() {
    let authority = Authority::new("Instances");
    let mut host = Host::start(&authority, 2).await;
    let (_files, hosts) = connect(&authority, &[&host]).await;
    assert_eq!(hosts.usage(), (2, 0));
    let mut browser = hosts.open(2).await.unwrap();
    let mut started = host.started.recv().await.unwrap();
    assert_eq!(started.scale, 2);
    send(&mut browser.devtools, "{\"id\":1}\0").await;
    expect(&mut started.devtools, "{\"id\":1}\0").await;
    send(&mut started.devtools, "{\"result\":{}}\0").await;
    expect(&mut browser.devtools, "{\"result\":{}}\0").await;

    // A connection that nobody reads does not hold the others up.
    let mut ours = vec![];
    for number in 0..3 {
        let (mut page, connection) = duplex(1024);
        started.connections.send(Box::new(connection)).await.unwrap();
        let text = format!("CONNECT {number}");
        send(&mut page, &text).await;
        let mut proxied = tokio::time::timeout(TIMEOUT, browser.connections.recv()).await.unwrap();
        expect(proxied.as_mut().unwrap(), &text).await;
        ours.push((page, proxied.unwrap()));
    }
    let (mut silent, _unread) = ours.pop().unwrap();
    let flood = tokio::spawn(async move { silent.write_all(&vec![b'x'; 4 << 20]).await });
    for (page, proxied) in &mut ours {
        let long = "y".repeat(200_000);
        let (sent, ()) = tokio::join!(proxied.write_all(long.as_bytes()), expect(page, &long));
        sent.unwrap();
    }
    send(&mut started.devtools, "still here\0").await;
    expect(&mut browser.devtools, "still here\0").await;
    assert!(!flood.is_finished(), "the flood waits for its reader");

    drop(browser);
    host.until_used(0).await;
    assert_eq!(started.devtools.read(&mut [0; 16]).await.unwrap(), 0, "the browser is ended");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_browser_that_ends_ends_its_connection() {
    let authority = Authority::new("Instances");
    let mut host = Host::start(&authority, 1).await;
    let (_files, hosts) = connect(&authority, &[&host]).await;
    let mut browser = hosts.open(1).await.unwrap();
    drop(host.started.recv().await.unwrap());
    let read = tokio::time::timeout(TIMEOUT, browser.devtools.read(&mut [0; 16])).await.unwrap();
    assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
    host.until_used(0).await;
    // A host that stops ends its browsers.
    let mut browser = open_again(&hosts).await;
    let _started = host.started.recv().await.unwrap();
    host.stop.cancel();
    let read = tokio::time::timeout(TIMEOUT, browser.devtools.read(&mut [0; 16])).await.unwrap();
    assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
    host.until_used(0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_least_used_host_is_asked_and_full_ones_are_left_out() {
    let authority = Authority::new("Instances");
    let (mut large, small) = (Host::start(&authority, 4).await, Host::start(&authority, 1).await);
    let other_region = Host::with(&authority, 9, HOST, Some("us-west"), None).await;
    let (_files, hosts) = connect(&authority, &[&large, &small, &other_region]).await;
    assert_eq!(hosts.usage(), (5, 0));
    let mut browsers = vec![];
    for _ in 0..5 {
        browsers.push(hosts.open(1).await.unwrap());
    }
    assert_eq!(large.used.load(Ordering::SeqCst), 4);
    assert_eq!(small.used.load(Ordering::SeqCst), 1);
    assert_eq!(other_region.used.load(Ordering::SeqCst), 0);
    assert!(matches!(hosts.open(1).await, Err(OpenError::Full)));
    // A slot that became free is known within about a second.
    drop(large.started.recv().await.unwrap());
    large.until_used(3).await;
    let again = open_again(&hosts).await;
    // A host that drains starts none, and its browsers go on.
    large.draining.cancel();
    drop(again);
    large.until_used(3).await;
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert!(matches!(hosts.open(1).await, Err(OpenError::Full)));
    assert_eq!(large.used.load(Ordering::SeqCst), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_browser_says_that_its_host_drains() {
    let authority = Authority::new("Instances");
    let (first, second) = (Host::start(&authority, 1).await, Host::start(&authority, 1).await);
    let (_files, hosts) = connect(&authority, &[&first, &second]).await;
    let browsers = [hosts.open(1).await.unwrap(), hosts.open(1).await.unwrap()];
    assert!(browsers.iter().all(|browser| !browser.guard.is_draining()));
    first.draining.cancel();
    let deadline = Instant::now() + TIMEOUT;
    let draining = |host: &Host| {
        let browser = browsers.iter().find(|browser| browser.host == host.address).unwrap();
        browser.guard.is_draining()
    };
    while !draining(&first) {
        assert!(Instant::now() < deadline, "it is not known");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(!draining(&second));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_is_gone_is_left_out_and_one_that_fails_is_named() {
    let authority = Authority::new("Instances");
    let (gone, there) = (Host::start(&authority, 9).await, Host::start(&authority, 1).await);
    let (_files, hosts) = connect(&authority, &[&gone, &there]).await;
    gone.stop.cancel();
    // The report of a moment ago may still be relied on: the other host is asked next.
    let browser = hosts.open(1).await.unwrap();
    assert_eq!(there.used.load(Ordering::SeqCst), 1);
    drop(browser);
    there.stop.cancel();
    let deadline = Instant::now() + TIMEOUT;
    loop {
        match hosts.open(1).await {
            Err(OpenError::Unavailable(reason)) if reason.contains("can be reached") => break,
            other => assert!(Instant::now() < deadline, "{:?}", other.err()),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let failing = Host::with(&authority, 1, HOST, None, Some("is Chromium installed?")).await;
    let (_files, hosts) = connect(&authority, &[&failing]).await;
    let error = hosts.open(1).await.err().unwrap().to_string();
    assert_eq!(error, "is Chromium installed?");
}

/// Chromium exits at once on one host, which therefore is always the one that is used least.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_whose_browsers_end_at_once_is_left_out_while_others_have_room() {
    let authority = Authority::new("Instances");
    let (mut broken, healthy) =
        (Host::start(&authority, 4).await, Host::start(&authority, 2).await);
    let (_other_files, other) = connect(&authority, &[&healthy]).await;
    let _half = other.open(1).await.unwrap();
    let (_files, hosts) = connect(&authority, &[&broken, &healthy]).await;
    let mut first = hosts.open(1).await.unwrap();
    assert_eq!(first.host, broken.address, "it is used least");
    drop(broken.started.recv().await.unwrap());
    let read = tokio::time::timeout(TIMEOUT, first.devtools.read(&mut [0; 16])).await.unwrap();
    assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
    hosts.record_failure(first.host, "the connection to Chromium is closed");
    drop(first);
    broken.until_used(0).await;
    let second = hosts.open(1).await.unwrap();
    assert_eq!(second.host, healthy.address, "the other one is left out");
    let third = hosts.open(1).await.unwrap();
    assert_eq!(third.host, broken.address, "no other one has room");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_wait_for_a_full_host_if_the_others_fail() {
    let authority = Authority::new("Instances");
    let full = Host::start(&authority, 1).await;
    let failing = Host::with(&authority, 1, HOST, None, Some("is Chromium installed?")).await;
    let (_files, hosts) = connect(&authority, &[&full, &failing]).await;
    let browser = hosts.open(1).await.unwrap();
    assert_eq!(browser.host, full.address);
    full.until_used(1).await;
    // The failing one is tried, since no other one has room.
    for _ in 0..2 {
        assert!(matches!(hosts.open(1).await, Err(OpenError::Full)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_instances_and_hosts_of_the_deployment_are_accepted() {
    let (authority, foreign) = (Authority::new("Instances"), Authority::new("Foreign"));
    let host = Host::start(&authority, 1).await;
    for (authority, name) in
        [(&foreign, INSTANCE), (&authority, HOST), (&authority, "shop.example")]
    {
        let (_files, hosts) = connect_as(authority, name, None, &[&host]).await;
        assert!(matches!(hosts.open(1).await, Err(OpenError::Unavailable(_))), "{name}");
    }
    // An instance is no browser host, and neither is a host of another deployment.
    for (authority, name) in [(&authority, INSTANCE), (&foreign, HOST)] {
        let impostor = Host::with(authority, 1, name, None, None).await;
        let (_files, hosts) = connect(&Authority::new("Instances"), &[&impostor]).await;
        assert!(matches!(hosts.open(1).await, Err(OpenError::Unavailable(_))), "{name}");
    }
    // A browser host's certificate opens no stream of an applicant at an instance.
    let (_instance_files, instance) = identity(&authority, INSTANCE, INSTANCE);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(instance.server_config().unwrap()));
    let accepted = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        acceptor.accept(stream).await.err().map(|error| error.to_string())
    });
    let (_files, pretender) = identity(&authority, HOST, INSTANCE);
    let session = domain::id::SessionId::from_u128(1);
    let request = SocketRequest { kind: SocketKind::Applicant, session, headers: vec![] };
    let opened = TlsLinks::new(pretender).open(&address, request).await;
    assert!(opened.is_err());
    let refusal = accepted.await.unwrap().unwrap();
    assert!(refusal.contains("NotValidForName"), "{refusal}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_are_not_understood_end_the_connection() {
    let authority = Authority::new("Instances");
    let host = Host::start(&authority, 1).await;
    // Whoever does not speak TLS, says nothing, or sends a flood, holds no browser.
    let mut plain = tokio::net::TcpStream::connect(host.address).await.unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let mut answer = vec![];
    let read = tokio::time::timeout(TIMEOUT, plain.read_to_end(&mut answer)).await.unwrap();
    assert!(read.is_err() || answer.len() < 64, "{answer:?}");
    let silent = tokio::net::TcpStream::connect(host.address).await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    drop(silent);
    let (_files, hosts) = connect(&authority, &[&host]).await;
    assert!(hosts.open(1).await.is_ok(), "others are served meanwhile");
}

#[tokio::test]
async fn each_host_is_examined() {
    let authority = Authority::new("deployment");
    let (near, draining) = (Host::start(&authority, 3).await, Host::start(&authority, 3).await);
    draining.draining.cancel();
    let far = Host::with(&authority, 3, HOST, Some("eu-west"), None).await;
    let stranger = Host::start(&Authority::new("another"), 3).await;
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let addresses = [near.address, draining.address, far.address, stranger.address, closed];
    let certified = authority.valid(&[INSTANCE]);
    let (_folder, files) = files(&authority, &certified, (INSTANCE, HOST));
    let mut names: Vec<_> = addresses.map(|address| address.to_string()).into();
    names.push("nowhere.invalid:8443".to_owned());
    let found = HostsDiagnostic { names, files, region: None }.examine().await;
    let expected = [
        (DiagnosisState::Ok, "0 of 3 browsers run, release 1.2.3"),
        (DiagnosisState::Warning, "it drains"),
        (DiagnosisState::Warning, "its region is eu-west, and this instance's none"),
        (DiagnosisState::Failed, "certificate"),
        (DiagnosisState::Failed, "refused"),
        (DiagnosisState::Failed, "nowhere.invalid:8443"),
    ];
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for (diagnosis, (state, part)) in found.iter().zip(expected) {
        assert_eq!(diagnosis.state, state, "{diagnosis:?}");
        assert!(diagnosis.detail.contains(part), "{diagnosis:?}");
    }
}

#[tokio::test]
async fn the_certificate_is_examined_as_others_verify_it() {
    let authority = Authority::new("deployment");
    let names = (INSTANCE, INSTANCE);
    let cases = [
        (authority.valid(&[INSTANCE]), DiagnosisState::Ok, "other instances accept it"),
        (authority.expired(&[INSTANCE]), DiagnosisState::Failed, "expired"),
        (authority.valid(&["other.example"]), DiagnosisState::Failed, "not valid for"),
        (Authority::new("another").valid(&[INSTANCE]), DiagnosisState::Failed, "UnknownIssuer"),
    ];
    for (certified, state, part) in cases {
        let (_folder, files) = files(&authority, &certified, names);
        let found = CertificateDiagnostic { files: Some(files) }.examine().await;
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].state, state, "{found:?}");
        assert!(found[0].detail.contains(part), "{found:?}");
    }
    assert_eq!(CertificateDiagnostic { files: None }.examine().await[0].state, DiagnosisState::Ok);
}
