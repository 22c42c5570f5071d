//! One suite for each port, run against everything that implements it.

pub mod attempts;
pub mod browser_pool;
pub mod rate_limiter;
pub mod recording_vault;
pub mod stores;

use std::sync::Arc;

use ports::{
    account_links::AccountLinkStore,
    account_store::{SignInStore, UserStore},
    attestor::AttestationStore,
    audit_log::AuditLog,
    brand_store::BrandStore,
    catalogue::Catalogue,
    contact_store::ContactStore,
    delivery::DeliveryQueue,
    delivery_log::DeliveryLog,
    device_store::DeviceStore,
    invitations::InvitationStore,
    key_store::KeyStore,
    known_browsers::KnownBrowserStore,
    notice_store::NoticeStore,
    notifier::NotificationQueue,
    outbox::Outbox,
    passkeys::PasskeyStore,
    recording::RecordingQueue,
    session_store::SessionStore,
    suppression_store::SuppressionStore,
    template_store::TemplateStore,
    webhook_store::WebhookStore,
};

/// A fresh, empty backend, and what must outlive the test (a folder, a database).
pub struct Backend {
    pub sessions: Arc<dyn SessionStore>,
    pub devices: Arc<dyn DeviceStore>,
    pub outbox: Arc<dyn Outbox>,
    pub deliveries: Arc<dyn DeliveryQueue>,
    pub log: Arc<dyn DeliveryLog>,
    /// The same log as another process has it, with connections of its own.
    pub log_beside: Arc<dyn DeliveryLog>,
    pub attestations: Arc<dyn AttestationStore>,
    pub recordings: Arc<dyn RecordingQueue>,
    pub notifications: Arc<dyn NotificationQueue>,
    pub keys: Arc<dyn KeyStore>,
    pub users: Arc<dyn UserStore>,
    pub sign_ins: Arc<dyn SignInStore>,
    pub passkeys: Arc<dyn PasskeyStore>,
    pub browsers: Arc<dyn KnownBrowserStore>,
    pub account_links: Arc<dyn AccountLinkStore>,
    pub notices: Arc<dyn NoticeStore>,
    pub invitations: Arc<dyn InvitationStore>,
    pub audit: Arc<dyn AuditLog>,
    pub receivers: Arc<dyn ContactStore>,
    pub templates: Arc<dyn TemplateStore>,
    pub brands: Arc<dyn BrandStore>,
    pub suppressions: Arc<dyn SuppressionStore>,
    pub webhooks: Arc<dyn WebhookStore>,
    pub catalogue: Arc<dyn Catalogue>,
    pub guard: Box<dyn std::any::Any + Send + Sync>,
}

/// Names every case of the stores' contract, once.
///
/// `$open` is an expression that makes a future of a fresh [`Backend`].
#[macro_export]
macro_rules! stores_contract {
    ($open:expr) => {
        $crate::stores_contract! { $open;
            sessions::finds_what_was_inserted
            sessions::hides_a_session_from_other_owners
            sessions::refuses_a_second_insert
            sessions::inserts_each_of_many_at_once_but_the_one_that_is_there
            sessions::commits_state_and_effects_together
            sessions::refuses_a_stale_commit_whole
            sessions::lets_one_of_two_racing_commits_win
            sessions::survives_a_dropped_commit
            sessions::lists_the_newest_first_and_counts_what_fits
            sessions::lists_what_all_keys_of_a_team_made
            sessions::tells_what_has_expired
            sessions::tells_whose_browser_was_not_renewed
            sessions::renews_only_the_browser_that_the_session_has
            partners::polls_a_session_with_the_key_that_owns_it
            partners::answers_each_of_many_who_poll_at_once
            partners::opens_nothing_with_a_key_rotated_while_others_ask
            partners::tells_what_happened_to_a_session
            partners::creates_once_for_an_idempotency_key
            partners::creates_once_for_many_who_come_at_once
            partners::forgets_old_idempotency_keys
            partners::erases_a_session_and_its_deliveries
            outbox::hands_an_effect_to_one_claimer
            outbox::hands_an_effect_only_to_the_node_it_names
            outbox::hands_out_again_when_the_lease_runs_out
            outbox::ignores_the_verdict_of_a_lost_claim
            outbox::keeps_a_retried_effect_until_it_is_due
            outbox::hands_out_no_buried_effect
            outbox::drops_what_a_node_that_is_gone_left
            deliveries::owes_one_delivery_to_each_active_webhook
            deliveries::tells_a_webhook_of_the_keys_it_is_for
            deliveries::hands_a_delivery_to_one_claimer
            deliveries::passes_no_webhook_over
            deliveries::keeps_body_and_webhook_over_attempts
            deliveries::hands_out_again_what_was_claimed_and_not_settled
            deliveries::settles_many_at_once
            deliveries::hands_out_no_settled_delivery
            health::lets_a_receiver_that_fails_rest
            health::counts_the_failures_that_several_note_at_once
            health::notes_health_while_sessions_end
            deliveries::keeps_what_an_inactive_webhook_is_owed
            deliveries::gives_up_on_what_is_too_old
            delivery_log::shows_deliveries_and_their_attempts
            delivery_log::finds_deliveries_by_what_they_are_about
            delivery_log::sends_a_delivery_again
            delivery_log::sends_again_beside_a_process_that_writes
            delivery_log::sends_what_waits_at_once
            delivery_log::sends_what_was_given_up_on_in_a_time_again
            delivery_log::owes_a_test_one_attempt
            delivery_log::forgets_old_deliveries_that_are_not_owed
            notifications::owes_a_link_with_the_session_that_asks_for_it
            notifications::hands_each_link_to_one_of_many
            notifications::hands_out_links_of_each_team_by_turns
            notifications::hands_a_link_out_again_when_its_lease_is_over
            notifications::tells_in_the_timeline_what_became_of_links
            notifications::sends_a_link_again_so_often_and_no_oftener
            recordings::owes_a_film_of_an_error_once_a_browser_ran
            recordings::hands_a_film_to_one_claimer
            recordings::keeps_a_film_for_whoever_renews_and_hands_it_out_again_else
            recordings::tries_a_film_again_when_it_is_due_and_tells_why_there_is_none
            recordings::makes_no_film_of_what_was_erased
            attestations::keeps_the_newest_of_a_session
            attestations::finds_one_by_its_hash_for_its_owner_alone
            attestations::forgets_with_the_sessions_data
            attestations::keeps_nothing_of_a_session_that_is_erased_meanwhile
            keys::finds_a_key_by_its_hash
            keys::opens_nothing_with_a_rotated_key
            keys::revokes_once
            keys::lists_a_teams_keys_and_when_they_were_used
            people::finds_a_person_by_their_address
            people::keeps_until_when_a_made_password_holds
            people::invites_an_address_that_somebody_else_has
            people::binds_a_person_to_one_identity
            people::takes_each_one_time_code_once
            sign_ins::knows_who_is_signed_in_until_they_are_not
            sign_ins::signs_out_who_is_idle_and_not_who_is_seen
            sign_ins::tells_what_a_team_requires
            sign_ins::confirms_a_sign_in_with_another_token
            sign_ins::keeps_one_form_of_a_sign_in_and_gives_it_out_once
            people::takes_somebody_out_with_what_they_are_signed_in_with
            people::leaves_nobody_without_an_owner
            people::writes_down_what_was_done_in_a_chain
            account_links::opens_the_door_once_with_a_link
            account_links::hands_a_mail_to_one_who_sends_it
            account_links::voids_links_when_a_password_is_changed
            notices::hands_a_notice_to_one_who_sends_it
            receivers::keeps_a_teams_receivers_for_that_team
            brands::keeps_what_a_team_looks_like
            suppressions::keeps_who_wants_no_more_of_a_teams_mails
            devices::binds_a_session_to_the_first_of_two_devices_at_once
            devices::admits_one_device_by_each_code
            devices::counts_wrong_short_codes_also_at_the_same_moment
            devices::admits_no_more_devices_than_there_may_be
            devices::shows_in_the_timeline_which_device_joined_and_consented
            browsers::knows_a_persons_browsers_until_they_run_out
            browsers::keeps_no_more_browsers_than_may_be
            browsers::forgets_browsers_with_a_password_that_is_chosen_by_link
            passkeys::keeps_passkeys_and_their_state
            passkeys::recovery_codes_go_with_the_last_factor
            passkeys::nobody_has_more_passkeys_than_may_be
            templates::keeps_a_teams_templates_for_that_team
            templates::takes_each_template_its_way
            templates::has_one_default_template_in_a_language
            templates::settles_on_one_default_template
            keys::returns_webhooks_with_their_secrets
            keys::changes_a_webhook
            keys::signs_with_two_secrets_while_one_is_rotated
            keys::tells_whose_pages_may_show_a_session
            catalogue::publishes_a_definition
            catalogue::publishes_the_same_twice_as_once
            catalogue::refuses_other_content_under_a_published_version
            catalogue::prefers_the_newest_version
            catalogue::has_another_revision_after_each_change
        }
    };
    ($open:expr; $($suite:ident :: $case:ident)+) => {$(
        #[$crate::tokio::test(flavor = "multi_thread")]
        async fn $case() {
            let backend = $open.await;
            $crate::contract::stores::$suite::$case(&backend).await;
        }
    )+};
}

/// Names every case of the browser pool's contract, once.
///
/// `$open` is an expression that makes a future of a
/// [`Pool`](crate::contract::browser_pool::Pool) with room for two browsers.
#[macro_export]
macro_rules! browser_pool_contract {
    ($open:expr) => {
        $crate::browser_pool_contract! { $open;
            starts_a_browser_that_shows_pages
            starts_nothing_under_a_released_name
            ends_what_was_released_while_it_started
            answers_the_running_browser_to_a_second_start
            releases_what_never_was
            refuses_what_it_has_no_room_for
            tells_the_end_of_a_browser
        }
    };
    ($open:expr; $($case:ident)+) => {$(
        #[$crate::tokio::test(flavor = "multi_thread")]
        async fn $case() {
            let pool = $open.await;
            $crate::contract::browser_pool::$case(&pool).await;
        }
    )+};
}

/// Names every case of the rate limiter's contract, once.
///
/// `$open` is an expression that makes a future of a
/// [`Limiter`](crate::contract::rate_limiter::Limiter).
#[macro_export]
macro_rules! rate_limiter_contract {
    ($open:expr) => {
        $crate::rate_limiter_contract! { $open;
            counts_up_to_the_limit_and_refuses_what_is_over_it
            keeps_a_window_where_it_began
            begins_a_new_window_when_the_old_one_is_over
            counts_each_subject_for_itself
            charges_several_in_one_step
            counts_every_one_of_many_at_once
        }
    };
    ($open:expr; $($case:ident)+) => {$(
        #[$crate::tokio::test(flavor = "multi_thread")]
        async fn $case() {
            let limiter = $open.await;
            $crate::contract::rate_limiter::$case(&limiter).await;
        }
    )+};
}

/// Names every case of the attempt limiter's contract, once.
///
/// `$open` is an expression that makes a future of a
/// [`Limiter`](crate::contract::attempts::Limiter).
#[macro_export]
macro_rules! attempts_contract {
    ($open:expr) => {
        $crate::attempts_contract! { $open;
            delays_attempts_beyond_the_free_ones
            lets_in_who_waits_and_forgets_in_the_end
            takes_back_what_was_right
            counts_each_target_for_itself
            admits_no_more_of_many_at_once
        }
    };
    ($open:expr; $($case:ident)+) => {$(
        #[$crate::tokio::test(flavor = "multi_thread")]
        async fn $case() {
            let limiter = $open.await;
            $crate::contract::attempts::$case(&limiter).await;
        }
    )+};
}

/// Names every case of the recording vault's contract, once.
///
/// `$open` is an expression that makes a future of a
/// [`Vault`](crate::contract::recording_vault::Vault).
#[macro_export]
macro_rules! recording_vault_contract {
    ($open:expr) => {
        $crate::recording_vault_contract! { $open;
            gives_back_what_was_kept_browser_by_browser
            shows_nobody_what_is_kept_while_a_session_runs
            forgets_whole_sessions_and_no_other
            links_to_a_film
        }
    };
    ($open:expr; $($case:ident)+) => {$(
        #[$crate::tokio::test(flavor = "multi_thread")]
        async fn $case() {
            let vault = $open.await;
            $crate::contract::recording_vault::$case(&vault).await;
        }
    )+};
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_case_is_named_in_its_macro() {
        let named = include_str!("mod.rs");
        let cases = |source: &'static str, prefix: &'static str| {
            source.lines().filter_map(move |line| {
                let name = line.strip_prefix("pub async fn ")?.split('(').next()?;
                Some(format!("            {prefix}{name}\n"))
            })
        };
        let all = cases(include_str!("stores/sessions.rs"), "sessions::")
            .chain(cases(include_str!("stores/partners.rs"), "partners::"))
            .chain(cases(include_str!("stores/outbox.rs"), "outbox::"))
            .chain(cases(include_str!("stores/deliveries.rs"), "deliveries::"))
            .chain(cases(include_str!("stores/delivery_log.rs"), "delivery_log::"))
            .chain(cases(include_str!("stores/recordings.rs"), "recordings::"))
            .chain(cases(include_str!("stores/attestations.rs"), "attestations::"))
            .chain(cases(include_str!("recording_vault.rs"), ""))
            .chain(cases(include_str!("stores/keys.rs"), "keys::"))
            .chain(cases(include_str!("stores/catalogue.rs"), "catalogue::"))
            .chain(cases(include_str!("browser_pool.rs"), ""))
            .chain(cases(include_str!("rate_limiter.rs"), ""))
            .chain(cases(include_str!("attempts.rs"), ""));
        for case in all {
            assert!(named.contains(&case), "{case}");
        }
    }
}
