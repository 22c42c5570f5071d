//! The firewall of pages: they reach nothing of our network, by any address notation or browser API.
#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "tests panic to fail")]

mod common;

use std::{
    collections::HashMap,
    net::UdpSocket,
    sync::{Arc, Mutex},
    time::Duration,
};

use chromium::{BrowserSource, ChromiumPool, Fleet, FleetAddress, PoolOptions};
use ports::browser::BrowserPool as _;
use rustls::{ClientConfig, RootCertStore, crypto::ring};
use serde_json::{Value, json};
use testkit::fleet::{SharedChromium, WEBRTC_FLAGS};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use self::common::{local_browsers, options, spec};

const HOST: &str = "page.localhost";
const REPORT_TIMEOUT: Duration = Duration::from_secs(60);
/// Ports that browsers may connect to: only there the address is decisive.
const OPEN_PORTS: [u16; 4] = [8443, 8080, 443, 80];

/// Our own network, in every notation.
const LOCAL_HOSTS: &[&str] = &[
    "127.0.0.1",
    "127.1",
    "127.255.255.254",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "0177.0.0.1",
    "017700000001",
    "0.0.0.0",
    "0",
    "localhost",
    "LOCALHOST",
    "localhost.",
    "a.localhost",
    "[::1]",
    "[::]",
    "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b:1::7f00:1]",
    "[2002:7f00:1::]",
    "[2001:0:7f00:1::]",
    "user@127.0.0.1",
    "user:pass@localhost",
    "①②⑦.⓪.⓪.①",
    "127。0。0。1",
];

/// Networks that are not public (RFC 6890, and the addresses that clouds use in addition).
const NON_PUBLIC_HOSTS: &[&str] = &[
    "10.0.0.1",
    "10.255.255.255",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.0.1",
    "192.168.1.254",
    "169.254.169.254",
    "169.254.170.2",
    "100.64.0.1",
    "100.100.100.200",
    "192.0.0.192",
    "192.0.2.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "[fc00::1]",
    "[fd00:ec2::254]",
    "[fe80::1]",
    "[ff02::1]",
    "[2001:db8::1]",
    "[::ffff:10.0.0.1]",
    "[::ffff:169.254.169.254]",
    "[64:ff9b::a9fe:a9fe]",
    "[2002:a9fe:a9fe::]",
    "[100::1]",
    "[3fff::1]",
    "metadata.google.internal",
    "metadata",
    "instance-data",
    "printer.local",
    "router.lan",
    "x.home.arpa",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_reaches_nothing_of_our_network() {
    let folder = tempfile::tempdir().unwrap();
    reaches_nothing(BrowserSource::Local(local_browsers(&folder.path().join("b")))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_in_a_fleet_reaches_nothing_of_its_network() {
    let shared = SharedChromium::start(WEBRTC_FLAGS).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let address = FleetAddress::new(&shared.url(), address, None).unwrap();
    let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let fleet = Fleet::new(address, Arc::new(tls), listener).unwrap();
    reaches_nothing(BrowserSource::Fleet(fleet)).await;
}

/// The tests share ports, so they must not run at the same time.
static SERIAL: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

async fn reaches_nothing(source: BrowserSource) {
    let _guard = SERIAL.lock().await;
    let (port, requests) = listen().await;
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.set_nonblocking(true).unwrap();
    let own = own_addresses();
    let hosts =
        LOCAL_HOSTS.iter().chain(NON_PUBLIC_HOSTS).map(|host| (*host).to_owned()).chain(own);
    let targets: Vec<_> = hosts.map(|host| format!("http://{host}:{port}/")).collect();
    assert!(targets.len() >= 60, "{} targets", targets.len());
    let site = Site::start(&targets, port, udp.local_addr().unwrap().port()).await;

    let local_hosts = HashMap::from([(HOST.to_owned(), site.address)]);
    let pool = ChromiumPool::new(PoolOptions { source, local_hosts, ..options("".as_ref()) });
    let browser = pool.start(spec(HOST, "US")).await.unwrap();
    browser.navigate(&format!("http://{HOST}/")).await.unwrap();
    let report = tokio::select! {
        report = site.report() => report,
        () = browser.ended() => panic!("the browser ended"),
    };
    assert_eq!(report["failed"], Value::Null, "{report}");
    assert_eq!(report["candidates"], json!([]), "ICE candidates with our addresses");
    assert_eq!(report["read"], json!([]), "a URL that is not a page was read");
    assert_eq!(report["here"], format!("http://{HOST}/"));
    assert!(udp.recv(&mut [0; 1]).is_err(), "a packet by WebRTC was received");
    assert_eq!(*requests.lock().unwrap(), Vec::<String>::new(), "a connection was accepted");
    pool.end_all().await;
}

/// Listens on every address of ours, on a port that browsers may connect to. Returns the port and the
/// requests that are received.
async fn listen() -> (u16, Arc<Mutex<Vec<String>>>) {
    let requests = Arc::new(Mutex::new(vec![]));
    for port in OPEN_PORTS {
        let Ok(listener) = TcpListener::bind(("::", port)).await else { continue };
        let received = requests.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut head = vec![0; 512];
                let read = stream.read(&mut head).await.unwrap_or_default();
                received.lock().unwrap().push(String::from_utf8_lossy(&head[..read]).into_owned());
            }
        });
        // Check that the listener can be reached.
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        stream.write_all(b"x").await.unwrap();
        while requests.lock().unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        requests.lock().unwrap().clear();
        return (port, requests);
    }
    panic!("none of {OPEN_PORTS:?} is free");
}

/// Returns this machine's name and the address of its outgoing packets. A name that a page has rebound
/// to us is equivalent.
fn own_addresses() -> Vec<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap().trim().to_owned();
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    let out = socket.connect("192.0.2.1:9").and_then(|()| socket.local_addr());
    [name].into_iter().chain(out.ok().map(|address| address.ip().to_string())).collect()
}

/// The site of the page, and the report that it sent.
struct Site {
    address: std::net::SocketAddr,
    report: Arc<Mutex<Value>>,
}

impl Site {
    async fn start(targets: &[String], port: u16, udp: u16) -> Self {
        let page = include_str!("firewall.html")
            .replace("TARGETS", &json!(targets).to_string())
            .replace("UDP", &udp.to_string())
            .replace("PORT", &port.to_string());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let report = Arc::new(Mutex::new(Value::Null));
        let into = report.clone();
        let page: Arc<str> = page.into();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, page.clone(), into.clone()));
            }
        });
        Self { address, report }
    }

    async fn report(&self) -> Value {
        let deadline = tokio::time::Instant::now() + REPORT_TIMEOUT;
        loop {
            let report = self.report.lock().unwrap().clone();
            if report != Value::Null {
                return report;
            }
            assert!(tokio::time::Instant::now() < deadline, "the page did not finish");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

async fn serve(mut stream: TcpStream, page: Arc<str>, into: Arc<Mutex<Value>>) -> Option<()> {
    let mut bytes = vec![];
    while !bytes.ends_with(b"\r\n\r\n") {
        bytes.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8_lossy(&bytes).into_owned();
    let path = head.split(' ').nth(1)?;
    let length = head.to_ascii_lowercase().lines().find_map(|line| {
        line.strip_prefix("content-length: ").and_then(|length| length.parse().ok())
    });
    let mut body = vec![0; length.unwrap_or_default()];
    stream.read_exact(&mut body).await.ok()?;
    let worker = "addEventListener('message', (e) => { for (const url of e.data) \
         fetch(url, { mode: 'no-cors' }).catch(() => undefined); });";
    let (status, more, kind, body) = match path {
        "/" => ("200 OK", String::new(), "text/html", &*page),
        "/worker.js" => ("200 OK", String::new(), "text/javascript", worker),
        "/report" => {
            *into.lock().unwrap() = serde_json::from_slice(&body).ok()?;
            ("200 OK", String::new(), "text/plain", "")
        }
        _ => {
            let to = path.strip_prefix("/redirect?").unwrap_or("/");
            ("302 Found", format!("location: {to}\r\n"), "text/plain", "")
        }
    };
    let answer = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}; charset=utf-8\r\n{more}content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(answer.as_bytes()).await.ok()
}
