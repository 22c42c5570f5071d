//! What somebody who is signed in has to do before anything else is open to them.

use crate::account::Role;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequiredAction {
    /// To set up a second factor.
    SecondFactor,
}

/// What decides on somebody's duty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccountStatus {
    pub role: Role,
    pub has_second_factor: bool,
    /// Whether their team asks all of its people for a second factor.
    pub team_needs_second_factor: bool,
    /// Whether the deployment asks its operators for one.
    pub operators_need_second_factor: bool,
}

impl RequiredAction {
    #[must_use]
    pub fn of(standing: AccountStatus) -> Option<Self> {
        let operator = standing.role == Role::Operator && standing.operators_need_second_factor;
        let needed = standing.team_needs_second_factor || operator;
        (needed && !standing.has_second_factor).then_some(Self::SecondFactor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_to_set_up_a_second_factor() {
        let duty = |role, has_second_factor, team, operators| {
            RequiredAction::of(AccountStatus {
                role,
                has_second_factor,
                team_needs_second_factor: team,
                operators_need_second_factor: operators,
            })
        };
        let wanted = Some(RequiredAction::SecondFactor);
        for (role, team, operators, expected) in [
            (Role::Member, false, false, None),
            (Role::Viewer, true, false, wanted),
            (Role::Owner, false, true, None),
            (Role::Operator, false, true, wanted),
            (Role::Operator, true, false, wanted),
        ] {
            assert_eq!(duty(role, false, team, operators), expected, "{role:?}");
            assert_eq!(duty(role, true, team, operators), None, "{role:?}");
        }
    }
}
