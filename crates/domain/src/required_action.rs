//! The action that a signed-in user has to take before using the portal.

use crate::account::{Permission, Role};

/// An action that a signed-in user has to take first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequiredAction {
    /// Set up a second factor.
    SecondFactor,
}

/// The facts that decide on the required action of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccountStatus {
    pub role: Role,
    pub has_second_factor: bool,
    /// Whether the user's team requires a second factor of all its members.
    pub team_needs_second_factor: bool,
    /// Whether the deployment requires one of its operators, and of those who publish for all teams.
    pub operators_need_second_factor: bool,
}

impl RequiredAction {
    /// Returns the action that the status requires, if any.
    #[must_use]
    pub fn of(status: AccountStatus) -> Option<Self> {
        let is_for_all =
            status.role.may(Permission::Author) || status.role.may(Permission::Operate);
        let needed =
            status.team_needs_second_factor || (is_for_all && status.operators_need_second_factor);
        (needed && !status.has_second_factor).then_some(Self::SecondFactor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_factor_is_required_by_team_or_deployment() {
        let required = |role, has_second_factor, team, operators| {
            RequiredAction::of(AccountStatus {
                role,
                has_second_factor,
                team_needs_second_factor: team,
                operators_need_second_factor: operators,
            })
        };
        let second_factor = Some(RequiredAction::SecondFactor);
        for (role, team, operators, expected) in [
            (Role::Member, false, false, None),
            (Role::Viewer, true, false, second_factor),
            (Role::Owner, false, true, None),
            (Role::Author, false, true, second_factor),
            (Role::Operator, false, true, second_factor),
            (Role::Operator, true, false, second_factor),
        ] {
            assert_eq!(required(role, false, team, operators), expected, "{role:?}");
            assert_eq!(required(role, true, team, operators), None, "{role:?}");
        }
    }
}
