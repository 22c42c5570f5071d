//! Where a session's packets go: exits with addresses of their own in namespaces of their own, an
//! Internet behind them, a direct way there that a leak would take, and a capture of every packet.
#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "tests panic to fail")]

mod common;
mod world;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use cdp::{ChromiumPool, PoolOptions};
use ports::browser::{Browser, BrowserPool as _, StartError};

use self::{
    common::{options, spec},
    world::{Capture, DE, FR, HERE, Internet, SITE, World, inside},
};

const HOST: &str = "site.example";
/// What the page of each session asks for beside itself, by name of host.
const ASKED: [&str; 6] =
    ["api.example", "beacon.example", "frame.example", "image.example", HOST, "socket.example"];

#[test]
fn every_packet_of_a_session_leaves_through_the_exit_of_its_country() {
    inside("each_by_its_own_exit");
}

#[test]
fn names_that_come_to_lead_into_our_network_lead_nowhere() {
    inside("by_names_that_turn");
}

#[test]
#[ignore = "run by the first one, in a network namespace"]
fn each_by_its_own_exit() {
    tokio::runtime::Runtime::new().unwrap().block_on(play());
}

#[test]
#[ignore = "run by the second one, in a network namespace"]
fn by_names_that_turn() {
    tokio::runtime::Runtime::new().unwrap().block_on(turn());
}

/// DNS rebinding: the server of names answers with an address of the Internet, and then with one of
/// ours.
async fn turn() {
    let world = World::start().await;
    let folder = tempfile::tempdir().unwrap();
    let ours = tokio::net::TcpListener::bind("0.0.0.0:8080").await.unwrap();
    let pool = ChromiumPool::new(options(folder.path()));
    let browser = pool.start(spec(HOST, "US")).await.unwrap();
    browser.navigate(&format!("http://{HOST}/turn")).await.unwrap();
    tokio::select! {
        all = done(&browser) => assert_eq!(all, "all"),
        came = ours.accept() => panic!("{came:?} came"),
    }
    pool.end_all().await;
    // Before they turned they led to a site, which was reached; and they were asked for again.
    let reached = world.internet.requests();
    let reached: BTreeSet<_> = reached.iter().map(|request| request.host.as_str()).collect();
    let first = reached.iter().filter(|host| host.starts_with("turn-")).count();
    assert_eq!(first, 6, "{reached:?}");
    let again = world.internet.names();
    let again = again.iter().filter(|(_, name)| name == "turn-127-0-0-1.example").count();
    assert!(again > 1, "asked {again} times");
    // Where they lead to is there.
    for address in ["127.0.0.1:8080", "10.77.1.1:8080", "198.51.100.10:8080"] {
        assert!(tokio::net::TcpStream::connect(address).await.is_ok(), "{address}");
    }
}

async fn play() {
    let world = World::start().await;
    let folder = tempfile::tempdir().unwrap();
    let pool = |name: &str, exits: &str| {
        ChromiumPool::new(PoolOptions {
            exits: exits.parse().unwrap(),
            exit_check: Some("http://country.example/".to_owned()),
            ..options(&folder.path().join(name))
        })
    };
    let both = format!("DE={} FR={}", world.german, world.french);
    let good = pool("g", &both);
    let mut capture = Capture::start();
    let (german, french) =
        tokio::try_join!(good.start(spec(HOST, "DE")), good.start(spec(HOST, "FR"))).unwrap();
    for (browser, country) in [(&german, "de"), (&french, "fr")] {
        browser.navigate(&format!("http://{HOST}/{country}")).await.unwrap();
    }
    let candidates = [done(&german).await, done(&french).await];
    assert_eq!(candidates, ["0", "0"], "ways around the exit by WebRTC");
    good.end_all().await;

    let packets = capture.end();
    assert!(packets.len() > 50, "{packets:?}");
    let stray: Vec<_> = packets.iter().filter(|packet| !packet.is_of_an_exit()).collect();
    assert!(stray.is_empty(), "{stray:?}");
    check(&world.internet);

    let wrong = pool("w", &format!("FR={}", world.german));
    let refusal = wrong.start(spec(HOST, "FR")).await.map(drop).unwrap_err();
    assert!(matches!(refusal, StartError::Elsewhere), "{refusal:?}");
    let dead = pool("d", "DE=http://10.77.1.2:1");
    let refusal = dead.start(spec(HOST, "DE")).await.map(drop).unwrap_err();
    assert!(matches!(refusal, StartError::NoExit), "{refusal:?}");

    // The direct way is there, and the capture sees what takes it.
    let mut capture = Capture::start();
    let answer = tokio::net::TcpStream::connect(SITE).await;
    assert!(answer.is_ok(), "{answer:?}");
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(capture.end().iter().any(|packet| !packet.is_of_an_exit()));
}

/// Waits until the page has asked for everything; answers the candidates it found.
async fn done(browser: &std::sync::Arc<dyn Browser>) -> String {
    for _ in 0..200 {
        let texts = browser.texts(&["#done".to_owned()]).await.unwrap();
        if let [Some(candidates)] = texts.as_slice() {
            return candidates.clone();
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the page did not come to an end");
}

/// What the Internet saw: each session's requests from its exit, and names asked by exits alone.
fn check(internet: &Internet) {
    let mut seen = BTreeMap::<(String, String), BTreeSet<String>>::new();
    for request in internet.requests() {
        let country = request.path.get(1..3).unwrap_or_default().to_owned();
        if request.host != "country.example" {
            seen.entry((country, request.from)).or_default().insert(request.host);
        }
    }
    let asked: BTreeSet<_> = ASKED.map(str::to_owned).into();
    let expected = [("de", DE), ("fr", FR)]
        .map(|(country, exit)| ((country.to_owned(), exit.to_owned()), asked.clone()));
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
    assert_eq!(internet.datagrams(), Vec::<String>::new(), "packets by WebRTC, not from {HERE}");
}
