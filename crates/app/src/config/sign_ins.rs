//! The settings of sign-ins to the portal.

use std::collections::BTreeMap;

use application::settings::SignInPolicy;
use chrono::TimeDelta;

use super::values::{one_of, within};

pub(super) fn sign_ins(
    values: &BTreeMap<String, String>,
    faults: &mut Vec<String>,
) -> SignInPolicy {
    let text =
        |key: &str, default: &str| values.get(key).map_or_else(|| default.to_owned(), Clone::clone);
    let idle = text("portal_idle_minutes", "60");
    let idle = within(&idle, "portal_idle_minutes", 5..=1440, faults);
    let absolute = text("portal_sign_in_hours", "12");
    let absolute = within(&absolute, "portal_sign_in_hours", 1..=24, faults);
    let factor = text("operator_second_factor", "optional");
    let required = one_of(&factor, "operator_second_factor", "required", "optional", faults);
    SignInPolicy {
        idle: TimeDelta::minutes(i64::try_from(idle).unwrap_or(60)),
        absolute: TimeDelta::hours(i64::try_from(absolute).unwrap_or(12)),
        operators_need_second_factor: required,
    }
}
