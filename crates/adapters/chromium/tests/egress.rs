//! The destinations of a session's packets: egress proxies with addresses of their own in network
//! namespaces, an Internet behind them, a direct route that a leak would use, and a capture of every
//! packet.
#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "tests panic to fail")]

mod common;
mod network;

use domain::workflow::ElementRead;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use chromium::{ChromiumPool, PoolOptions};
use ports::browser::{Browser, BrowserPool as _, StartError};

use self::{
    common::{options, spec},
    network::{Capture, DE, DIRECT, FR, Internet, Network, SITE, run_isolated},
};

const HOST: &str = "site.example";
/// The hosts that the page of each session requests.
const REQUESTED: [&str; 6] =
    ["api.example", "beacon.example", "frame.example", "image.example", HOST, "socket.example"];

#[test]
fn every_packet_of_a_session_leaves_through_the_proxy_of_its_country() {
    run_isolated("sessions_with_a_proxy_each");
}

#[test]
fn names_that_are_rebound_to_our_network_are_not_connected_to() {
    run_isolated("rebinding_names");
}

#[test]
#[ignore = "run by the first one, in a network namespace"]
fn sessions_with_a_proxy_each() {
    tokio::runtime::Runtime::new().unwrap().block_on(check_proxies());
}

#[test]
#[ignore = "run by the second one, in a network namespace"]
fn rebinding_names() {
    tokio::runtime::Runtime::new().unwrap().block_on(check_rebinding());
}

/// DNS rebinding: the name server answers with an address of the Internet, and then with one of ours.
async fn check_rebinding() {
    let network = Network::start().await;
    let folder = tempfile::tempdir().unwrap();
    let ours = tokio::net::TcpListener::bind("0.0.0.0:8080").await.unwrap();
    let pool = ChromiumPool::new(options(folder.path()));
    let browser = pool.start(spec(HOST, "US")).await.unwrap();
    browser.navigate(&format!("http://{HOST}/turn")).await.unwrap();
    tokio::select! {
        all = done(&browser) => assert_eq!(all, "all"),
        accepted = ours.accept() => panic!("a connection was accepted: {accepted:?}"),
    }
    pool.end_all().await;
    // Before the rebinding the names led to a site, which was reached; and they were looked up again.
    let reached = network.internet.requests();
    let reached: BTreeSet<_> = reached.iter().map(|request| request.host.as_str()).collect();
    let before = reached.iter().filter(|host| host.starts_with("turn-")).count();
    assert_eq!(before, 6, "{reached:?}");
    let lookups = network.internet.names();
    let lookups = lookups.iter().filter(|(_, name)| name == "turn-127-0-0-1.example").count();
    assert!(lookups > 1, "looked up {lookups} times");
    // The addresses after the rebinding accept connections from here.
    for address in ["127.0.0.1:8080", "10.77.1.1:8080", "198.51.100.10:8080"] {
        assert!(tokio::net::TcpStream::connect(address).await.is_ok(), "{address}");
    }
}

async fn check_proxies() {
    let network = Network::start().await;
    let folder = tempfile::tempdir().unwrap();
    let pool = |name: &str, proxies: &str| {
        ChromiumPool::new(PoolOptions {
            egress_proxies: proxies.parse().unwrap(),
            country_check_url: Some("http://country.example/".to_owned()),
            ..options(&folder.path().join(name))
        })
    };
    let both = format!("DE={} FR={}", network.german, network.french);
    let good = pool("g", &both);
    let mut capture = Capture::start();
    let (german, french) =
        tokio::try_join!(good.start(spec(HOST, "DE")), good.start(spec(HOST, "FR"))).unwrap();
    for (browser, country) in [(&german, "de"), (&french, "fr")] {
        browser.navigate(&format!("http://{HOST}/{country}")).await.unwrap();
    }
    let candidates = [done(&german).await, done(&french).await];
    assert_eq!(candidates, ["0", "0"], "ICE candidates around the proxy");
    good.end_all().await;

    let packets = capture.end();
    assert!(packets.len() > 50, "{packets:?}");
    let stray: Vec<_> = packets.iter().filter(|packet| !packet.is_of_a_proxy()).collect();
    assert!(stray.is_empty(), "{stray:?}");
    check(&network.internet);

    let wrong = pool("w", &format!("FR={}", network.german));
    let error = wrong.start(spec(HOST, "FR")).await.map(drop).unwrap_err();
    assert!(matches!(error, StartError::Elsewhere), "{error:?}");
    let dead = pool("d", "DE=http://10.77.1.2:1");
    let error = dead.start(spec(HOST, "DE")).await.map(drop).unwrap_err();
    assert!(matches!(error, StartError::NoEgress), "{error:?}");

    // The direct route works, and the capture sees its packets.
    let mut capture = Capture::start();
    let direct = tokio::net::TcpStream::connect(SITE).await;
    assert!(direct.is_ok(), "{direct:?}");
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(capture.end().iter().any(|packet| !packet.is_of_a_proxy()));
}

/// Waits until the page has sent all its requests, and returns the number of ICE candidates.
async fn done(browser: &std::sync::Arc<dyn Browser>) -> String {
    for _ in 0..600 {
        let texts = browser.read(&[ElementRead::text("#done")]).await.unwrap();
        if let Some(candidates) = texts.first().and_then(|text| text.as_str()) {
            return candidates.to_owned();
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the page did not finish");
}

/// Checks what the Internet received: each session's requests from its proxy, and lookups by proxies
/// alone.
fn check(internet: &Internet) {
    let mut seen = BTreeMap::<(String, String), BTreeSet<String>>::new();
    for request in internet.requests() {
        let country = request.path.get(1..3).unwrap_or_default().to_owned();
        if request.host != "country.example" {
            seen.entry((country, request.from)).or_default().insert(request.host);
        }
    }
    let requested: BTreeSet<_> = REQUESTED.map(str::to_owned).into();
    let expected = [("de", DE), ("fr", FR)]
        .map(|(country, proxy)| ((country.to_owned(), proxy.to_owned()), requested.clone()));
    assert_eq!(seen, expected.into());
    let resolvers: BTreeSet<_> = internet.names().into_iter().map(|(from, _)| from).collect();
    assert_eq!(resolvers, [DE, FR].map(str::to_owned).into());
    let others: BTreeSet<_> = internet
        .names()
        .into_iter()
        .map(|(_, name)| name)
        .filter(|name| !name.ends_with(".example"))
        .collect();
    assert!(others.is_empty(), "{others:?}");
    assert_eq!(internet.datagrams(), Vec::<String>::new(), "packets by WebRTC, not from {DIRECT}");
}
