//! The drafts of definitions, and opening their studios.

use actix_web::{HttpResponse, web};
use domain::{
    api_key::Environment,
    id::{DraftId, PlatformId},
};
use ports::{
    authoring::Draft,
    driving::{NewDraft, PortalError, SignedInUser},
};
use serde::Serialize;

use crate::{
    Portal,
    authenticated::Authenticated,
    elsewhere::AtStudio,
    error::{PageError, redirect},
    forms::{CsrfForm, Fields},
    message::message,
    methods::{reading, submitting},
    page::{PageTime, PortalPage, redirect_with_notice},
    platforms,
    reauthentication::{ConfirmedPage, Publications},
};

const LIST: &str = "/portal/platforms";
/// Larger than the longest of the fields.
const LONGEST: usize = 2049;
/// The country that is chosen where the author has not chosen one.
const DEFAULT_COUNTRY: &str = "US";

pub(crate) fn routes(config: &mut web::ServiceConfig) {
    config
        .route("/portal/drafts", submitting(create))
        .route("/portal/platforms/{id}/draft", submitting(create_of_platform))
        .route("/portal/drafts/{id}", reading(show))
        .configure(studio_routes);
}

/// Adds the pages that need the process that has the studios of their author.
pub(crate) fn studio_routes(config: &mut web::ServiceConfig) {
    config
        .route("/portal/drafts/{id}/studio", reading(studio))
        .route("/portal/drafts/{id}/studio/{instance}", reading(studio_of_instance))
        .route("/portal/drafts/{id}/open", submitting(open))
        .route("/portal/drafts/{id}/delete", submitting(delete));
}

/// The values of the form for a new draft.
#[derive(Serialize, Default)]
pub(crate) struct DraftForm {
    name: String,
    login_url: String,
    is_production: bool,
}

impl DraftForm {
    fn submitted(fields: &Fields) -> Self {
        let text = |name: &str| fields.text(name).trim().chars().take(LONGEST).collect();
        let is_production = fields.text("environment") == Environment::Production.as_str();
        Self { name: text("name"), login_url: text("login_url"), is_production }
    }

    fn read(&self) -> NewDraft {
        NewDraft {
            name: self.name.clone(),
            login_url: self.login_url.clone(),
            environment: if self.is_production {
                Environment::Production
            } else {
                Environment::Development
            },
        }
    }
}

/// A draft in the list.
#[derive(Serialize)]
pub(crate) struct DraftRow {
    id: String,
    name: String,
    version: String,
    updated_at: PageTime,
    updated_by: String,
}

impl From<Draft> for DraftRow {
    fn from(draft: Draft) -> Self {
        Self {
            id: draft.id.to_string(),
            name: draft.name,
            version: draft.version,
            updated_at: draft.updated_at.into(),
            updated_by: draft.updated_by,
        }
    }
}

#[derive(Serialize)]
struct CountryOption {
    code: &'static str,
    name: &'static str,
}

async fn draft_page(
    portal: &Portal,
    user: &SignedInUser,
    id: DraftId,
    country: &str,
) -> Result<PortalPage, PortalError> {
    let drafts = portal.authoring.drafts(user).await?;
    let draft = drafts.into_iter().find(|draft| draft.id == id);
    let draft = DraftRow::from(draft.ok_or(PortalError::NotFound("draft"))?);
    let countries = portal.places.countries().iter();
    let countries = countries.filter(|country| portal.places.country(country.code).is_some());
    let countries: Vec<_> =
        countries.map(|country| CountryOption { code: country.code, name: country.name }).collect();
    let title = message("Draft of {name}").with("name", draft.name.clone());
    Ok(PortalPage::of_team("draft.html", title, "platforms", user)
        .with("draft", draft)
        .with("countries", countries)
        .with("country", country))
}

async fn show(
    portal: web::Data<Portal>,
    id: web::Path<String>,
    signed: Authenticated,
) -> Result<HttpResponse, PageError> {
    let page = draft_page(&portal, &signed.0, read(&id)?, DEFAULT_COUNTRY).await?;
    Ok(page.into_response())
}

async fn create(portal: web::Data<Portal>, submitted: CsrfForm) -> Result<HttpResponse, PageError> {
    let form = DraftForm::submitted(&submitted.fields);
    match portal.authoring.create_draft(&submitted.user, form.read()).await {
        Ok(id) => Ok(redirect(&format!("/portal/drafts/{id}"))),
        Err(error @ PortalError::Invalid(_)) => {
            Ok(platforms::page(&portal, &submitted.user, &form).await?.refused(&error))
        }
        Err(error) => Err(error.into()),
    }
}

async fn create_of_platform(
    portal: web::Data<Portal>,
    id: web::Path<String>,
    submitted: CsrfForm,
) -> Result<HttpResponse, PageError> {
    let platform = id.parse::<PlatformId>().map_err(|_| PortalError::NotFound("platform"))?;
    match portal.authoring.draft_of_platform(&submitted.user, platform).await {
        Ok(id) => Ok(redirect(&format!("/portal/drafts/{id}"))),
        Err(error @ PortalError::Invalid(_)) => {
            let form = DraftForm::default();
            Ok(platforms::page(&portal, &submitted.user, &form).await?.refused(&error))
        }
        Err(error) => Err(error.into()),
    }
}

async fn open(
    portal: web::Data<Portal>,
    id: web::Path<String>,
    submitted: AtStudio<CsrfForm>,
) -> Result<HttpResponse, PageError> {
    let submitted = match submitted {
        AtStudio::Here(submitted) => submitted,
        AtStudio::Answered(response) => return Ok(response),
    };
    let (id, user) = (read(&id)?, &submitted.user);
    let country = submitted.fields.text("country");
    match portal.authoring.open_studio(user, id, country).await {
        Ok(key) => Ok(redirect(&format!("/studio/{key}/"))),
        Err(error @ PortalError::Invalid(_)) => {
            Ok(draft_page(&portal, user, id, DEFAULT_COUNTRY).await?.refused(&error))
        }
        Err(error) => Err(error.into()),
    }
}

/// Leads back to the studio of a draft for an author who has re-authenticated to publish.
async fn studio(
    portal: web::Data<Portal>,
    id: web::Path<String>,
    confirmed: AtStudio<ConfirmedPage<Publications>>,
) -> Result<HttpResponse, PageError> {
    lead_back(&portal, &id, confirmed).await
}

/// Leads back to the studio of a draft at an instance, which [`AtStudio`] reads from the path.
async fn studio_of_instance(
    portal: web::Data<Portal>,
    path: web::Path<(String, String)>,
    confirmed: AtStudio<ConfirmedPage<Publications>>,
) -> Result<HttpResponse, PageError> {
    let (id, _) = path.into_inner();
    lead_back(&portal, &id, confirmed).await
}

async fn lead_back(
    portal: &Portal,
    id: &str,
    confirmed: AtStudio<ConfirmedPage<Publications>>,
) -> Result<HttpResponse, PageError> {
    let confirmed = match confirmed {
        AtStudio::Here(confirmed) => confirmed,
        AtStudio::Answered(response) => return Ok(response),
    };
    let id = read(id)?;
    Ok(match portal.authoring.studio_of_draft(&confirmed.0, id).await? {
        Some(key) => redirect(&format!("/studio/{key}/")),
        // It was closed meanwhile, and what it had is stored.
        None => redirect(&format!("/portal/drafts/{id}")),
    })
}

async fn delete(
    portal: web::Data<Portal>,
    id: web::Path<String>,
    submitted: AtStudio<CsrfForm>,
) -> Result<HttpResponse, PageError> {
    let submitted = match submitted {
        AtStudio::Here(submitted) => submitted,
        AtStudio::Answered(response) => return Ok(response),
    };
    portal.authoring.delete_draft(&submitted.user, read(&id)?).await?;
    Ok(redirect_with_notice(LIST, "draft-deleted"))
}

fn read(id: &str) -> Result<DraftId, PortalError> {
    id.parse().map_err(|_| PortalError::NotFound("draft"))
}
