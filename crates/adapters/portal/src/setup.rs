//! The checklist for setting a team up, which marks by itself what is done.

use domain::{account::Permission, api_key::Environment, session::Status};
use ports::{
    driving::{PortalError, SessionSearch, SignedInUser},
    session_store::SessionFilter,
};
use serde::Serialize;

use crate::{
    Portal, documentation,
    message::{Message, message},
};

/// A step of the checklist.
#[derive(Serialize)]
pub(crate) struct SetupStep {
    label: Message,
    link: &'static str,
    is_done: bool,
}

/// Returns the steps that the user may take; empty once all are done.
pub(crate) async fn steps(
    portal: &Portal,
    user: &SignedInUser,
) -> Result<Vec<SetupStep>, PortalError> {
    if !user.role.may(Permission::Edit) {
        return Ok(vec![]);
    }
    let step = |label, link, is_done| SetupStep { label, link, is_done };
    let keys = portal.keys.keys(user).await?;
    let webhooks = portal.webhooks.webhooks(user).await?;
    let filter = SessionFilter {
        environment: Some(Environment::Development),
        status: Some(Status::Completed),
        ..SessionFilter::default()
    };
    let search = SessionSearch { filter, after: None, limit: 1 };
    let completed = portal.sessions.team_sessions(user, search).await?;
    let mut steps = vec![
        step(message("Create an API key"), "/portal/keys", !keys.is_empty()),
        step(message("Add a webhook endpoint"), "/portal/webhooks", !webhooks.is_empty()),
        step(
            message("Complete a sandbox session"),
            documentation::HOME,
            !completed.sessions.is_empty(),
        ),
    ];
    if user.role.may(Permission::ManageTeam) {
        let members = portal.team.members(user).await?;
        steps.push(step(message("Invite a member"), "/portal/members", members.len() > 1));
    }
    let is_complete = steps.iter().all(|step| step.is_done);
    Ok(if is_complete { vec![] } else { steps })
}
