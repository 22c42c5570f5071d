//! The tables of portal users.

tables! {
    users (id) {
        id -> SqlId,
        team -> SqlId,
        email -> Text,
        role -> Text,
        password -> Nullable<Text>,
        totp -> Nullable<Binary>,
        totp_step -> BigInt,
        created_at -> SqlTimestamp,
        passkeys -> Integer,
        subject -> Nullable<Text>,
        invited_as -> Nullable<Text>,
        password_until -> Nullable<SqlTimestamp>,
    }
    passkeys (id) {
        id -> SqlId,
        person -> SqlId,
        name -> Text,
        credential -> Binary,
        public_key -> Binary,
        state -> Binary,
        transports -> SmallInt,
        created_at -> SqlTimestamp,
        used_at -> Nullable<SqlTimestamp>,
    }
    recovery_codes (owner, hash) {
        owner -> SqlId,
        hash -> Binary,
    }
    sign_ins (id) {
        id -> SqlId,
        person -> SqlId,
        token -> Binary,
        passed -> Bool,
        form_token -> Text,
        created_at -> SqlTimestamp,
        seen_at -> SqlTimestamp,
        expires_at -> SqlTimestamp,
        address -> Text,
        agent -> Text,
        confirmed_at -> Nullable<SqlTimestamp>,
        by_provider -> Bool,
        held_form -> Nullable<Binary>,
    }
    known_browsers (person, token) {
        person -> SqlId,
        token -> Binary,
        used_at -> SqlTimestamp,
        expires_at -> SqlTimestamp,
    }
    account_notices (id) {
        id -> SqlId,
        person -> SqlId,
        event -> Text,
        at -> SqlTimestamp,
        address -> Text,
        agent -> Text,
        due -> SqlTimestamp,
        attempt -> Integer,
    }
    account_links (id) {
        id -> SqlId,
        person -> SqlId,
        purpose -> Text,
        state -> Text,
        reason -> Nullable<Text>,
        due -> SqlTimestamp,
        attempt -> Integer,
        created_at -> SqlTimestamp,
        expires_at -> SqlTimestamp,
    }
}
