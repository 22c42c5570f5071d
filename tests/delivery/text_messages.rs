//! Links sent as text messages; the test providers compare each request with the one that the
//! provider's own library makes.

use std::{
    fs,
    process::{Child, Command, Stdio},
    time::Duration,
};

use acceptance::{database::Kind, eventually, free_port, root, service::Deployment};
use serde_json::{Value, json};
use tempfile::TempDir;

const TIMEOUT: Duration = Duration::from_secs(60);
const WHATSAPP: i64 = 2;
const SMS: i64 = 3;

/// The providers of SMS and of WhatsApp messages.
struct Providers {
    inbox: TempDir,
    port: u16,
    process: Child,
}

impl Providers {
    async fn start() -> Self {
        let python = root().join("target/tools/messages-python/bin/python");
        assert!(
            python.exists(),
            "install tests/messages/requirements.txt into target/tools/messages-python"
        );
        let (inbox, port) = (tempfile::tempdir().unwrap(), free_port());
        let mut command = Command::new(python);
        command.arg(root().join("tests/messages/server.py")).arg(port.to_string());
        let process = command.arg(inbox.path()).stdout(Stdio::null()).spawn().unwrap();
        let providers = Self { inbox, port, process };
        eventually("the providers", TIMEOUT, async || {
            tokio::net::TcpStream::connect(("127.0.0.1", port)).await.ok()
        })
        .await;
        providers
    }

    /// Returns the messages that they accepted, and descriptions of wrong requests.
    fn messages(&self) -> Vec<Value> {
        let files = fs::read_dir(self.inbox.path()).unwrap().map(|file| file.unwrap().path());
        let whole = files.filter(|file| file.extension().is_some_and(|kind| kind == "json"));
        whole.map(|file| serde_json::from_slice(&fs::read(file).unwrap()).unwrap()).collect()
    }

    async fn deployment(&self, kind: Kind) -> Deployment {
        let mut deployment = Deployment::prepare(kind).await;
        let here = format!("http://127.0.0.1:{}", self.port);
        let account = format!("{here}/2010-04-01/Accounts/AC{}", "0".repeat(32));
        deployment.set("AVOUCH_SMS_URL", account);
        deployment.set("AVOUCH_SMS_KEY", format!("SK{}:twilio-secret", "1".repeat(32)));
        deployment.set("AVOUCH_SMS_FROM", "+15005550006");
        deployment.set("AVOUCH_WHATSAPP_URL", format!("{here}/v23.0/106540352242922"));
        deployment.set("AVOUCH_WHATSAPP_TOKEN", "EAAmeta-secret");
        deployment.set("AVOUCH_WHATSAPP_TEMPLATE", "account_link:en,de");
        deployment.set("AVOUCH_NOTIFICATION_BACKOFF", "1x1");
        deployment.set("AVOUCH_LOG", "debug");
        deployment.run().await;
        deployment
    }
}

impl Drop for Providers {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn invited(channel: i64, phone: &str) -> Value {
    json!({
        "notificationPlatformId": channel,
        "receiverData": { "name": "Ada Example", "phone": phone, "locale": "de-AT" },
        "senderName": "Müller & Söhne",
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_is_sent_once_over_each_channel() {
    let providers = Providers::start().await;
    let deployment = providers.deployment(Kind::Postgres).await;
    let channels = deployment.partner.get("notification-platforms").await;
    let names: Vec<_> =
        channels.at("/data").as_array().unwrap().iter().map(|c| &c["name"]).collect();
    assert_eq!(names, ["email", "whatsapp", "sms"]);
    for (channel, phone) in [(WHATSAPP, "+4366012340100"), (SMS, "+4366012340200")] {
        let session = deployment.create(&invited(channel, phone)).await;
        let (id, link) = (session["sessionId"].as_str().unwrap(), &session["embedUrl"]);
        deployment.partner.until_notification(id, "NotificationSent", None).await;
        let taken = providers.messages();
        let mut mine = taken.iter().filter(|message| message["to"] == phone);
        let message = mine.next().expect("a message");
        assert!(mine.next().is_none(), "sent twice: {taken:?}");
        if channel == WHATSAPP {
            assert_eq!(message["gaps"][0], "Müller & Söhne");
            assert_eq!((&message["gaps"][2], &message["language"]), (link, &json!("de")));
        } else {
            let text = message["text"].as_str().unwrap();
            assert!(text.starts_with("Müller & Söhne bittet Sie"), "{text}");
            assert!(text.ends_with(link.as_str().unwrap()), "{text}");
        }
    }
    assert!(providers.messages().iter().all(|message| message["wrong"].is_null()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_refuses_defers_or_is_slow_decides_the_outcome() {
    let providers = Providers::start().await;
    let deployment = providers.deployment(Kind::Sqlite).await;
    for channel in [WHATSAPP, SMS] {
        let mut sessions = vec![];
        for (end, event, why) in [
            ("0001", "NotificationFailed", Some("unknown_receiver")),
            ("0002", "NotificationFailed", Some("rejected")),
            ("0003", "NotificationSent", None),
            ("0004", "NotificationSent", None),
            // The operator's token has expired: the message is retried until its attempts are used
            // up.
            ("0005", "NotificationFailed", Some("unreachable")),
        ] {
            let session = deployment.create(&invited(channel, &format!("+43660{end}"))).await;
            sessions.push((session["sessionId"].as_str().unwrap().to_owned(), event, why));
        }
        for (id, event, why) in sessions {
            deployment.partner.until_notification(&id, event, why).await;
        }
    }
    let taken = providers.messages();
    let mut ends: Vec<_> = taken.iter().map(|m| m["to"].as_str().unwrap_or("wrong")).collect();
    ends.sort_unstable();
    assert_eq!(ends, ["+436600003", "+436600003", "+436600004", "+436600004"], "{taken:?}");
    let log = fs::read_to_string(deployment.log()).unwrap();
    for secret in ["twilio-secret", "EAAmeta-secret", "+43660"] {
        assert!(!log.contains(secret), "{secret} is in the log");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn channels_without_configuration_cannot_be_chosen() {
    let mut deployment = Deployment::prepare(Kind::Sqlite).await;
    deployment.run().await;
    let channels = deployment.partner.get("notification-platforms").await;
    assert_eq!(channels.at("/data").as_array().unwrap().len(), 1);
    let refused = deployment.partner.create(&invited(SMS, "+4366012340100")).await;
    assert_eq!(refused.status, 400);
    assert!(refused.body.to_string().contains("notificationPlatformId"), "{refused:?}");

    let providers = Providers::start().await;
    let deployment = providers.deployment(Kind::Sqlite).await;
    let mut without = invited(SMS, "+4366012340100");
    without["receiverData"] = json!({ "email": "ada@example.org" });
    let mut worded = invited(WHATSAPP, "+4366012340100");
    worded["emailTemplateId"] = json!(1);
    for (order, field) in
        [(without, "receiverData.phone"), (worded, "emailTemplateId must be left")]
    {
        let refused = deployment.partner.create(&order).await;
        assert_eq!(refused.status, 400);
        assert!(refused.body.to_string().contains(field), "{refused:?}");
    }
}
