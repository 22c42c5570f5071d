//! `avouch admin …` for webhooks and their deliveries.

use std::{path::PathBuf, time::Duration};

use chrono::{DateTime, Utc};
use clap::{Args, Subcommand, ValueEnum};
use domain::{
    id::{ApiKeyId, DeliveryId, SessionId, TeamId, WebhookId},
    webhook::{Webhook, wire_time},
};
use ports::{
    clock::Clock,
    delivery_log::{
        DeliveryFilter, DeliveryScope, DeliveryState, StoredAttempt, StoredDelivery, TimeRange,
    },
    driving::{NewWebhook, WebhookService},
    webhook_store::StoredWebhook,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::header::header;
use crate::CommandError;

const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// How long the result of a test is waited for: more than the longest timeout of a webhook.
const TEST_TIMEOUT: Duration = Duration::from_secs(140);

#[derive(Debug, Subcommand)]
pub enum WebhookCommand {
    /// Creates a webhook; prints {"webhookId","secret"}
    CreateWebhook(CreateWebhook),
    /// Lists a team's webhooks and the health of their endpoints
    ListWebhooks {
        #[arg(long)]
        team: TeamId,
    },
    /// Activates or deactivates a webhook; pending deliveries of an inactive one wait
    SetWebhook {
        webhook_id: WebhookId,
        #[arg(long, action = clap::ArgAction::Set)]
        active: bool,
    },
    /// Gives a webhook a new secret; prints {"webhookId","secret","oldSecretUntil"}
    RotateWebhookSecret {
        webhook_id: WebhookId,
        /// How many hours the old secret also signs
        #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u8).range(0..=168))]
        overlap_hours: u8,
    },
    /// Sends a test delivery through the running service; prints its result
    TestWebhook { webhook_id: WebhookId },
    /// Lists deliveries, the newest first
    ListDeliveries(ListDeliveries),
    /// Shows a delivery with its attempts
    ShowDelivery { delivery_id: DeliveryId },
    /// Resends a delivery, with the same identifier and the same body
    Resend { delivery_id: DeliveryId },
    /// Resends the exhausted deliveries of a time range; prints {"webhookId","sent"}
    ResendExhausted {
        #[arg(long)]
        webhook: WebhookId,
        /// RFC 3339, such as 2026-01-31T12:00:00Z
        #[arg(long)]
        from: DateTime<Utc>,
        #[arg(long)]
        to: DateTime<Utc>,
    },
}

#[derive(Debug, Args)]
pub struct CreateWebhook {
    #[arg(long)]
    team: TeamId,
    #[arg(long)]
    url: String,
    /// 'NAME: VALUE', sent with every delivery; other users of the machine see it while the command
    /// runs
    #[arg(long, conflicts_with = "header_file")]
    header: Option<String>,
    /// A file that contains 'NAME: VALUE', or - for standard input: no other user sees it
    #[arg(long, value_name = "FILE")]
    header_file: Option<PathBuf>,
    /// A key whose sessions the webhook receives; may be repeated; without one, all keys of the team
    #[arg(long = "key")]
    keys: Vec<ApiKeyId>,
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..=120))]
    timeout_seconds: Option<u8>,
    #[arg(long, value_parser = clap::value_parser!(u8).range(0..=10))]
    retries: Option<u8>,
    #[arg(long)]
    inactive: bool,
}

#[derive(Debug, Args)]
pub struct ListDeliveries {
    #[arg(long, conflicts_with = "session", required_unless_present = "session")]
    webhook: Option<WebhookId>,
    #[arg(long)]
    session: Option<SessionId>,
    #[arg(long)]
    state: Option<State>,
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum State {
    Pending,
    Delivered,
    Exhausted,
}

impl From<State> for DeliveryState {
    fn from(state: State) -> Self {
        match state {
            State::Pending => Self::Pending,
            State::Delivered => Self::Delivered,
            State::Exhausted => Self::Exhausted,
        }
    }
}

impl WebhookCommand {
    pub(super) async fn run(
        self,
        webhooks: &dyn WebhookService,
        clock: &dyn Clock,
    ) -> Result<Value, CommandError> {
        match self {
            Self::CreateWebhook(arguments) => {
                let created = webhooks.create(arguments.parse()?).await?.webhook;
                Ok(json!({ "webhookId": created.id, "secret": created.secret.expose() }))
            }
            Self::ListWebhooks { team } => {
                let (listed, now) = (webhooks.list(team).await?, clock.now());
                let listed: Vec<_> = listed.iter().map(|stored| webhook(stored, now)).collect();
                Ok(json!({ "webhooks": listed }))
            }
            Self::SetWebhook { webhook_id, active } => {
                webhooks.set_active(webhook_id, active).await?;
                Ok(json!({ "webhookId": webhook_id, "active": active }))
            }
            Self::RotateWebhookSecret { webhook_id, overlap_hours } => {
                let overlap = Duration::from_secs(u64::from(overlap_hours) * 3600);
                let rotated = webhooks.rotate_secret(webhook_id, overlap).await?;
                let (secret, until) = (rotated.secret.expose(), wire_time(rotated.old_until));
                Ok(json!({ "webhookId": webhook_id, "secret": secret, "oldSecretUntil": until }))
            }
            Self::TestWebhook { webhook_id } => test(webhooks, webhook_id).await,
            Self::ListDeliveries(arguments) => {
                let found = webhooks.deliveries(arguments.parse()?).await?;
                Ok(json!({ "deliveries": found.iter().map(delivery).collect::<Vec<_>>() }))
            }
            Self::ShowDelivery { delivery_id } => {
                let (found, attempts) = webhooks.delivery(delivery_id).await?;
                Ok(delivery_with_attempts(&found, &attempts))
            }
            Self::Resend { delivery_id } => {
                webhooks.send_again(delivery_id).await?;
                Ok(json!({ "deliveryId": delivery_id }))
            }
            Self::ResendExhausted { webhook, from, to } => {
                let range = TimeRange { from, to };
                let sent = webhooks.send_exhausted_again(webhook, range).await?;
                Ok(json!({ "webhookId": webhook, "sent": sent }))
            }
        }
    }
}

impl CreateWebhook {
    fn parse(self) -> Result<NewWebhook, CommandError> {
        Ok(NewWebhook {
            team: self.team,
            url: self.url,
            header: header(self.header.as_deref(), self.header_file.as_deref())?,
            keys: self.keys,
            timeout: self
                .timeout_seconds
                .map_or(Webhook::DEFAULT_TIMEOUT, |seconds| Duration::from_secs(seconds.into())),
            retries: self.retries.unwrap_or(Webhook::DEFAULT_RETRIES),
            active: !self.inactive,
        })
    }
}

impl ListDeliveries {
    fn parse(self) -> Result<DeliveryFilter, CommandError> {
        let of = match (self.webhook, self.session) {
            (Some(webhook), _) => DeliveryScope::Webhook(webhook),
            (None, Some(session)) => DeliveryScope::Session(session),
            (None, None) => return Err("name a webhook or a session".into()),
        };
        Ok(DeliveryFilter { of, state: self.state.map(DeliveryState::from), limit: self.limit })
    }
}

/// Enqueues a test delivery, and waits until the service has sent it.
async fn test(webhooks: &dyn WebhookService, id: WebhookId) -> Result<Value, CommandError> {
    let delivery = webhooks.test(id).await?;
    let deadline = Instant::now() + TEST_TIMEOUT;
    loop {
        let (found, attempts) = webhooks.delivery(delivery).await?;
        if found.state != DeliveryState::Pending {
            return Ok(delivery_with_attempts(&found, &attempts));
        }
        if Instant::now() > deadline {
            return Err(format!("the test {delivery} was not sent: does the service run?").into());
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Returns a webhook without its secrets.
fn webhook(stored: &StoredWebhook, now: DateTime<Utc>) -> Value {
    let (webhook, health) = (&stored.webhook, &stored.health);
    json!({
        "webhookId": webhook.id,
        "url": webhook.url,
        "header": webhook.header.as_ref().map(|header| &header.name),
        "keys": stored.keys,
        "timeoutSeconds": webhook.timeout.as_secs(),
        "retries": webhook.retries,
        "active": webhook.active,
        "createdAt": wire_time(stored.created_at),
        "oldSecretUntil": webhook.retiring.as_ref().map(|old| wire_time(old.until)),
        "failing": health.failing(now),
        "failures": health.failures,
        "failingSince": health.failing_since.map(wire_time),
        "pausedUntil": health.paused_until.map(wire_time),
    })
}

fn delivery(stored: &StoredDelivery) -> Value {
    json!({
        "deliveryId": stored.id,
        "webhookId": stored.webhook,
        "sessionId": stored.session,
        "test": stored.test,
        "state": stored.state.as_str(),
        "createdAt": wire_time(stored.created_at),
        "dueAt": stored.due.map(wire_time),
    })
}

fn delivery_with_attempts(stored: &StoredDelivery, attempts: &[StoredAttempt]) -> Value {
    let attempts = attempts.iter().map(|attempt| {
        json!({
            "attempt": attempt.number,
            "at": wire_time(attempt.at),
            "tookMs": attempt.took_ms,
            "status": attempt.status,
            "error": attempt.error,
            "answer": attempt.answer,
            "sent": attempt.sent.lines().collect::<Vec<_>>(),
        })
    });
    let mut object = delivery(stored);
    if let Some(object) = object.as_object_mut() {
        object.insert("attempts".to_owned(), attempts.collect());
    }
    object
}
