//! A contract suite for each port, run against every implementation.

pub mod attempts;
pub mod browser_pool;
pub mod rate_limiter;
pub mod recording_vault;
pub mod stores;

use std::sync::Arc;

use ports::{
    account_links::AccountLinkStore,
    account_store::{
        HeldForms, ProviderSubjects, SecondFactors, SignInStore, TeamMembers, UserStore,
    },
    attestor::AttestationStore,
    audit_log::AuditLog,
    authoring::DraftStore,
    brand_store::BrandStore,
    catalogue::Catalogue,
    contact_store::ContactStore,
    definition_statistics::DefinitionStatistics,
    delivery::DeliveryQueue,
    delivery_log::DeliveryLog,
    device_store::DeviceStore,
    instances::{InstanceRegistry, SessionRegions},
    invitations::InvitationStore,
    key_store::{KeyStore, KeyVerification, TeamStore},
    known_browsers::KnownBrowserStore,
    notice_store::NoticeStore,
    notifier::NotificationQueue,
    outbox::Outbox,
    passkeys::PasskeyStore,
    recording::RecordingQueue,
    session_store::{
        BrowserLeases, SessionQueries, SessionRetention, SessionStore, TeamSessionQueries,
    },
    suppression_store::SuppressionStore,
    template_store::TemplateStore,
    webhook_store::WebhookStore,
};

/// A new, empty backend, and a guard that must outlive the test (a folder, a database).
pub struct Backend {
    pub sessions: Arc<dyn SessionStore>,
    pub partner_sessions: Arc<dyn SessionQueries>,
    pub team_sessions: Arc<dyn TeamSessionQueries>,
    pub leases: Arc<dyn BrowserLeases>,
    pub session_retention: Arc<dyn SessionRetention>,
    pub devices: Arc<dyn DeviceStore>,
    pub outbox: Arc<dyn Outbox>,
    pub instances: Arc<dyn InstanceRegistry>,
    pub regions: Arc<dyn SessionRegions>,
    pub deliveries: Arc<dyn DeliveryQueue>,
    pub log: Arc<dyn DeliveryLog>,
    /// The same log as seen by another process, with connections of its own.
    pub other_log: Arc<dyn DeliveryLog>,
    pub attestations: Arc<dyn AttestationStore>,
    pub recordings: Arc<dyn RecordingQueue>,
    pub notifications: Arc<dyn NotificationQueue>,
    pub teams: Arc<dyn TeamStore>,
    pub keys: Arc<dyn KeyStore>,
    pub key_verification: Arc<dyn KeyVerification>,
    pub users: Arc<dyn UserStore>,
    pub subjects: Arc<dyn ProviderSubjects>,
    pub members: Arc<dyn TeamMembers>,
    pub second_factors: Arc<dyn SecondFactors>,
    pub sign_ins: Arc<dyn SignInStore>,
    pub held_forms: Arc<dyn HeldForms>,
    pub passkeys: Arc<dyn PasskeyStore>,
    pub browsers: Arc<dyn KnownBrowserStore>,
    pub account_links: Arc<dyn AccountLinkStore>,
    pub notices: Arc<dyn NoticeStore>,
    pub invitations: Arc<dyn InvitationStore>,
    pub audit: Arc<dyn AuditLog>,
    pub contacts: Arc<dyn ContactStore>,
    pub templates: Arc<dyn TemplateStore>,
    pub brands: Arc<dyn BrandStore>,
    pub drafts: Arc<dyn DraftStore>,
    pub suppressions: Arc<dyn SuppressionStore>,
    pub webhooks: Arc<dyn WebhookStore>,
    pub catalogue: Arc<dyn Catalogue>,
    pub statistics: Arc<dyn DefinitionStatistics>,
    pub guard: Box<dyn std::any::Any + Send + Sync>,
}

/// Generates a test for every case of the stores' contract.
///
/// `$open` is an expression for a future of a new [`Backend`].
#[macro_export]
macro_rules! stores_contract {
    ($open:expr) => {
        $crate::stores_contract! { $open;
            sessions::finds_an_inserted_session
            sessions::hides_a_session_from_other_owners
            sessions::refuses_a_second_insert
            sessions::inserts_concurrent_sessions_except_a_duplicate
            sessions::commits_state_and_effects_together
            sessions::refuses_a_stale_commit_entirely
            sessions::lets_one_of_two_concurrent_commits_succeed
            sessions::lets_one_of_many_concurrent_commits_succeed
            sessions::commits_concurrent_changes_except_a_stale_one
            sessions::commits_each_kind_of_change
            sessions::leaves_a_dropped_commit_complete_or_undone
            sessions::lists_the_newest_first_and_counts_all_matches
            sessions::lists_the_sessions_of_all_keys_of_a_team
            sessions::filters_the_sessions_of_a_team
            sessions::pages_through_the_sessions_of_a_team
            sessions::finds_expired_sessions
            sessions::finds_sessions_whose_lease_was_not_renewed
            sessions::finds_offers_of_another_attempt_whose_lease_was_not_renewed
            sessions::renews_only_the_lease_of_the_current_browser
            partners::polls_a_session_with_the_key_that_owns_it
            partners::answers_concurrent_polls_each_with_its_own_session
            partners::rejects_a_rotated_key_during_concurrent_lookups
            partners::returns_the_timeline_of_a_session
            partners::creates_once_for_an_idempotency_key
            partners::creates_once_for_concurrent_requests
            partners::deletes_old_idempotency_keys
            partners::erases_a_session_and_its_deliveries
            partners::finds_the_sessions_to_erase_behind_one
            partners::deletes_erased_sessions_with_all_that_is_theirs
            partners::counts_all_sessions_however_many_were_counted_before
            outbox::leases_a_job_to_one_claimer
            outbox::leases_a_job_only_to_its_instance
            outbox::leases_a_job_again_after_the_lease_expires
            outbox::ignores_the_outcome_of_a_lost_claim
            outbox::keeps_a_retried_job_until_it_is_due
            outbox::does_not_lease_a_buried_job
            outbox::deletes_the_jobs_of_an_instance_that_is_gone
            instances::counts_the_reports_of_each_instance
            instances::deletes_an_entry_only_while_it_is_not_renewed
            instances::tells_which_sessions_may_leave_their_region
            deliveries::creates_one_delivery_for_each_active_webhook
            deliveries::creates_deliveries_only_for_the_keys_of_a_webhook
            deliveries::creates_the_deliveries_of_concurrent_ends
            deliveries::leases_a_delivery_to_one_claimer
            deliveries::skips_no_webhook
            deliveries::keeps_body_and_webhook_across_attempts
            deliveries::leases_an_unsettled_delivery_again
            deliveries::renews_held_claims_alone
            deliveries::settles_a_batch
            deliveries::does_not_lease_a_settled_delivery
            health::pauses_an_endpoint_that_fails
            health::counts_concurrent_failures
            health::updates_health_while_sessions_end
            deliveries::keeps_the_deliveries_of_an_inactive_webhook
            deliveries::exhausts_deliveries_that_are_too_old
            delivery_log::returns_deliveries_with_their_attempts
            delivery_log::finds_deliveries_by_webhook_session_and_state
            delivery_log::resends_a_delivery
            delivery_log::resends_while_another_process_writes
            delivery_log::resends_a_pending_delivery_at_once
            delivery_log::resends_exhausted_deliveries_of_a_time_range
            delivery_log::enqueues_a_test_with_one_attempt
            delivery_log::deletes_old_deliveries_except_pending_ones
            notifications::enqueues_a_notification_with_an_invited_session
            notifications::leases_a_notification_to_one_claimer
            notifications::leases_the_notifications_of_teams_in_turn
            notifications::leases_a_notification_again_after_its_lease_expires
            notifications::shows_notifications_in_the_timeline
            notifications::limits_how_often_a_link_is_resent
            recordings::enqueues_the_recording_of_an_error_once_a_browser_ran
            recordings::leases_a_recording_to_one_claimer
            recordings::keeps_a_renewed_claim_and_leases_an_expired_one_again
            recordings::retries_a_recording_when_due_and_keeps_the_reason_of_a_failure
            recordings::encodes_no_recording_of_an_erased_session
            attestations::keeps_the_newest_attestation_of_a_session
            attestations::finds_an_attestation_by_its_hash_only_for_its_owner
            attestations::deletes_the_attestation_with_the_sessions_data
            attestations::stores_no_attestation_of_a_session_erased_concurrently
            keys::finds_a_key_by_its_hash
            keys::rejects_a_rotated_key
            keys::revokes_a_key_once
            keys::lists_a_teams_keys_with_their_last_use
            members::finds_a_member_by_address
            members::keeps_the_expiry_of_a_generated_password
            members::invites_an_address_that_another_member_has
            members::binds_a_member_to_one_subject
            members::accepts_each_one_time_code_once
            sign_ins::finds_a_sign_in_until_it_ends
            sign_ins::ends_idle_sign_ins_only
            sign_ins::returns_whether_a_team_requires_a_second_factor
            sign_ins::replaces_the_token_with_a_reauthentication
            sign_ins::keeps_one_form_of_a_sign_in_and_returns_it_once
            members::removes_a_member_with_their_sign_ins
            members::leaves_no_team_without_an_owner
            members::chains_the_audit_entries
            account_links::sets_a_password_once_with_a_link
            account_links::leases_a_mail_to_one_claimer
            account_links::voids_links_when_a_password_is_changed
            notices::leases_a_notice_to_one_claimer
            contacts::keeps_the_contacts_of_each_team_separate
            brands::keeps_the_brand_of_a_team
            brands::returns_the_name_of_a_sessions_team
            drafts::replaces_only_the_revision_before
            drafts::hides_the_platform_of_drafts
            drafts::keeps_the_drafts_of_each_team_separate
            drafts::stores_a_bounded_number_of_drafts
            suppressions::keeps_the_suppressions_of_a_team
            devices::binds_a_session_to_one_of_concurrent_devices
            devices::admits_one_device_with_each_code
            devices::counts_concurrent_wrong_short_codes
            devices::admits_no_more_than_the_maximum_of_devices
            devices::shows_joins_and_consents_of_devices_in_the_timeline
            browsers::finds_known_browsers_until_they_expire
            browsers::keeps_no_more_than_the_maximum_of_browsers
            browsers::deletes_known_browsers_when_a_password_is_set_with_a_link
            passkeys::keeps_passkeys_and_their_state
            passkeys::deletes_recovery_codes_with_the_last_factor
            passkeys::stores_no_more_than_the_maximum_of_passkeys
            templates::keeps_the_templates_of_each_team_separate
            templates::lists_the_templates_of_concurrent_teams
            templates::allows_only_the_steps_of_the_review
            templates::has_one_default_template_per_language
            templates::has_one_default_template_after_concurrent_changes
            keys::returns_webhooks_with_their_secrets
            keys::changes_a_webhook
            keys::returns_two_secrets_during_a_rotation
            keys::returns_the_frame_ancestors_of_a_session
            catalogue::publishes_a_definition
            catalogue::publishes_the_same_definition_idempotently
            catalogue::refuses_other_content_under_a_published_version
            catalogue::refuses_a_published_version_that_was_taken_back
            catalogue::returns_the_newest_version
            catalogue::sessions_run_a_chosen_version_or_that_of_their_share
            catalogue::changes_only_the_versions_that_were_seen
            catalogue::lists_the_published_versions
            catalogue::changes_the_revision_with_each_change
            catalogue::adds_the_statistics_of_versions_up
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

/// Generates a test for every case of the browser pool's contract. With `in NAME` it is one test for all of
/// them, one after the other, which share what takes long to start.
///
/// `$open` is an expression for a future of a
/// [`Pool`](crate::contract::browser_pool::Pool) with two slots, or a function that returns such a future
/// for an `Arc` of what the future `$shared` returns.
#[macro_export]
macro_rules! browser_pool_contract {
    ($open:expr $(, on $shared:expr, in $test:ident)?) => {
        $crate::browser_pool_contract! { $open $(, on $shared, in $test)?;
            starts_a_browser_that_shows_pages
            starts_no_browser_with_a_released_identifier
            ends_a_browser_released_during_its_start
            returns_the_running_browser_for_a_second_start
            releases_an_unknown_browser
            refuses_a_start_without_a_free_slot
            reports_the_end_of_a_browser
        }
    };
    ($open:expr; $($case:ident)+) => {$(
        #[$crate::tokio::test(flavor = "multi_thread")]
        async fn $case() {
            let pool = $open.await;
            $crate::contract::browser_pool::$case(&pool).await;
        }
    )+};
    ($open:expr, on $shared:expr, in $test:ident; $($case:ident)+) => {
        #[$crate::tokio::test(flavor = "multi_thread")]
        async fn $test() {
            let shared = ::std::sync::Arc::new($shared.await);
            $(
                println!("{}", stringify!($case));
                let pool = $open(shared.clone()).await;
                $crate::contract::browser_pool::$case(&pool).await;
                drop(pool);
            )+
        }
    };
}

/// Generates a test for every case of the rate limiter's contract.
///
/// `$open` is an expression for a future of a
/// [`Limiter`](crate::contract::rate_limiter::Limiter).
#[macro_export]
macro_rules! rate_limiter_contract {
    ($open:expr) => {
        $crate::rate_limiter_contract! { $open;
            counts_all_requests_and_admits_up_to_the_limit
            keeps_the_end_of_a_window
            starts_a_new_window_after_the_old_one
            counts_each_subject_separately
            charges_several_subjects_in_one_step
            counts_every_concurrent_request
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

/// Generates a test for every case of the attempt limiter's contract.
///
/// `$open` is an expression for a future of a
/// [`Limiter`](crate::contract::attempts::Limiter).
#[macro_export]
macro_rules! attempts_contract {
    ($open:expr) => {
        $crate::attempts_contract! { $open;
            delays_attempts_beyond_the_free_ones
            allows_an_attempt_after_the_delay_and_forgets_old_ones
            takes_back_a_right_attempt
            counts_each_target_separately
            limits_concurrent_attempts
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

/// Generates a test for every case of the recording vault's contract.
///
/// `$open` is an expression for a future of a
/// [`Vault`](crate::contract::recording_vault::Vault).
#[macro_export]
macro_rules! recording_vault_contract {
    ($open:expr) => {
        $crate::recording_vault_contract! { $open;
            returns_the_segments_of_each_browser
            encrypts_the_segments_of_a_running_session
            deletes_one_session_and_no_other
            links_to_a_recording
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
