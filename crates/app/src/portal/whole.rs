//! The portal's use cases, each carried out to its end whoever hangs up.

use async_trait::async_trait;
use domain::{
    audit::AuditEntry,
    id::{ApiKeyId, SessionId, SignInId},
    request::ListQuery,
    secret::Secret,
};
use ports::{
    account_store::{SignIn, Whence},
    driving::{
        AccountService, Attempt, AuditService, KeyService, NewKey, Offer, PortalError, SignedIn,
        TeamSession, TeamSessionService, Visitor, WholeSession,
    },
    key_store::KeptKey,
};

use crate::whole::{Whole, whole};

#[async_trait]
impl<S: AccountService + 'static> AccountService for Whole<S> {
    async fn sign_in(&self, attempt: Attempt) -> Result<SignedIn, PortalError> {
        let inner = self.inner.clone();
        whole(&self.runtime, async move { inner.sign_in(attempt).await }).await
    }

    async fn show_code(
        &self,
        token: &Secret,
        code: &str,
        from: Whence,
    ) -> Result<SignedIn, PortalError> {
        let (inner, token, code) = (self.inner.clone(), token.clone(), code.to_owned());
        whole(&self.runtime, async move { inner.show_code(&token, &code, from).await }).await
    }

    async fn visitor(&self, token: &Secret, from: Whence) -> Result<Option<Visitor>, PortalError> {
        let (inner, token) = (self.inner.clone(), token.clone());
        whole(&self.runtime, async move { inner.visitor(&token, from).await }).await
    }

    async fn sign_out(&self, visitor: &Visitor) -> Result<(), PortalError> {
        let (inner, visitor) = (self.inner.clone(), visitor.clone());
        whole(&self.runtime, async move { inner.sign_out(&visitor).await }).await
    }

    async fn sign_ins(&self, visitor: &Visitor) -> Result<Vec<SignIn>, PortalError> {
        let (inner, visitor) = (self.inner.clone(), visitor.clone());
        whole(&self.runtime, async move { inner.sign_ins(&visitor).await }).await
    }

    async fn end_sign_in(&self, visitor: &Visitor, id: SignInId) -> Result<(), PortalError> {
        let (inner, visitor) = (self.inner.clone(), visitor.clone());
        whole(&self.runtime, async move { inner.end_sign_in(&visitor, id).await }).await
    }

    async fn change_password(
        &self,
        visitor: &Visitor,
        old: Secret,
        new: Secret,
    ) -> Result<(), PortalError> {
        let (inner, visitor) = (self.inner.clone(), visitor.clone());
        whole(&self.runtime, async move { inner.change_password(&visitor, old, new).await }).await
    }

    fn offer_second_factor(&self, visitor: &Visitor, before: Option<&str>) -> Offer {
        self.inner.offer_second_factor(visitor, before)
    }

    async fn keep_second_factor(
        &self,
        visitor: &Visitor,
        offer: &str,
        code: &str,
    ) -> Result<Vec<Secret>, PortalError> {
        let (inner, visitor) = (self.inner.clone(), visitor.clone());
        let (offer, code) = (offer.to_owned(), code.to_owned());
        let keep = async move { inner.keep_second_factor(&visitor, &offer, &code).await };
        whole(&self.runtime, keep).await
    }

    async fn drop_second_factor(
        &self,
        visitor: &Visitor,
        password: Secret,
    ) -> Result<(), PortalError> {
        let (inner, visitor) = (self.inner.clone(), visitor.clone());
        whole(&self.runtime, async move { inner.drop_second_factor(&visitor, password).await })
            .await
    }
}

#[async_trait]
impl<S: KeyService + 'static> KeyService for Whole<S> {
    async fn keys(&self, visitor: &Visitor) -> Result<Vec<KeptKey>, PortalError> {
        let (inner, visitor) = (self.inner.clone(), visitor.clone());
        whole(&self.runtime, async move { inner.keys(&visitor).await }).await
    }

    async fn make_key(&self, visitor: &Visitor, order: NewKey) -> Result<Secret, PortalError> {
        let (inner, visitor) = (self.inner.clone(), visitor.clone());
        whole(&self.runtime, async move { inner.make_key(&visitor, order).await }).await
    }

    async fn rotate_key(&self, visitor: &Visitor, id: ApiKeyId) -> Result<Secret, PortalError> {
        let (inner, visitor) = (self.inner.clone(), visitor.clone());
        whole(&self.runtime, async move { inner.rotate_key(&visitor, id).await }).await
    }

    async fn revoke_key(&self, visitor: &Visitor, id: ApiKeyId) -> Result<(), PortalError> {
        let (inner, visitor) = (self.inner.clone(), visitor.clone());
        whole(&self.runtime, async move { inner.revoke_key(&visitor, id).await }).await
    }
}

#[async_trait]
impl<S: AuditService + 'static> AuditService for Whole<S> {
    async fn audit(
        &self,
        visitor: &Visitor,
        before: Option<i64>,
    ) -> Result<Vec<AuditEntry>, PortalError> {
        let (inner, visitor) = (self.inner.clone(), visitor.clone());
        whole(&self.runtime, async move { inner.audit(&visitor, before).await }).await
    }
}

#[async_trait]
impl<S: TeamSessionService + 'static> TeamSessionService for Whole<S> {
    async fn team_sessions(
        &self,
        visitor: &Visitor,
        query: ListQuery,
    ) -> Result<Vec<TeamSession>, PortalError> {
        let (inner, visitor) = (self.inner.clone(), visitor.clone());
        whole(&self.runtime, async move { inner.team_sessions(&visitor, query).await }).await
    }

    async fn team_session(
        &self,
        visitor: &Visitor,
        id: SessionId,
    ) -> Result<WholeSession, PortalError> {
        let (inner, visitor) = (self.inner.clone(), visitor.clone());
        whole(&self.runtime, async move { inner.team_session(&visitor, id).await }).await
    }

    async fn end_session(&self, visitor: &Visitor, id: SessionId) -> Result<(), PortalError> {
        let (inner, visitor) = (self.inner.clone(), visitor.clone());
        whole(&self.runtime, async move { inner.end_session(&visitor, id).await }).await
    }
}
