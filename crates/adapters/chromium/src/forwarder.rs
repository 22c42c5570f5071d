//! The egress of a browser: an HTTP proxy on the only socket that the browser can reach.

use std::{io, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    sync::{Semaphore, mpsc, watch},
    task::JoinHandle,
};

use crate::{
    fleet_proxy::ACCEPT_RETRY_DELAY,
    hosted::{ByteStream, Duplex},
    route::EgressRoute,
};

/// Bytes of the head of a request to the proxy.
const MAX_HEAD_BYTES: usize = 64 * 1024;
const HEAD_TIMEOUT: Duration = Duration::from_secs(15);
/// Concurrent connections of one browser.
pub(crate) const MAX_CONNECTIONS: usize = 256;

/// A running proxy, which stops on drop.
pub(crate) struct Forwarder {
    route: watch::Sender<Arc<EgressRoute>>,
    task: JoinHandle<()>,
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Forwarder {
    /// Starts a proxy for browsers that connect to this socket, at first without a route.
    pub(crate) fn start(listener: TcpListener) -> Self {
        Self::serving(Source::Socket(listener))
    }

    /// Starts a proxy for a browser whose connections arrive here, at first without a route.
    pub(crate) fn of_connections(connections: mpsc::Receiver<ByteStream>) -> Self {
        Self::serving(Source::Host(connections))
    }

    fn serving(source: Source) -> Self {
        let (route, route_updates) = watch::channel(Arc::new(EgressRoute::blocked()));
        Self { route, task: tokio::spawn(serve(source, route_updates)) }
    }

    /// Routes new connections this way from now on.
    pub(crate) fn set_route(&self, route: Arc<EgressRoute>) {
        self.route.send_replace(route);
    }
}

/// Where the connections of a browser come from.
enum Source {
    Socket(TcpListener),
    /// A browser host, which sends them on.
    Host(mpsc::Receiver<ByteStream>),
}

impl Source {
    /// Returns the next connection; `None` if there will be no more.
    async fn next(&mut self) -> Option<ByteStream> {
        match self {
            Self::Host(connections) => connections.recv().await,
            Self::Socket(listener) => loop {
                match listener.accept().await {
                    Ok((stream, _)) => return Some(Box::new(stream)),
                    // Usually too many files are open, until other connections close.
                    Err(_) => tokio::time::sleep(ACCEPT_RETRY_DELAY).await,
                }
            },
        }
    }
}

async fn serve(mut source: Source, route_updates: watch::Receiver<Arc<EgressRoute>>) {
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    while let Ok(permit) = permits.clone().acquire_owned().await {
        let Some(stream) = source.next().await else { return };
        let route = route_updates.borrow().clone();
        tokio::spawn(async move {
            // The browser notices a broken connection itself.
            let _ = forward(stream, &route).await;
            drop(permit);
        });
    }
}

async fn forward(mut browser: ByteStream, route: &EgressRoute) -> io::Result<()> {
    match read_request(&mut browser).await? {
        Some((request, rest)) => relay(browser, request, &rest, route).await,
        None => Ok(()),
    }
}

/// Reads a request to the proxy, and the bytes that follow it; `None` if it was rejected or never
/// completed.
pub(crate) async fn read_request(
    browser: &mut impl Duplex,
) -> io::Result<Option<(ProxyRequest, Vec<u8>)>> {
    let read = tokio::time::timeout(HEAD_TIMEOUT, read_head(browser)).await;
    let Ok(Ok((head, rest))) = read else { return Ok(None) };
    let Some(request) = ProxyRequest::parse(&head) else {
        reject(browser, "400 Bad Request", "").await?;
        return Ok(None);
    };
    Ok(Some((request, rest)))
}

/// Connects a browser to the requested host if the route permits it, and relays the connection.
pub(crate) async fn relay(
    mut browser: impl Duplex,
    request: ProxyRequest,
    rest: &[u8],
    route: &EgressRoute,
) -> io::Result<()> {
    let Some(mut server) = route.connect(&request.host, request.port).await else {
        return reject(&mut browser, "403 Forbidden", "").await;
    };
    match request.forwarded {
        None => browser.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?,
        Some(head) => server.write_all(head.as_bytes()).await?,
    }
    server.write_all(rest).await?;
    tokio::io::copy_bidirectional(&mut browser, &mut server).await.map(drop)
}

/// Responds with a status and header lines, each with its CRLF.
pub(crate) async fn reject(
    browser: &mut impl Duplex,
    status: &str,
    headers: &str,
) -> io::Result<()> {
    let response =
        format!("HTTP/1.1 {status}\r\n{headers}Content-Length: 0\r\nConnection: close\r\n\r\n");
    browser.write_all(response.as_bytes()).await
}

/// Reads the head with its empty line, and returns it with the bytes read beyond it.
async fn read_head(stream: &mut impl Duplex) -> io::Result<(String, Vec<u8>)> {
    let mut bytes = Vec::with_capacity(2048);
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let rest = bytes.split_off(end + 4);
            let head = String::from_utf8(bytes).map_err(io::Error::other)?;
            return Ok((head, rest));
        }
        if bytes.len() > MAX_HEAD_BYTES || stream.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
}

/// A request to the proxy.
pub(crate) struct ProxyRequest {
    pub(crate) host: String,
    port: u16,
    /// The head to forward; `None` for a tunnel (`CONNECT`).
    pub(crate) forwarded: Option<String>,
    /// The value of the `Proxy-Authorization` header.
    pub(crate) credentials: Option<String>,
}

impl ProxyRequest {
    fn parse(head: &str) -> Option<Self> {
        let (line, headers) = head.split_once("\r\n")?;
        let credentials = headers.split("\r\n").find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("proxy-authorization").then(|| value.trim().to_owned())
        });
        let mut words = line.split(' ');
        let (method, target) = (words.next()?, words.next()?);
        if method == "CONNECT" {
            let (host, port) = parse_authority(target, None)?;
            return Some(Self { host, port, forwarded: None, credentials });
        }
        let rest = target.strip_prefix("http://")?;
        let path_at = rest.find('/').unwrap_or(rest.len());
        let (host, port) = parse_authority(rest.get(..path_at)?, Some(80))?;
        let path = rest.get(path_at..).filter(|path| !path.is_empty()).unwrap_or("/");
        // One request per connection: the next one may be for another host.
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

fn parse_authority(text: &str, default_port: Option<u16>) -> Option<(String, u16)> {
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

    use tokio::net::TcpStream;

    use super::*;

    /// Returns the proxy's response to a head, with an HTTP server behind `here.test`.
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
        serving.set_route(Arc::new(EgressRoute { local_hosts: routes, ..EgressRoute::default() }));
        let mut stream = TcpStream::connect(proxy).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn a_request_is_forwarded_in_origin_form() {
        let answer = ask("GET http://here.test/a?b HTTP/1.1\r\nHost: here.test\r\n\r\n").await;
        assert!(answer.ends_with("saw GET /a?b HTTP/1.1"), "{answer}");
    }

    #[tokio::test]
    async fn non_public_addresses_are_refused_in_every_notation() {
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
    async fn a_malformed_request_is_refused() {
        for head in ["GET / HTTP/1.1\r\n\r\n", "CONNECT x HTTP/1.1\r\n\r\n", "\r\n\r\n"] {
            assert!(ask(head).await.starts_with("HTTP/1.1 400"), "{head:?}");
        }
    }
}
