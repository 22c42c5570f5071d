//! Root certificates that an operator adds to browsers.
#![expect(clippy::unwrap_used, reason = "tests panic to fail")]

mod common;

use domain::workflow::ElementRead;
use std::{collections::HashMap, net::SocketAddr};

use chromium::{BrowserSource, ChromiumPool, PoolOptions, Sandbox, write_root_certificates};
use ports::browser::{BrowserError, BrowserPool as _};
use testkit::tls::acceptor;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use self::common::{local_browsers, options, spec};

const HOST: &str = "secure.localhost";
const PAGE: &str = "https://secure.localhost/";

#[tokio::test]
async fn a_site_under_an_operators_root_is_trusted_if_the_root_is_installed() {
    let (address, root) = site().await;
    let folder = tempfile::tempdir().unwrap();
    let policies = folder.path().join("policies");
    write_root_certificates(&policies, &[root]).unwrap();
    for trusted in [false, true] {
        let mut local = local_browsers(&folder.path().join(trusted.to_string()));
        local.sandbox = local
            .sandbox
            .map(|sandbox| Sandbox { policies: trusted.then(|| policies.clone()), ..sandbox });
        let local_hosts = HashMap::from([(HOST.to_owned(), address)]);
        let source = BrowserSource::Local(local);
        let pool = ChromiumPool::new(PoolOptions { source, local_hosts, ..options("".as_ref()) });
        let browser = pool.start(spec(HOST, "US")).await.unwrap();
        let navigated = browser.navigate(PAGE).await;
        if trusted {
            navigated.unwrap();
            let texts = browser.read(&[ElementRead::text("h1")]).await.unwrap();
            assert_eq!(texts, [serde_json::json!("hello")]);
        } else {
            assert!(matches!(navigated, Err(BrowserError::Refused(_))), "{navigated:?}");
        }
        pool.end_all().await;
    }
}

/// Starts a site over TLS, and returns its address and the root of its certificate.
async fn site() -> (SocketAddr, Vec<u8>) {
    let (acceptor, root) = acceptor(HOST);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let mut stream = acceptor.accept(stream).await.ok()?;
                let _ = stream.read(&mut [0; 4096]).await;
                let page = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 14\r\n\
                             connection: close\r\n\r\n<h1>hello</h1>";
                stream.write_all(page).await.ok()?;
                stream.shutdown().await.ok()
            });
        }
    });
    (address, root)
}
