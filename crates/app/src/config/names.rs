//! The names of all settings.

/// The names of all keys; [`variable_of`] tells their variables.
pub(super) const KEYS: &[&str] = &[
    "listen",
    "role",
    "instance_listen",
    "instance_address",
    "instance_cert",
    "instance_key",
    "instance_roots",
    "instance_name",
    "browser_hosts",
    "browser_host_name",
    "public_url",
    "region",
    "regions",
    "data_dir",
    "database_url",
    "database_pool_seconds",
    "database_connect_seconds",
    "database_statement_seconds",
    "migrate",
    "migration_seconds",
    "seal_keys",
    "encryption",
    "storage_url",
    "browser",
    "browsers",
    "browsers_warm",
    "browsers_per_team",
    "browsers_development",
    "browser_queue_per_team",
    "browser_queue_seconds",
    "drain_seconds",
    "drain_min_seconds",
    "browser_memory_mb",
    "browser_jail",
    "browser_proxy_listen",
    "browser_proxy_address",
    "browser_proxy_cert",
    "browser_proxy_key",
    "egress_allow",
    "egress_roots",
    "egress_proxy",
    "egress_check_url",
    "attestor_url",
    "attestor_key",
    "proofs",
    "proofs_per_team",
    "sandbox_listen",
    "webhook_backoff",
    "smtp_url",
    "smtp_roots",
    "mail_from",
    "notification_backoff",
    "whatsapp_url",
    "whatsapp_token",
    "whatsapp_template",
    "sms_url",
    "sms_key",
    "sms_from",
    "oidc_issuer",
    "oidc_client_id",
    "oidc_client_secret",
    "oidc_name",
    "portal_idle_minutes",
    "portal_sign_in_hours",
    "operator_second_factor",
    "countries",
    "redis_url",
    "redis_roots",
    "redis_cert",
    "redis_key",
    "rate_limit",
    "create_limit",
    "team_create_limit",
    "recipient_limit",
    "trusted_proxies",
    "retention_days",
    "session_retention_days",
    "metrics_listen",
    "otel_exporter_otlp_endpoint",
    "otel_exporter_otlp_traces_endpoint",
    "otel_exporter_otlp_headers",
    "otel_exporter_otlp_certificate",
    "otel_exporter_otlp_timeout",
    "otel_exporter_otlp_protocol",
    "otel_exporter_otlp_traces_headers",
    "otel_exporter_otlp_traces_certificate",
    "otel_exporter_otlp_traces_timeout",
    "otel_exporter_otlp_traces_protocol",
    "otel_traces_exporter",
    "otel_traces_sampler",
    "otel_traces_sampler_arg",
    "otel_service_name",
    "otel_resource_attributes",
    "otel_sdk_disabled",
    "log",
    "log_format",
];

/// The keys whose values are secrets or contain one. Each value can be in a file, which the key
/// with the suffix `_file` names.
pub(super) const SECRETS: &[&str] = &[
    "database_url",
    "seal_keys",
    "browser",
    "egress_proxy",
    "attestor_url",
    "smtp_url",
    "whatsapp_token",
    "sms_key",
    "oidc_client_secret",
    "redis_url",
    "otel_exporter_otlp_headers",
    "otel_exporter_otlp_traces_headers",
];

/// Returns the environment variable of a key: in upper case with the prefix `AVOUCH_`. The keys that
/// begin with `otel_` have the names that OpenTelemetry specifies, without a prefix.
pub(super) fn variable_of(key: &str) -> String {
    let name = key.to_uppercase();
    if name.starts_with("OTEL_") { name } else { format!("AVOUCH_{name}") }
}

/// Returns whether an environment variable is a setting of the service, or is certainly not meant
/// to be one: Kubernetes sets `AVOUCH_PORT_…` and `AVOUCH_SERVICE_…` for a service called avouch.
pub(crate) fn is_setting(variable: &str) -> bool {
    let Some(name) = variable.strip_prefix("AVOUCH_") else { return true };
    let key = name.to_lowercase();
    if key.starts_with("otel_") {
        return false;
    }
    let in_file = key.strip_suffix("_file").is_some_and(|key| SECRETS.contains(&key));
    let theirs = ["PORT", "SERVICE_HOST"].contains(&name)
        || ["PORT_", "SERVICE_PORT", "ATTESTOR_OPEN_TO_EVERYONE", "ATTESTOR_CONFIG"]
            .iter()
            .any(|start| name.starts_with(start));
    name == "CONFIG" || theirs || in_file || KEYS.contains(&key.as_str())
}
