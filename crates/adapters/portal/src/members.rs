//! Who is in the team: invited, appointed, taken out.

use actix_web::{HttpResponse, web};
use domain::{account::Role, id::UserId};
use ports::{
    account_links::Mailed,
    driving::{Member, NewMember, PortalError, SignedInUser},
};
use serde::Serialize;

use crate::{
    Portal,
    authenticated::Authenticated,
    error::{PageError, see},
    forms::Fields,
    page::{PageTime, PortalPage},
    reauthentication::{Confirmed, Team},
};

const HERE: &str = "/portal/members";

pub(crate) fn routes(config: &mut web::ServiceConfig) {
    config
        .route(HERE, web::get().to(list))
        .route(HERE, web::post().to(invite))
        .route("/portal/members/{id}/invite", web::post().to(invite_again))
        .route("/portal/members/{id}/role", web::post().to(appoint))
        .route("/portal/members/{id}/sign-out", web::post().to(sign_out))
        .route("/portal/members/{id}/remove", web::post().to(remove))
        .route("/portal/members/second-factor", web::post().to(require));
}

#[derive(Serialize)]
struct MemberRow {
    id: String,
    email: String,
    role: &'static str,
    own: bool,
    /// Whether the visitor may change them.
    below: bool,
    joined: bool,
    codes: &'static str,
    since: PageTime,
    mail: Option<String>,
    until: Option<PageTime>,
}

impl MemberRow {
    fn of(member: Member, visitor: &SignedInUser) -> Self {
        let Member { user, link } = member;
        let (mail, until) = link.unzip();
        Self {
            id: user.id.to_string(),
            email: user.email.to_string(),
            role: user.role.as_str(),
            own: user.id == visitor.user,
            below: visitor.role.may_appoint(user.role),
            joined: user.has_password,
            codes: if user.has_second_factor { "asked for" } else { "not set up" },
            since: user.created_at.into(),
            mail: mail.map(|mail| match mail {
                Mailed::Queued => "being sent".to_owned(),
                Mailed::Sent => "sent".to_owned(),
                Mailed::Failed(why) => format!("not sent: {}", why.replace('_', " ")),
            }),
            until: until.map(PageTime::from),
        }
    }
}

async fn page(
    portal: &Portal,
    visitor: &SignedInUser,
    email: &str,
) -> Result<PortalPage, PortalError> {
    let members = portal.team.members(visitor).await?.into_iter();
    let rows: Vec<_> = members.map(|member| MemberRow::of(member, visitor)).collect();
    let roles = Role::ALL.into_iter().filter(|role| visitor.role.may_appoint(*role));
    let roles: Vec<_> = roles.map(Role::as_str).collect();
    Ok(PortalPage::of_team("members.html", "Members", "members", visitor)
        .with("members", rows)
        .with("required", portal.team.requires_second_factor(visitor).await?)
        .with("roles", roles)
        .with("email", email.chars().take(300).collect::<String>()))
}

async fn list(portal: web::Data<Portal>, signed: Authenticated) -> Result<HttpResponse, PageError> {
    Ok(page(&portal, &signed.0, "").await?.shown())
}

async fn invite(
    portal: web::Data<Portal>,
    sent: Confirmed<Team>,
) -> Result<HttpResponse, PageError> {
    let (visitor, fields) = (sent.visitor, sent.fields);
    let email = fields.text("email");
    let invited = match role(&fields) {
        Ok(role) => {
            let order = NewMember { email: email.chars().take(300).collect(), role };
            portal.team.invite(&visitor, order).await
        }
        Err(error) => Err(error),
    };
    answer(&portal, &visitor, email, invited).await
}

async fn invite_again(
    portal: web::Data<Portal>,
    id: web::Path<String>,
    sent: Confirmed<Team>,
) -> Result<HttpResponse, PageError> {
    let invited = portal.team.invite_again(&sent.visitor, read(&id)?).await;
    answer(&portal, &sent.visitor, "", invited).await
}

async fn appoint(
    portal: web::Data<Portal>,
    id: web::Path<String>,
    sent: Confirmed<Team>,
) -> Result<HttpResponse, PageError> {
    let id = read(&id)?;
    let appointed = match role(&sent.fields) {
        Ok(role) => portal.team.appoint(&sent.visitor, id, role).await,
        Err(error) => Err(error),
    };
    answer(&portal, &sent.visitor, "", appointed).await
}

async fn sign_out(
    portal: web::Data<Portal>,
    id: web::Path<String>,
    sent: Confirmed<Team>,
) -> Result<HttpResponse, PageError> {
    let done = portal.team.sign_out_member(&sent.visitor, read(&id)?).await;
    answer(&portal, &sent.visitor, "", done).await
}

async fn require(
    portal: web::Data<Portal>,
    sent: Confirmed<Team>,
) -> Result<HttpResponse, PageError> {
    let required = sent.fields.text("required") == "on";
    portal.team.require_second_factor(&sent.visitor, required).await?;
    Ok(see(HERE))
}

async fn remove(
    portal: web::Data<Portal>,
    id: web::Path<String>,
    sent: Confirmed<Team>,
) -> Result<HttpResponse, PageError> {
    let removed = portal.team.remove(&sent.visitor, read(&id)?).await;
    answer(&portal, &sent.visitor, "", removed).await
}

/// The list as it is now, or why it is as it was.
async fn answer(
    portal: &Portal,
    visitor: &SignedInUser,
    email: &str,
    done: Result<(), PortalError>,
) -> Result<HttpResponse, PageError> {
    match done {
        Ok(()) => Ok(see(HERE)),
        Err(error @ (PortalError::Invalid(_) | PortalError::TooMany { .. })) => {
            Ok(page(portal, visitor, email).await?.refused(&error))
        }
        Err(error) => Err(error.into()),
    }
}

fn role(fields: &Fields) -> Result<Role, PortalError> {
    let role = fields.text("role").parse::<Role>();
    role.map_err(|error| PortalError::Invalid(error.to_string()))
}

fn read(id: &str) -> Result<UserId, PortalError> {
    id.parse().map_err(|_| PortalError::NotFound("person"))
}
