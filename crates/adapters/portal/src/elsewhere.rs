//! Requests about the studios of an author, which the instance answers that has these.

use std::{future::Future, pin::Pin, sync::Arc};

use actix_web::{FromRequest, HttpRequest, HttpResponse, dev::Payload, web};
use domain::account::Permission;
use ports::driving::{
    BodyBounds, ForwardError, OtherInstance, SignedInUser, StudioOwner, StudioRouter,
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
    OtherInstance,
    HttpRequest,
    Payload,
    BodyBounds,
) -> Pin<Box<dyn Future<Output = Result<HttpResponse, ForwardError>>>>;

/// How studios of other instances are reached.
#[derive(Clone)]
pub struct Elsewhere {
    pub router: Arc<dyn StudioRouter>,
    pub forward: Forward,
}

/// What a request contains, at the instance that has the studios of its sender; otherwise the response of
/// that instance, which authenticates the sender and checks the form itself. It contains nothing of users who
/// are not signed in completely.
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
            if let Some((elsewhere, instance)) = located(&request).await? {
                let Elsewhere { router, forward } = elsewhere;
                let answered = forward(router, instance, request, payload, FORM).await;
                return answered.map(Self::Answered).map_err(PageError::Studio);
            }
            T::from_request(&request, &mut payload).await.map(Self::Here)
        })
    }
}

/// Returns the other instance that has the studios of the sender of a request. Whoever may have none is
/// refused here: nothing is forwarded for them.
async fn located(request: &HttpRequest) -> Result<Option<(Elsewhere, OtherInstance)>, PageError> {
    let Some(elsewhere) = request.app_data::<web::Data<Elsewhere>>() else { return Ok(None) };
    // What `AtStudio` contains refuses whoever is not signed in completely.
    let complete = |user: &SignedInUser| user.passed && user.required_action.is_none();
    let Some(user) = signed_in_user(request).await?.filter(complete) else { return Ok(None) };
    user.require(Permission::Author)?;
    let located = elsewhere.router.locate(StudioOwner::Author(user.user));
    let located = located.map_err(PageError::Studio)?;
    Ok(located.map(|instance| (elsewhere.get_ref().clone(), instance)))
}
