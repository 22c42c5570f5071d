//! Connections through a residential egress proxy.

use std::{io, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use domain::egress_proxy::{EgressProxy, Scheme};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use tokio_socks::tcp::Socks5Stream;

/// The time to connect to the proxy and for it to connect to the host.
const TUNNEL_TIMEOUT: Duration = Duration::from_secs(20);
/// Bytes of the head of the proxy's response.
const MAX_HEAD_BYTES: usize = 8 * 1024;

/// Opens a connection to `host` through an egress proxy, which resolves the name.
pub(crate) async fn tunnel(proxy: &EgressProxy, host: &str, port: u16) -> io::Result<TcpStream> {
    let connected = async {
        match proxy.scheme {
            Scheme::Http => http_connect(proxy, host, port).await,
            Scheme::Socks5 => socks5_connect(proxy, host, port).await,
        }
    };
    tokio::time::timeout(TUNNEL_TIMEOUT, connected)
        .await
        .unwrap_or(Err(io::ErrorKind::TimedOut.into()))
}

async fn http_connect(proxy: &EgressProxy, host: &str, port: u16) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect((proxy.host.as_str(), proxy.port)).await?;
    stream.set_nodelay(true)?;
    let authority =
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
    let mut head = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n");
    if let Some((user, password)) = &proxy.credentials {
        let basic = STANDARD.encode(format!("{}:{}", user.expose(), password.expose()));
        head = format!("{head}Proxy-Authorization: Basic {basic}\r\n");
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes()).await?;
    // Byte by byte, because the bytes after the head belong to the tunnel.
    let mut response = Vec::with_capacity(256);
    while !response.ends_with(b"\r\n\r\n") {
        if response.len() == MAX_HEAD_BYTES {
            return Err(io::ErrorKind::InvalidData.into());
        }
        response.push(stream.read_u8().await?);
    }
    let status = response.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
    if status.first() == Some(&b'2') {
        Ok(stream)
    } else {
        Err(io::Error::other(format!(
            "the egress proxy responded with {}",
            String::from_utf8_lossy(status)
        )))
    }
}

async fn socks5_connect(proxy: &EgressProxy, host: &str, port: u16) -> io::Result<TcpStream> {
    let address = (proxy.host.as_str(), proxy.port);
    let stream = match &proxy.credentials {
        Some((user, password)) => {
            let (user, password) = (user.expose(), password.expose());
            Socks5Stream::connect_with_password(address, (host, port), user, password).await
        }
        None => Socks5Stream::connect(address, (host, port)).await,
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

    /// A real proxy, which is killed on drop.
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
    async fn real_proxies_tunnel_with_the_right_credentials_only() {
        let echo = echo().await;
        for scheme in ["http", "socks5"] {
            let port = free_port();
            let _proxy = if scheme == "http" { tinyproxy(port) } else { microsocks(port) };
            listening(port).await;
            for (credentials, accepted) in [("ada:geheim", true), ("ada:falsch", false)] {
                let proxy = egress_proxy(&format!("{scheme}://{credentials}@127.0.0.1:{port}"));
                let tunnel = tunnel(&proxy, "127.0.0.1", echo).await;
                assert_eq!(tunnel.is_ok(), accepted, "{scheme} {credentials}: {tunnel:?}");
                let Ok(mut tunnel) = tunnel else { continue };
                tunnel.write_all(b"hello").await.unwrap();
                let mut back = [0; 5];
                tunnel.read_exact(&mut back).await.unwrap();
                assert_eq!(&back, b"hello", "{scheme}");
            }
        }
    }

    #[tokio::test]
    async fn an_unreachable_proxy_is_an_error() {
        let port = free_port();
        for scheme in ["http", "socks5"] {
            let proxy = egress_proxy(&format!("{scheme}://127.0.0.1:{port}"));
            assert!(tunnel(&proxy, "example.com", 443).await.is_err(), "{scheme}");
        }
    }

    fn egress_proxy(url: &str) -> EgressProxy {
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
