//! The team's registered contacts ("receivers" in the partner API).

use actix_web::{HttpResponse, web};
use domain::{id::ContactId, request::Contact};
use ports::{
    contact_store::StoredContact,
    driving::{PortalError, SignedInUser},
};
use serde::Serialize;

use crate::{
    Portal,
    authenticated::Authenticated,
    error::PageError,
    forms::{CsrfForm, Fields},
    message::message,
    methods::{reading, submitting},
    page::{NoticeQuery, PageTime, PortalPage, redirect_with_notice},
};

const HERE: &str = "/portal/receivers";
/// Larger than the longest of the fields.
const LONGEST: usize = 300;

pub(crate) fn routes(config: &mut web::ServiceConfig) {
    config
        .route(HERE, reading(list))
        .route(HERE, submitting(add))
        .route("/portal/receivers/{id}", reading(one))
        .route("/portal/receivers/{id}", submitting(change))
        .route("/portal/receivers/{id}/remove", submitting(remove));
}

/// The values of the form.
#[derive(Serialize, Default)]
struct ContactForm {
    name: String,
    email: String,
    phone: String,
    locale: String,
}

impl ContactForm {
    fn submitted(fields: &Fields) -> Self {
        let text = |name: &str| fields.text(name).trim().chars().take(LONGEST).collect();
        Self {
            name: text("name"),
            email: text("email"),
            phone: text("phone"),
            locale: text("locale"),
        }
    }

    fn of(contact: Contact) -> Self {
        Self {
            name: contact.name.unwrap_or_default(),
            email: contact.email.unwrap_or_default(),
            phone: contact.phone.unwrap_or_default(),
            locale: contact.locale.unwrap_or_default(),
        }
    }

    fn read(&self) -> Result<Contact, PortalError> {
        if self.email.is_empty() && self.phone.is_empty() {
            return Err(PortalError::Invalid("enter an email or phone number".to_owned()));
        }
        let contact = Contact::parse(&self.name, &self.email, &self.phone, &self.locale);
        contact.map_err(|invalid| PortalError::Invalid(invalid.to_string()))
    }
}

#[derive(Serialize)]
struct ContactListRow {
    id: String,
    contact: ContactForm,
    since: PageTime,
}

impl From<StoredContact> for ContactListRow {
    fn from(kept: StoredContact) -> Self {
        let contact = ContactForm::of(kept.contact);
        Self { id: kept.id.to_string(), contact, since: kept.created_at.into() }
    }
}

async fn page(
    portal: &Portal,
    user: &SignedInUser,
    form: &ContactForm,
) -> Result<PortalPage, PortalError> {
    let receivers = portal.receivers.receivers(user).await?.into_iter();
    let rows: Vec<_> = receivers.map(ContactListRow::from).collect();
    Ok(PortalPage::of_team("receivers.html", message("Recipients"), "receivers", user)
        .with("receivers", rows)
        .with("form", form))
}

fn page_of(user: &SignedInUser, id: ContactId, form: &ContactForm) -> PortalPage {
    PortalPage::of_team("receiver.html", message("Recipient"), "receivers", user)
        .with("id", id.to_string())
        .with("form", form)
}

async fn list(
    portal: web::Data<Portal>,
    notice: web::Query<NoticeQuery>,
    signed: Authenticated,
) -> Result<HttpResponse, PageError> {
    let page = page(&portal, &signed.0, &ContactForm::default()).await?;
    Ok(page.with_notice(&notice).into_response())
}

async fn add(portal: web::Data<Portal>, submitted: CsrfForm) -> Result<HttpResponse, PageError> {
    let form = ContactForm::submitted(&submitted.fields);
    let added = match form.read() {
        Ok(contact) => portal.receivers.register(&submitted.user, contact).await,
        Err(error) => Err(error),
    };
    match added {
        Ok(_) => Ok(redirect_with_notice(HERE, "recipient")),
        Err(error @ PortalError::Invalid(_)) => {
            Ok(page(&portal, &submitted.user, &form).await?.refused(&error))
        }
        Err(error) => Err(error.into()),
    }
}

async fn one(
    portal: web::Data<Portal>,
    id: web::Path<String>,
    signed: Authenticated,
) -> Result<HttpResponse, PageError> {
    let kept = portal.receivers.receiver(&signed.0, read(&id)?).await?;
    Ok(page_of(&signed.0, kept.id, &ContactForm::of(kept.contact)).into_response())
}

async fn change(
    portal: web::Data<Portal>,
    id: web::Path<String>,
    submitted: CsrfForm,
) -> Result<HttpResponse, PageError> {
    let (id, form) = (read(&id)?, ContactForm::submitted(&submitted.fields));
    let changed = match form.read() {
        Ok(contact) => portal.receivers.change_receiver(&submitted.user, id, contact).await,
        Err(error) => Err(error),
    };
    match changed {
        Ok(()) => Ok(redirect_with_notice(HERE, "recipient")),
        Err(error @ PortalError::Invalid(_)) => {
            Ok(page_of(&submitted.user, id, &form).refused(&error))
        }
        Err(error) => Err(error.into()),
    }
}

async fn remove(
    portal: web::Data<Portal>,
    id: web::Path<String>,
    submitted: CsrfForm,
) -> Result<HttpResponse, PageError> {
    portal.receivers.remove_receiver(&submitted.user, read(&id)?).await?;
    Ok(redirect_with_notice(HERE, "recipient-removed"))
}

fn read(id: &str) -> Result<ContactId, PortalError> {
    id.parse().map_err(|_| PortalError::NotFound("recipient"))
}
