//! A team's own wordings of its mails: written, looked at, submitted, and decided about.

use actix_web::{
    HttpResponse,
    http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_FRAME_OPTIONS},
    web,
};
use domain::{
    id::TemplateId,
    language::Language,
    template::{Draft, MAX_BODY_CHARS, ReviewStep},
};
use ports::{
    driving::{PortalError, SignedInUser},
    template_store::{StoredTemplate, TemplateRevision},
};
use serde::Serialize;

use crate::{
    Portal,
    authenticated::Authenticated,
    error::{PageError, see},
    forms::{CsrfForm, Fields},
    page::{PageTime, PortalPage},
};

const HERE: &str = "/portal/templates";
const NONE: PortalError = PortalError::NotFound("template");
/// What begins with, to be written over.
const BEGINNING: &str = "# Hello{% if name %} {{ name }}{% endif %}\n\n{{ sender }} asks you to confirm that your \
    account at {{ platform }} is yours.\n\n[Confirm account]({{ link }})\n\n\
    The link works until {{ expires }}.";
/// A mail has styles of its own, and nothing that runs or is fetched.
const MAIL_POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'; sandbox";

pub(crate) fn routes(config: &mut web::ServiceConfig) {
    config
        .route(HERE, web::get().to(list))
        .route(HERE, web::post().to(add))
        .route("/portal/templates/{id}", web::get().to(one))
        .route("/portal/templates/{id}", web::post().to(write))
        .route("/portal/templates/{id}/preview", web::get().to(preview))
        .route("/portal/templates/{id}/default", web::post().to(prefer))
        .route("/portal/templates/{id}/remove", web::post().to(remove))
        .route("/portal/templates/{id}/{step}", web::post().to(step))
        .route("/portal/approvals", web::get().to(approvals));
}

/// What a form has, or is to have.
#[derive(Serialize)]
struct TemplateForm {
    name: String,
    language: String,
    subject: String,
    body: String,
}

impl TemplateForm {
    fn empty() -> Self {
        Self {
            name: String::new(),
            language: Language::ENGLISH.tag().to_owned(),
            subject: "{{ sender }} asks you to confirm your {{ platform }} account".to_owned(),
            body: BEGINNING.to_owned(),
        }
    }

    fn sent(fields: &Fields) -> Self {
        // One more than may be, so that it is refused and not cut.
        let text = |name: &str| fields.text(name).chars().take(MAX_BODY_CHARS * 2).collect();
        Self {
            name: text("name"),
            language: text("language"),
            subject: text("subject"),
            body: text("body"),
        }
    }

    fn of(draft: Draft) -> Self {
        let Draft { name, wording } = draft;
        let language = wording.language.tag().to_owned();
        Self { name, language, subject: wording.subject, body: wording.body }
    }

    fn read(&self) -> Result<Draft, PortalError> {
        let invalid = |error: &dyn std::error::Error| PortalError::Invalid(error.to_string());
        let language = self.language.parse().map_err(|error| invalid(&error))?;
        let draft = Draft::new(&self.name, language, &self.subject, &self.body);
        draft.map_err(|error| invalid(&error))
    }
}

#[derive(Serialize)]
struct TemplateListRow {
    id: i32,
    name: String,
    language: &'static str,
    subject: String,
    status: &'static str,
    is_default: bool,
    updated: PageTime,
    /// Whose it is, where that is not plain.
    team: String,
}

impl TemplateListRow {
    fn of(kept: StoredTemplate, team: String) -> Self {
        Self {
            id: kept.id.0,
            name: kept.draft.name,
            language: kept.draft.wording.language.tag(),
            subject: kept.draft.wording.subject,
            status: kept.status.as_str(),
            is_default: kept.is_default,
            updated: kept.updated_at.into(),
            team,
        }
    }
}

fn languages() -> [&'static str; 10] {
    Language::ALL.map(Language::tag)
}

async fn list_page(
    portal: &Portal,
    visitor: &SignedInUser,
    form: &TemplateForm,
) -> Result<PortalPage, PortalError> {
    let templates = portal.templates.templates(visitor).await?.into_iter();
    let rows: Vec<_> = templates.map(|kept| TemplateListRow::of(kept, String::new())).collect();
    Ok(PortalPage::of_team("templates.html", "E-mail templates", "templates", visitor)
        .with("templates", rows)
        .with("languages", languages())
        .with("form", form))
}

async fn list(portal: web::Data<Portal>, signed: Authenticated) -> Result<HttpResponse, PageError> {
    Ok(list_page(&portal, &signed.0, &TemplateForm::empty()).await?.shown())
}

async fn add(portal: web::Data<Portal>, sent: CsrfForm) -> Result<HttpResponse, PageError> {
    let form = TemplateForm::sent(&sent.fields);
    let added = match form.read() {
        Ok(draft) => portal.templates.add_template(&sent.visitor, draft).await,
        Err(error) => Err(error),
    };
    match added {
        Ok(id) => Ok(see(&format!("{HERE}/{id}"))),
        Err(error @ PortalError::Invalid(_)) => {
            Ok(list_page(&portal, &sent.visitor, &form).await?.refused(&error))
        }
        Err(error) => Err(error.into()),
    }
}

/// A page about one of them, with what it is or what was entered.
async fn one_page(
    portal: &Portal,
    visitor: &SignedInUser,
    kept: StoredTemplate,
    form: Option<&TemplateForm>,
) -> Result<PortalPage, PortalError> {
    let mine = kept.team == visitor.team;
    let written = portal.templates.preview(visitor, kept.clone()).await?;
    let (text, subject, flaws) = match written {
        Ok(written) => (written.text, written.subject, vec![]),
        Err(flaws) => (String::new(), String::new(), flaws),
    };
    let operates = visitor.role.may(domain::account::Permission::Operate);
    let page = PortalPage::of_team("template.html", "E-mail template", "templates", visitor)
        .with("mine", mine)
        .with("decides", operates && kept.status == ReviewStep::Submit.to())
        .with("open", mine && kept.status.is_open())
        .with("reason", &kept.reason)
        .with("revision", kept.revision.0)
        .with("languages", languages())
        .with("flaws", flaws)
        .with("text", text)
        .with("subject", subject);
    let page = match form {
        Some(form) => page.with("form", form),
        None => page.with("form", TemplateForm::of(kept.draft.clone())),
    };
    Ok(page.with("template", TemplateListRow::of(kept, String::new())).with_mail())
}

async fn one(
    portal: web::Data<Portal>,
    id: web::Path<String>,
    signed: Authenticated,
) -> Result<HttpResponse, PageError> {
    let kept = portal.templates.one_template(&signed.0, read(&id)?).await?;
    Ok(one_page(&portal, &signed.0, kept, None).await?.shown())
}

async fn write(
    portal: web::Data<Portal>,
    id: web::Path<String>,
    sent: CsrfForm,
) -> Result<HttpResponse, PageError> {
    let (id, form) = (read(&id)?, TemplateForm::sent(&sent.fields));
    let written = match form.read() {
        Ok(draft) => portal.templates.write_template(&sent.visitor, id, draft).await,
        Err(error) => Err(error),
    };
    match written {
        Ok(()) => Ok(see(&format!("{HERE}/{id}"))),
        Err(error) => refused(&portal, &sent.visitor, id, error, Some(&form)).await,
    }
}

/// The same page with what was wrong, where that can be mended there.
async fn refused(
    portal: &Portal,
    visitor: &SignedInUser,
    id: TemplateId,
    error: PortalError,
    form: Option<&TemplateForm>,
) -> Result<HttpResponse, PageError> {
    if !matches!(error, PortalError::Invalid(_)) {
        return Err(error.into());
    }
    let kept = portal.templates.one_template(visitor, id).await?;
    Ok(one_page(portal, visitor, kept, form).await?.refused(&error))
}

/// The mail alone, for a frame of the page about it.
async fn preview(
    portal: web::Data<Portal>,
    id: web::Path<String>,
    signed: Authenticated,
) -> Result<HttpResponse, PageError> {
    let kept = portal.templates.one_template(&signed.0, read(&id)?).await?;
    let written = portal.templates.preview(&signed.0, kept).await?;
    let html = written.map_or_else(|_| String::new(), |written| written.html);
    Ok(HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, "text/html; charset=utf-8"))
        .insert_header((CONTENT_SECURITY_POLICY, MAIL_POLICY))
        .insert_header((X_FRAME_OPTIONS, "SAMEORIGIN"))
        .insert_header((CACHE_CONTROL, "no-store"))
        .body(html))
}

async fn step(
    portal: web::Data<Portal>,
    path: web::Path<(String, String)>,
    sent: CsrfForm,
) -> Result<HttpResponse, PageError> {
    let (id, step) = path.into_inner();
    let all = [ReviewStep::Submit, ReviewStep::Withdraw, ReviewStep::Approve, ReviewStep::Reject];
    let step = all.into_iter().find(|known| known.as_str() == step).ok_or(PageError::NotThere)?;
    let id = read(&id)?;
    let revision = TemplateRevision(sent.fields.text("revision").parse().unwrap_or_default());
    let reason = sent.fields.text("reason").to_owned();
    let done = portal.templates.step_template(&sent.visitor, (id, revision), step, reason).await;
    match done {
        Ok(()) if matches!(step, ReviewStep::Approve | ReviewStep::Reject) => {
            Ok(see("/portal/approvals"))
        }
        Ok(()) => Ok(see(&format!("{HERE}/{id}"))),
        Err(error) => refused(&portal, &sent.visitor, id, error, None).await,
    }
}

async fn prefer(
    portal: web::Data<Portal>,
    id: web::Path<String>,
    sent: CsrfForm,
) -> Result<HttpResponse, PageError> {
    let id = read(&id)?;
    match portal.templates.prefer_template(&sent.visitor, id, sent.fields.has("on")).await {
        Ok(()) => Ok(see(&format!("{HERE}/{id}"))),
        Err(error) => refused(&portal, &sent.visitor, id, error, None).await,
    }
}

async fn remove(
    portal: web::Data<Portal>,
    id: web::Path<String>,
    sent: CsrfForm,
) -> Result<HttpResponse, PageError> {
    portal.templates.remove_template(&sent.visitor, read(&id)?).await?;
    Ok(see(HERE))
}

async fn approvals(
    portal: web::Data<Portal>,
    signed: Authenticated,
) -> Result<HttpResponse, PageError> {
    let waiting = portal.templates.submitted_templates(&signed.0).await?.into_iter();
    let rows: Vec<_> = waiting.map(|(kept, team)| TemplateListRow::of(kept, team)).collect();
    let page = PortalPage::of_team("approvals.html", "To be approved", "approvals", &signed.0);
    Ok(page.with("templates", rows).shown())
}

fn read(id: &str) -> Result<TemplateId, PortalError> {
    id.parse().map_err(|_| NONE)
}
