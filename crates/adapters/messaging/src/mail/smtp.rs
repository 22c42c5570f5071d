//! The configuration of a mail server, and the connections to it.

use std::{fmt, time::Duration};

use lettre::{
    AsyncSmtpTransport, AsyncTransport as _, Message, Tokio1Executor,
    transport::smtp::{
        AsyncSmtpTransportBuilder, PoolConfig,
        client::{Certificate, Tls, TlsParameters},
    },
};
use ports::notifier::SendError;
use url::Url;

use super::smtp_status::send_error;

/// The time for one SMTP command.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(30);
const MAX_CONNECTIONS: u32 = 8;
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// The port for message submission (RFC 6409, section 3.1), and that for relaying between servers.
const SUBMISSION_PORT: u16 = 587;
const RELAY_PORT: u16 = 25;

/// The reason why the URL of a mail server is invalid.
#[derive(Debug, thiserror::Error)]
pub enum InvalidSmtpUrl {
    #[error("must be smtp://[USER:PASSWORD@]HOST[:PORT] or smtps://…")]
    Form,
    #[error("tls must be required, opportunistic or none, and none only without a password")]
    Tls,
    #[error("{0}")]
    SmtpServer(#[from] lettre::transport::smtp::Error),
}

/// The address of a mail server and the options of its connections; not connected yet.
#[derive(Clone)]
pub struct SmtpServer {
    name: String,
    builder: AsyncSmtpTransportBuilder,
}

impl fmt::Debug for SmtpServer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the credentials.
        out.write_str(&self.name)
    }
}

impl SmtpServer {
    /// Parses a URL. `smtp://` starts in plain text and upgrades to TLS (STARTTLS, RFC 3207): always if
    /// there is a password, else if the server offers it; `?tls=required|opportunistic|none` overrides
    /// this. `smtps://` is TLS from the start (RFC 8314). `roots` are root certificates in DER that are
    /// trusted in addition to the usual ones.
    pub fn new(url: &str, roots: &[Vec<u8>]) -> Result<Self, InvalidSmtpUrl> {
        let url = Url::parse(url).map_err(|_| InvalidSmtpUrl::Form)?;
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or(InvalidSmtpUrl::Form)?;
        let has_password = url.password().is_some() || !url.username().is_empty();
        let mut parameters = TlsParameters::builder(host.to_owned());
        for root in roots {
            parameters = parameters.add_root_certificate(Certificate::from_der(root.clone())?);
        }
        let tls_mode = url.query_pairs().find(|(name, _)| name == "tls").map(|(_, value)| value);
        let tls = match (url.scheme(), tls_mode.as_deref(), has_password) {
            ("smtps", None, _) => Tls::Wrapper(parameters.build()?),
            ("smtp", Some("required"), _) | ("smtp", None, true) => {
                Tls::Required(parameters.build()?)
            }
            ("smtp", Some("opportunistic") | None, false) => {
                Tls::Opportunistic(parameters.build()?)
            }
            ("smtp", Some("none"), false) => Tls::None,
            ("smtp" | "smtps", Some(_), _) => return Err(InvalidSmtpUrl::Tls),
            _ => return Err(InvalidSmtpUrl::Form),
        };
        let mut plain = url.clone();
        plain.set_query(None);
        let mut builder = AsyncSmtpTransport::<Tokio1Executor>::from_url(plain.as_str())?;
        if url.port().is_none() && url.scheme() == "smtp" {
            builder = builder.port(if has_password { SUBMISSION_PORT } else { RELAY_PORT });
        }
        let pool = PoolConfig::new().max_size(MAX_CONNECTIONS).idle_timeout(IDLE_TIMEOUT);
        let builder = builder.tls(tls).timeout(Some(COMMAND_TIMEOUT)).pool_config(pool);
        Ok(Self { name: host.to_owned(), builder })
    }

    /// Checks that the server accepts commands, over a separate connection on which no mail is sent. Must
    /// be called within a Tokio runtime.
    ///
    /// # Errors
    /// One line with the error and its causes.
    pub async fn check(&self) -> Result<(), String> {
        let transport = self.builder.clone().build::<Tokio1Executor>();
        let accepts = transport.test_connection().await.map_err(|error| {
            let (mut line, mut cause) = (error.to_string(), std::error::Error::source(&error));
            while let Some(error) = cause {
                line = format!("{line}: {error}");
                cause = error.source();
            }
            line
        })?;
        if accepts { Ok(()) } else { Err("the server does not accept commands".into()) }
    }
}

/// A pool of connections to a mail server.
pub(super) struct Smtp(AsyncSmtpTransport<Tokio1Executor>);

impl Smtp {
    /// Must be called within a Tokio runtime, which maintains the connections.
    pub(super) fn new(server: SmtpServer) -> Self {
        Self(server.builder.build())
    }

    pub(super) async fn send(&self, message: Message) -> Result<(), SendError> {
        self.0.send(message).await.map(drop).map_err(|error| send_error(&error))
    }
}
