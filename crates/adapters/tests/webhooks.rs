//! Webhooks over real TLS.
#![expect(clippy::unwrap_used, reason = "tests panic to fail")]

use std::sync::Arc;

use adapters::outbound::HyperWebhookSender;
use domain::{
    egress::Egress,
    id::{DeliveryId, SessionId, TeamId},
    webhook::Webhook,
};
use ports::{
    delivery::Delivery,
    webhook_sender::{Answer, WebhookSender as _},
};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::{ServerConfig, crypto::ring, pki_types::PrivateKeyDer};
use testkit::sample;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};
use tokio_rustls::TlsAcceptor;
use uuid::Uuid;

#[tokio::test]
async fn a_receiver_under_an_operators_root_is_believed_where_the_root_is() {
    let (port, root) = receiver().await;
    let egress = Egress::allowing(&format!("localhost:{port}")).unwrap();
    let webhook = sample::webhook(TeamId::from_uuid(Uuid::nil()));
    let delivery = Delivery {
        id: DeliveryId::from_uuid(Uuid::nil()),
        session: SessionId::from_uuid(Uuid::nil()),
        webhook: Webhook { url: format!("https://localhost:{port}/hook"), ..webhook },
        body: "{}".to_owned(),
        attempt: 1,
    };
    let stranger = HyperWebhookSender::new(egress.clone(), &[]).unwrap();
    let answer = stranger.send(&delivery, sample::noon()).await;
    assert!(matches!(answer, Answer::Failed(_)), "{answer:?}");
    let friend = HyperWebhookSender::new(egress, &[root]).unwrap();
    let answer = friend.send(&delivery, sample::noon()).await;
    assert!(matches!(answer, Answer::Status { code: 204, .. }), "{answer:?}");
}

/// A receiver that answers 204, and the root that its certificate is under.
async fn receiver() -> (u16, Vec<u8>) {
    let mut params = CertificateParams::new(vec![]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(["localhost".to_owned()]).unwrap();
    let certificate = certificate.signed_by(&key, &root).unwrap();
    let private = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let server = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], private)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(server));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await;
        }
    });
    (port, root.der().to_vec())
}
