//! The members of a team: invitations, roles, sign-outs and removals.

use chrono::TimeDelta;
use domain::{
    account::{LinkPurpose, Role},
    id::UserId,
};
use ports::{
    account_links::{AccountLinkStore as _, MailClaim, Mailed},
    account_store::{TeamMembers as _, User, UserStore as _},
    clock::Clock as _,
    driving::{AccountService as _, Member, NewMember, PortalError, TeamService as _},
    random::RandomSource as _,
};
use testkit::sample::noon;
use uuid::Uuid;

use super::fixture::{Fixture, OTHER_TEAM, TEAM, error, origin, refusal};

const ADA: &str = "ada@lender.example";

#[tokio::test]
async fn an_invited_member_is_mailed_a_link() {
    let fixture = Fixture::new().await;
    let owner = fixture.user(Role::Owner).await;
    let members = fixture.members();
    members.invite(&owner, new_member(" Ada@lender.example ", Role::Viewer)).await.unwrap();
    let invited = member(&fixture, ADA).await;
    assert_eq!((invited.user.team, invited.user.role), (TEAM, Role::Viewer));
    assert!(!invited.user.has_password);
    let until = fixture.clock.now() + TimeDelta::days(7);
    assert_eq!(invited.link, Some((Mailed::Queued, until)));
    let mails = due_mails(&fixture).await;
    assert_eq!(mails.len(), 1);
    assert_eq!(
        (mails[0].link.user, mails[0].link.purpose),
        (invited.user.id, LinkPurpose::Invitation)
    );
    assert_eq!((mails[0].email.as_str(), mails[0].team.as_str()), (ADA, "Lender"));
    assert_eq!(fixture.actions().await, ["person.invite ada@lender.example as viewer"]);
}

#[tokio::test]
async fn an_address_is_invited_once() {
    let fixture = Fixture::new().await;
    let owner = fixture.user(Role::Owner).await;
    let members = fixture.members();
    members.invite(&owner, new_member(ADA, Role::Viewer)).await.unwrap();
    for email in [ADA, &owner.email] {
        let refused = members.invite(&owner, new_member(email, Role::Owner)).await;
        assert_eq!(refusal(refused), "this email already belongs to a member of your team");
    }
    let refused = members.invite(&owner, new_member("no address", Role::Viewer)).await;
    assert_eq!(refusal(refused), "enter a valid email address");
    assert_eq!(member(&fixture, ADA).await.user.role, Role::Viewer);
    assert_eq!(fixture.actions().await.len(), 1);
}

#[tokio::test]
async fn an_invitation_does_not_tell_whether_another_team_has_the_address() {
    let fixture = Fixture::new().await;
    let owner = fixture.user(Role::Owner).await;
    let theirs = fixture.add_member(OTHER_TEAM, ADA, Role::Owner).await;
    fixture.members().invite(&owner, new_member(ADA, Role::Member)).await.unwrap();
    let invited = member(&fixture, ADA).await;
    assert!(invited.user.id != theirs && invited.user.team == TEAM);
    let mails = due_mails(&fixture).await;
    assert!(mails[0].is_taken, "its link would be useless");
    let stored = fixture.store.user_by_email(&ADA.parse().unwrap()).await.unwrap();
    assert_eq!(stored.expect("an account").user.id, theirs, "the address stays theirs");
    // Once the other account is gone, a second invitation gives the address to the new one.
    fixture.add_member(OTHER_TEAM, "eve@lender.example", Role::Owner).await;
    fixture.store.remove_user(OTHER_TEAM, theirs).await.unwrap();
    fixture.members().invite_again(&owner, invited.user.id).await.unwrap();
    let stored = fixture.store.user_by_email(&ADA.parse().unwrap()).await.unwrap();
    assert_eq!(stored.expect("an account").user.id, invited.user.id);
}

#[tokio::test]
async fn a_second_invitation_voids_the_first_link() {
    let fixture = Fixture::new().await;
    let owner = fixture.user(Role::Owner).await;
    let members = fixture.members();
    members.invite(&owner, new_member(ADA, Role::Viewer)).await.unwrap();
    let first = due_mails(&fixture).await.remove(0).link;
    members.invite_again(&owner, first.user).await.unwrap();
    let second = due_mails(&fixture).await.remove(0).link;
    let now = fixture.clock.now();
    assert!(fixture.store.link(first.id, now).await.unwrap().is_none());
    assert!(fixture.store.link(second.id, now).await.unwrap().is_some());
    let refused = members.invite_again(&owner, owner.user).await;
    assert_eq!(refusal(refused), "this member has already accepted the invitation");
}

#[tokio::test]
async fn invitations_to_one_address_are_limited_across_teams() {
    let fixture = Fixture::new().await;
    let owner = fixture.user(Role::Owner).await;
    let other = fixture.user_in(OTHER_TEAM, Role::Owner).await;
    let members = fixture.members();
    members.invite(&owner, new_member(ADA, Role::Viewer)).await.unwrap();
    let invited = member(&fixture, ADA).await.user.id;
    for _ in 0..4 {
        members.invite_again(&owner, invited).await.unwrap();
    }
    let again = error(members.invite_again(&owner, invited).await);
    assert!(matches!(again, PortalError::TooMany { retry_after: 1.. }), "{again}");
    let elsewhere = error(members.invite(&other, new_member(ADA, Role::Viewer)).await);
    assert!(matches!(elsewhere, PortalError::TooMany { .. }), "{elsewhere}");
    members.invite(&other, new_member("bob@lender.example", Role::Viewer)).await.unwrap();
}

#[tokio::test]
async fn a_team_has_a_limited_number_of_members() {
    let fixture = Fixture::new().await;
    let owner = fixture.user(Role::Owner).await;
    for number in 0..198 {
        add_member_without_password(&fixture, &format!("m{number}@lender.example")).await;
    }
    let members = fixture.members();
    members.invite(&owner, new_member("last@lender.example", Role::Viewer)).await.unwrap();
    let refused = members.invite(&owner, new_member(ADA, Role::Viewer)).await;
    assert_eq!(refusal(refused), "a team can have up to 200 members");
    assert_eq!(members.members(&owner).await.unwrap().len(), 200);
}

#[tokio::test]
async fn an_owner_neither_gives_nor_touches_a_role_above_their_own() {
    let fixture = Fixture::new().await;
    let owner = fixture.user(Role::Owner).await;
    let operator = fixture.user(Role::Operator).await.user;
    let member = fixture.add_member(TEAM, ADA, Role::Member).await;
    let members = fixture.members();
    let refusals = [
        members.invite(&owner, new_member("bob@lender.example", Role::Operator)).await,
        members.appoint(&owner, member, Role::Operator).await,
        members.appoint(&owner, operator, Role::Viewer).await,
        members.sign_out_member(&owner, operator).await,
        members.remove(&owner, operator).await,
    ];
    for refused in refusals {
        assert!(matches!(error(refused), PortalError::Forbidden));
    }
    assert_eq!(fixture.stored(operator).await.user.role, Role::Operator);
    assert_eq!(fixture.actions().await, <[&str; 0]>::default());
}

#[tokio::test]
async fn an_owner_removes_an_author_and_ends_their_sign_ins_but_appoints_none() {
    let fixture = Fixture::new().await;
    let owner = fixture.user(Role::Owner).await;
    let author = fixture.add_member(TEAM, ADA, Role::Author).await;
    let token = fixture.token(ADA).await;
    let members = fixture.members();
    let refusals = [
        members.appoint(&owner, author, Role::Member).await,
        members.invite_again(&owner, author).await,
    ];
    for refused in refusals {
        assert!(matches!(error(refused), PortalError::Forbidden));
    }
    members.sign_out_member(&owner, author).await.unwrap();
    assert!(fixture.accounts().signed_in_user(&token, origin()).await.unwrap().is_none());
    members.remove(&owner, author).await.unwrap();
    assert!(fixture.store.user(author).await.unwrap().is_none());
}

#[tokio::test]
async fn a_role_changes_with_the_next_request() {
    let fixture = Fixture::new().await;
    let owner = fixture.user(Role::Owner).await;
    let id = fixture.add_member(TEAM, ADA, Role::Member).await;
    let token = fixture.token(ADA).await;
    fixture.members().appoint(&owner, id, Role::Viewer).await.unwrap();
    assert_eq!(fixture.user_of(&token).await.role, Role::Viewer);
    assert_eq!(fixture.actions().await, ["person.appoint ada@lender.example as viewer"]);
}

#[tokio::test]
async fn the_last_owner_who_can_sign_in_stays() {
    let fixture = Fixture::new().await;
    let owner = fixture.user(Role::Owner).await;
    let members = fixture.members();
    members.invite(&owner, new_member(ADA, Role::Owner)).await.unwrap();
    let why = "a team must have at least one owner who can sign in";
    assert_eq!(refusal(members.appoint(&owner, owner.user, Role::Member).await), why);
    assert_eq!(refusal(members.remove(&owner, owner.user).await), why);
    assert_eq!(fixture.stored(owner.user).await.user.role, Role::Owner);
    fixture.add_member(TEAM, "bob@lender.example", Role::Owner).await;
    members.remove(&owner, owner.user).await.unwrap();
    assert!(fixture.store.user(owner.user).await.unwrap().is_none());
}

#[tokio::test]
async fn a_member_is_signed_out_everywhere_and_removed() {
    let fixture = Fixture::new().await;
    let owner = fixture.user(Role::Owner).await;
    let id = fixture.add_member(TEAM, ADA, Role::Member).await;
    let tokens = [fixture.token(ADA).await, fixture.token(ADA).await];
    let members = fixture.members();
    members.sign_out_member(&owner, id).await.unwrap();
    for token in &tokens {
        assert!(fixture.accounts().signed_in_user(token, origin()).await.unwrap().is_none());
    }
    let token = fixture.token(ADA).await;
    members.remove(&owner, id).await.unwrap();
    assert!(fixture.accounts().signed_in_user(&token, origin()).await.unwrap().is_none());
    assert_eq!(refusal(members.remove(&owner, id).await), "member not found");
    let actions = fixture.actions().await;
    let actions: Vec<_> = actions.iter().filter(|line| line.starts_with("person.")).collect();
    assert_eq!(actions, ["person.sign-out ada@lender.example", "person.remove ada@lender.example"]);
}

#[tokio::test]
async fn members_of_another_team_are_as_if_they_were_not_there() {
    let fixture = Fixture::new().await;
    let operator = fixture.user(Role::Operator).await;
    let theirs = fixture.add_member(OTHER_TEAM, ADA, Role::Viewer).await;
    let token = fixture.token(ADA).await;
    let members = fixture.members();
    for id in [theirs, UserId::from_uuid(Uuid::nil())] {
        let refusals = [
            members.invite_again(&operator, id).await,
            members.appoint(&operator, id, Role::Member).await,
            members.sign_out_member(&operator, id).await,
            members.remove(&operator, id).await,
        ];
        for refused in refusals {
            assert_eq!(refusal(refused), "member not found");
        }
    }
    let listed = members.members(&operator).await.unwrap();
    assert_eq!(listed.iter().map(|member| member.user.id).collect::<Vec<_>>(), [operator.user]);
    assert_eq!(fixture.user_of(&token).await.role, Role::Viewer);
}

#[tokio::test]
async fn a_team_requires_a_second_factor_of_its_own_members_only() {
    let fixture = Fixture::new().await;
    let owner = fixture.user(Role::Owner).await;
    let other = fixture.user_in(OTHER_TEAM, Role::Owner).await;
    let members = fixture.members();
    assert!(!members.requires_second_factor(&owner).await.unwrap());
    members.require_second_factor(&owner, true).await.unwrap();
    assert!(members.requires_second_factor(&owner).await.unwrap());
    assert!(!members.requires_second_factor(&other).await.unwrap());
    members.require_second_factor(&owner, false).await.unwrap();
    assert!(!members.requires_second_factor(&owner).await.unwrap());
    let expected = ["team.second-factor required", "team.second-factor optional"];
    assert_eq!(fixture.actions().await, expected);
}

#[tokio::test]
async fn a_member_changes_only_once_the_change_is_recorded() {
    let fixture = Fixture::new().await;
    let owner = fixture.user(Role::Owner).await;
    let id = fixture.add_member(TEAM, ADA, Role::Member).await;
    let token = fixture.token(ADA).await;
    let fixture = fixture.with_broken_audit_log();
    let members = fixture.members();
    let failures = [
        members.invite(&owner, new_member("bob@lender.example", Role::Viewer)).await,
        members.appoint(&owner, id, Role::Viewer).await,
        members.sign_out_member(&owner, id).await,
        members.require_second_factor(&owner, true).await,
        members.remove(&owner, id).await,
    ];
    for failed in failures {
        assert!(matches!(error(failed), PortalError::Store(_)));
    }
    assert_eq!(fixture.user_of(&token).await.role, Role::Member);
    assert!(!members.requires_second_factor(&owner).await.unwrap());
    assert_eq!(members.members(&owner).await.unwrap().len(), 2);
    assert!(due_mails(&fixture).await.is_empty());
}

fn new_member(email: &str, role: Role) -> NewMember {
    NewMember { email: email.to_owned(), role }
}

/// Returns the member of the first team with an address.
async fn member(fixture: &Fixture, email: &str) -> Member {
    let owner = fixture.user(Role::Owner).await;
    let mut members = fixture.members().members(&owner).await.unwrap().into_iter();
    members.find(|member| member.user.email.as_str() == email).expect("a member")
}

async fn add_member_without_password(fixture: &Fixture, email: &str) {
    let user = User {
        id: UserId::from_uuid(Uuid::from_u128(fixture.random.new_id())),
        team: TEAM,
        email: email.parse().unwrap(),
        role: Role::Viewer,
        has_password: false,
        has_second_factor: false,
        created_at: noon(),
    };
    assert!(fixture.store.add_user(&user, None, noon()).await.unwrap());
}

/// Takes the mails with account links that are due.
async fn due_mails(fixture: &Fixture) -> Vec<MailClaim> {
    fixture.store.claim_mails(fixture.clock.now(), TimeDelta::days(1), 100).await.unwrap()
}
