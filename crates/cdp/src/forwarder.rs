//! The one way out of a browser: a proxy on the only socket it can reach.

use std::{io, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
    task::JoinHandle,
};

use crate::{gate::PAUSE, ways::Ways};

const LONGEST_HEAD: usize = 64 * 1024;
const HEAD_PATIENCE: Duration = Duration::from_secs(15);
/// Of one browser at once.
pub(crate) const CONNECTIONS: usize = 256;

/// A running proxy; it ends when dropped.
pub(crate) struct Forwarder {
    ways: watch::Sender<Arc<Ways>>,
    task: JoinHandle<()>,
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Forwarder {
    /// Serves browsers that connect to this socket, at first to nowhere.
    pub(crate) fn start(listener: TcpListener) -> Self {
        let (ways, led) = watch::channel(Arc::new(Ways::nowhere()));
        Self { ways, task: tokio::spawn(serve(listener, led)) }
    }

    /// From now on new connections go these ways.
    pub(crate) fn lead(&self, ways: Arc<Ways>) {
        self.ways.send_replace(ways);
    }
}

async fn serve(listener: TcpListener, led: watch::Receiver<Arc<Ways>>) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    while let Ok(permit) = room.clone().acquire_owned().await {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let ways = led.borrow().clone();
        tokio::spawn(async move {
            // A connection that breaks is the browser's to notice.
            let _ = forward(stream, &ways).await;
            drop(permit);
        });
    }
}

async fn forward(mut browser: TcpStream, ways: &Ways) -> io::Result<()> {
    match read_request(&mut browser).await? {
        Some((request, rest)) => carry(browser, request, &rest, ways).await,
        None => Ok(()),
    }
}

/// What a browser asks for, and what it has sent behind it; none where it was refused.
pub(crate) async fn read_request(
    browser: &mut TcpStream,
) -> io::Result<Option<(Request, Vec<u8>)>> {
    let read = tokio::time::timeout(HEAD_PATIENCE, read_head(browser)).await;
    let Ok(Ok((head, rest))) = read else { return Ok(None) };
    let Some(request) = Request::read(&head) else {
        refuse(browser, "400 Bad Request", "").await?;
        return Ok(None);
    };
    Ok(Some((request, rest)))
}

/// Connects a browser with what it asks for, if it may have that.
pub(crate) async fn carry(
    mut browser: TcpStream,
    request: Request,
    rest: &[u8],
    ways: &Ways,
) -> io::Result<()> {
    let Some(mut server) = ways.connect(&request.host, request.port).await else {
        return refuse(&mut browser, "403 Forbidden", "").await;
    };
    match request.forwarded {
        None => browser.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?,
        Some(head) => server.write_all(head.as_bytes()).await?,
    }
    server.write_all(rest).await?;
    tokio::io::copy_bidirectional(&mut browser, &mut server).await.map(drop)
}

/// Answers with a status and header lines, each with its end.
pub(crate) async fn refuse(browser: &mut TcpStream, status: &str, headers: &str) -> io::Result<()> {
    let answer =
        format!("HTTP/1.1 {status}\r\n{headers}Content-Length: 0\r\nConnection: close\r\n\r\n");
    browser.write_all(answer.as_bytes()).await
}

/// The head with its empty line, and what was read beyond it.
async fn read_head(stream: &mut TcpStream) -> io::Result<(String, Vec<u8>)> {
    let mut bytes = Vec::with_capacity(2048);
    loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let rest = bytes.split_off(at + 4);
            let head = String::from_utf8(bytes).map_err(io::Error::other)?;
            return Ok((head, rest));
        }
        if bytes.len() > LONGEST_HEAD || stream.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
}

/// What a browser asks its proxy for.
pub(crate) struct Request {
    pub(crate) host: String,
    port: u16,
    /// The head to send on; none for a tunnel.
    pub(crate) forwarded: Option<String>,
    /// What it shows to be let through, as it stands in the header.
    pub(crate) credentials: Option<String>,
}

impl Request {
    fn read(head: &str) -> Option<Self> {
        let (line, headers) = head.split_once("\r\n")?;
        let credentials = headers.split("\r\n").find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("proxy-authorization").then(|| value.trim().to_owned())
        });
        let mut words = line.split(' ');
        let (method, target) = (words.next()?, words.next()?);
        if method == "CONNECT" {
            let (host, port) = authority(target, None)?;
            return Some(Self { host, port, forwarded: None, credentials });
        }
        let rest = target.strip_prefix("http://")?;
        let path_at = rest.find('/').unwrap_or(rest.len());
        let (host, port) = authority(rest.get(..path_at)?, Some(80))?;
        let path = rest.get(path_at..).filter(|path| !path.is_empty()).unwrap_or("/");
        // One request a connection: the next one may be for another host.
        let kept = headers.split("\r\n").filter(|line| {
            let name = line.split(':').next().unwrap_or_default().to_ascii_lowercase();
            !line.is_empty() && name != "connection" && !name.starts_with("proxy-")
        });
        let mut forwarded = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        for line in kept {
            forwarded.push_str(line);
            forwarded.push_str("\r\n");
        }
        forwarded.push_str("\r\n");
        Some(Self { host, port, forwarded: Some(forwarded), credentials })
    }
}

fn authority(text: &str, default_port: Option<u16>) -> Option<(String, u16)> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()?),
        _ => (text, default_port?),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
    (!host.is_empty()).then_some((host, port))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// What the proxy answers to a head, with an HTTP server behind `here.test`.
    async fn ask(head: &str) -> String {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = server.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = server.accept().await {
                let (head, _) = read_head(&mut stream).await.unwrap();
                let line = head.lines().next().unwrap().to_owned();
                let answer = format!("HTTP/1.1 200 OK\r\n\r\nsaw {line}");
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        let routes = HashMap::from([("here.test".to_owned(), address)]);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = listener.local_addr().unwrap();
        let serving = Forwarder::start(listener);
        serving.lead(Arc::new(Ways { routes, ..Ways::default() }));
        let mut stream = TcpStream::connect(proxy).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn a_route_is_served_in_origin_form() {
        let answer = ask("GET http://here.test/a?b HTTP/1.1\r\nHost: here.test\r\n\r\n").await;
        assert!(answer.ends_with("saw GET /a?b HTTP/1.1"), "{answer}");
    }

    #[tokio::test]
    async fn what_is_not_public_is_refused_however_it_is_written() {
        for target in [
            "127.0.0.1:80",
            "localhost:80",
            "[::1]:443",
            "169.254.169.254:80",
            "[::ffff:127.0.0.1]:80",
            "2130706433:80",
            "10.0.0.1:22",
        ] {
            let answer = ask(&format!("CONNECT {target} HTTP/1.1\r\n\r\n")).await;
            assert!(answer.starts_with("HTTP/1.1 403"), "{target}: {answer}");
        }
    }

    #[tokio::test]
    async fn nonsense_is_refused() {
        for head in ["GET / HTTP/1.1\r\n\r\n", "CONNECT x HTTP/1.1\r\n\r\n", "\r\n\r\n"] {
            assert!(ask(head).await.starts_with("HTTP/1.1 400"), "{head:?}");
        }
    }
}
