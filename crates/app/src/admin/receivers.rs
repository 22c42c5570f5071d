//! `avouch admin …` about registered receivers.

use std::sync::Arc;

use clap::{Args, Subcommand};
use domain::{
    audit::AuditEvent,
    id::{ContactId, TeamId},
    request::Contact,
    webhook::wire_time,
};
use ports::{
    audit_log::AuditLog as _, clock::Clock as _, contact_store::ContactStore as _,
    key_store::TeamStore as _,
};
use serde_json::{Value, json};
use store::Store;
use system::clock::{SystemClock, SystemRandom};

use super::{ADMIN, known};
use crate::storage::{StartupError, error_chain};
use application::contacts::register;

#[derive(Debug, Subcommand)]
pub(crate) enum ReceiverCommand {
    /// Registers a receiver; prints {"receiverId"}
    CreateReceiver(CreateReceiver),
    /// Lists a team's registered receivers
    ListReceivers {
        #[arg(long)]
        team: TeamId,
    },
    /// Removes a registered receiver; sessions that name it keep what they have
    RemoveReceiver {
        #[arg(long)]
        team: TeamId,
        receiver_id: ContactId,
    },
}

#[derive(Debug, Args)]
pub(crate) struct CreateReceiver {
    #[arg(long)]
    team: TeamId,
    #[arg(long, default_value = "")]
    name: String,
    /// This or a phone number is needed
    #[arg(long, default_value = "")]
    email: String,
    /// E.164, such as +15551234567
    #[arg(long, default_value = "")]
    phone: String,
    /// A language tag, such as pt-BR
    #[arg(long, default_value = "")]
    locale: String,
}

impl ReceiverCommand {
    pub(super) async fn run(self, store: &Arc<Store>) -> Result<Value, StartupError> {
        match self {
            Self::CreateReceiver(order) => {
                let CreateReceiver { team, name, email, phone, locale } = order;
                let contact = Contact::parse(&name, &email, &phone, &locale)?;
                known(store.has_team(team).await.map_err(error_chain)?, "team", team)?;
                note(store, team, "receiver.add", "").await?;
                let made = register(&**store, (&SystemClock, &SystemRandom), team, contact);
                let made = made.await.map_err(error_chain)?;
                Ok(json!({ "receiverId": made.id }))
            }
            Self::ListReceivers { team } => {
                let all = store.contacts(team).await.map_err(error_chain)?;
                let all = all.into_iter().map(|kept| {
                    let Contact { name, email, phone, locale, .. } = kept.contact;
                    json!({ "receiverId": kept.id, "name": name, "email": email, "phone": phone,
                        "locale": locale, "createdAt": wire_time(kept.created_at) })
                });
                Ok(json!({ "receivers": all.collect::<Vec<_>>() }))
            }
            Self::RemoveReceiver { team, receiver_id } => {
                note(store, team, "receiver.remove", &receiver_id.to_string()).await?;
                let removed = store.remove_contact(team, receiver_id).await.map_err(error_chain)?;
                known(removed, "receiver of that team:", receiver_id)?;
                Ok(json!({ "receiverId": receiver_id }))
            }
        }
    }
}

async fn note(
    store: &Store,
    team: TeamId,
    action: &str,
    subject: &str,
) -> Result<(), StartupError> {
    let deed = AuditEvent::new(SystemClock.now(), ADMIN, action, subject);
    store.note(team, &deed).await.map_err(error_chain)
}
