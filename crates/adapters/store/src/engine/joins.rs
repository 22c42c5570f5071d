//! Declares which tables may be joined or used in one query.

use crate::engine::schema::{
    account_links, account_notices, api_keys, attestations, brands, catalogue, definitions,
    deliveries, delivery_attempts, delivery_queue, email_templates, idempotency_keys, notices,
    outbox, platforms, recovery_codes, session_counts, session_events, sessions, sign_ins, teams,
    users, webhook_keys, webhooks,
};

::diesel::joinable!(attestations -> sessions (session));
::diesel::joinable!(definitions -> platforms (platform));
::diesel::joinable!(deliveries -> notices (notice));
::diesel::joinable!(delivery_queue -> notices (notice));
::diesel::joinable!(idempotency_keys -> sessions (session));
::diesel::joinable!(sign_ins -> users (person));
::diesel::joinable!(account_links -> users (person));
::diesel::joinable!(account_notices -> users (person));
::diesel::joinable!(email_templates -> teams (team));
::diesel::joinable!(users -> teams (team));
::diesel::allow_tables_to_appear_in_same_query!(attestations, sessions);
::diesel::allow_tables_to_appear_in_same_query!(definitions, platforms);
::diesel::allow_tables_to_appear_in_same_query!(webhooks, webhook_keys);
::diesel::allow_tables_to_appear_in_same_query!(
    deliveries,
    delivery_queue,
    delivery_attempts,
    notices
);
::diesel::allow_tables_to_appear_in_same_query!(api_keys, sessions, platforms, teams, brands);
::diesel::allow_tables_to_appear_in_same_query!(api_keys, catalogue);
::diesel::allow_tables_to_appear_in_same_query!(api_keys, session_events);
::diesel::allow_tables_to_appear_in_same_query!(api_keys, session_counts);
::diesel::allow_tables_to_appear_in_same_query!(teams, email_templates);
::diesel::allow_tables_to_appear_in_same_query!(teams, users, sign_ins, account_links);
::diesel::allow_tables_to_appear_in_same_query!(account_notices, users);
::diesel::allow_tables_to_appear_in_same_query!(sessions, idempotency_keys, session_events);
::diesel::allow_tables_to_appear_in_same_query!(sessions, outbox);
::diesel::allow_tables_to_appear_in_same_query!(recovery_codes, users);
