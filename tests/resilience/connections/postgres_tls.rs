//! Each `sslmode` of libpq against a server that accepts TLS only.

use std::{fs, os::unix::fs::PermissionsExt as _, time::Duration};

use acceptance::eventually;
use testkit::certificates::Authority;

use super::{ACCESS, TlsServer};

/// The result of a connection: success, or an error that contains this text.
type Expected = Option<&'static str>;

fn hold(secured: &TlsServer, cases: &[(&str, &str, Expected)]) {
    for (host, parameters, expected) in cases {
        let parameters = parameters
            .replace("OURS", &secured.file("ours.pem"))
            .replace("OTHERS", &secured.file("others.pem"));
        let url = secured.url("postgres:geheim", host, &parameters);
        let came = secured.team(&url, &[]);
        println!("{host} {parameters}: {came:?}");
        match (expected, &came) {
            (None, Ok(())) => (),
            (Some(part), Err(complaint)) if complaint.contains(part) => (),
            _ => panic!("{host} {parameters}: expected {expected:?}, came {came:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_sslmode_behaves_as_in_libpq() {
    let secured = TlsServer::start().await;
    hold(
        &secured,
        &[
            ("localhost", "sslmode=disable", Some("no encryption")),
            ("localhost", "sslmode=allow", None),
            ("localhost", "sslmode=prefer", None),
            ("localhost", "", None),
            ("localhost", "sslmode=require", None),
            ("localhost", "ssl=true", None),
            ("localhost", "sslmode=require&sslrootcert=OURS", None),
            ("localhost", "sslmode=require&sslrootcert=OTHERS", Some("UnknownIssuer")),
            ("localhost", "sslmode=verify-ca&sslrootcert=OURS", None),
            ("localhost", "sslmode=verify-ca&sslrootcert=OTHERS", Some("UnknownIssuer")),
            ("127.0.0.1", "sslmode=verify-ca&sslrootcert=OURS", None),
            ("localhost", "sslmode=verify-full&sslrootcert=OURS", None),
            ("localhost", "sslmode=verify-full&sslrootcert=OTHERS", Some("UnknownIssuer")),
            ("127.0.0.1", "sslmode=verify-full&sslrootcert=OURS", Some("not valid for name")),
            ("127.0.0.1", "sslrootcert=OURS", Some("not valid for name")),
            ("localhost", "sslrootcert=OURS", None),
            ("localhost", "sslmode=verify-full", Some("UnknownIssuer")),
            // SCRAM is bound to this TLS connection (RFC 5929, `tls-server-end-point`).
            ("localhost", "sslmode=require&channel_binding=require", None),
            ("localhost", "sslmode=disable&channel_binding=require", Some("postgres")),
        ],
    );
    let wrong = secured.url("postgres:falsch", "localhost", "sslmode=require");
    assert!(secured.team(&wrong, &[]).unwrap_err().contains("password"), "a wrong password");

    // A renewed certificate needs no restart of the service; an expired one is refused.
    let expired = secured.authority.expired(&["localhost"]);
    secured.postgres.secure(&expired, &secured.authority.pem(), ACCESS);
    eventually("the expired certificate", Duration::from_secs(60), async || {
        secured.team(&secured.verified(), &[]).err()
    })
    .await;
    hold(
        &secured,
        &[
            ("localhost", "sslmode=require", None),
            ("localhost", "sslmode=verify-ca&sslrootcert=OURS", Some("expired")),
            ("localhost", "sslmode=verify-full&sslrootcert=OURS", Some("expired")),
        ],
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_certificate_authenticates() {
    let secured = TlsServer::start().await;
    let write = |name: &str, text: &str, mode: u32| {
        let path = secured.file(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    };
    let ours = secured.authority.client("certified");
    let theirs = Authority::new("others").client("certified");
    let certificate = write("client.pem", &ours.certificate, 0o644);
    let key = write("client.key", &ours.key, 0o600);
    let open = write("open.key", &ours.key, 0o644);
    let strange = write("strange.pem", &theirs.certificate, 0o644);
    let strange_key = write("strange.key", &theirs.key, 0o600);
    let roots = secured.file("ours.pem");
    let url =
        |more: &str| secured.url("certified", "localhost", &format!("sslrootcert={roots}{more}"));
    let with = |certificate: &str, key: &str| {
        secured.team(&url(&format!("&sslcert={certificate}&sslkey={key}")), &[])
    };
    assert_eq!(with(&certificate, &key), Ok(()));
    let none = secured.team(&url(""), &[]).unwrap_err();
    assert!(none.contains("certificate"), "{none}");
    assert!(with(&strange, &strange_key).is_err());
    let readable = with(&certificate, &open).unwrap_err();
    assert!(readable.contains("may be read by others"), "{readable}");
    let other_key = with(&certificate, &strange_key).unwrap_err();
    assert!(other_key.contains("database_url"), "{other_key}");
}
