//! `avouch admin …` about webhooks and what they were sent.

use std::{path::PathBuf, sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use clap::{Args, Subcommand, ValueEnum};
use domain::{
    id::{ApiKeyId, DeliveryId, SessionId, TeamId, WebhookId},
    webhook::{Webhook, wire_time},
};
use ports::{
    clock::Clock as _,
    delivery_log::{
        DeliveryFilter, DeliveryScope, DeliveryState, StoredAttempt, StoredDelivery, TimeRange,
    },
    driving::{NewWebhook, WebhookService},
    webhook_store::StoredWebhook,
};
use serde_json::{Value, json};
use store::Store;
use system::clock::{SystemClock, SystemRandom};
use tokio::time::Instant;

use super::header::header;
use crate::{
    config::Config,
    storage::{StartupError, error_chain},
};
use application::webhooks::WebhookUseCases;

const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Beside the longest timeout of a webhook.
const TEST_PATIENCE: Duration = Duration::from_secs(140);

#[derive(Debug, Subcommand)]
pub(crate) enum WebhookCommand {
    /// Makes a webhook; prints {"webhookId","secret"}
    CreateWebhook(CreateWebhook),
    /// Lists a team's webhooks and how their receivers do
    ListWebhooks {
        #[arg(long)]
        team: TeamId,
    },
    /// Switches a webhook on or off; what it is owed waits while it is off
    SetWebhook {
        webhook_id: WebhookId,
        #[arg(long, action = clap::ArgAction::Set)]
        active: bool,
    },
    /// Gives a webhook a new secret; prints {"webhookId","secret","oldSecretUntil"}
    RotateWebhookSecret {
        webhook_id: WebhookId,
        /// For how long the old secret signs too
        #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u8).range(0..=168))]
        overlap_hours: u8,
    },
    /// Sends a webhook a test by the running service; prints what came of it
    TestWebhook { webhook_id: WebhookId },
    /// Lists deliveries, the newest first
    ListDeliveries(ListDeliveries),
    /// Shows a delivery with its attempts
    ShowDelivery { delivery_id: DeliveryId },
    /// Sends a delivery again: the same identifier, the same body
    Resend { delivery_id: DeliveryId },
    /// Sends again what was given up on; prints {"webhookId","sent"}
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
pub(crate) struct CreateWebhook {
    #[arg(long)]
    team: TeamId,
    #[arg(long)]
    url: String,
    /// 'NAME: VALUE', sent with every delivery; while this runs, other users of the machine see it
    #[arg(long, conflicts_with = "header_file")]
    header: Option<String>,
    /// A file that has 'NAME: VALUE' in it, or - for standard input: nobody else sees it
    #[arg(long, value_name = "FILE")]
    header_file: Option<PathBuf>,
    /// A key whose sessions it is told of; may be repeated; without one: all of the team's
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
pub(crate) struct ListDeliveries {
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
    pub(crate) async fn run(
        self,
        config: &Config,
        store: Arc<Store>,
    ) -> Result<Value, StartupError> {
        let webhooks = WebhookUseCases {
            store: store.clone(),
            log: store.clone(),
            keys: store.clone(),
            teams: store,
            clock: Arc::new(SystemClock),
            random: Arc::new(SystemRandom),
            egress: config.egress.clone(),
        };
        match self {
            Self::CreateWebhook(order) => {
                let made = webhooks.create(order.read()?).await.map_err(error_chain)?.webhook;
                Ok(json!({ "webhookId": made.id, "secret": made.secret.expose() }))
            }
            Self::ListWebhooks { team } => {
                let all = webhooks.list(team).await.map_err(error_chain)?;
                Ok(json!({ "webhooks": all.iter().map(shown).collect::<Vec<_>>() }))
            }
            Self::SetWebhook { webhook_id, active } => {
                webhooks.set_active(webhook_id, active).await.map_err(error_chain)?;
                Ok(json!({ "webhookId": webhook_id, "active": active }))
            }
            Self::RotateWebhookSecret { webhook_id, overlap_hours } => {
                let overlap = Duration::from_secs(u64::from(overlap_hours) * 3600);
                let fresh =
                    webhooks.rotate_secret(webhook_id, overlap).await.map_err(error_chain)?;
                let (secret, until) = (fresh.secret.expose(), wire_time(fresh.old_until));
                Ok(json!({ "webhookId": webhook_id, "secret": secret, "oldSecretUntil": until }))
            }
            Self::TestWebhook { webhook_id } => test(&webhooks, webhook_id).await,
            Self::ListDeliveries(find) => {
                let found = webhooks.deliveries(find.read()?).await.map_err(error_chain)?;
                Ok(json!({ "deliveries": found.iter().map(delivery).collect::<Vec<_>>() }))
            }
            Self::ShowDelivery { delivery_id } => {
                let (found, attempts) =
                    webhooks.delivery(delivery_id).await.map_err(error_chain)?;
                Ok(whole(&found, &attempts))
            }
            Self::Resend { delivery_id } => {
                webhooks.send_again(delivery_id).await.map_err(error_chain)?;
                Ok(json!({ "deliveryId": delivery_id }))
            }
            Self::ResendExhausted { webhook, from, to } => {
                let span = TimeRange { from, to };
                let sent =
                    webhooks.send_exhausted_again(webhook, span).await.map_err(error_chain)?;
                Ok(json!({ "webhookId": webhook, "sent": sent }))
            }
        }
    }
}

impl CreateWebhook {
    fn read(self) -> Result<NewWebhook, StartupError> {
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
    fn read(self) -> Result<DeliveryFilter, StartupError> {
        let of = match (self.webhook, self.session) {
            (Some(webhook), _) => DeliveryScope::Webhook(webhook),
            (None, Some(session)) => DeliveryScope::Session(session),
            (None, None) => return Err("name a webhook or a session".into()),
        };
        Ok(DeliveryFilter { of, state: self.state.map(DeliveryState::from), limit: self.limit })
    }
}

/// Owes a test, and waits for what the service makes of it.
async fn test(webhooks: &WebhookUseCases, id: WebhookId) -> Result<Value, StartupError> {
    let owed = webhooks.test(id).await.map_err(error_chain)?;
    let ends = Instant::now() + TEST_PATIENCE;
    loop {
        let (found, attempts) = webhooks.delivery(owed).await.map_err(error_chain)?;
        if found.state != DeliveryState::Pending {
            return Ok(whole(&found, &attempts));
        }
        if Instant::now() > ends {
            return Err(format!("the test {owed} was not sent: does the service run?").into());
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// A webhook without its secrets.
fn shown(kept: &StoredWebhook) -> Value {
    let (webhook, health) = (&kept.webhook, &kept.health);
    json!({
        "webhookId": webhook.id,
        "url": webhook.url,
        "header": webhook.header.as_ref().map(|header| &header.name),
        "keys": kept.keys,
        "timeoutSeconds": webhook.timeout.as_secs(),
        "retries": webhook.retries,
        "active": webhook.active,
        "createdAt": wire_time(kept.created_at),
        "oldSecretUntil": webhook.retiring.as_ref().map(|old| wire_time(old.until)),
        "failing": health.failing(SystemClock.now()),
        "failures": health.failures,
        "failingSince": health.failing_since.map(wire_time),
        "pausedUntil": health.paused_until.map(wire_time),
    })
}

fn delivery(kept: &StoredDelivery) -> Value {
    json!({
        "deliveryId": kept.id,
        "webhookId": kept.webhook,
        "sessionId": kept.session,
        "test": kept.test,
        "state": kept.state.as_str(),
        "createdAt": wire_time(kept.created_at),
        "dueAt": kept.due.map(wire_time),
    })
}

fn whole(kept: &StoredDelivery, attempts: &[StoredAttempt]) -> Value {
    let attempts = attempts.iter().map(|one| {
        json!({
            "attempt": one.number,
            "at": wire_time(one.at),
            "tookMs": one.took_ms,
            "status": one.status,
            "error": one.error,
            "answer": one.answer,
            "sent": one.sent.lines().collect::<Vec<_>>(),
        })
    });
    let mut whole = delivery(kept);
    if let Some(whole) = whole.as_object_mut() {
        whole.insert("attempts".to_owned(), attempts.collect());
    }
    whole
}
