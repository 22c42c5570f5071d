//! What a request is of its plan: to its descriptor, to the server, and to the attestor.

use attestation::http::request::to_hide;
use domain::{
    id::{SessionId, TeamId},
    secret::Secret,
};

use super::*;

/// Finding 10: of the length of the cookies a size class is public.
#[tokio::test]
async fn servers_see_the_cookies_and_witnesses_a_size_class() {
    for (length, class) in [(1, 64), (63, 64), (64, 64), (65, 128), (700, 704)] {
        let cookies = format!("sid={}", "a".repeat(length))[..length].to_owned();
        let order = order(&cookies);
        let descriptor = of(&order.plan, &order.url).unwrap();
        let bytes = request(&order, &descriptor);
        let hidden = to_hide(&bytes, &descriptor).unwrap();
        assert_eq!(hidden.iter().map(ExactSizeIterator::len).collect::<Vec<_>>(), [class]);
        // A common server, with the padding where it reads the value.
        let (mut client, server) = tokio::io::duplex(64 * 1024);
        let expected = cookies.clone();
        let service = hyper::service::service_fn(move |asked: hyper::Request<_>| {
            let _: &hyper::body::Incoming = asked.body();
            let told = asked.headers().get("cookie").map(|value| value.as_bytes().to_vec());
            let fine = told.as_deref() == Some(expected.as_bytes());
            let answer = hyper::Response::builder().status(if fine { 200 } else { 400 });
            std::future::ready(answer.body(String::new()))
        });
        let serving = hyper::server::conn::http1::Builder::new()
            .serve_connection(hyper_util::rt::TokioIo::new(server), service);
        tokio::io::AsyncWriteExt::write_all(&mut client, &bytes).await.unwrap();
        let mut answer = String::new();
        let reading = tokio::io::AsyncReadExt::read_to_string(&mut client, &mut answer);
        let (done, _) = tokio::join!(serving, reading);
        done.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}

#[test]
fn a_request_is_what_its_descriptor_says() {
    let plan = order("sid=1; theme=dark").plan;
    for (url, target) in [
        ("https://platform.test/api/me?x=1", "/api/me?x=1"),
        ("https://platform.test", "/"),
        ("https://platform.test?x", "/?x"),
    ] {
        let descriptor = of(&plan, url).unwrap();
        assert_eq!((descriptor.check(), descriptor.target.as_str()), (Ok(()), target));
        let order = AttestOrder { url: url.into(), ..order("sid=1; theme=dark") };
        let bytes = request(&order, &descriptor);
        let hidden = to_hide(&bytes, &descriptor).unwrap();
        let hidden: Vec<_> = hidden.into_iter().map(|range| &bytes[range]).collect();
        assert_eq!(hidden, [format!("{:<64}", "sid=1; theme=dark").as_bytes()]);
        let none = AttestOrder { cookies: Secret::new(String::new()), ..order };
        assert_eq!(to_hide(&request(&none, &descriptor), &descriptor).unwrap(), []);
    }
    assert_eq!(of(&plan, "http://platform.test/"), None);
}

fn order(cookies: &str) -> AttestOrder {
    let pairs = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(name, to)| ((*name).to_owned(), (*to).to_owned())).collect()
    };
    let plan = Attest {
        request: "me".into(),
        platform: 7,
        version: 1,
        headers: pairs(&[("accept", "application/json")]),
        modes: vec![AttestMode::ZktlsRequest],
        fields: pairs(&[("id", "/id")]),
    };
    AttestOrder {
        session: SessionId::from_uuid(uuid::Uuid::nil()),
        partner: TeamId::from_uuid(uuid::Uuid::nil()),
        challenge: vec![],
        url: "https://platform.test/api/me".into(),
        plan,
        cookies: Secret::new(cookies.into()),
        user_agent: "Browser/1".into(),
    }
}
