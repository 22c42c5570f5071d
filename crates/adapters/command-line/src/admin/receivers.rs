//! `avouch admin …` for registered receivers, which the code calls contacts.

use clap::{Args, Subcommand};
use domain::{
    id::{ContactId, TeamId},
    request::Contact,
    webhook::wire_time,
};
use ports::{contact_store::StoredContact, driving::ContactAdminService};
use serde_json::{Value, json};

use crate::CommandError;

#[derive(Debug, Subcommand)]
pub enum ReceiverCommand {
    /// Registers a receiver; prints {"receiverId"}
    CreateReceiver(CreateReceiver),
    /// Lists a team's registered receivers
    ListReceivers {
        #[arg(long)]
        team: TeamId,
    },
    /// Removes a registered receiver; sessions that name it keep its data
    RemoveReceiver {
        #[arg(long)]
        team: TeamId,
        receiver_id: ContactId,
    },
}

#[derive(Debug, Args)]
pub struct CreateReceiver {
    #[arg(long)]
    team: TeamId,
    #[arg(long, default_value = "")]
    name: String,
    /// Required, unless there is a phone number
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
    pub(super) async fn run(
        self,
        contacts: &dyn ContactAdminService,
    ) -> Result<Value, CommandError> {
        match self {
            Self::CreateReceiver(arguments) => {
                let CreateReceiver { team, name, email, phone, locale } = arguments;
                let contact = Contact::parse(&name, &email, &phone, &locale)?;
                Ok(json!({ "receiverId": contacts.register(team, contact).await? }))
            }
            Self::ListReceivers { team } => {
                let receivers = contacts.contacts(team).await?.into_iter().map(receiver);
                Ok(json!({ "receivers": receivers.collect::<Vec<_>>() }))
            }
            Self::RemoveReceiver { team, receiver_id } => {
                contacts.remove(team, receiver_id).await?;
                Ok(json!({ "receiverId": receiver_id }))
            }
        }
    }
}

fn receiver(stored: StoredContact) -> Value {
    let Contact { name, email, phone, locale, .. } = stored.contact;
    json!({
        "receiverId": stored.id,
        "name": name,
        "email": email,
        "phone": phone,
        "locale": locale,
        "createdAt": wire_time(stored.created_at),
    })
}
