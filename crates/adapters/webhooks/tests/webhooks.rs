//! Webhooks over real TLS.
#![expect(clippy::unwrap_used, reason = "tests panic to fail")]

use std::time::Duration;

use domain::egress::Egress;
use ports::webhook_sender::{WebhookResponse, WebhookSender as _};
use testkit::{sample, tls::acceptor};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};
use webhooks::HyperWebhookSender;

#[tokio::test]
async fn a_receiver_under_an_operators_root_is_believed_where_the_root_is() {
    let (port, root) = receiver().await;
    let egress = Egress::allowing(&format!("localhost:{port}")).unwrap();
    let delivery =
        sample::delivery(&format!("https://localhost:{port}/hook"), Duration::from_secs(30));
    let stranger = HyperWebhookSender::new(egress.clone(), &[]).unwrap();
    let answer = stranger.send(&delivery, sample::noon()).await.answer;
    assert!(matches!(answer, WebhookResponse::Failed(_)), "{answer:?}");
    let friend = HyperWebhookSender::new(egress, &[root]).unwrap();
    let answer = friend.send(&delivery, sample::noon()).await.answer;
    assert!(matches!(answer, WebhookResponse::Status { code: 204, .. }), "{answer:?}");
}

/// An endpoint that answers 204, and the root of its certificate.
async fn receiver() -> (u16, Vec<u8>) {
    let (acceptor, root) = acceptor("localhost");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await;
        }
    });
    (port, root)
}
