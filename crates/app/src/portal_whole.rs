//! The portal's use cases, each carried out to its end whoever hangs up.

use std::time::Duration;

use async_trait::async_trait;
use domain::{
    account::Role,
    ancestors::Ancestor,
    audit::AuditEntry,
    branding::{Brand, BrandName, Colour, Logo},
    id::{
        ApiKeyId, DeliveryId, PasskeyId, ReceiverId, SessionId, SignInId, TemplateId, UserId,
        WebhookId,
    },
    request::{ListQuery, Receiver},
    secret::Secret,
    template::{Draft, Step},
};
use ports::{
    account_store::{SignIn, Whence},
    delivery_log::{DeliveryState, KeptDelivery, Span, WholeDelivery},
    driving::{
        AccountService, Answered, Arrived, Asked, Attempt, AuditCheck, AuditService,
        BrandingService, ConfirmationService, EmbeddingService, HeldForm, IdentityService,
        KeyService, LinkService, MailedLink, Member, NewKey, NewMember, NewWebhook, Offer,
        Overview, PasskeyService, PortableAttestation, PortalError, Preview, Proof,
        ReceiverService, Rotated, SignedIn, TeamQuotas, TeamService, TeamSession,
        TeamSessionService, TeamWebhookService, TemplateService, Visitor, WholeSession,
    },
    identity::Arrival,
    key_store::KeptKey,
    passkeys::KeptPasskey,
    receiver_store::KeptReceiver,
    template_store::{KeptTemplate, Revision},
    webhook_store::{KeptWebhook, WebhookChange},
};

use crate::whole::{Whole, whole};

/// Use cases of one port that a visitor asks for.
macro_rules! whole_for_visitors {
    ($port:ident: $(fn $name:ident($($arg:ident: $kind:ty),*) -> $answer:ty;)+) => {
        #[async_trait]
        impl<S: $port + 'static> $port for Whole<S> {
            $(async fn $name(
                &self,
                visitor: &Visitor,
                $($arg: $kind,)*
            ) -> Result<$answer, PortalError> {
                let (inner, visitor) = (self.inner.clone(), visitor.clone());
                whole(&self.runtime, async move { inner.$name(&visitor, $($arg),*).await }).await
            })+
        }
    };
}

whole_for_visitors! { KeyService:
    fn keys() -> Vec<KeptKey>;
    fn make_key(order: NewKey) -> Secret;
    fn rotate_key(id: ApiKeyId) -> Secret;
    fn revoke_key(id: ApiKeyId) -> ();
}

#[async_trait]
impl<S: IdentityService + 'static> IdentityService for Whole<S> {
    fn provider(&self) -> Option<&str> {
        self.inner.provider()
    }

    async fn depart(&self, next: String, from: Whence) -> Result<(String, Secret), PortalError> {
        let inner = self.inner.clone();
        whole(&self.runtime, async move { inner.depart(next, from).await }).await
    }

    async fn arrive(
        &self,
        kept: Secret,
        arrival: Arrival,
        from: Whence,
        browser: (Option<Visitor>, Secret),
    ) -> Result<Arrived, PortalError> {
        let inner = self.inner.clone();
        whole(&self.runtime, async move { inner.arrive(kept, arrival, from, browser).await }).await
    }

    async fn depart_to_confirm(&self, visitor: &Visitor) -> Result<(String, Secret), PortalError> {
        let (inner, visitor) = (self.inner.clone(), visitor.clone());
        whole(&self.runtime, async move { inner.depart_to_confirm(&visitor).await }).await
    }
}

whole_for_visitors! { ConfirmationService:
    fn hold(path: String, fields: Option<String>) -> ();
    fn held() -> Option<HeldForm>;
    fn take_held(id: String) -> Option<HeldForm>;
    fn confirm(token: Secret, proof: Proof) -> Secret;
}

whole_for_visitors! { PasskeyService:
    fn passkeys() -> Option<Vec<KeptPasskey>>;
    fn offer_passkey() -> Asked;
    fn keep_passkey(name: String, asked: Secret, answer: String) -> Vec<Secret>;
    fn drop_passkey(id: PasskeyId) -> ();
    fn ask_passkey() -> Option<Asked>;
    fn show_passkey(token: Secret, answered: Answered) -> SignedIn;
}

whole_for_visitors! { TeamService:
    fn members() -> Vec<Member>;
    fn invite(order: NewMember) -> ();
    fn invite_again(id: UserId) -> ();
    fn appoint(id: UserId, role: Role) -> ();
    fn sign_out_member(id: UserId) -> ();
    fn requires_second_factor() -> bool;
    fn require_second_factor(required: bool) -> ();
    fn remove(id: UserId) -> ();
}

whole_for_visitors! { AuditService:
    fn audit(before: Option<i64>, limit: u16) -> Vec<AuditEntry>;
    fn verify_audit() -> AuditCheck;
}

whole_for_visitors! { EmbeddingService:
    fn embed_origins() -> Vec<Ancestor>;
    fn set_embed_origins(origins: Vec<Ancestor>) -> ();
}

whole_for_visitors! { BrandingService:
    fn brand() -> Brand;
    fn set_brand(name: Option<BrandName>, colour: Option<Colour>) -> ();
    fn set_logo(logo: Option<Logo>) -> ();
}

whole_for_visitors! { ReceiverService:
    fn receivers() -> Vec<KeptReceiver>;
    fn receiver(id: ReceiverId) -> KeptReceiver;
    fn register(contact: Receiver) -> ReceiverId;
    fn change_receiver(id: ReceiverId, contact: Receiver) -> ();
    fn remove_receiver(id: ReceiverId) -> ();
}

whole_for_visitors! { TemplateService:
    fn templates() -> Vec<KeptTemplate>;
    fn one_template(id: TemplateId) -> KeptTemplate;
    fn add_template(draft: Draft) -> TemplateId;
    fn write_template(id: TemplateId, draft: Draft) -> ();
    fn step_template(what: (TemplateId, Revision), step: Step, reason: String) -> ();
    fn prefer_template(id: TemplateId, on: bool) -> ();
    fn remove_template(id: TemplateId) -> ();
    fn submitted_templates() -> Vec<(KeptTemplate, String)>;
    fn preview(kept: KeptTemplate) -> Preview;
}

whole_for_visitors! { TeamSessionService:
    fn team_sessions(query: ListQuery, reference: Option<String>) -> Vec<TeamSession>;
    fn overview() -> Overview;
    fn quotas() -> TeamQuotas;
    fn team_session(id: SessionId) -> WholeSession;
    fn team_attestation(id: SessionId) -> PortableAttestation;
    fn end_session(id: SessionId) -> ();
}

whole_for_visitors! { TeamWebhookService:
    fn webhooks() -> Vec<KeptWebhook>;
    fn webhook(id: WebhookId) -> KeptWebhook;
    fn make_webhook(order: NewWebhook) -> KeptWebhook;
    fn change_webhook(id: WebhookId, change: WebhookChange) -> ();
    fn switch_webhook(id: WebhookId, active: bool) -> ();
    fn rotate_webhook(id: WebhookId, overlap: Duration) -> Rotated;
    fn test_webhook(id: WebhookId) -> DeliveryId;
    fn webhook_deliveries(id: WebhookId, state: Option<DeliveryState>) -> Vec<KeptDelivery>;
    fn session_deliveries(id: SessionId) -> Vec<KeptDelivery>;
    fn webhook_delivery(id: DeliveryId) -> WholeDelivery;
    fn send_delivery_again(id: DeliveryId) -> ();
    fn send_all_again(id: WebhookId, span: Span) -> usize;
}

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
        browsers: Secret,
    ) -> Result<SignedIn, PortalError> {
        let (inner, token, code) = (self.inner.clone(), token.clone(), code.to_owned());
        let shown = async move { inner.show_code(&token, &code, from, browsers).await };
        whole(&self.runtime, shown).await
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

    async fn change_password(&self, visitor: &Visitor, new: Secret) -> Result<(), PortalError> {
        let (inner, visitor) = (self.inner.clone(), visitor.clone());
        whole(&self.runtime, async move { inner.change_password(&visitor, new).await }).await
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

    async fn drop_second_factor(&self, visitor: &Visitor) -> Result<(), PortalError> {
        let (inner, visitor) = (self.inner.clone(), visitor.clone());
        whole(&self.runtime, async move { inner.drop_second_factor(&visitor).await }).await
    }
}

#[async_trait]
impl<S: LinkService + 'static> LinkService for Whole<S> {
    async fn forgot_password(&self, email: String, from: Whence) -> Result<(), PortalError> {
        let inner = self.inner.clone();
        whole(&self.runtime, async move { inner.forgot_password(email, from).await }).await
    }

    async fn mailed_link(&self, token: &Secret) -> Result<MailedLink, PortalError> {
        let (inner, token) = (self.inner.clone(), token.clone());
        whole(&self.runtime, async move { inner.mailed_link(&token).await }).await
    }

    async fn choose_password(
        &self,
        token: &Secret,
        new: Secret,
        from: Whence,
    ) -> Result<(), PortalError> {
        let (inner, token) = (self.inner.clone(), token.clone());
        let choose = async move { inner.choose_password(&token, new, from).await };
        whole(&self.runtime, choose).await
    }
}
