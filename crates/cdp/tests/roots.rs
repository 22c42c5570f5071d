//! Certificates that an operator has browsers believe.
#![expect(clippy::unwrap_used, reason = "tests panic to fail")]

mod common;

use std::{collections::HashMap, net::SocketAddr};

use cdp::{ChromiumPool, Here, Jail, PoolOptions, Source, write_roots};
use ports::browser::{BrowserError, BrowserPool as _};
use testkit::tls::acceptor;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use self::common::{here, options, spec};

const HOST: &str = "secure.localhost";
const PAGE: &str = "https://secure.localhost/";

#[tokio::test]
async fn a_site_under_an_operators_root_is_believed_where_the_root_is() {
    let (address, root) = site().await;
    let folder = tempfile::tempdir().unwrap();
    let policies = folder.path().join("policies");
    write_roots(&policies, &[root]).unwrap();
    for believed in [false, true] {
        let mut inside = here(&folder.path().join(believed.to_string()));
        inside.jail =
            inside.jail.map(|jail| Jail { policies: believed.then(|| policies.clone()), ..jail });
        let routes = HashMap::from([(HOST.to_owned(), address)]);
        let source = Source::Here(Here { ..inside });
        let pool = ChromiumPool::new(PoolOptions { source, routes, ..options("".as_ref()) });
        let browser = pool.start(spec(HOST, "US")).await.unwrap();
        let opened = browser.navigate(PAGE).await;
        if believed {
            opened.unwrap();
            let texts = browser.texts(&["h1".to_owned()]).await.unwrap();
            assert_eq!(texts, [Some("hello".to_owned())]);
        } else {
            assert!(matches!(opened, Err(BrowserError::Refused(_))), "{opened:?}");
        }
        pool.end_all().await;
    }
}

/// A site over TLS, and the root that its certificate is under.
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
