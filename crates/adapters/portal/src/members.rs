//! The members of the team: invited, appointed, removed.

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
    error::{PageError, redirect},
    forms::Fields,
    message::{Message, message},
    methods::{reading, submitting},
    page::{PageTime, PortalPage},
    reauthentication::{Confirmed, TeamSettings},
};

const HERE: &str = "/portal/members";

pub(crate) fn routes(config: &mut web::ServiceConfig) {
    config
        .route(HERE, reading(list))
        .route(HERE, submitting(invite))
        .route("/portal/members/{id}/invite", submitting(invite_again))
        .route("/portal/members/{id}/role", submitting(appoint))
        .route("/portal/members/{id}/sign-out", submitting(sign_out))
        .route("/portal/members/{id}/remove", submitting(remove))
        .route("/portal/members/second-factor", submitting(require))
        .route("/portal/members/regions", submitting(allow_other_regions));
}

#[derive(Serialize)]
struct MemberRow {
    id: String,
    email: String,
    role: &'static str,
    own: bool,
    joined: bool,
    /// What the signed-in user may do.
    may: MemberActions,
    two_factor: Message,
    since: PageTime,
    mail: Option<Message>,
    until: Option<PageTime>,
}

/// What the signed-in user may do with a member.
#[derive(Serialize)]
struct MemberActions {
    change: bool,
    remove: bool,
}

impl MemberRow {
    fn of(member: Member, signed_in: &SignedInUser) -> Self {
        let Member { user, link } = member;
        let (mail, until) = link.unzip();
        Self {
            id: user.id.to_string(),
            email: user.email.to_string(),
            role: user.role.as_str(),
            own: user.id == signed_in.user,
            joined: user.has_password,
            may: MemberActions {
                change: signed_in.role.may_appoint(user.role),
                remove: signed_in.role.may_remove(user.role),
            },
            two_factor: if user.has_second_factor { message("On") } else { message("Off") },
            since: user.created_at.into(),
            mail: mail.map(|mail| match mail {
                Mailed::Queued => message("Invitation pending"),
                Mailed::Sent => message("Invitation sent"),
                Mailed::Failed(why) => message("Not sent ({reason})")
                    .with("reason", Message::error(why.replace('_', " "))),
            }),
            until: until.map(PageTime::from),
        }
    }
}

async fn page(
    portal: &Portal,
    user: &SignedInUser,
    email: &str,
) -> Result<PortalPage, PortalError> {
    let members = portal.team.members(user).await?.into_iter();
    let rows: Vec<_> = members.map(|member| MemberRow::of(member, user)).collect();
    let roles = Role::ALL.into_iter().filter(|role| user.role.may_appoint(*role));
    let roles: Vec<_> = roles.map(Role::as_str).collect();
    Ok(PortalPage::of_team("members.html", message("Members"), "members", user)
        .with("members", rows)
        .with("required", portal.team.requires_second_factor(user).await?)
        .with("other_regions", portal.team.allows_other_regions(user).await?)
        .with("roles", roles)
        .with("email", email.chars().take(300).collect::<String>()))
}

async fn list(portal: web::Data<Portal>, signed: Authenticated) -> Result<HttpResponse, PageError> {
    Ok(page(&portal, &signed.0, "").await?.into_response())
}

async fn invite(
    portal: web::Data<Portal>,
    submitted: Confirmed<TeamSettings>,
) -> Result<HttpResponse, PageError> {
    let (user, fields) = (submitted.user, submitted.fields);
    let email = fields.text("email");
    let invited = match role(&fields) {
        Ok(role) => {
            let order = NewMember { email: email.chars().take(300).collect(), role };
            portal.team.invite(&user, order).await
        }
        Err(error) => Err(error),
    };
    answer(&portal, &user, email, invited).await
}

async fn invite_again(
    portal: web::Data<Portal>,
    id: web::Path<String>,
    submitted: Confirmed<TeamSettings>,
) -> Result<HttpResponse, PageError> {
    let invited = portal.team.invite_again(&submitted.user, read(&id)?).await;
    answer(&portal, &submitted.user, "", invited).await
}

async fn appoint(
    portal: web::Data<Portal>,
    id: web::Path<String>,
    submitted: Confirmed<TeamSettings>,
) -> Result<HttpResponse, PageError> {
    let id = read(&id)?;
    let appointed = match role(&submitted.fields) {
        Ok(role) => portal.team.appoint(&submitted.user, id, role).await,
        Err(error) => Err(error),
    };
    answer(&portal, &submitted.user, "", appointed).await
}

async fn sign_out(
    portal: web::Data<Portal>,
    id: web::Path<String>,
    submitted: Confirmed<TeamSettings>,
) -> Result<HttpResponse, PageError> {
    let done = portal.team.sign_out_member(&submitted.user, read(&id)?).await;
    answer(&portal, &submitted.user, "", done).await
}

async fn require(
    portal: web::Data<Portal>,
    submitted: Confirmed<TeamSettings>,
) -> Result<HttpResponse, PageError> {
    let required = submitted.fields.text("required") == "on";
    portal.team.require_second_factor(&submitted.user, required).await?;
    Ok(redirect(HERE))
}

async fn allow_other_regions(
    portal: web::Data<Portal>,
    submitted: Confirmed<TeamSettings>,
) -> Result<HttpResponse, PageError> {
    let allowed = submitted.fields.text("allowed") == "on";
    portal.team.allow_other_regions(&submitted.user, allowed).await?;
    Ok(redirect(HERE))
}

async fn remove(
    portal: web::Data<Portal>,
    id: web::Path<String>,
    submitted: Confirmed<TeamSettings>,
) -> Result<HttpResponse, PageError> {
    let removed = portal.team.remove(&submitted.user, read(&id)?).await;
    answer(&portal, &submitted.user, "", removed).await
}

/// Renders the current list, or the error.
async fn answer(
    portal: &Portal,
    user: &SignedInUser,
    email: &str,
    done: Result<(), PortalError>,
) -> Result<HttpResponse, PageError> {
    match done {
        Ok(()) => Ok(redirect(HERE)),
        Err(error @ (PortalError::Invalid(_) | PortalError::TooMany { .. })) => {
            Ok(page(portal, user, email).await?.refused(&error))
        }
        Err(error) => Err(error.into()),
    }
}

fn role(fields: &Fields) -> Result<Role, PortalError> {
    let role = fields.text("role").parse::<Role>();
    role.map_err(|error| PortalError::Invalid(error.to_string()))
}

fn read(id: &str) -> Result<UserId, PortalError> {
    id.parse().map_err(|_| PortalError::NotFound("member"))
}
