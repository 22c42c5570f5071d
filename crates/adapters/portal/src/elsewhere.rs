//! Requests about the studios of an author, which the instance answers that has these.

use std::{future::Future, pin::Pin, sync::Arc};

use actix_web::{FromRequest, HttpRequest, HttpResponse, dev::Payload, http::StatusCode, web};
use domain::{
    account::Permission,
    id::{InstanceId, UserId},
};
use ports::{
    driving::{
        BodyBounds, ForwardError, ForwardSender, Forwarding, OtherInstance, SignedInUser,
        StudioOwner, StudioRouter,
    },
    refusals::RefusalClass,
};

use crate::{
    authenticated::signed_in_user,
    error::PageError,
    forms::{BODY_TIMEOUT, MAX_FORM_BYTES},
};

/// What is taken of a form, wherever it is answered.
const FORM: BodyBounds = BodyBounds { bytes: MAX_FORM_BYTES, time: BODY_TIMEOUT };

/// Has another instance answer a request.
pub type Forward = fn(
    Arc<dyn StudioRouter>,
    Forwarding,
    HttpRequest,
    Payload,
) -> Pin<Box<dyn Future<Output = Result<HttpResponse, ForwardError>>>>;

/// How studios of other instances are reached.
#[derive(Clone)]
pub struct Elsewhere {
    pub router: Arc<dyn StudioRouter>,
    pub forward: Forward,
}

/// What a request contains, at the instance that has the studios of its sender, or that `{instance}` in its
/// path names; otherwise the response of that instance, which authenticates the sender and checks the form
/// itself. It contains nothing of users who are not signed in completely.
pub(crate) enum AtStudio<T> {
    Here(T),
    Answered(HttpResponse),
}

impl<T: FromRequest<Error = PageError> + 'static> FromRequest for AtStudio<T> {
    type Error = PageError;
    type Future = Pin<Box<dyn Future<Output = Result<Self, PageError>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (request, mut payload) = (request.clone(), payload.take());
        Box::pin(async move {
            if let Some((elsewhere, forwarding)) = located(&request).await? {
                let Elsewhere { router, forward } = elsewhere;
                let answered = forward(router, forwarding, request, payload).await;
                return answered.map(classified).map(Self::Answered).map_err(PageError::Studio);
            }
            T::from_request(&request, &mut payload).await.map(Self::Here)
        })
    }
}

/// Tells this instance's log what another one refuses an author for: only for a form that no page of the portal
/// has sent, since [`located`] has checked the role.
fn classified(mut response: HttpResponse) -> HttpResponse {
    if response.status() == StatusCode::FORBIDDEN {
        response.extensions_mut().insert(RefusalClass::Form);
    }
    response
}

/// Returns how a request is forwarded that another instance answers. Whoever may have no studios is refused
/// here: nothing is forwarded for them.
async fn located(request: &HttpRequest) -> Result<Option<(Elsewhere, Forwarding)>, PageError> {
    let Some(elsewhere) = request.app_data::<web::Data<Elsewhere>>() else { return Ok(None) };
    // What `AtStudio` contains refuses whoever is not signed in completely.
    let complete = |user: &SignedInUser| user.passed && user.required_action.is_none();
    let Some(user) = signed_in_user(request).await?.filter(complete) else { return Ok(None) };
    user.require(Permission::Author)?;
    let named = request.match_info().get("instance").and_then(|instance| instance.parse().ok());
    let located = find(&*elsewhere.router, named, user.user).map_err(PageError::Studio)?;
    let sender = ForwardSender::Author(user.user);
    let forwarding = located.map(|to| Forwarding { sender, to, bounds: FORM });
    Ok(forwarding.map(|forwarding| (elsewhere.get_ref().clone(), forwarding)))
}

/// Returns the other instance that a path names, which has its studio also where the author's next one is
/// opened elsewhere; that of the author where it names none, or one that has stopped.
fn find(
    router: &dyn StudioRouter,
    named: Option<InstanceId>,
    author: UserId,
) -> Result<Option<OtherInstance>, ForwardError> {
    match named.map(|instance| router.locate(StudioOwner::Instance(instance))) {
        Some(Err(ForwardError::Ended)) | None => router.locate(StudioOwner::Author(author)),
        Some(located) => located,
    }
}

#[cfg(test)]
mod tests {
    use ports::driving::MockStudioRouter;

    use super::*;

    const AWAY: u128 = 1;
    const OWN: u128 = 2;
    const OF_AUTHOR: u128 = 3;

    fn other(id: u128) -> OtherInstance {
        OtherInstance { id: InstanceId::from_u128(id), address: format!("10.0.0.{id}:1") }
    }

    /// Returns a router that knows this instance, one that does not answer, and the one of all authors.
    fn router() -> MockStudioRouter {
        let mut router = MockStudioRouter::new();
        router.expect_locate().returning(|owner| {
            let StudioOwner::Instance(id) = owner else { return Ok(Some(other(OF_AUTHOR))) };
            match id.as_uuid().as_u128() {
                AWAY => Err(ForwardError::Unreachable),
                OWN => Ok(None),
                OF_AUTHOR => Ok(Some(other(OF_AUTHOR))),
                _ => Err(ForwardError::Ended),
            }
        });
        router
    }

    #[test]
    fn a_form_that_another_instance_refuses_is_counted_as_a_form() {
        let class = |response: HttpResponse| {
            classified(response).extensions().get::<RefusalClass>().copied()
        };
        assert_eq!(class(HttpResponse::Forbidden().finish()), Some(RefusalClass::Form));
        assert_eq!(class(HttpResponse::NotFound().finish()), None);
    }

    #[test]
    fn the_instance_of_a_path_is_asked_until_it_has_stopped() {
        let router = router();
        let located = |named: Option<u128>| {
            find(&router, named.map(InstanceId::from_u128), UserId::from_u128(9))
        };
        let of_author = Ok(Some(other(OF_AUTHOR)));
        assert_eq!(located(None), of_author);
        assert_eq!(located(Some(OWN)), Ok(None), "its studio is here");
        assert_eq!(located(Some(AWAY)), Err(ForwardError::Unreachable), "it may come back");
        assert_eq!(located(Some(4)), of_author, "it has stopped");
    }
}
