//! What the team looks like to its applicants.

use actix_web::{
    HttpResponse,
    http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS},
    web,
};
use domain::branding::{Brand, BrandName, Colour, InvalidBrand, Logo};
use ports::driving::{PortalError, SignedInUser};
use serde::Serialize;

use crate::{
    Portal,
    authenticated::Authenticated,
    error::{PageError, see},
    forms::{CsrfForm, CsrfUpload, Fields},
    page::PortalPage,
};

const HERE: &str = "/portal/branding";
/// More than the longest of the fields.
const LONGEST: usize = 200;

pub(crate) fn routes(config: &mut web::ServiceConfig) {
    config
        .route(HERE, web::get().to(show))
        .route(HERE, web::post().to(save))
        .route("/portal/branding/logo", web::get().to(logo))
        .route("/portal/branding/logo", web::post().to(keep_logo))
        .route("/portal/branding/logo/remove", web::post().to(drop_logo));
}

/// What the form has, or is to have.
#[derive(Serialize)]
struct BrandingForm {
    name: String,
    colour: String,
}

impl BrandingForm {
    fn of(brand: &Brand) -> Self {
        let name = brand.name.as_ref().map(BrandName::as_str).unwrap_or_default();
        let colour = brand.colour.map(|colour| colour.to_string()).unwrap_or_default();
        Self { name: name.to_owned(), colour }
    }

    fn sent(fields: &Fields) -> Self {
        let text = |name: &str| fields.text(name).trim().chars().take(LONGEST).collect();
        Self { name: text("name"), colour: text("colour") }
    }

    fn read(&self) -> Result<(Option<BrandName>, Option<Colour>), InvalidBrand> {
        let given = |text: &'_ str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let name = given(&self.name).map(|name| name.parse()).transpose()?;
        Ok((name, given(&self.colour).map(|colour| colour.parse()).transpose()?))
    }
}

fn page(visitor: &SignedInUser, brand: &Brand, form: &BrandingForm) -> PortalPage {
    PortalPage::of_team("branding.html", "Branding", "branding", visitor)
        .with("has_logo", brand.logo.is_some())
        .with("form", form)
}

fn invalid(error: InvalidBrand) -> PortalError {
    PortalError::Invalid(error.to_string())
}

async fn show(portal: web::Data<Portal>, signed: Authenticated) -> Result<HttpResponse, PageError> {
    let brand = portal.branding.brand(&signed.0).await?;
    Ok(page(&signed.0, &brand, &BrandingForm::of(&brand)).shown())
}

async fn save(portal: web::Data<Portal>, sent: CsrfForm) -> Result<HttpResponse, PageError> {
    let form = BrandingForm::sent(&sent.fields);
    match form.read() {
        Ok((name, colour)) => {
            portal.branding.set_brand(&sent.visitor, name, colour).await?;
            Ok(see(HERE))
        }
        Err(error) => {
            let brand = portal.branding.brand(&sent.visitor).await?;
            Ok(page(&sent.visitor, &brand, &form).refused(&invalid(error)))
        }
    }
}

async fn keep_logo(portal: web::Data<Portal>, sent: CsrfUpload) -> Result<HttpResponse, PageError> {
    match Logo::read(&sent.content) {
        Ok(logo) => {
            portal.branding.set_logo(&sent.visitor, Some(logo)).await?;
            Ok(see(HERE))
        }
        Err(error) => {
            let brand = portal.branding.brand(&sent.visitor).await?;
            Ok(page(&sent.visitor, &brand, &BrandingForm::of(&brand)).refused(&invalid(error)))
        }
    }
}

async fn drop_logo(portal: web::Data<Portal>, sent: CsrfForm) -> Result<HttpResponse, PageError> {
    portal.branding.set_logo(&sent.visitor, None).await?;
    Ok(see(HERE))
}

/// The team's logo, as its page shows it.
async fn logo(portal: web::Data<Portal>, signed: Authenticated) -> Result<HttpResponse, PageError> {
    let logo = portal.branding.brand(&signed.0).await?.logo.ok_or(PageError::NotThere)?;
    Ok(HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, "image/png"))
        .insert_header((X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header((CACHE_CONTROL, "no-store"))
        .body(logo.bytes().to_vec()))
}
