//! The published versions of a platform, and the choice of the one that new sessions run.

use actix_web::{HttpResponse, web};
use domain::{
    id::PlatformId,
    platform::{ActiveVersions, Canary, CanaryShare, PublishedVersion},
};
use ports::driving::{PortalError, SignedInUser, VersionChoice};
use serde::Serialize;

use crate::{
    Portal,
    authenticated::Authenticated,
    error::PageError,
    forms::Fields,
    message::message,
    methods::{reading, submitting},
    page::{NoticeQuery, PageTime, PortalPage, redirect_with_notice},
    reauthentication::{Confirmed, Publications},
};

pub(crate) fn routes(config: &mut web::ServiceConfig) {
    config
        .route("/portal/platforms/{id}/versions", reading(list))
        .route("/portal/platforms/{id}/versions", submitting(choose));
}

/// What new sessions run, in the fields of the forms: a choice holds for what its author has seen.
#[derive(Serialize)]
struct SeenVersions {
    version: String,
    canary: Option<SeenCanary>,
}

#[derive(Serialize)]
struct SeenCanary {
    version: String,
    percent: u8,
}

impl From<ActiveVersions> for SeenVersions {
    fn from(active: ActiveVersions) -> Self {
        let canary = active.canary.map(|canary| SeenCanary {
            version: canary.version,
            percent: canary.share.as_percent(),
        });
        Self { version: active.version, canary }
    }
}

#[derive(Serialize)]
struct PublishedRow {
    version: String,
    published: PageTime,
    sha256: String,
    /// The share of new sessions that run it, in percent.
    share: u8,
}

impl PublishedRow {
    fn of(published: PublishedVersion, active: &ActiveVersions) -> Self {
        let version = published.definition.version;
        let canary = active.canary.as_ref();
        let tried = canary.map_or(0, |canary| canary.share.as_percent());
        let share = if version == active.version {
            100_u8.saturating_sub(tried)
        } else if canary.is_some_and(|canary| canary.version == version) {
            tried
        } else {
            0
        };
        let sha256 = published.definition.sha256;
        Self { version, published: published.published_at.into(), sha256, share }
    }
}

async fn page(
    portal: &Portal,
    user: &SignedInUser,
    id: PlatformId,
) -> Result<PortalPage, PortalError> {
    let (platform, versions) = portal.authoring.versions(user, id).await?;
    let active = platform.active_versions();
    let rows = versions.into_iter().map(|published| PublishedRow::of(published, &active));
    let rows: Vec<_> = rows.collect();
    let title = message("Versions of {name}").with("name", platform.display_name);
    Ok(PortalPage::of_team("versions.html", title, "platforms", user)
        .with("platform", platform.id.0)
        .with("versions", rows)
        .with("seen", SeenVersions::from(active)))
}

async fn list(
    portal: web::Data<Portal>,
    id: web::Path<String>,
    notice: web::Query<NoticeQuery>,
    signed: Authenticated,
) -> Result<HttpResponse, PageError> {
    let page = page(&portal, &signed.0, read(&id)?).await?;
    Ok(page.with_notice(&notice).into_response())
}

async fn choose(
    portal: web::Data<Portal>,
    id: web::Path<String>,
    submitted: Confirmed<Publications>,
) -> Result<HttpResponse, PageError> {
    let (id, user) = (read(&id)?, &submitted.user);
    let choice = choice(&submitted.fields);
    match portal.authoring.choose_version(user, id, choice).await {
        Ok(()) => {
            let list = format!("/portal/platforms/{id}/versions");
            Ok(redirect_with_notice(&list, "version-chosen"))
        }
        Err(error @ PortalError::Invalid(_)) => Ok(page(&portal, user, id).await?.refused(&error)),
        Err(error) => Err(error.into()),
    }
}

fn choice(fields: &Fields) -> VersionChoice {
    let text = |name: &str| fields.text(name).to_owned();
    let share = fields.text("seen_percent").parse().ok().and_then(CanaryShare::percent);
    let canary = share.map(|share| Canary { version: text("seen_canary"), share });
    VersionChoice {
        version: text("version"),
        seen: ActiveVersions { version: text("seen_version"), canary },
    }
}

fn read(id: &str) -> Result<PlatformId, PortalError> {
    id.parse().map_err(|_| PortalError::NotFound("platform"))
}
