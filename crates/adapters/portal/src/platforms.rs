//! The platforms that the team's keys can verify, and how their runs end.

use actix_web::{HttpResponse, web};
use domain::{account::Permission, api_key::Environment};
use ports::driving::{HealthState, PlatformListing, PortalError, SignedInUser};
use serde::Serialize;

use crate::{
    Portal,
    authenticated::Authenticated,
    drafts::{DraftForm, DraftRow},
    error::PageError,
    message::{Message, message},
    methods::reading,
    page::{NoticeQuery, PortalPage},
};

pub(crate) fn routes(config: &mut web::ServiceConfig) {
    config.route("/portal/platforms", reading(list));
}

#[derive(Serialize)]
struct PlatformRow {
    id: i32,
    name: String,
    environment: Message,
    state: Message,
    /// Whether the site seems to have changed.
    is_changed: bool,
    versions: Vec<VersionRow>,
}

#[derive(Serialize)]
struct VersionRow {
    version: String,
    /// The share of new sessions that run it, in percent.
    share: u8,
    runs: u64,
    success: Option<String>,
    seconds: Option<u32>,
    failing_node: Option<String>,
}

impl From<PlatformListing> for PlatformRow {
    fn from(listing: PlatformListing) -> Self {
        let PlatformListing { platform, health, .. } = listing;
        let tried = platform.canary.as_ref().map(|canary| canary.share.as_percent());
        let share = |version: &str| {
            if version == platform.version {
                100_u8.saturating_sub(tried.unwrap_or_default())
            } else {
                let canary = platform.canary.as_ref().filter(|canary| canary.version == version);
                canary.map_or(0, |canary| canary.share.as_percent())
            }
        };
        let health_state = health.state(&platform.version);
        let state = match health_state {
            HealthState::Changed => message("The site may have changed"),
            HealthState::Ok => message("OK"),
            HealthState::Unknown => message("Too few sessions"),
        };
        let rows = health.versions.into_iter().map(|(version, health)| VersionRow {
            share: share(&version),
            version,
            runs: health.runs,
            success: health.success_rate.map(|rate| format!("{:.0}", rate * 100.0)),
            seconds: health.median_seconds,
            failing_node: health.failing_node,
        });
        Self {
            id: platform.id.0,
            environment: match platform.environment {
                Environment::Production => message("Production"),
                Environment::Development => message("Development"),
            },
            state,
            is_changed: health_state == HealthState::Changed,
            versions: rows.collect(),
            name: platform.display_name,
        }
    }
}

/// Returns the page for a user, with the drafts of the team for authors.
pub(crate) async fn page(
    portal: &Portal,
    user: &SignedInUser,
    form: &DraftForm,
) -> Result<PortalPage, PortalError> {
    let mut rows = Vec::new();
    for environment in [Environment::Production, Environment::Development] {
        let platforms = portal.lookups.platforms(environment).await?;
        rows.extend(platforms.into_iter().map(PlatformRow::from));
    }
    let authors = user.role.may(Permission::Author);
    let drafts = if authors {
        portal.authoring.drafts(user).await?.into_iter().map(DraftRow::from).collect()
    } else {
        vec![]
    };
    Ok(PortalPage::of_team("platforms.html", message("Platforms"), "platforms", user)
        .with("platforms", rows)
        .with("authors", authors)
        .with("drafts", drafts)
        .with("form", form))
}

async fn list(
    portal: web::Data<Portal>,
    notice: web::Query<NoticeQuery>,
    signed: Authenticated,
) -> Result<HttpResponse, PageError> {
    let page = page(&portal, &signed.0, &DraftForm::default()).await?;
    Ok(page.with_notice(&notice).into_response())
}
