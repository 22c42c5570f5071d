//! The tables, which both databases have in common.

macro_rules! tables {
    ($($name:ident ($($key:ident),+) { $($column:ident -> $type:ty,)+ })+) => {$(
        ::diesel::table! {
            use ::diesel::sql_types::*;
            use crate::engine::column::{SqlId, SqlTimestamp};

            $name ($($key),+) { $($column -> $type,)+ }
        }
    )+};
}

mod accounts;

pub(crate) use self::accounts::{
    account_links, account_notices, known_browsers, passkeys, recovery_codes, sign_ins, users,
};

tables! {
    teams (id) {
        id -> SqlId,
        name -> Text,
        created_at -> SqlTimestamp,
        frame_ancestors -> Text,
        second_factor -> Bool,
        other_regions -> Bool,
    }
    deployment_key (id) {
        id -> SmallInt,
        fingerprint -> Binary,
        lasting -> Binary,
    }
    data_keys (number) {
        number -> BigInt,
        team -> SqlId,
        wrapped -> Binary,
        created_at -> SqlTimestamp,
    }
    api_keys (id) {
        id -> SqlId,
        team -> SqlId,
        environment -> Text,
        hash -> Binary,
        created_at -> SqlTimestamp,
        expires_at -> Nullable<SqlTimestamp>,
        revoked_at -> Nullable<SqlTimestamp>,
        label -> Text,
        used_at -> Nullable<SqlTimestamp>,
    }
    suppressions (team, mark) {
        team -> SqlId,
        mark -> Binary,
        created_at -> SqlTimestamp,
    }
    brands (team) {
        team -> SqlId,
        name -> Nullable<Text>,
        colour -> Nullable<Text>,
        logo -> Nullable<Binary>,
        privacy_url -> Nullable<Text>,
    }
    email_templates (id) {
        id -> Integer,
        team -> SqlId,
        name -> Text,
        language -> Text,
        subject -> Text,
        body -> Text,
        status -> Text,
        reason -> Text,
        is_default -> Bool,
        revision -> Integer,
        updated_at -> SqlTimestamp,
    }
    receivers (id) {
        id -> SqlId,
        team -> SqlId,
        name -> Nullable<Text>,
        email -> Nullable<Text>,
        phone -> Nullable<Text>,
        locale -> Nullable<Text>,
        created_at -> SqlTimestamp,
    }
    audit_entries (team, number) {
        team -> SqlId,
        number -> BigInt,
        at -> SqlTimestamp,
        actor -> Text,
        address -> Nullable<Text>,
        action -> Text,
        subject -> Text,
        hash -> Binary,
    }
    platforms (id) {
        id -> Integer,
        name -> Text,
        environment -> Text,
        version -> Text,
        is_active -> Bool,
        created_at -> SqlTimestamp,
        updated_at -> SqlTimestamp,
        display_name -> Text,
        description -> Text,
        icon -> Text,
        login_url -> Text,
        canary_version -> Nullable<Text>,
        canary_percent -> Nullable<SmallInt>,
    }
    definition_drafts (id) {
        id -> SqlId,
        team -> SqlId,
        name -> Text,
        platform_version -> Text,
        document -> Text,
        fixture -> Nullable<Text>,
        revision -> Integer,
        updated_by -> Text,
        updated_at -> SqlTimestamp,
    }
    definition_statistics (platform, version, hour, item) {
        platform -> Integer,
        version -> Text,
        hour -> SqlTimestamp,
        item -> Text,
        runs -> BigInt,
        matches -> BigInt,
    }
    catalogue (id) {
        id -> Integer,
        revision -> BigInt,
    }
    definitions (platform, version) {
        platform -> Integer,
        version -> Text,
        sha256 -> Text,
        document -> Text,
        created_at -> SqlTimestamp,
    }
    sessions (id) {
        id -> SqlId,
        owner -> SqlId,
        terms -> Text,
        state -> Text,
        status -> Text,
        progress -> Integer,
        workflow -> Nullable<Text>,
        version -> Integer,
        created_at -> SqlTimestamp,
        expires_at -> SqlTimestamp,
        closed_at -> Nullable<SqlTimestamp>,
        browser -> Nullable<SqlId>,
        alive_until -> Nullable<SqlTimestamp>,
        platform -> Integer,
        erased_at -> Nullable<SqlTimestamp>,
        reference -> Nullable<Text>,
    }
    session_events (session, version) {
        session -> SqlId,
        version -> Integer,
        at -> SqlTimestamp,
        event -> Text,
        status -> Text,
        error_code -> Nullable<Text>,
        node -> Nullable<Text>,
    }
    session_devices (session, number) {
        session -> SqlId,
        number -> Integer,
        secret -> Binary,
        joined_by -> Text,
        joined_at -> SqlTimestamp,
        consented -> Nullable<Bool>,
        consented_at -> Nullable<SqlTimestamp>,
    }
    join_codes (session, kind) {
        session -> SqlId,
        kind -> Text,
        long -> Binary,
        short -> Nullable<Binary>,
        tries -> Integer,
        expires_at -> SqlTimestamp,
    }
    idempotency_keys (owner, key) {
        owner -> SqlId,
        key -> Text,
        request -> Binary,
        session -> SqlId,
        created_at -> SqlTimestamp,
    }
    outbox (id) {
        id -> BigInt,
        session -> SqlId,
        effect -> Text,
        node -> Nullable<SqlId>,
        attempt -> Integer,
        due -> SqlTimestamp,
        buried -> Bool,
    }
    notifications (id) {
        id -> SqlId,
        session -> SqlId,
        team -> SqlId,
        number -> Integer,
        state -> Text,
        attempt -> Integer,
        due -> SqlTimestamp,
        created_at -> SqlTimestamp,
        ended_at -> Nullable<SqlTimestamp>,
        reason -> Nullable<Text>,
    }
    recordings (session) {
        session -> SqlId,
        state -> Text,
        attempt -> Integer,
        due -> SqlTimestamp,
        error -> Nullable<Text>,
    }
    attestations (session) {
        session -> SqlId,
        proof -> Text,
        package -> Binary,
    }
    webhooks (id) {
        id -> SqlId,
        team -> SqlId,
        url -> Text,
        header_name -> Nullable<Text>,
        header_value -> Nullable<Binary>,
        secret -> Binary,
        timeout_ms -> Integer,
        retries -> Integer,
        active -> Bool,
        created_at -> SqlTimestamp,
        retiring_secret -> Nullable<Binary>,
        retiring_until -> Nullable<SqlTimestamp>,
        failures -> Integer,
        failing_since -> Nullable<SqlTimestamp>,
        paused_until -> Nullable<SqlTimestamp>,
    }
    webhook_keys (webhook, key) {
        webhook -> SqlId,
        key -> SqlId,
    }
    instances (id) {
        id -> SqlId,
        address -> Text,
        region -> Nullable<Text>,
        slots -> Integer,
        sessions -> Integer,
        draining -> Bool,
        reports -> BigInt,
        waiting -> Integer,
        waited -> Integer,
        leaving -> Integer,
    }
    session_counts (owner) {
        owner -> SqlId,
        before -> SqlTimestamp,
        counted_at -> SqlTimestamp,
        restarted_at -> SqlTimestamp,
    }
    session_totals (owner, status) {
        owner -> SqlId,
        status -> Text,
        sessions -> BigInt,
    }
    notices (id) {
        id -> SqlId,
        test -> Bool,
        body -> Text,
    }
    deliveries (id) {
        id -> SqlId,
        webhook -> SqlId,
        session -> SqlId,
        notice -> SqlId,
        created_at -> SqlTimestamp,
        exhausted_at -> Nullable<SqlTimestamp>,
    }
    delivery_queue (delivery) {
        delivery -> SqlId,
        webhook -> SqlId,
        session -> SqlId,
        notice -> SqlId,
        since -> SqlTimestamp,
        due -> SqlTimestamp,
        single -> Bool,
        tries -> Integer,
        attempts -> Integer,
        claim -> Integer,
        leased_until -> Nullable<SqlTimestamp>,
    }
    delivery_attempts (delivery, attempt) {
        delivery -> SqlId,
        attempt -> Integer,
        started_at -> SqlTimestamp,
        took_ms -> Integer,
        status -> Nullable<Integer>,
        error -> Nullable<Text>,
        answer -> Nullable<Text>,
        sent -> Text,
    }
}
