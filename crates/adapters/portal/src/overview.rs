//! Statistics of the team's recent sessions, as numbers and charts.

use std::time::Duration;

use actix_web::{HttpResponse, web};
use chrono::{DateTime, Utc};
use domain::{api_key::Environment, rate::RateLimit};
use ports::{
    driving::{
        FailingNode, FailureCount, FunnelStep, Overview, OverviewRange, PlatformOutcomes,
        TeamQuotas,
    },
    webhook_store::StoredWebhook,
};
use serde::{Deserialize, Serialize};

use crate::{
    Portal,
    authenticated::Authenticated,
    chart::{Chart, KINDS},
    documentation::ErrorLink,
    error::PageError,
    message::{Message, message},
    methods::reading,
    page::PortalPage,
    session_search::SessionQuery,
    setup,
    webhooks::WebhookListRow,
};

const HERE: &str = "/portal/overview";
const SESSIONS: &str = "/portal/sessions";

pub(crate) fn routes(config: &mut web::ServiceConfig) {
    config.route(HERE, reading(show));
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct OverviewQuery {
    days: String,
    environment: String,
}

/// A link to the same page with another range or environment.
#[derive(Serialize)]
struct Tab {
    label: Message,
    link: String,
    is_current: bool,
}

impl Tab {
    fn new(
        label: Message,
        (range, environment): (OverviewRange, Environment),
        current: (OverviewRange, Environment),
    ) -> Self {
        let link = format!("{HERE}?days={}&environment={}", range.days(), environment.as_str());
        Self { label, link, is_current: (range, environment) == current }
    }
}

/// The list of sessions with the filters of a number of the overview.
struct SessionLinks {
    query: SessionQuery,
}

impl SessionLinks {
    fn new(overview: &Overview) -> Self {
        let from = overview.days.first().map(|day| day.date.to_string()).unwrap_or_default();
        let environment = overview.environment.as_str().to_owned();
        Self { query: SessionQuery { environment, from, ..SessionQuery::default() } }
    }

    fn link(&self, error: &str, platform: &str) -> String {
        let (error, platform) = (error.to_owned(), platform.to_owned());
        SessionQuery { error, platform, ..self.query.clone() }.path(SESSIONS, None)
    }
}

#[derive(Serialize)]
struct FunnelRow {
    label: Message,
    count: usize,
    /// Of all sessions, in percent.
    percent: usize,
}

impl FunnelRow {
    fn new((step, count): (FunnelStep, usize), all: usize) -> Self {
        let label = match step {
            FunnelStep::Created => message("Created"),
            FunnelStep::Started => message("Started"),
            FunnelStep::Connected => message("Connected to platform"),
            FunnelStep::SignedIn => message("Signed in"),
            FunnelStep::Completed => message("Completed"),
        };
        Self { label, count, percent: (count * 100).checked_div(all).unwrap_or(0) }
    }
}

#[derive(Serialize)]
struct FailureRow {
    /// `None` for sessions without an error code.
    error: Option<ErrorLink>,
    count: usize,
    sessions: Option<String>,
}

impl FailureRow {
    fn new(FailureCount { code, count }: FailureCount, links: &SessionLinks) -> Self {
        let sessions = code.as_ref().map(|code| links.link(code, ""));
        Self { error: code.map(ErrorLink::from), count, sessions }
    }
}

#[derive(Serialize)]
struct PlatformRow {
    name: String,
    ended: usize,
    failed: usize,
    /// The share of failures, in percent.
    percent: usize,
    sessions: String,
}

impl PlatformRow {
    fn new(outcomes: PlatformOutcomes, links: &SessionLinks) -> Self {
        let PlatformOutcomes { platform, name, ended, failed } = outcomes;
        let percent = (failed * 100).checked_div(ended).unwrap_or(0);
        Self { name, ended, failed, percent, sessions: links.link("", &platform.0.to_string()) }
    }
}

#[derive(Serialize)]
struct NodeRow {
    platform: String,
    node: String,
    error: ErrorLink,
    count: usize,
    sessions: String,
}

impl NodeRow {
    fn new(node: FailingNode, links: &SessionLinks) -> Self {
        let FailingNode { id, platform, node, why, count } = node;
        let sessions = links.link(&why, &id.0.to_string());
        Self { platform, node, error: ErrorLink::from(why), count, sessions }
    }
}

/// The limits of a team, as text.
#[derive(Serialize)]
struct QuotaTexts {
    requests: Message,
    creations: Message,
    team_creations: Message,
    recipient: Message,
    running: usize,
    browsers: usize,
    development: usize,
    waiting: usize,
    queue: usize,
}

impl From<TeamQuotas> for QuotaTexts {
    fn from(quotas: TeamQuotas) -> Self {
        let browsers = quotas.browsers.per_team.min(quotas.browsers.total);
        Self {
            requests: rate(quotas.requests),
            creations: rate(quotas.creations),
            team_creations: rate(quotas.team_creations),
            recipient: rate(quotas.recipient),
            running: quotas.running,
            browsers,
            development: quotas.browsers.development,
            waiting: quotas.waiting,
            queue: quotas.browsers.waiting_per_team,
        }
    }
}

/// Formats a limit, such as `60 per minute`.
fn rate(limit: Option<RateLimit>) -> Message {
    let Some(RateLimit { count, seconds }) = limit else { return message("No limit") };
    let text = match seconds {
        1 => message("{count} per second"),
        60 => message("{count} per minute"),
        3600 => message("{count} per hour"),
        86_400 => message("{count} per day"),
        _ => message("{count} per {seconds} seconds").with("seconds", seconds),
    };
    text.with("count", count)
}

/// Formats a duration, such as `42 s` or `3 min 20 s`.
fn duration_text(duration: Duration) -> Message {
    let seconds = duration.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => message("{seconds} s").with("seconds", seconds),
        (0, minutes, seconds) => {
            let text = message("{minutes} min {seconds} s").with("minutes", minutes);
            text.with("seconds", seconds)
        }
        (hours, minutes, _) => {
            message("{hours} h {minutes} min").with("hours", hours).with("minutes", minutes)
        }
    }
}

/// Returns the endpoints that are enabled, those that fail first.
fn endpoints(webhooks: &[StoredWebhook], now: DateTime<Utc>) -> Vec<WebhookListRow> {
    let mut enabled: Vec<_> = webhooks.iter().filter(|stored| stored.webhook.active).collect();
    enabled.sort_by_key(|stored| !stored.health.failing(now));
    enabled.into_iter().map(|stored| WebhookListRow::of(stored, now)).collect()
}

async fn show(
    portal: web::Data<Portal>,
    query: web::Query<OverviewQuery>,
    signed: Authenticated,
) -> Result<HttpResponse, PageError> {
    let range = OverviewRange::ALL.into_iter().find(|range| range.days().to_string() == query.days);
    let range = range.unwrap_or(OverviewRange::ThirtyDays);
    let environment = query.environment.parse::<Environment>().ok();
    let overview = portal.sessions.overview(&signed.0, range, environment).await?;
    let quotas = portal.sessions.quotas(&signed.0).await?;
    let webhooks = portal.webhooks.webhooks(&signed.0).await?;
    let setup = setup::steps(&portal, &signed.0).await?;
    let page = PortalPage::of_team("overview.html", message("Overview"), "overview", &signed.0);
    Ok(with_statistics(page, overview, range)
        .with("endpoints", endpoints(&webhooks, portal.clock.now()))
        .with("quotas", QuotaTexts::from(quotas))
        .with("setup", setup)
        .into_response())
}

fn with_statistics(page: PortalPage, overview: Overview, range: OverviewRange) -> PortalPage {
    let links = SessionLinks::new(&overview);
    let chart = Chart::new(&overview.days);
    let Overview { environment, created, completed, ended, funnel, failures, .. } = overview;
    let current = (range, environment);
    let environments = [
        (Environment::Production, message("Production")),
        (Environment::Development, message("Development")),
    ];
    let environments = environments.map(|(one, label)| Tab::new(label, (range, one), current));
    let ranges = OverviewRange::ALL.map(|one| {
        let label = message("{count} days").with("count", u32::from(one.days()));
        Tab::new(label, (one, environment), current)
    });
    let funnel = funnel.into_iter().map(|step| FunnelRow::new(step, created));
    let failures = failures.into_iter().map(|failure| FailureRow::new(failure, &links));
    let platforms = overview.platforms.into_iter().filter(|outcomes| outcomes.failed > 0);
    let platforms = platforms.map(|outcomes| PlatformRow::new(outcomes, &links));
    let nodes = overview.nodes.into_iter().map(|node| NodeRow::new(node, &links));
    page.with("environment", environment.as_str())
        .with("environments", environments)
        .with("ranges", ranges)
        .with("range", range.days())
        .with("chart", chart)
        .with("kinds", KINDS)
        .with("created", created)
        .with("ended", ended)
        .with("rate", (completed * 100).checked_div(ended))
        .with("p50", overview.p50.map(duration_text))
        .with("p95", overview.p95.map(duration_text))
        .with("funnel", funnel.collect::<Vec<_>>())
        .with("failures", failures.collect::<Vec<_>>())
        .with("platforms", platforms.collect::<Vec<_>>())
        .with("nodes", nodes.collect::<Vec<_>>())
        .with("cut", overview.cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_as_people_say_them() {
        let limit = |count, seconds| rate(Some(RateLimit { count, seconds })).to_string();
        assert_eq!(limit(120, 60), "120 per minute");
        assert_eq!(limit(20, 86_400), "20 per day");
        assert_eq!(limit(5, 90), "5 per 90 seconds");
        assert_eq!(rate(None).to_string(), "No limit");
    }

    #[test]
    fn durations_have_two_units_at_most() {
        for (seconds, expected) in [
            (0, "0 s"),
            (59, "59 s"),
            (60, "1 min 0 s"),
            (200, "3 min 20 s"),
            (3600, "1 h 0 min"),
            (90_061, "25 h 1 min"),
        ] {
            assert_eq!(duration_text(Duration::from_secs(seconds)).to_string(), expected);
        }
    }
}
