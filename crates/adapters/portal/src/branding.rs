//! The branding that the team's applicants see.

use actix_web::{
    HttpResponse,
    http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS},
    web,
};
use domain::{
    branding::{Brand, BrandName, Colour, InvalidBrand, Logo},
    https_url::{self, HttpsUrl},
};
use ports::driving::{PortalError, SignedInUser};
use serde::Serialize;

use crate::{
    Portal,
    authenticated::Authenticated,
    error::PageError,
    forms::{CsrfForm, CsrfUpload, Fields},
    message::message,
    methods::{reading, submitting},
    page::{NoticeQuery, PortalPage, redirect_with_notice},
};

const HERE: &str = "/portal/branding";
/// Larger than the longest of the fields.
const LONGEST: usize = https_url::MAX_CHARS + 1;

pub(crate) fn routes(config: &mut web::ServiceConfig) {
    config
        .route(HERE, reading(show))
        .route(HERE, submitting(save))
        .route("/portal/branding/logo", reading(logo))
        .route("/portal/branding/logo", submitting(keep_logo))
        .route("/portal/branding/logo/remove", submitting(drop_logo));
}

/// The values of a form without errors.
type Submitted = (Option<BrandName>, Option<Colour>, Option<HttpsUrl>);

/// The values of the form.
#[derive(Serialize)]
struct BrandingForm {
    name: String,
    colour: String,
    privacy_url: String,
}

impl BrandingForm {
    fn of(brand: &Brand) -> Self {
        let name = brand.name.as_ref().map(BrandName::as_str).unwrap_or_default();
        let colour = brand.colour.map(|colour| colour.to_string()).unwrap_or_default();
        let privacy_url = brand.privacy_url.as_ref().map(HttpsUrl::as_str).unwrap_or_default();
        Self { name: name.to_owned(), colour, privacy_url: privacy_url.to_owned() }
    }

    fn submitted(fields: &Fields) -> Self {
        let text = |name: &str| fields.text(name).trim().chars().take(LONGEST).collect();
        Self { name: text("name"), colour: text("colour"), privacy_url: text("privacy_url") }
    }

    fn read(&self) -> Result<Submitted, InvalidBrand> {
        let given = |text: &'_ str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let name = given(&self.name).map(|name| name.parse()).transpose()?;
        let colour = given(&self.colour).map(|colour| colour.parse()).transpose()?;
        let privacy_url = given(&self.privacy_url)
            .map(|url| HttpsUrl::new(&url).ok_or(InvalidBrand::PrivacyUrl))
            .transpose()?;
        Ok((name, colour, privacy_url))
    }
}

fn page(user: &SignedInUser, brand: &Brand, form: &BrandingForm) -> PortalPage {
    PortalPage::of_team("branding.html", message("Branding"), "branding", user)
        .with("has_logo", brand.logo.is_some())
        .with("form", form)
}

fn invalid(error: InvalidBrand) -> PortalError {
    PortalError::Invalid(error.to_string())
}

async fn show(
    portal: web::Data<Portal>,
    notice: web::Query<NoticeQuery>,
    signed: Authenticated,
) -> Result<HttpResponse, PageError> {
    let brand = portal.branding.brand(&signed.0).await?;
    let page = page(&signed.0, &brand, &BrandingForm::of(&brand));
    Ok(page.with_notice(&notice).into_response())
}

async fn save(portal: web::Data<Portal>, submitted: CsrfForm) -> Result<HttpResponse, PageError> {
    let form = BrandingForm::submitted(&submitted.fields);
    match form.read() {
        Ok((name, colour, privacy_url)) => {
            portal.branding.set_brand(&submitted.user, name, colour, privacy_url).await?;
            Ok(redirect_with_notice(HERE, "branding"))
        }
        Err(error) => {
            let brand = portal.branding.brand(&submitted.user).await?;
            Ok(page(&submitted.user, &brand, &form).refused(&invalid(error)))
        }
    }
}

async fn keep_logo(
    portal: web::Data<Portal>,
    submitted: CsrfUpload,
) -> Result<HttpResponse, PageError> {
    match Logo::read(&submitted.content) {
        Ok(logo) => {
            portal.branding.set_logo(&submitted.user, Some(logo)).await?;
            Ok(redirect_with_notice(HERE, "logo"))
        }
        Err(error) => {
            let brand = portal.branding.brand(&submitted.user).await?;
            Ok(page(&submitted.user, &brand, &BrandingForm::of(&brand)).refused(&invalid(error)))
        }
    }
}

async fn drop_logo(
    portal: web::Data<Portal>,
    submitted: CsrfForm,
) -> Result<HttpResponse, PageError> {
    portal.branding.set_logo(&submitted.user, None).await?;
    Ok(redirect_with_notice(HERE, "logo-removed"))
}

/// Serves the team's logo to the branding page.
async fn logo(portal: web::Data<Portal>, signed: Authenticated) -> Result<HttpResponse, PageError> {
    let logo = portal.branding.brand(&signed.0).await?.logo.ok_or(PageError::NotFound)?;
    Ok(HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, "image/png"))
        .insert_header((X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header((CACHE_CONTROL, "no-store"))
        .body(logo.bytes().to_vec()))
}
