//! Generated responses of endpoints: valid or malformed, fast, slow or endless. Every request ends
//! in time with a status or a cause, stores no more than permitted, and leaves no connection or
//! memory behind.
#![expect(clippy::unwrap_used, reason = "tests panic to fail")]

use std::{
    fs,
    sync::Arc,
    time::{Duration, Instant},
};

use domain::egress::Egress;
use ports::webhook_sender::{WebhookResponse, WebhookSender as _};
use proptest::{
    collection::vec,
    prelude::{Just, Strategy, any},
    prop_oneof,
    sample::select,
    strategy::ValueTree as _,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use testkit::sample;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::{Semaphore, mpsc},
};
use webhooks::HyperWebhookSender;

const ANSWERS: u64 = 2000;
const AT_ONCE: usize = 64;
const PATIENCE: Duration = Duration::from_millis(250);
/// The time that a request may take beyond its timeout on a busy machine.
const SLACK: Duration = Duration::from_secs(3);

/// What an endpoint does with a request.
#[derive(Debug, Clone)]
enum Step {
    Say(Vec<u8>),
    /// Sends byte after byte.
    Drip(Vec<u8>),
    Wait(Duration),
    /// Repeats the same bytes while the client reads.
    Forever(Vec<u8>),
}

fn text(text: &'static str) -> impl Strategy<Value = Vec<u8>> {
    Just(text.as_bytes().to_vec())
}

fn status() -> impl Strategy<Value = Vec<u8>> {
    let code = prop_oneof![0_u32..1000, select(vec![100, 101, 103, 200, 204, 304, 410, 429])];
    prop_oneof![
        8 => code.prop_map(|code| format!("HTTP/1.1 {code:03} Said\r\n").into_bytes()),
        1 => vec(any::<u8>(), 0..64),
        1 => select(vec!["HTTP/1.0 200\r\n", "HTTP/2 200\r\n", "HTTP/1.1 99999 x\r\n", "ICY 200 OK\r\n"])
            .prop_map(|line| line.as_bytes().to_vec()),
        1 => text("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    ]
}

fn header() -> impl Strategy<Value = Vec<u8>> {
    let known = vec![
        "content-length: 5",
        "content-length: 0",
        "content-length: 18446744073709551615",
        "content-length: 18446744073709551616",
        "content-length: -1",
        "transfer-encoding: chunked",
        "transfer-encoding: gzip, chunked",
        "connection: close",
        "connection: upgrade\r\nupgrade: websocket",
        "retry-after: 99999999999999999999",
        "retry-after: 86400",
        "retry-after: Fri, 31 Dec 9999 23:59:59 GMT",
        "retry-after: soon",
        "location: http://169.254.169.254/",
        "content-encoding: gzip",
        "trailer: x",
        " folded: line",
    ];
    prop_oneof![
        6 => select(known).prop_map(|line| [line.as_bytes(), b"\r\n"].concat()),
        2 => (vec(any::<u8>(), 1..16), vec(any::<u8>(), 0..64))
            .prop_map(|(name, value)| [&name[..], b": ", &value, b"\r\n"].concat()),
        1 => (1_usize..100_000).prop_map(|long| {
            [b"x-long: ", vec![b'a'; long].as_slice(), b"\r\n"].concat()
        }),
        1 => (1_usize..300).prop_map(|many| "x-many: 1\r\n".repeat(many).into_bytes()),
    ]
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    let chunk = (0_usize..5000, vec(any::<u8>(), 0..64)).prop_map(|(claimed, data)| {
        [format!("{claimed:x}\r\n").as_bytes(), &data, b"\r\n"].concat()
    });
    let sizes = vec!["ffffffffffffffff", "fffffffffffffffff", "-1", "", "0x5", "5;a=\"", "5;;;;"];
    prop_oneof![
        3 => vec(any::<u8>(), 0..200_000),
        3 => vec(chunk, 0..20).prop_map(|chunks| chunks.concat()),
        2 => select(sizes).prop_map(|size| format!("{size}\r\nhello\r\n0\r\n\r\n").into_bytes()),
        1 => text("5\r\nhello\r\n0\r\n\r\n"),
        1 => text("hello"),
        1 => text("\0\0\0\0\0"),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let head = (vec(status(), 1..4), vec(header(), 0..8)).prop_map(|(lines, headers)| {
        // More than one status line: informational responses before the final one.
        let heads = lines.join(&b"\r\n"[..]);
        [heads, headers.concat(), b"\r\n".to_vec()].concat()
    });
    let part = prop_oneof![
        6 => body().prop_map(Step::Say),
        1 => body().prop_map(|bytes| Step::Drip(bytes.into_iter().take(500).collect())),
        1 => (0_u64..400).prop_map(|millis| Step::Wait(Duration::from_millis(millis))),
        1 => prop_oneof![
            text("HTTP/1.1 100 Continue\r\n\r\n"), text("x-more: 1\r\n"), text("1\r\na\r\n"), body()
        ].prop_map(Step::Forever),
    ];
    let head = (head, 0..7).prop_map(|(head, how)| match how {
        0 => Step::Drip(head),
        _ => Step::Say(head),
    });
    (head, vec(part, 0..4)).prop_map(|(head, parts)| [vec![head], parts].concat())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_a_receiver_answers_a_call_ends_and_leaves_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (give, mut answers) = mpsc::channel::<Vec<Step>>(AT_ONCE);
    tokio::spawn(async move {
        // The next request takes the next response; which request that is does not matter.
        while let Ok((stream, _)) = listener.accept().await {
            let Some(steps) = answers.recv().await else { return };
            tokio::spawn(async move { play(stream, &steps).await });
        }
    });
    let egress = Egress::allowing(&format!("127.0.0.1:{port}")).unwrap();
    let sender = Arc::new(HyperWebhookSender::new(egress, &[]).unwrap());
    let delivery = Arc::new(sample::delivery(&format!("http://127.0.0.1:{port}/hook"), PATIENCE));
    let seed = TestRng::from_seed(RngAlgorithm::ChaCha, &[5; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), seed);
    let (strategy, room) = (steps(), Arc::new(Semaphore::new(AT_ONCE)));
    let (mut calls, mut early) = (vec![], 0);
    for number in 0..ANSWERS {
        if number == ANSWERS / 4 {
            early = resident_kib();
        }
        let steps = strategy.new_tree(&mut runner).unwrap().current();
        let place = room.clone().acquire_owned().await.unwrap();
        let give = give.clone();
        let (sender, delivery) = (sender.clone(), delivery.clone());
        calls.push(tokio::spawn(async move {
            let _ = give.try_send(steps.clone());
            let began = Instant::now();
            let answer = sender.send(&delivery, sample::noon()).await.answer;
            let took = began.elapsed();
            assert!(took < PATIENCE + SLACK, "{took:?} for {steps:?}");
            if let WebhookResponse::Status { code, body, .. } = &answer {
                // An invalid byte is replaced by a character of three bytes.
                assert!((101..=999).contains(code) && body.len() <= 3 * 2048, "{code}: {steps:?}");
            }
            drop(place);
            matches!(answer, WebhookResponse::Status { .. })
        }));
    }
    let mut answered = 0;
    for call in calls {
        answered += usize::from(call.await.unwrap());
    }
    let grown = resident_kib().saturating_sub(early);
    println!("{ANSWERS} answers, {answered} with a status; {grown} KiB more than after a quarter");
    assert!(answered > 200 && answered < 1800, "{answered} were answers");
    assert!(grown < 32 * 1024, "{grown} KiB");
}

async fn play(mut stream: TcpStream, steps: &[Step]) -> Option<()> {
    let _ = stream.set_nodelay(true);
    let _ = stream.read(&mut [0; 4096]).await.ok()?;
    for step in steps {
        match step {
            Step::Say(bytes) => stream.write_all(bytes).await.ok()?,
            Step::Drip(bytes) => {
                for byte in bytes {
                    stream.write_all(&[*byte]).await.ok()?;
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            }
            Step::Wait(long) => tokio::time::sleep(*long).await,
            Step::Forever(bytes) => loop {
                stream.write_all(bytes).await.ok()?;
                tokio::task::yield_now().await;
            },
        }
    }
    Some(())
}

/// Returns the memory of this process.
fn resident_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
