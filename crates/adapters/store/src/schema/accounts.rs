//! The tables of the people who use the portal.

tables! {
    users (id) {
        id -> SqlId,
        team -> SqlId,
        email -> Text,
        role -> Text,
        password -> Nullable<Text>,
        totp -> Nullable<Binary>,
        totp_step -> BigInt,
        created_at -> SqlMoment,
        passkeys -> Integer,
        subject -> Nullable<Text>,
        invited_as -> Nullable<Text>,
        password_until -> Nullable<SqlMoment>,
    }
    passkeys (id) {
        id -> SqlId,
        person -> SqlId,
        name -> Text,
        credential -> Binary,
        public_key -> Binary,
        state -> Binary,
        transports -> SmallInt,
        created_at -> SqlMoment,
        used_at -> Nullable<SqlMoment>,
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
        created_at -> SqlMoment,
        seen_at -> SqlMoment,
        expires_at -> SqlMoment,
        address -> Text,
        agent -> Text,
        confirmed_at -> Nullable<SqlMoment>,
        by_provider -> Bool,
        held_form -> Nullable<Binary>,
    }
    known_browsers (person, token) {
        person -> SqlId,
        token -> Binary,
        used_at -> SqlMoment,
        expires_at -> SqlMoment,
    }
    account_notices (id) {
        id -> SqlId,
        person -> SqlId,
        event -> Text,
        at -> SqlMoment,
        address -> Text,
        agent -> Text,
        due -> SqlMoment,
        attempt -> Integer,
    }
    account_links (id) {
        id -> SqlId,
        person -> SqlId,
        purpose -> Text,
        state -> Text,
        reason -> Nullable<Text>,
        due -> SqlMoment,
        attempt -> Integer,
        created_at -> SqlMoment,
        expires_at -> SqlMoment,
    }
}
