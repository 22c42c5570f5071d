//! The team's mail templates: edited, previewed, submitted and reviewed.

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
    error::{PageError, redirect},
    forms::{CsrfForm, Fields},
    message::message,
    methods::{reading, submitting},
    page::{PageTime, PortalPage},
};

const HERE: &str = "/portal/templates";
const NONE: PortalError = PortalError::NotFound("template");
/// The text that a new template starts with.
const BEGINNING: &str = "# Hello{% if name %} {{ name }}{% endif %}\n\n{{ sender }} asks you to confirm that your \
    account at {{ platform }} is yours.\n\n[Confirm account]({{ link }})\n\n\
    This link is valid until {{ expires }}.";
/// The content security policy of a previewed mail, which has inline styles, runs no script, and
/// loads nothing.
const MAIL_POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'; sandbox";

pub(crate) fn routes(config: &mut web::ServiceConfig) {
    config
        .route(HERE, reading(list))
        .route(HERE, submitting(add))
        .route("/portal/templates/{id}", reading(one))
        .route("/portal/templates/{id}", submitting(write))
        .route("/portal/templates/{id}/preview", reading(preview))
        .route("/portal/templates/{id}/default", submitting(prefer))
        .route("/portal/templates/{id}/remove", submitting(remove))
        .route("/portal/templates/{id}/{step}", submitting(step))
        .route("/portal/approvals", reading(approvals));
}

/// The values of the form.
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

    fn submitted(fields: &Fields) -> Self {
        // One character more than the limit, so that a longer text is refused and not truncated.
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
    /// The team of the template, in lists with templates of several teams.
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
    user: &SignedInUser,
    form: &TemplateForm,
) -> Result<PortalPage, PortalError> {
    let templates = portal.templates.templates(user).await?.into_iter();
    let rows: Vec<_> = templates.map(|kept| TemplateListRow::of(kept, String::new())).collect();
    Ok(PortalPage::of_team("templates.html", message("Email templates"), "templates", user)
        .with("templates", rows)
        .with("languages", languages())
        .with("form", form))
}

async fn list(portal: web::Data<Portal>, signed: Authenticated) -> Result<HttpResponse, PageError> {
    Ok(list_page(&portal, &signed.0, &TemplateForm::empty()).await?.into_response())
}

async fn add(portal: web::Data<Portal>, submitted: CsrfForm) -> Result<HttpResponse, PageError> {
    let form = TemplateForm::submitted(&submitted.fields);
    let added = match form.read() {
        Ok(draft) => portal.templates.add_template(&submitted.user, draft).await,
        Err(error) => Err(error),
    };
    match added {
        Ok(id) => Ok(redirect(&format!("{HERE}/{id}"))),
        Err(error @ PortalError::Invalid(_)) => {
            Ok(list_page(&portal, &submitted.user, &form).await?.refused(&error))
        }
        Err(error) => Err(error.into()),
    }
}

/// Renders the page of a template, with the stored or the submitted values.
async fn one_page(
    portal: &Portal,
    user: &SignedInUser,
    kept: StoredTemplate,
    form: Option<&TemplateForm>,
) -> Result<PortalPage, PortalError> {
    let mine = kept.team == user.team;
    let written = portal.templates.preview(user, kept.clone()).await?;
    let (text, subject, flaws) = match written {
        Ok(written) => (written.text, written.subject, vec![]),
        Err(flaws) => (String::new(), String::new(), flaws),
    };
    let operates = user.role.may(domain::account::Permission::Operate);
    let page = PortalPage::of_team("template.html", message("Email template"), "templates", user)
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
    Ok(one_page(&portal, &signed.0, kept, None).await?.into_response())
}

async fn write(
    portal: web::Data<Portal>,
    id: web::Path<String>,
    submitted: CsrfForm,
) -> Result<HttpResponse, PageError> {
    let (id, form) = (read(&id)?, TemplateForm::submitted(&submitted.fields));
    let written = match form.read() {
        Ok(draft) => portal.templates.write_template(&submitted.user, id, draft).await,
        Err(error) => Err(error),
    };
    match written {
        Ok(()) => Ok(redirect(&format!("{HERE}/{id}"))),
        Err(error) => refused(&portal, &submitted.user, id, error, Some(&form)).await,
    }
}

/// Renders the same page with the error, if the form can correct it.
async fn refused(
    portal: &Portal,
    user: &SignedInUser,
    id: TemplateId,
    error: PortalError,
    form: Option<&TemplateForm>,
) -> Result<HttpResponse, PageError> {
    if !matches!(error, PortalError::Invalid(_)) {
        return Err(error.into());
    }
    let kept = portal.templates.one_template(user, id).await?;
    Ok(one_page(portal, user, kept, form).await?.refused(&error))
}

/// Serves the mail alone, for the iframe of its page.
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
    submitted: CsrfForm,
) -> Result<HttpResponse, PageError> {
    let (id, step) = path.into_inner();
    let all = [ReviewStep::Submit, ReviewStep::Withdraw, ReviewStep::Approve, ReviewStep::Reject];
    let step = all.into_iter().find(|known| known.as_str() == step).ok_or(PageError::NotFound)?;
    let id = read(&id)?;
    let revision = TemplateRevision(submitted.fields.text("revision").parse().unwrap_or_default());
    let reason = submitted.fields.text("reason").to_owned();
    let done = portal.templates.step_template(&submitted.user, (id, revision), step, reason).await;
    match done {
        Ok(()) if matches!(step, ReviewStep::Approve | ReviewStep::Reject) => {
            Ok(redirect("/portal/approvals"))
        }
        Ok(()) => Ok(redirect(&format!("{HERE}/{id}"))),
        Err(error) => refused(&portal, &submitted.user, id, error, None).await,
    }
}

async fn prefer(
    portal: web::Data<Portal>,
    id: web::Path<String>,
    submitted: CsrfForm,
) -> Result<HttpResponse, PageError> {
    let id = read(&id)?;
    match portal.templates.prefer_template(&submitted.user, id, submitted.fields.has("on")).await {
        Ok(()) => Ok(redirect(&format!("{HERE}/{id}"))),
        Err(error) => refused(&portal, &submitted.user, id, error, None).await,
    }
}

async fn remove(
    portal: web::Data<Portal>,
    id: web::Path<String>,
    submitted: CsrfForm,
) -> Result<HttpResponse, PageError> {
    portal.templates.remove_template(&submitted.user, read(&id)?).await?;
    Ok(redirect(HERE))
}

async fn approvals(
    portal: web::Data<Portal>,
    signed: Authenticated,
) -> Result<HttpResponse, PageError> {
    let waiting = portal.templates.submitted_templates(&signed.0).await?.into_iter();
    let rows: Vec<_> = waiting.map(|(kept, team)| TemplateListRow::of(kept, team)).collect();
    let page = PortalPage::of_team(
        "approvals.html",
        message("Template approvals"),
        "approvals",
        &signed.0,
    );
    Ok(page.with("templates", rows).into_response())
}

fn read(id: &str) -> Result<TemplateId, PortalError> {
    id.parse().map_err(|_| NONE)
}
