//! A webhook endpoint of a test, which responds as the test decides.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
};

/// The response to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    Status(u16),
    /// Accepts (204) after this time.
    AcceptAfter(Duration),
    /// Sends nothing for this time, then closes the connection.
    Hang(Duration),
    /// Closes the connection with a reset (RST).
    Reset,
    /// Starts a response with status 200 and closes the connection within it.
    CloseWithin,
    /// Sends these bytes, then closes the connection.
    Bytes(Vec<u8>),
}

/// An attempt of a delivery, as it was received.
#[derive(Debug, Clone)]
pub struct Attempt {
    pub at: SystemTime,
    pub path: String,
    /// Lower-case names with their values.
    pub headers: Vec<(String, String)>,
    pub body: String,
    /// What it was answered with.
    pub reply: Reply,
}

impl Attempt {
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(own, _)| own == name);
        found.map_or("", |(_, value)| value)
    }

    /// Returns whether the endpoint accepted it.
    #[must_use]
    pub fn accepted(&self) -> bool {
        self.reply == Reply::Status(204)
    }

    /// Returns whether one of its signatures was made with a secret.
    #[must_use]
    pub fn signed_with(&self, secret: &str) -> bool {
        let [id, timestamp, signatures] =
            ["webhook-id", "webhook-timestamp", "webhook-signature"].map(|name| self.header(name));
        demo::verified(secret, id, timestamp, signatures, self.body.as_bytes())
    }

    /// Returns the value of a string field in the body, as it is written.
    #[must_use]
    pub fn field(&self, name: &str) -> &str {
        let rest = self.body.split_once(&format!("\"{name}\":\"")).map_or("", |(_, rest)| rest);
        rest.split('"').next().unwrap_or_default()
    }
}

type Behaviour = dyn Fn(&Attempt) -> Reply + Send + Sync;

/// An endpoint on a port of its own, until the test ends.
#[derive(Clone)]
pub struct Endpoint {
    pub port: u16,
    seen: Arc<Mutex<Vec<Attempt>>>,
}

impl Endpoint {
    pub async fn start(behaviour: impl Fn(&Attempt) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("its address").port();
        let (seen, behaviour) = (Arc::new(Mutex::default()), Arc::new(behaviour));
        let endpoint = Self { port, seen };
        let me = endpoint.clone();
        tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else { continue };
                let (me, behaviour) = (me.clone(), behaviour.clone());
                tokio::spawn(async move { me.serve(stream, &*behaviour).await });
            }
        });
        endpoint
    }

    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.port)
    }

    fn all(&self) -> MutexGuard<'_, Vec<Attempt>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[must_use]
    pub fn count(&self) -> usize {
        self.all().len()
    }

    /// Returns the requests received so far, and forgets them.
    #[must_use]
    pub fn take(&self) -> Vec<Attempt> {
        std::mem::take(&mut self.all())
    }

    /// Returns the requests received so far that are of interest.
    #[must_use]
    pub fn find(&self, wanted: impl Fn(&Attempt) -> bool) -> Vec<Attempt> {
        self.all().iter().filter(|attempt| wanted(attempt)).cloned().collect()
    }

    async fn serve(&self, stream: TcpStream, behaviour: &Behaviour) {
        let _ = stream.set_nodelay(true);
        let mut stream = BufReader::new(stream);
        while let Some(mut attempt) = read(&mut stream).await {
            let reply = behaviour(&attempt);
            attempt.reply = reply.clone();
            self.all().push(attempt);
            let bytes = match reply {
                Reply::Status(204) => b"HTTP/1.1 204 No Content\r\n\r\n".to_vec(),
                Reply::AcceptAfter(long) => {
                    tokio::time::sleep(long).await;
                    b"HTTP/1.1 204 No Content\r\n\r\n".to_vec()
                }
                Reply::Status(code) => {
                    format!("HTTP/1.1 {code} Said\r\ncontent-length: 2\r\n\r\nno").into_bytes()
                }
                Reply::Hang(long) => {
                    tokio::time::sleep(long).await;
                    return;
                }
                Reply::Reset => {
                    let _ = rustix::net::sockopt::set_socket_linger(
                        stream.get_ref(),
                        Some(Duration::ZERO),
                    );
                    return;
                }
                Reply::CloseWithin => {
                    let begun = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf";
                    let _ = stream.write_all(begun).await;
                    return;
                }
                Reply::Bytes(bytes) => {
                    let _ = stream.write_all(&bytes).await;
                    return;
                }
            };
            if stream.write_all(&bytes).await.is_err() {
                return;
            }
        }
    }
}

/// Reads a request; `None` where there is no more.
async fn read(stream: &mut BufReader<TcpStream>) -> Option<Attempt> {
    let (mut path, mut headers, mut line) = (String::new(), vec![], String::new());
    loop {
        line.clear();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        let text = line.trim_end();
        if text.is_empty() {
            break;
        }
        match text.split_once(": ") {
            Some((name, value)) if !path.is_empty() => {
                headers.push((name.to_ascii_lowercase(), value.to_owned()));
            }
            _ => path = text.split(' ').nth(1).unwrap_or_default().to_owned(),
        }
    }
    let (at, reply) = (SystemTime::now(), Reply::Reset);
    let mut attempt = Attempt { at, path, headers, body: String::new(), reply };
    let mut body = vec![0; attempt.header("content-length").parse().ok()?];
    stream.read_exact(&mut body).await.ok()?;
    attempt.body = String::from_utf8(body).ok()?;
    Some(attempt)
}
