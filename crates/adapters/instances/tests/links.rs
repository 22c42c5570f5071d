//! Links between instances over real TLS connections: what is passed on, and who is refused.
#![expect(clippy::unwrap_used, reason = "tests panic to fail")]

use std::{fs, path::PathBuf, sync::Arc, time::Duration};

use domain::id::SessionId;
use instances::{IdentityFiles, InstanceIdentity, TlsLinks};
use ports::instances::{
    ForwardedMethod, ForwardedRequest, ForwardedResponse, InstanceLinks as _, LinkError,
    MAX_ANSWERED_BYTES, MAX_FORWARDED_BYTES, MAX_FORWARDED_HEAD_BYTES, RelayedSocket, SocketKind,
    SocketRequest,
};
use tempfile::TempDir;
use testkit::certificates::{Authority, Certified};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    sync::mpsc,
};
use tokio_rustls::TlsAcceptor;

const NAME: &str = "instance.avouch.internal";
/// Longer than the interval at which files are looked at.
const REREAD: Duration = Duration::from_millis(2_500);

/// An instance's files.
struct Files(TempDir);

impl Files {
    fn new(authority: &Authority, certified: &Certified) -> Self {
        let files = Self(tempfile::tempdir().unwrap());
        files.write(authority, certified);
        files
    }

    fn write(&self, authority: &Authority, certified: &Certified) {
        fs::write(self.path("roots.pem"), authority.pem()).unwrap();
        fs::write(self.path("cert.pem"), &certified.certificate).unwrap();
        fs::write(self.path("key.pem"), &certified.key).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn names(&self) -> IdentityFiles {
        IdentityFiles {
            certificate: self.path("cert.pem"),
            key: self.path("key.pem"),
            roots: self.path("roots.pem"),
            name: NAME.to_owned(),
            peer: NAME.to_owned(),
        }
    }

    fn open(&self) -> Arc<InstanceIdentity> {
        InstanceIdentity::open(self.names()).unwrap()
    }

    fn fault(&self) -> String {
        InstanceIdentity::open(self.names()).unwrap_err().to_string()
    }
}

/// Starts an instance that answers each handshake with this, and sends every byte after it back.
async fn instance(files: &Files, answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let acceptor = TlsAcceptor::from(Arc::new(files.open().server_config().unwrap()));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let mut stream = acceptor.accept(stream).await?;
                let mut head = vec![];
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(stream.read_u8().await?);
                }
                stream.write_all(answer.as_bytes()).await?;
                let (mut reader, mut writer) = tokio::io::split(stream);
                tokio::io::copy(&mut reader, &mut writer).await
            });
        }
    });
    address
}

const ACCEPTED: &str = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
    sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nx-other: 1\r\n\r\n";

async fn open(files: &Files, address: &str) -> Result<RelayedSocket, LinkError> {
    let request = SocketRequest {
        session: SessionId::from_u128(7),
        kind: SocketKind::Applicant,
        headers: vec![("host", "avouch.example".into())],
    };
    TlsLinks::new(files.open()).open(address, request).await
}

fn unreachable(opened: Result<RelayedSocket, LinkError>) -> String {
    match opened {
        Err(LinkError::Unreachable(cause)) => cause,
        Err(
            other @ (LinkError::Refused(_)
            | LinkError::TimedOut
            | LinkError::Broken(_)
            | LinkError::Invalid(_)
            | LinkError::RequestTooLarge
            | LinkError::ResponseTooLarge),
        ) => panic!("{other}"),
        Ok(_) => panic!("the link was opened"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_are_passed_on_in_both_directions() {
    let authority = Authority::new("Instances");
    let files = Files::new(&authority, &authority.valid(&[NAME]));
    let address = instance(&files, ACCEPTED).await;
    let RelayedSocket { headers, mut reader, mut writer } = open(&files, &address).await.unwrap();
    let accept = ("sec-websocket-accept".to_owned(), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=".to_owned());
    assert_eq!(headers, [accept]);
    let sent: Vec<u8> = (0..1_000_000_u32).flat_map(u32::to_le_bytes).collect();
    let copy = sent.clone();
    let sending = tokio::spawn(async move {
        for piece in copy.chunks(100_000) {
            assert!(writer.write(piece).await);
        }
        writer
    });
    let mut received = vec![];
    while received.len() < sent.len() {
        received.extend(reader.read().await.unwrap());
    }
    assert!(received == sent, "the bytes are the same");
    drop(sending.await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_waits_stops_the_sender() {
    let authority = Authority::new("Instances");
    let files = Files::new(&authority, &authority.valid(&[NAME]));
    let address = instance(&files, ACCEPTED).await;
    let RelayedSocket { mut reader, mut writer, .. } = open(&files, &address).await.unwrap();
    let mut written = 0;
    let piece = vec![7; 1 << 16];
    // Nobody reads: what the sockets hold is some megabytes at most.
    while let Ok(true) = tokio::time::timeout(Duration::from_secs(1), writer.write(&piece)).await {
        written += piece.len();
        assert!(written < 64 << 20, "the sender does not wait");
    }
    let mut received = 0;
    while received < written {
        received += reader.read().await.unwrap().len();
    }
}

/// The machine of the other instance is gone, or its process was stopped: no pings arrive, and the connection
/// does not end by itself.
#[tokio::test]
async fn a_socket_over_which_nothing_comes_for_45_seconds_ends() {
    let authority = Authority::new("Instances");
    let files = Files::new(&authority, &authority.valid(&[NAME]));
    let address = instance(&files, ACCEPTED).await;
    let RelayedSocket { mut reader, mut writer, .. } = open(&files, &address).await.unwrap();
    assert!(writer.write(b"ping").await);
    assert_eq!(reader.read().await.as_deref(), Some(&b"ping"[..]));
    // From here on time passes at once while nothing is left to do.
    tokio::time::pause();
    let began = tokio::time::Instant::now();
    let read = tokio::time::timeout(Duration::from_secs(60), reader.read()).await;
    assert_eq!(read.unwrap(), None);
    assert!(began.elapsed() >= Duration::from_secs(45), "{:?}", began.elapsed());
    drop(writer);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_certificates_of_instances_of_the_same_authority_are_accepted() {
    let (authority, other) = (Authority::new("Instances"), Authority::new("Others"));
    let own = Files::new(&authority, &authority.valid(&[NAME]));
    let address = instance(&own, ACCEPTED).await;
    assert!(open(&own, &address).await.is_ok());

    // Another authority for the certificate, but the right roots.
    let foreign = Files::new(&authority, &other.valid(&[NAME]));
    let expired = Files::new(&authority, &authority.expired(&[NAME]));
    for (who, files) in [("foreign", &foreign), ("expired", &expired)] {
        let cause = unreachable(open(files, &address).await);
        assert!(!cause.is_empty(), "a {who} client is refused");
        let server = instance(files, ACCEPTED).await;
        let cause = unreachable(open(&own, &server).await);
        assert!(cause.contains("certificate"), "a {who} server is refused: {cause}");
    }
    let elsewhere = Files::new(&authority, &authority.valid(&["shop.example"]));
    assert!(elsewhere.fault().contains("not valid for"), "{}", elsewhere.fault());
    let named = IdentityFiles {
        name: "shop.example".into(),
        peer: "shop.example".into(),
        ..elsewhere.names()
    };
    let identity = InstanceIdentity::open(named).unwrap();
    let request = SocketRequest {
        session: SessionId::from_u128(7),
        kind: SocketKind::Observer,
        headers: vec![],
    };
    unreachable(TlsLinks::new(identity).open(&address, request).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_without_a_certificate_is_refused() {
    let authority = Authority::new("Instances");
    let files = Files::new(&authority, &authority.valid(&[NAME]));
    let address = instance(&files, ACCEPTED).await;
    let mut roots = rustls::RootCertStore::empty();
    let pem = authority.pem();
    let root =
        <rustls_pki_types::CertificateDer<'_> as rustls_pki_types::pem::PemObject>::from_pem_slice(
            pem.as_bytes(),
        );
    roots.add(root.unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = tokio::net::TcpStream::connect(&address).await.unwrap();
    let name = NAME.try_into().unwrap();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    // In TLS 1.3 the client learns of it with its first read.
    let mut stream = connector.connect(name, stream).await.unwrap();
    let _ = stream.write_all(b"GET /applicants/1 HTTP/1.1\r\n\r\n").await;
    assert!(stream.read_u8().await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_that_refuses_or_does_not_answer_is_told() {
    let authority = Authority::new("Instances");
    let files = Files::new(&authority, &authority.valid(&[NAME]));
    let refusing = instance(&files, "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").await;
    assert_eq!(open(&files, &refusing).await.err(), Some(LinkError::Refused(400)));
    let nonsense = instance(&files, "SSH-2.0\r\n").await;
    unreachable(open(&files, &nonsense).await);
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    unreachable(open(&files, &nobody.to_string()).await);
    // It accepts connections and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let cause = unreachable(open(&files, &silent.local_addr().unwrap().to_string()).await);
    assert!(cause.contains("no answer within"), "{cause}");
}

/// A form that another instance answers.
fn form(body: Vec<u8>) -> ForwardedRequest {
    ForwardedRequest {
        method: ForwardedMethod::Post,
        path: "/portal/drafts/1/open?a=b".into(),
        headers: vec![
            ("host", "avouch.example".into()),
            ("cookie", "a=1".into()),
            ("cookie", "b=é; c=3".into()),
        ],
        body,
    }
}

/// What an instance does with a connection once it has answered a request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Afterwards {
    KeepsOpen,
    Closes,
}

/// Starts an instance that answers each request with these bytes. Returns its address, and what it has
/// received.
async fn answering(files: &Files, answer: Vec<u8>) -> (String, mpsc::UnboundedReceiver<Vec<u8>>) {
    answering_and(files, answer, Afterwards::KeepsOpen).await
}

async fn answering_and(
    files: &Files,
    answer: Vec<u8>,
    afterwards: Afterwards,
) -> (String, mpsc::UnboundedReceiver<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let acceptor = TlsAcceptor::from(Arc::new(files.open().server_config().unwrap()));
    let (seen, received) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, answer, seen) = (acceptor.clone(), answer.clone(), seen.clone());
            tokio::spawn(async move {
                let mut stream = acceptor.accept(stream).await?;
                let mut request = read_request(&mut stream).await?;
                let mut body = vec![0; expected_body(&request)];
                stream.read_exact(&mut body).await?;
                request.extend(body);
                let _ = seen.send(request);
                stream.write_all(&answer).await?;
                if afterwards == Afterwards::Closes {
                    stream.shutdown().await?;
                    return Ok(0);
                }
                // The client closes the connection once it has what it wants.
                let mut rest = vec![];
                stream.read_to_end(&mut rest).await
            });
        }
    });
    (address, received)
}

/// Reads a request up to its body.
async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> std::io::Result<Vec<u8>> {
    let mut head = vec![];
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    Ok(head)
}

fn expected_body(head: &[u8]) -> usize {
    let head = String::from_utf8_lossy(head).to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    length.map_or(0, |length| length.parse().unwrap())
}

/// Returns a response with a body of this length.
fn page(length: usize) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 303 See Other\r\nlocation: /studio/1/\r\nset-cookie: a=1\r\nset-cookie: b=2\r\n\
         x-other: 1\r\ncontent-length: {length}\r\n\r\n"
    );
    [head.into_bytes(), vec![b'x'; length]].concat()
}

/// Describes what became of a request, without its content.
fn outcome(answered: Result<ForwardedResponse, LinkError>) -> Result<(u16, usize), LinkError> {
    answered.map(|answer| (answer.status, answer.body.len()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_is_answered_by_another_instance() {
    let authority = Authority::new("Instances");
    let files = Files::new(&authority, &authority.valid(&[NAME]));
    let (address, mut received) = answering(&files, page(100_000)).await;
    let links = TlsLinks::new(files.open());
    let answer = links.request(&address, form(vec![b'y'; MAX_FORWARDED_BYTES])).await;
    let ForwardedResponse { status, headers, body } = answer.unwrap();
    assert_eq!((status, body.len()), (303, 100_000));
    let headers: Vec<_> =
        headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let listed = [("location", "/studio/1/"), ("set-cookie", "a=1"), ("set-cookie", "b=2")];
    assert_eq!(headers, listed, "no others");

    let request = received.recv().await.unwrap();
    let sent = String::from_utf8_lossy(&request).into_owned();
    assert!(
        sent.starts_with("POST /portal/drafts/1/open?a=b HTTP/1.1\r\n"),
        "another request line"
    );
    for header in ["host: avouch.example", "cookie: a=1", "cookie: b=é; c=3"] {
        assert!(sent.contains(&format!("{header}\r\n")), "{header}");
    }
    let (_, body) = sent.split_once("\r\n\r\n").unwrap();
    assert_eq!(body.len(), MAX_FORWARDED_BYTES);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_and_responses_are_bounded() {
    let authority = Authority::new("Instances");
    let files = Files::new(&authority, &authority.valid(&[NAME]));
    let links = TlsLinks::new(files.open());
    let (address, mut received) = answering(&files, page(MAX_ANSWERED_BYTES)).await;
    let too_long = form(vec![0; MAX_FORWARDED_BYTES + 1]);
    let refused = outcome(links.request(&address, too_long).await);
    assert_eq!(refused, Err(LinkError::RequestTooLarge));
    let mut headers = form(vec![]);
    headers.headers.push(("cookie", "c".repeat(MAX_FORWARDED_HEAD_BYTES)));
    let refused = outcome(links.request(&address, headers).await);
    assert_eq!(refused, Err(LinkError::RequestTooLarge));
    assert!(received.try_recv().is_err(), "nothing was sent");

    let answered = outcome(links.request(&address, form(vec![])).await);
    assert_eq!(answered, Ok((303, MAX_ANSWERED_BYTES)));
    let (address, _received) = answering(&files, page(MAX_ANSWERED_BYTES + 1)).await;
    let refused = outcome(links.request(&address, form(vec![])).await);
    assert_eq!(refused, Err(LinkError::ResponseTooLarge));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_that_answers_too_slowly_is_told_from_one_that_cannot_be_reached() {
    let authority = Authority::new("Instances");
    let files = Files::new(&authority, &authority.valid(&[NAME]));
    let links = || TlsLinks::new(files.open()).with_answer_timeout(Duration::from_secs(1));
    // Its response never begins, or never ends.
    for answer in [vec![], b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx".to_vec()] {
        let (address, _received) = answering(&files, answer).await;
        let answered = outcome(links().request(&address, form(vec![])).await);
        assert_eq!(answered, Err(LinkError::TimedOut));
    }
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let stranger = Authority::new("Others");
    let foreign = Files::new(&authority, &stranger.valid(&[NAME]));
    let (address, _received) = answering(&foreign, page(1)).await;
    for address in [nobody.to_string(), address] {
        let answered = outcome(links().request(&address, form(vec![])).await);
        assert!(matches!(answered, Err(LinkError::Unreachable(_))), "{answered:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_ends_early_does_not_make_its_instance_unreachable() {
    let authority = Authority::new("Instances");
    let files = Files::new(&authority, &authority.valid(&[NAME]));
    let links = TlsLinks::new(files.open());
    // Before the response, and within its body.
    for answer in [vec![], b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx".to_vec()] {
        let (address, mut received) = answering_and(&files, answer, Afterwards::Closes).await;
        let answered = outcome(links.request(&address, form(vec![b'y'; 9])).await);
        assert!(matches!(answered, Err(LinkError::Broken(_))), "{answered:?}");
        assert!(received.recv().await.is_some(), "it has the request");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_cannot_be_sent_does_not_make_its_instance_unreachable() {
    let authority = Authority::new("Instances");
    let files = Files::new(&authority, &authority.valid(&[NAME]));
    let links = TlsLinks::new(files.open());
    let (address, mut received) = answering(&files, page(1)).await;
    let mut wrong = form(vec![]);
    wrong.headers.push(("cookie", "a=1\r\nx-other: 1".into()));
    let answered = outcome(links.request(&address, wrong).await);
    assert!(matches!(answered, Err(LinkError::Invalid(_))), "{answered:?}");
    assert!(received.try_recv().is_err(), "nothing was sent");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_are_renewed_without_a_restart() {
    let authority = Authority::new("Instances");
    let files = Files::new(&authority, &authority.valid(&[NAME]));
    let address = instance(&files, ACCEPTED).await;
    let (next, before) =
        (Authority::new("Next"), Files::new(&authority, &authority.valid(&[NAME])));

    // A file that cannot be used changes nothing.
    fs::write(files.path("cert.pem"), "-----BEGIN CERTIFICATE-----\n?\n").unwrap();
    tokio::time::sleep(REREAD).await;
    assert!(open(&before, &address).await.is_ok());

    files.write(&next, &next.valid(&[NAME]));
    tokio::time::sleep(REREAD).await;
    assert!(open(&files, &address).await.is_ok());
    unreachable(open(&before, &address).await);
}

#[test]
fn files_that_cannot_be_used_are_told_by_name() {
    let authority = Authority::new("Instances");
    let (one, two) = (authority.valid(&[NAME]), authority.valid(&[NAME]));
    let mixed = Certified { certificate: one.certificate.clone(), key: two.key };
    let keys = Files::new(&authority, &mixed);
    assert!(keys.fault().contains("cannot be used"), "{}", keys.fault());
    let files = Files::new(&authority, &one);
    let with = |name: &str, text: &[u8]| {
        let kept = fs::read(files.path(name)).unwrap();
        fs::write(files.path(name), text).unwrap();
        let fault = files.fault();
        fs::write(files.path(name), kept).unwrap();
        fault
    };
    assert!(with("cert.pem", b"").contains("cert.pem has no certificate"));
    assert!(with("roots.pem", b"nothing").contains("roots.pem has no certificate"));
    assert!(with("key.pem", b"nothing").contains("key.pem"));
    assert!(with("key.pem", &vec![b'a'; 300_000]).contains("larger than"));
    fs::remove_file(files.path("key.pem")).unwrap();
    assert!(files.fault().contains("cannot read"), "{}", files.fault());
    let named = IdentityFiles { name: "not a name".into(), ..files.names() };
    let fault = InstanceIdentity::open(named).unwrap_err().to_string();
    assert!(fault.contains("is not a DNS name"), "{fault}");
}
