//! Statistics of the team's recent sessions, as numbers and a chart.

use actix_web::{HttpResponse, web};
use domain::{rate::RateLimit, session::Status};
use ports::driving::{DailyCounts, FailingNode, Overview, TeamQuotas};
use serde::Serialize;

use crate::{
    Portal, authenticated::Authenticated, error::PageError, methods::reading, page::PortalPage,
};

pub(crate) fn routes(config: &mut web::ServiceConfig) {
    config.route("/portal/overview", reading().to(show));
}

/// The kinds of a bar's parts, from the bottom up.
const KINDS: [(&str, &str); 5] = [
    ("good", "completed"),
    ("part", "partial"),
    ("bad", "failed"),
    ("left", "canceled or ended early"),
    ("open", "in progress"),
];
/// Units of the chart: the width of a day, the gap before it, the height of the day with the most
/// sessions, and the minimum height of a part.
const DAY_WIDTH: usize = 20;
const GAP: usize = 4;
const MAX_HEIGHT: usize = 150;
const MIN_HEIGHT: usize = 2;
/// Leaves space for the minimum height of each kind above the highest bar.
const HEIGHT: usize = MAX_HEIGHT + MIN_HEIGHT * KINDS.len();

#[derive(Serialize)]
struct Bar {
    x: usize,
    y: usize,
    width: usize,
    height: usize,
    kind: &'static str,
}

/// The numbers of a day.
#[derive(Serialize)]
struct GridLine {
    date: String,
    /// In the order of [`KINDS`].
    counts: [usize; KINDS.len()],
}

impl From<&DailyCounts> for GridLine {
    fn from(day: &DailyCounts) -> Self {
        let [mut completed, mut part, mut failed, mut left, mut open] = [0; KINDS.len()];
        for (status, count) in &day.counts {
            let kind = match status {
                Status::Completed => &mut completed,
                Status::PartialComplete => &mut part,
                Status::Error => &mut failed,
                Status::Cancelled | Status::Terminated => &mut left,
                Status::Created
                | Status::Initializing
                | Status::Ready
                | Status::Connected
                | Status::LoadingTree
                | Status::Running
                | Status::AwaitingUser
                | Status::CollectingData
                | Status::Verifying => &mut open,
            };
            *kind += count;
        }
        Self { date: day.date.to_string(), counts: [completed, part, failed, left, open] }
    }
}

#[derive(Serialize)]
struct FailedAt {
    platform: String,
    node: String,
    why: String,
    count: usize,
}

impl From<FailingNode> for FailedAt {
    fn from(FailingNode { platform, node, why, count }: FailingNode) -> Self {
        Self { platform, node, why, count }
    }
}

/// The limits of a team, as text.
#[derive(Serialize)]
struct QuotaTexts {
    requests: String,
    creations: String,
    team_creations: String,
    recipient: String,
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
fn rate(limit: Option<RateLimit>) -> String {
    let Some(RateLimit { count, seconds }) = limit else { return "No limit".into() };
    match seconds {
        1 => format!("{count} per second"),
        60 => format!("{count} per minute"),
        3600 => format!("{count} per hour"),
        86_400 => format!("{count} per day"),
        _ => format!("{count} per {seconds} seconds"),
    }
}

/// Returns the days as stacked bars. A kind with at least one session is visible.
fn bars(lines: &[GridLine]) -> Vec<Bar> {
    let highest = lines.iter().map(|line| line.counts.iter().sum()).max().unwrap_or(0).max(1);
    let mut bars = vec![];
    for (at, line) in lines.iter().enumerate() {
        let mut top = HEIGHT;
        for (count, (kind, _)) in line.counts.iter().zip(KINDS) {
            if *count == 0 {
                continue;
            }
            let height = (count * MAX_HEIGHT / highest).max(MIN_HEIGHT);
            top = top.saturating_sub(height);
            bars.push(Bar {
                x: at * DAY_WIDTH + GAP,
                y: top,
                width: DAY_WIDTH - GAP,
                height,
                kind,
            });
        }
    }
    bars
}

async fn show(portal: web::Data<Portal>, signed: Authenticated) -> Result<HttpResponse, PageError> {
    let overview = portal.sessions.overview(&signed.0).await?;
    let Overview { days, created, completed, ended, median, failures, nodes, cut } = overview;
    let lines: Vec<_> = days.iter().map(GridLine::from).collect();
    let quotas = portal.sessions.quotas(&signed.0).await?;
    let rate = (completed * 100).checked_div(ended);
    Ok(PortalPage::of_team("overview.html", "Overview", "overview", &signed.0)
        .with("bars", bars(&lines))
        .with("width", lines.len() * DAY_WIDTH + GAP)
        .with("height", HEIGHT)
        .with("days", lines)
        .with("kinds", KINDS)
        .with("created", created)
        .with("ended", ended)
        .with("rate", rate)
        .with("median", median.map(|median| median.as_secs()))
        .with("failures", failures)
        .with("nodes", nodes.into_iter().map(FailedAt::from).collect::<Vec<_>>())
        .with("cut", cut)
        .with("quotas", QuotaTexts::from(quotas))
        .into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_as_people_say_them() {
        let limit = |count, seconds| rate(Some(RateLimit { count, seconds }));
        assert_eq!(limit(120, 60), "120 per minute");
        assert_eq!(limit(20, 86_400), "20 per day");
        assert_eq!(limit(5, 90), "5 per 90 seconds");
        assert_eq!(rate(None), "No limit");
    }

    #[test]
    fn bars_stand_on_each_other_and_within_the_picture() {
        let line = |counts| GridLine { date: String::new(), counts };
        let all = bars(&[line([1000, 0, 1, 1, 1]), line([0; 5]), line([0, 0, 1, 0, 0])]);
        let places: Vec<_> = all.iter().map(|bar| (bar.x, bar.y, bar.height, bar.kind)).collect();
        assert_eq!(
            places,
            [
                (4, 11, 149, "good"),
                (4, 9, 2, "bad"),
                (4, 7, 2, "left"),
                (4, 5, 2, "open"),
                (44, 158, 2, "bad"),
            ]
        );
        assert!(bars(&[line([0; 5])]).is_empty());
    }
}
