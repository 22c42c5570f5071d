//! The services of a team.

use std::sync::Arc;

use application::portal::{
    ApiKeys, Contacts, Members, TeamSessionLookup, TeamSessions, TeamWebhooks, Templates,
};
use messaging::MailTemplates;
use ports::driving::SessionService;

use super::Shared;
use crate::admin::webhooks;

impl Shared<'_> {
    pub(super) fn api_keys(&self) -> ApiKeys {
        ApiKeys {
            keys: self.store.clone(),
            audit: self.audit.clone(),
            clock: self.clock.clone(),
            random: self.random.clone(),
        }
    }

    fn lookup(&self) -> TeamSessionLookup {
        TeamSessionLookup { sessions: self.store.clone(), keys: self.store.clone() }
    }

    pub(super) fn sessions(&self, partner: Arc<dyn SessionService>) -> TeamSessions {
        TeamSessions {
            sessions: self.store.clone(),
            keys: self.store.clone(),
            catalogue: self.store.clone(),
            lookup: self.lookup(),
            partner,
            turns: self.parts.turns.clone(),
            limits: self.config.limits,
            quotas: self.config.quotas,
            audit: self.audit.clone(),
            clock: self.clock.clone(),
        }
    }

    pub(super) fn webhooks(&self) -> TeamWebhooks {
        TeamWebhooks {
            webhooks: Arc::new(webhooks(
                self.config,
                &self.store,
                self.clock.clone(),
                self.random.clone(),
            )),
            store: self.store.clone(),
            lookup: self.lookup(),
            audit: self.audit.clone(),
            clock: self.clock.clone(),
            deliveries: self.parts.wakeups.deliveries.clone(),
        }
    }

    pub(super) fn members(&self) -> Members {
        Members {
            users: self.store.clone(),
            members: self.store.clone(),
            teams: self.store.clone(),
            has_regions: !self.config.addresses.regions.is_empty(),
            sign_ins: self.store.clone(),
            invitations: self.store.clone(),
            links: self.store.clone(),
            issuer: self.links.clone(),
            limits: self.limits.clone(),
            audit: self.audit.clone(),
            clock: self.clock.clone(),
            random: self.random.clone(),
        }
    }

    pub(super) fn contacts(&self) -> Contacts {
        Contacts {
            contacts: self.store.clone(),
            audit: self.audit.clone(),
            clock: self.clock.clone(),
            random: self.random.clone(),
        }
    }

    pub(super) fn templates(&self) -> Templates {
        Templates {
            templates: self.store.clone(),
            brands: self.store.clone(),
            renderer: Arc::new(MailTemplates),
            audit: self.audit.clone(),
            clock: self.clock.clone(),
        }
    }
}
