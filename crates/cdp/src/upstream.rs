//! Connections through a residential exit.

use std::{io, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use domain::egress_proxy::{EgressProxy, Scheme};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use tokio_socks::tcp::Socks5Stream;

/// From the first packet to the exit until the tunnel stands: the exit dials too.
const PATIENCE: Duration = Duration::from_secs(20);
const LONGEST_HEAD: usize = 8 * 1024;

/// A connection to `host` that leaves at the exit, where the name is resolved.
pub(crate) async fn tunnel(exit: &EgressProxy, host: &str, port: u16) -> io::Result<TcpStream> {
    let dialled = async {
        match exit.scheme {
            Scheme::Http => connect(exit, host, port).await,
            Scheme::Socks5 => socks(exit, host, port).await,
        }
    };
    tokio::time::timeout(PATIENCE, dialled).await.unwrap_or(Err(io::ErrorKind::TimedOut.into()))
}

async fn connect(exit: &EgressProxy, host: &str, port: u16) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect((exit.host.as_str(), exit.port)).await?;
    stream.set_nodelay(true)?;
    let authority =
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
    let mut head = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n");
    if let Some((user, password)) = &exit.credentials {
        let basic = STANDARD.encode(format!("{}:{}", user.expose(), password.expose()));
        head = format!("{head}Proxy-Authorization: Basic {basic}\r\n");
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes()).await?;
    // Byte by byte: what comes after the head belongs to the tunnel.
    let mut answer = Vec::with_capacity(256);
    while !answer.ends_with(b"\r\n\r\n") {
        if answer.len() == LONGEST_HEAD {
            return Err(io::ErrorKind::InvalidData.into());
        }
        answer.push(stream.read_u8().await?);
    }
    let status = answer.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
    if status.first() == Some(&b'2') {
        Ok(stream)
    } else {
        Err(io::Error::other(format!("the exit answered {}", String::from_utf8_lossy(status))))
    }
}

async fn socks(exit: &EgressProxy, host: &str, port: u16) -> io::Result<TcpStream> {
    let proxy = (exit.host.as_str(), exit.port);
    let stream = match &exit.credentials {
        Some((user, password)) => {
            let (user, password) = (user.expose(), password.expose());
            Socks5Stream::connect_with_password(proxy, (host, port), user, password).await
        }
        None => Socks5Stream::connect(proxy, (host, port)).await,
    };
    let stream = stream.map_err(io::Error::other)?.into_inner();
    stream.set_nodelay(true)?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use domain::{egress_proxy::EgressProxies, request::Location};
    use testkit::port::free_port;
    use tokio::net::TcpListener;

    use super::*;

    /// A real proxy; it ends when dropped.
    struct Proxy {
        process: Child,
        _folder: tempfile::TempDir,
    }

    impl Drop for Proxy {
        fn drop(&mut self) {
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
    }

    #[tokio::test]
    async fn a_tunnel_stands_through_real_proxies_with_the_right_credentials_alone() {
        let echo = echo().await;
        for scheme in ["http", "socks5"] {
            let port = free_port();
            let _proxy = if scheme == "http" { tinyproxy(port) } else { microsocks(port) };
            listening(port).await;
            for (credentials, stands) in [("ada:geheim", true), ("ada:falsch", false)] {
                let exit = exit(&format!("{scheme}://{credentials}@127.0.0.1:{port}"));
                let tunnel = tunnel(&exit, "127.0.0.1", echo).await;
                assert_eq!(tunnel.is_ok(), stands, "{scheme} {credentials}: {tunnel:?}");
                let Ok(mut tunnel) = tunnel else { continue };
                tunnel.write_all(b"hello").await.unwrap();
                let mut back = [0; 5];
                tunnel.read_exact(&mut back).await.unwrap();
                assert_eq!(&back, b"hello", "{scheme}");
            }
        }
    }

    #[tokio::test]
    async fn an_exit_that_is_away_is_told() {
        let port = free_port();
        for scheme in ["http", "socks5"] {
            let exit = exit(&format!("{scheme}://127.0.0.1:{port}"));
            assert!(tunnel(&exit, "example.com", 443).await.is_err(), "{scheme}");
        }
    }

    fn exit(url: &str) -> EgressProxy {
        let place = Location { country: "DE".into(), region: None, city: None };
        url.parse::<EgressProxies>().unwrap().at(&place, "1").pop().unwrap()
    }

    async fn echo() -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (mut from, mut to) = stream.split();
                let _ = tokio::io::copy(&mut from, &mut to).await;
            }
        });
        port
    }

    async fn listening(port: u16) {
        while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn tinyproxy(port: u16) -> Proxy {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tinyproxy.conf");
        let text = format!(
            "Port {port}\nListen 127.0.0.1\nTimeout 60\nMaxClients 20\nBasicAuth ada geheim\n"
        );
        std::fs::write(&file, text).unwrap();
        let mut command = Command::new("tinyproxy");
        command.arg("-d").arg("-c").arg(&file).stdout(Stdio::null()).stderr(Stdio::null());
        Proxy { process: command.spawn().unwrap(), _folder: folder }
    }

    fn microsocks(port: u16) -> Proxy {
        let mut command = Command::new("microsocks");
        command.args(["-i", "127.0.0.1", "-u", "ada", "-P", "geheim", "-p", &port.to_string()]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Proxy { process: command.spawn().unwrap(), _folder: tempfile::tempdir().unwrap() }
    }
}
