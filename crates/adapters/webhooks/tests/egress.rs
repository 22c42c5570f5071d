//! Targets to which webhooks must not be sent: every known notation of an address that is not
//! public, each with a listener that reports connections.
#![expect(clippy::unwrap_used, reason = "tests panic to fail")]

use std::{
    io,
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use domain::egress::Egress;
use ports::webhook_sender::{FailureCause, WebhookResponse, WebhookSender as _};
use testkit::sample;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};
use webhooks::{HyperWebhookSender, Lookup};

/// Hosts as they occur in URLs; `PORT` is replaced by the listener's port.
const HOSTS: &[&str] = &[
    // Loopback: dotted, short, decimal, octal, hexadecimal, mixed, with more digits than needed.
    "127.0.0.1",
    "127.1",
    "127.0.1",
    "127.255.255.254",
    "127.127.127.127",
    "2130706433",
    "0x7f000001",
    "0x7F.0.0.1",
    "0x7f.1",
    "0177.0.0.1",
    "0177.0.0.01",
    "0177.1",
    "017700000001",
    "00000177.0.0.1",
    "127.0.0.0x1",
    "0x7f.0x0.0x0.0x1",
    "127.0.0.1.",
    "%31%32%37.0.0.1",
    // Unspecified addresses.
    "0.0.0.0",
    "0",
    "0x0",
    "0.0",
    "[::]",
    "[0:0:0:0:0:0:0:0]",
    "[::1]",
    "[0000:0000:0000:0000:0000:0000:0000:0001]",
    "[::1%25lo]",
    // IPv4 within IPv6: mapped, compatible, translated (NAT64), 6to4, Teredo, ISATAP.
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::ffff:0:127.0.0.1]",
    "[::127.0.0.1]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b:1::127.0.0.1]",
    "[2002:7f00:1::]",
    "[2001:0:7f00:1::80ff:fffe]",
    "[::ffff:169.254.169.254]",
    "[64:ff9b::169.254.169.254]",
    "[2002:a9fe:a9fe::]",
    // Private, shared, link-local, metadata, multicast, documentation, benchmarks, reserved.
    "10.0.0.1",
    "10.255.255.255",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.0.1",
    "100.64.0.1",
    "100.100.100.200",
    "169.254.169.254",
    "0xa9fea9fe",
    "2852039166",
    "169.254.170.2",
    "192.0.0.192",
    "192.0.2.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "[fe80::1]",
    "[fec0::1]",
    "[fc00::1]",
    "[fd00:ec2::254]",
    "[ff02::1]",
    "[2001:db8::1]",
    "[100::1]",
    // Internal names, and names that a name server resolves to internal addresses.
    "localhost",
    "LOCALHOST",
    "localhost.",
    "ip6-localhost",
    "inside.example",
    "inside.example.",
    "INSIDE.example",
    "inside-v6.example",
    "mapped.example",
    "metadata.google.internal",
    // Hosts that other URL parsers read differently: user information, backslashes, letters that
    // are mapped to dots and digits (UTS 46).
    "public.example@127.0.0.1",
    "public.example:80@127.0.0.1",
    "127.0.0.1#@public.example",
    "public.example\\@127.0.0.1",
    "\u{ff11}\u{ff12}\u{ff17}.0.0.1",
    "127\u{3002}0\u{3002}0\u{3002}1",
    "\u{2460}\u{2461}\u{2466}.0.0.1",
    "loc\u{ff41}lhost",
];

#[tokio::test]
async fn no_address_that_is_not_public_is_reached() {
    let listener = Listener::start().await;
    let sender = HyperWebhookSender::with_lookup(Egress::default(), &[], names()).unwrap();
    assert!(HOSTS.len() >= 60, "{}", HOSTS.len());
    for host in HOSTS {
        for url in [
            format!("https://{host}:{}/", listener.port),
            format!("http://{host}:{}/", listener.port),
        ] {
            let answer = send(&sender, &url).await;
            let WebhookResponse::Failed(cause) = answer else {
                panic!("{url} answered {answer:?}")
            };
            assert!(
                matches!(cause, FailureCause::Blocked | FailureCause::Dns | FailureCause::Url),
                "{url}: {cause:?}"
            );
            assert_eq!(listener.count(), 0, "{url} was reached");
        }
    }
    println!("{} hosts, two schemes, none reached", HOSTS.len());
}

#[tokio::test]
async fn the_listener_would_have_told() {
    let listener = Listener::start().await;
    let allowed =
        format!("127.0.0.1:{0},localhost:{0},inside.example:{0},[::1]:{0}", listener.port);
    let egress = Egress::allowing(&allowed).unwrap();
    let sender = HyperWebhookSender::with_lookup(egress, &[], names()).unwrap();
    for (number, host) in ["127.0.0.1", "localhost", "inside.example", "[::1]"].iter().enumerate() {
        let answer = send(&sender, &format!("http://{host}:{}/", listener.port)).await;
        assert!(matches!(answer, WebhookResponse::Status { code: 302, .. }), "{host}: {answer:?}");
        assert_eq!(listener.count(), number + 1, "{host}: the redirect was followed");
    }
}

#[tokio::test]
async fn an_exception_for_one_port_opens_no_other() {
    let listener = Listener::start().await;
    let other = if listener.port == 9 { 10 } else { 9 };
    let allowed = format!("127.0.0.1:{other},localhost:{other},inside.example:{other}");
    let egress = Egress::allowing(&allowed).unwrap();
    let sender = HyperWebhookSender::with_lookup(egress, &[], names()).unwrap();
    for host in ["127.0.0.1", "localhost", "inside.example"] {
        for scheme in ["http", "https"] {
            let answer = send(&sender, &format!("{scheme}://{host}:{}/", listener.port)).await;
            assert!(
                matches!(answer, WebhookResponse::Failed(FailureCause::Blocked)),
                "{scheme} {host}: {answer:?}"
            );
        }
    }
    assert_eq!(listener.count(), 0);
}

#[tokio::test]
async fn a_name_that_changes_its_mind_is_connected_where_it_was_checked() {
    let listener = Listener::start().await;
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    // Resolves to a public address at first, and to an internal one from the second time on;
    // 192.88.99.1 is no longer assigned (RFC 7526).
    let lookup: Lookup = Arc::new(move |_| {
        let first = count.fetch_add(1, Ordering::SeqCst).is_multiple_of(2);
        let answer = if first { [192, 88, 99, 1] } else { [127, 0, 0, 1] };
        Box::pin(async move { Ok(vec![IpAddr::from(answer)]) })
    });
    let sender = HyperWebhookSender::with_lookup(Egress::default(), &[], lookup).unwrap();
    for _ in 0..6 {
        let answer = send(&sender, &format!("https://changes.example:{}/", listener.port)).await;
        assert!(matches!(answer, WebhookResponse::Failed(_)), "{answer:?}");
    }
    assert_eq!(asked.load(Ordering::SeqCst), 6, "each call asks once");
    assert_eq!(listener.count(), 0);
}

#[tokio::test]
async fn an_address_that_is_not_public_is_left_out_among_others() {
    let listener = Listener::start().await;
    let lookup: Lookup = Arc::new(|_| {
        Box::pin(async { Ok(vec!["127.0.0.1".parse().unwrap(), "::1".parse().unwrap()]) })
    });
    let sender = HyperWebhookSender::with_lookup(Egress::default(), &[], lookup).unwrap();
    let answer = send(&sender, &format!("https://both.example:{}/", listener.port)).await;
    assert_eq!((answer, listener.count()), (WebhookResponse::Failed(FailureCause::Blocked), 0));
}

/// A listener on every address of this machine that answers with a redirect to an internal address.
struct Listener {
    port: u16,
    connections: Arc<AtomicUsize>,
}

impl Listener {
    async fn start() -> Self {
        // Both families: an IPv6 socket also accepts IPv4.
        let listener = TcpListener::bind("[::]:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = connections.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                let answer = format!(
                    "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:{port}/again\r\n\
                     content-length: 0\r\nconnection: close\r\n\r\n"
                );
                tokio::spawn(async move {
                    let _ = stream.read(&mut [0; 4096]).await;
                    let _ = stream.write_all(answer.as_bytes()).await;
                });
            }
        });
        Self { port, connections }
    }

    fn count(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// Resolves names of a fake name server; uses the system's for notations of addresses.
fn names() -> Lookup {
    Arc::new(|name| {
        Box::pin(async move {
            let answer = match name.trim_end_matches('.').to_ascii_lowercase().as_str() {
                "inside.example" => "127.0.0.1",
                "inside-v6.example" => "::1",
                "mapped.example" => "::ffff:127.0.0.1",
                "metadata.google.internal" => "169.254.169.254",
                "public.example" => return Err(io::Error::other("nobody asks for this")),
                _ => {
                    let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
                    return Ok(found.map(|address| address.ip()).collect());
                }
            };
            Ok(vec![answer.parse().unwrap()])
        })
    })
}

async fn send(sender: &HyperWebhookSender, url: &str) -> WebhookResponse {
    let delivery = sample::delivery(url, Duration::from_millis(600));
    sender.send(&delivery, sample::noon()).await.answer
}
