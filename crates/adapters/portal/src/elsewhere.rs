//! Requests about the studios of an author, which the instance answers that has these.

use std::{future::Future, pin::Pin, sync::Arc};

use actix_web::{FromRequest, HttpRequest, HttpResponse, dev::Payload, web};
use ports::driving::{ForwardError, OtherInstance, StudioOwner, StudioRouter};

use crate::{authenticated::signed_in_user, error::PageError};

/// Has another instance answer a request.
pub type Forward = fn(
    Arc<dyn StudioRouter>,
    OtherInstance,
    HttpRequest,
    Payload,
) -> Pin<Box<dyn Future<Output = Result<HttpResponse, ForwardError>>>>;

/// How studios of other instances are reached.
#[derive(Clone)]
pub struct Elsewhere {
    pub router: Arc<dyn StudioRouter>,
    pub forward: Forward,
}

/// What a request contains, at the instance that has the studios of its sender; otherwise the response of
/// that instance, which authenticates the sender and checks the form itself.
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
                let answered = forward(router, instance, request, payload).await;
                return answered.map(Self::Answered).map_err(PageError::Studio);
            }
            T::from_request(&request, &mut payload).await.map(Self::Here)
        })
    }
}

/// Returns the other instance that has the studios of the sender of a request. Whoever is not signed in is
/// told so here.
async fn located(request: &HttpRequest) -> Result<Option<(Elsewhere, OtherInstance)>, PageError> {
    let Some(elsewhere) = request.app_data::<web::Data<Elsewhere>>() else { return Ok(None) };
    let Some(user) = signed_in_user(request).await? else { return Ok(None) };
    let located = elsewhere.router.locate(StudioOwner::Author(user.user));
    let located = located.map_err(PageError::Studio)?;
    Ok(located.map(|instance| (elsewhere.get_ref().clone(), instance)))
}
