//! The portal, in a real browser and by plain HTTP requests: accounts, teams, pages and what
//! protects them.

mod accessibility;
mod account_policy;
mod authoring;
mod branding;
mod contacts;
mod csrf;
mod end_to_end;
mod landing;
mod language;
mod mail_templates;
mod members;
mod oidc;
mod onboarding;
mod passkeys;
mod reauthentication;
mod security;
mod session_list;
mod sign_in;
mod tenant_isolation;
