//! A team's settings: API keys, branding, contacts, templates, the audit log and platforms.

pub(crate) mod audit;
pub(crate) mod brands;
pub(crate) mod catalogue;
pub(crate) mod contacts;
pub(crate) mod definition_statistics;
pub(crate) mod drafts;
pub(crate) mod keys;
pub(crate) mod template_batch;
pub(crate) mod templates;
