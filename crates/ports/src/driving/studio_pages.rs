//! Where the pages of studios are served.

use std::time::Duration;

use async_trait::async_trait;
use domain::id::{InstanceId, UserId};

use crate::instances::{ForwardedRequest, ForwardedResponse};

/// Which studio a request is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StudioOwner {
    /// A studio of this instance, which its key names.
    Instance(InstanceId),
    /// The studio of an author, which may not be open yet.
    Author(UserId),
}

/// Another instance, which runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherInstance {
    pub id: InstanceId,
    /// `HOST:PORT`, where other instances reach it.
    pub address: String,
}

/// What is read of the body of a request before it is forwarded: no more than this instance itself would
/// take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BodyBounds {
    /// The maximum length; at most [`crate::instances::MAX_FORWARDED_BYTES`].
    pub bytes: usize,
    /// The time within which all of it must arrive.
    pub time: Duration,
}

/// Who sends a request that is forwarded. Each of them has some of the places only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForwardSender {
    /// An author who is signed in.
    Author(UserId),
    /// Whoever loads the page of a draft in a frame, which has a token in place of an author. They are counted
    /// together: an author has tokens of many sessions, and would have the places of each of them.
    Frames,
}

/// How a request is forwarded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forwarding {
    pub sender: ForwardSender,
    pub to: OtherInstance,
    pub bounds: BodyBounds,
}

/// A place among the requests that an instance forwards at once. It is given back when it is dropped.
#[must_use]
pub struct ForwardPermit {
    _held: Box<dyn Send + Sync>,
}

impl ForwardPermit {
    /// Returns a place that is given back by dropping `held`.
    pub fn new(held: impl Send + Sync + 'static) -> Self {
        Self { _held: Box::new(held) }
    }
}

/// Finds the instance that has a studio, and has it answer requests.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait StudioRouter: Send + Sync {
    /// Returns the instance that has a studio; `None` if it is this one. All studios of an author are at one
    /// instance while the same instances run that begin sessions.
    ///
    /// # Errors
    /// [`ForwardError::Ended`] or [`ForwardError::Unreachable`], only of [`StudioOwner::Instance`].
    fn locate(&self, owner: StudioOwner) -> Result<Option<OtherInstance>, ForwardError>;

    /// Takes a place among the requests that this instance forwards at once. It is needed before the body of
    /// a request is read, and until the response has been sent: both are in the memory of this instance.
    ///
    /// # Errors
    /// [`ForwardError::Busy`] if no place is free, or the sender has as many as one may have.
    fn permit(&self, sender: ForwardSender) -> Result<ForwardPermit, ForwardError>;

    /// Has another instance answer a request that has a place, which the caller keeps with the response. The
    /// other instance authenticates the sender itself.
    ///
    /// # Errors
    /// All but [`ForwardError::Ended`] and [`ForwardError::Busy`].
    async fn forward(
        &self,
        permit: &ForwardPermit,
        to: &OtherInstance,
        request: ForwardedRequest,
    ) -> Result<ForwardedResponse, ForwardError>;
}

/// Why no instance answers a request for a studio.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ForwardError {
    /// The instance that had the studio has stopped.
    #[error("the studio has ended: open it again")]
    Ended,
    /// The instance that has the studio does not answer at the moment.
    #[error("the studio cannot be reached at the moment: try again in a few seconds")]
    Unreachable,
    /// This instance forwards as many requests as it may at once, in all or for this sender.
    #[error("too many requests are in progress at the moment: try again in a few seconds")]
    Busy,
    /// The instance that has the studio was reached, and has not answered in time, or not completely. It may
    /// have carried the request out all the same.
    #[error("the studio does not answer in time: try again in a few seconds")]
    TimedOut,
    /// The request is longer than this instance would take itself, or than one that is forwarded may be.
    #[error("the request is too large")]
    TooLarge,
    /// The request did not arrive completely in time, or has a header that cannot be passed on.
    #[error("the request cannot be read")]
    Unreadable,
    /// The response is longer than one instance takes from another.
    #[error("the response of the studio is too large")]
    ResponseTooLarge,
}

impl ForwardError {
    /// After how many seconds another attempt may succeed; `None` if it will not. As long as an instance
    /// that did not answer is left out.
    #[must_use]
    pub const fn retry_after(self) -> Option<u32> {
        match self {
            Self::Unreachable | Self::Busy | Self::TimedOut => Some(5),
            Self::Ended | Self::TooLarge | Self::Unreadable | Self::ResponseTooLarge => None,
        }
    }
}
