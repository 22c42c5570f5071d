//! The tables, as both databases have them.

macro_rules! tables {
    ($($name:ident ($($key:ident),+) { $($column:ident -> $type:ty,)+ })+) => {$(
        ::diesel::table! {
            use ::diesel::sql_types::*;
            use crate::column::{SqlId, SqlMoment};

            $name ($($key),+) { $($column -> $type,)+ }
        }
    )+};
}

mod accounts;

pub(super) use self::accounts::{
    account_links, account_notices, known_browsers, passkeys, recovery_codes, sign_ins, users,
};

tables! {
    teams (id) {
        id -> SqlId,
        name -> Text,
        created_at -> SqlMoment,
        frame_ancestors -> Text,
        second_factor -> Bool,
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
        created_at -> SqlMoment,
    }
    api_keys (id) {
        id -> SqlId,
        team -> SqlId,
        environment -> Text,
        hash -> Binary,
        created_at -> SqlMoment,
        expires_at -> Nullable<SqlMoment>,
        revoked_at -> Nullable<SqlMoment>,
        label -> Text,
        used_at -> Nullable<SqlMoment>,
    }
    suppressions (team, mark) {
        team -> SqlId,
        mark -> Binary,
        created_at -> SqlMoment,
    }
    brands (team) {
        team -> SqlId,
        name -> Nullable<Text>,
        colour -> Nullable<Text>,
        logo -> Nullable<Binary>,
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
        updated_at -> SqlMoment,
    }
    receivers (id) {
        id -> SqlId,
        team -> SqlId,
        name -> Nullable<Text>,
        email -> Nullable<Text>,
        phone -> Nullable<Text>,
        locale -> Nullable<Text>,
        created_at -> SqlMoment,
    }
    audit_entries (team, number) {
        team -> SqlId,
        number -> BigInt,
        at -> SqlMoment,
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
        created_at -> SqlMoment,
        updated_at -> SqlMoment,
        display_name -> Text,
        description -> Text,
        icon -> Text,
        login_url -> Text,
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
        created_at -> SqlMoment,
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
        created_at -> SqlMoment,
        expires_at -> SqlMoment,
        closed_at -> Nullable<SqlMoment>,
        browser -> Nullable<SqlId>,
        alive_until -> Nullable<SqlMoment>,
        platform -> Integer,
        erased_at -> Nullable<SqlMoment>,
        reference -> Nullable<Text>,
    }
    session_events (session, version) {
        session -> SqlId,
        version -> Integer,
        at -> SqlMoment,
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
        joined_at -> SqlMoment,
        consented -> Nullable<Bool>,
        consented_at -> Nullable<SqlMoment>,
    }
    join_codes (session, kind) {
        session -> SqlId,
        kind -> Text,
        long -> Binary,
        short -> Nullable<Binary>,
        tries -> Integer,
        expires_at -> SqlMoment,
    }
    idempotency_keys (owner, key) {
        owner -> SqlId,
        key -> Text,
        request -> Binary,
        session -> SqlId,
        created_at -> SqlMoment,
    }
    outbox (id) {
        id -> BigInt,
        session -> SqlId,
        effect -> Text,
        node -> Nullable<SqlId>,
        attempt -> Integer,
        due -> SqlMoment,
        buried -> Bool,
    }
    notifications (id) {
        id -> SqlId,
        session -> SqlId,
        team -> SqlId,
        number -> Integer,
        state -> Text,
        attempt -> Integer,
        due -> SqlMoment,
        created_at -> SqlMoment,
        ended_at -> Nullable<SqlMoment>,
        reason -> Nullable<Text>,
    }
    recordings (session) {
        session -> SqlId,
        state -> Text,
        attempt -> Integer,
        due -> SqlMoment,
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
        created_at -> SqlMoment,
        retiring_secret -> Nullable<Binary>,
        retiring_until -> Nullable<SqlMoment>,
        failures -> Integer,
        failing_since -> Nullable<SqlMoment>,
        paused_until -> Nullable<SqlMoment>,
    }
    webhook_keys (webhook, key) {
        webhook -> SqlId,
        key -> SqlId,
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
        created_at -> SqlMoment,
        exhausted_at -> Nullable<SqlMoment>,
    }
    delivery_queue (delivery) {
        delivery -> SqlId,
        webhook -> SqlId,
        session -> SqlId,
        notice -> SqlId,
        since -> SqlMoment,
        due -> SqlMoment,
        single -> Bool,
        tries -> Integer,
        attempts -> Integer,
        claim -> Integer,
        leased_until -> Nullable<SqlMoment>,
    }
    delivery_attempts (delivery, attempt) {
        delivery -> SqlId,
        attempt -> Integer,
        started_at -> SqlMoment,
        took_ms -> Integer,
        status -> Nullable<Integer>,
        error -> Nullable<Text>,
        answer -> Nullable<Text>,
        sent -> Text,
    }
}
