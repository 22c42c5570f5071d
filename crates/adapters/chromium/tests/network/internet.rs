//! Sites, a name server and a STUN port, all at one address; each records its clients.

use std::{
    net::{SocketAddr, TcpListener, UdpSocket},
    sync::{Arc, Mutex},
};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{DE, FR};

/// The address of every site, and of the name server.
const PUBLIC: [u8; 4] = [11, 22, 33, 44];

/// The requests, lookups and datagrams that the Internet received.
#[derive(Default, Clone)]
pub(crate) struct Internet {
    requests: Arc<Mutex<Vec<Request>>>,
    names: Arc<Mutex<Vec<(String, String)>>>,
    datagrams: Arc<Mutex<Vec<String>>>,
}

#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) from: String,
    pub(crate) host: String,
    pub(crate) path: String,
}

/// The sockets of sites on two ports, of the name server, and of STUN.
pub(crate) type Sockets = ([TcpListener; 2], UdpSocket, UdpSocket);

impl Internet {
    pub(crate) fn bind() -> Sockets {
        let address = |port: u16| SocketAddr::from((PUBLIC, port));
        let sockets = (
            [80, 8080].map(|port| TcpListener::bind(address(port)).unwrap()),
            UdpSocket::bind(address(53)).unwrap(),
            UdpSocket::bind(address(3478)).unwrap(),
        );
        sockets.0.iter().for_each(|sites| sites.set_nonblocking(true).unwrap());
        sockets.1.set_nonblocking(true).unwrap();
        sockets.2.set_nonblocking(true).unwrap();
        sockets
    }

    pub(crate) fn serve((sites, names, stun): Sockets) -> Self {
        let internet = Self::default();
        let names = tokio::net::UdpSocket::from_std(names).unwrap();
        let stun = tokio::net::UdpSocket::from_std(stun).unwrap();
        for sites in sites {
            let (sites, record) =
                (tokio::net::TcpListener::from_std(sites).unwrap(), internet.clone());
            tokio::spawn(async move {
                while let Ok((stream, from)) = sites.accept().await {
                    tokio::spawn(record.clone().site(stream, from.ip().to_string()));
                }
            });
        }
        let record = internet.clone();
        tokio::spawn(async move {
            let mut question = [0; 512];
            while let Ok((length, from)) = names.recv_from(&mut question).await {
                let question = question.get(..length).unwrap();
                if let Some((name, kind, end)) = parse_question(question) {
                    let before = record.names().iter().filter(|(_, known)| *known == name).count();
                    let to = (kind == [0, 1]).then(|| address_of(&name, before));
                    let answer = answer(question, end, to);
                    if kind == [0, 1] {
                        record.names.lock().unwrap().push((from.ip().to_string(), name));
                    }
                    let _ = names.send_to(&answer, from).await;
                }
            }
        });
        let record = internet.clone();
        tokio::spawn(async move {
            while let Ok((_, from)) = stun.recv_from(&mut [0; 512]).await {
                record.datagrams.lock().unwrap().push(from.to_string());
            }
        });
        internet
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// Returns the address of each resolver and the name that it looked up.
    pub(crate) fn names(&self) -> Vec<(String, String)> {
        self.names.lock().unwrap().clone()
    }

    pub(crate) fn datagrams(&self) -> Vec<String> {
        self.datagrams.lock().unwrap().clone()
    }

    async fn site(self, mut stream: tokio::net::TcpStream, from: String) -> Option<()> {
        let mut head = vec![];
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.ok()?);
        }
        let head = String::from_utf8(head).ok()?;
        let path = head.split(' ').nth(1)?;
        let path =
            path.strip_prefix("http://").map_or(path, |rest| &rest[rest.find('/').unwrap()..]);
        let host = head.lines().find_map(|line| {
            let (name, host) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("host").then(|| host.to_owned())
        })?;
        let (kind, body) = match host.as_str() {
            "country.example" => (
                "text/plain",
                if from == DE {
                    "DE"
                } else if from == FR {
                    "FR"
                } else {
                    ""
                }
                .to_owned(),
            ),
            "site.example" if path == "/turn" => ("text/html", rebinding_page()),
            "site.example" => ("text/html", page(&path[1..])),
            _ => ("text/plain", String::new()),
        };
        if path != "/favicon.ico" {
            let request = Request { from, host, path: path.to_owned() };
            self.requests.lock().unwrap().push(request);
        }
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
        );
        stream.write_all(answer.as_bytes()).await.ok()
    }
}

/// Returns a page that sends requests in every way that pages have, and marks the end of them.
fn page(country: &str) -> String {
    format!(
        "<!doctype html><link rel=dns-prefetch href=//prefetch.example><link rel=preconnect href=//preconnect.example>\
         <img src=//image.example/{country}><iframe src=//frame.example/{country}></iframe><script>(async () => {{\
         const socket = new Promise(r => {{ const s = new WebSocket('ws://socket.example/{country}'); s.onopen = s.onerror = r; }});\
         navigator.sendBeacon('//beacon.example/{country}', 'x');\
         await fetch('//api.example/{country}', {{ mode: 'no-cors' }}); await socket;\
         const peer = new RTCPeerConnection({{ iceServers: [{{ urls: 'stun:11.22.33.44:3478' }},\
         {{ urls: 'stun:stun.example:3478' }}] }}); let found = 0;\
         peer.onicecandidate = e => {{ if (e.candidate) found += 1; }}; peer.createDataChannel('');\
         await peer.setLocalDescription(); await new Promise(r => setTimeout(r, 3000));\
         const p = document.createElement('p'); p.id = 'done'; p.textContent = found; document.body.append(p);\
         }})()</script>"
    )
}

/// Returns a page that repeatedly requests names that lead into our network, at once or from the second
/// lookup on.
fn rebinding_page() -> String {
    let inside =
        ["127-0-0-1", "10-77-1-1", "10-77-2-1", "198-51-100-10", "169-254-169-254", "0-0-0-0"];
    let names =
        inside.iter().flat_map(|to| [format!("to-{to}.example"), format!("turn-{to}.example")]);
    let names = names.map(|name| format!("'{name}'")).collect::<Vec<_>>().join(",");
    format!(
        "<!doctype html><body><script>(async () => {{ for (let round = 0; round < 3; round++) {{\
         await Promise.all([{names}].map(async (name) => {{ const url = '//' + name + ':8080/in';\
         await fetch(url, {{ mode: 'no-cors' }}).catch(() => 0);\
         const frame = document.createElement('iframe'); frame.src = url; document.body.append(frame);\
         await new Promise(r => {{ const s = new WebSocket('ws:' + url); s.onopen = s.onerror = r; }}); }}));\
         await new Promise(r => setTimeout(r, 1200)); }}\
         const p = document.createElement('p'); p.id = 'done'; p.textContent = 'all'; document.body.append(p);\
         }})()</script>"
    )
}

/// Returns the address of a name: that in the name for `to-127-0-0-1`, the same from the second lookup
/// on for `turn-…`, and the address of all sites for others.
fn address_of(name: &str, before: usize) -> [u8; 4] {
    let label = name.split('.').next().unwrap_or_default();
    let address = label.strip_prefix("to-").or(label.strip_prefix("turn-").filter(|_| before > 0));
    let numbers = address.map(|address| address.splitn(5, '-').take(4).map(str::parse::<u8>));
    let numbers = numbers.and_then(|numbers| numbers.collect::<Result<Vec<_>, _>>().ok());
    numbers.and_then(|numbers| numbers.try_into().ok()).unwrap_or(PUBLIC)
}

/// Parses the name and the type of a question, and where it ends (RFC 1035, section 4.1.2).
fn parse_question(question: &[u8]) -> Option<(String, [u8; 2], usize)> {
    let (mut at, mut labels) = (12, vec![]);
    loop {
        let length = usize::from(*question.get(at)?);
        if length == 0 {
            break;
        }
        labels.push(String::from_utf8_lossy(question.get(at + 1..=at + length)?).into_owned());
        at += 1 + length;
    }
    let kind = question.get(at + 1..at + 3)?.try_into().ok()?;
    Some((labels.join("."), kind, at + 5))
}

/// Returns a response with one address and a TTL of a second, or without an address.
fn answer(question: &[u8], end: usize, to: Option<[u8; 4]>) -> Vec<u8> {
    let mut answer = question[..2].to_vec();
    answer.extend([0x81, 0x80, 0, 1, 0, u8::from(to.is_some()), 0, 0, 0, 0]);
    answer.extend(&question[12..end]);
    if let Some(address) = to {
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4]);
        answer.extend(address);
    }
    answer
}
