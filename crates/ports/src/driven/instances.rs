//! The instances of a deployment: which there are, and connections between them.

use std::fmt;

use async_trait::async_trait;
use domain::{
    id::{InstanceId, SessionId},
    placement::Instance,
};

use crate::StoreError;

/// The maximum number of instances that are read.
pub const MAX_INSTANCES: u16 = 1_000;

/// The maximum number of sessions that are asked for at once.
pub const MAX_ASKED: usize = 500;

/// Tells which sessions may have their browsers in another region.
#[async_trait]
pub trait SessionRegions: Send + Sync {
    /// Returns those of the first [`MAX_ASKED`] of these sessions whose teams allow it, in any order.
    async fn sessions_that_may_leave(
        &self,
        ids: &[SessionId],
    ) -> Result<Vec<SessionId>, StoreError>;
}

/// The table of instances.
#[async_trait]
pub trait InstanceRegistry: Send + Sync {
    /// Saves what an instance tells of itself, and counts that it did. An entry that another instance
    /// deleted in the meantime is made again.
    async fn report(&self, own: &Instance) -> Result<(), StoreError>;

    /// Returns at most [`MAX_INSTANCES`] entries by identifier.
    ///
    /// A reader tells from a count that grows that an instance still runs; so the clocks of two machines
    /// are never compared. Entries that this version cannot read are left out.
    async fn instances(&self) -> Result<Vec<ReportedInstance>, StoreError>;

    /// Deletes the entry of an instance whose count is still this one, or any where `count` is `None`.
    async fn remove(&self, id: InstanceId, count: Option<i64>) -> Result<(), StoreError>;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportedInstance {
    pub instance: Instance,
    /// How often it has reported; from 1.
    pub count: i64,
}

/// Which WebSocket of a session is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SocketKind {
    Applicant,
    Observer,
}

impl SocketKind {
    /// Returns the path at which an instance accepts this socket from other instances. `session` is the
    /// session's identifier, or a placeholder for it.
    #[must_use]
    pub fn path(self, session: impl fmt::Display) -> String {
        match self {
            Self::Applicant => format!("/applicants/{session}"),
            Self::Observer => format!("/observers/{session}"),
        }
    }
}

/// A request for a WebSocket (RFC 6455, section 4.1) that another instance answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SocketRequest {
    pub session: SessionId,
    pub kind: SocketKind,
    /// The headers that the other instance needs: those of the WebSocket handshake, and those that say
    /// who asks. Names are in lower case.
    pub headers: Vec<(&'static str, String)>,
}

/// A WebSocket that another instance has accepted; the bytes of both directions are passed on as they are.
pub struct RelayedSocket {
    /// The headers of the response to the handshake.
    pub headers: Vec<(String, String)>,
    pub reader: Box<dyn ByteReader>,
    pub writer: Box<dyn ByteWriter>,
}

/// Bytes from another instance.
#[async_trait]
pub trait ByteReader: Send {
    /// Returns the next bytes, at most [`MAX_READ`]; `None` at the end, after an error, or once none have
    /// come for so long that the other instance must be gone. Nothing is read ahead: while nobody asks, the
    /// sender waits.
    async fn read(&mut self) -> Option<Vec<u8>>;
}

/// Bytes to another instance.
#[async_trait]
pub trait ByteWriter: Send {
    /// Passes bytes on, once the other instance has room for them. Returns whether it still takes some.
    async fn write(&mut self, bytes: &[u8]) -> bool;
}

/// The maximum number of bytes of one read.
pub const MAX_READ: usize = 64 * 1024;

/// The maximum number of bytes of the body of a request that is forwarded: a definition as text, in JSON.
pub const MAX_FORWARDED_BYTES: usize = 3 * 1024 * 1024;

/// The maximum number of bytes of the path, with its query, and of the headers of such a request.
pub const MAX_FORWARDED_HEAD_BYTES: usize = 16 * 1024;

/// The maximum number of bytes of the body of its response.
pub const MAX_ANSWERED_BYTES: usize = 32 * 1024 * 1024;

/// The methods of requests that are forwarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForwardedMethod {
    Get,
    Head,
    Post,
}

impl ForwardedMethod {
    /// Returns the name of the method (RFC 9110, section 9.3).
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
        }
    }
}

/// A request for a page that another instance answers. It has the cookies of its sender, and so no `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct ForwardedRequest {
    pub method: ForwardedMethod,
    /// The path with its query, as the client sent it.
    pub path: String,
    /// The headers that the other instance needs, and those that say who asks. Names are in lower case.
    pub headers: Vec<(&'static str, String)>,
    /// At most [`MAX_FORWARDED_BYTES`].
    pub body: Vec<u8>,
}

impl ForwardedRequest {
    /// Returns whether body and head are within their bounds.
    #[must_use]
    pub fn is_within_bounds(&self) -> bool {
        let header =
            |(name, value): &(&'static str, String)| name.len().saturating_add(value.len());
        let headers = self.headers.iter().map(header).fold(0, usize::saturating_add);
        self.body.len() <= MAX_FORWARDED_BYTES
            && self.path.len().saturating_add(headers) <= MAX_FORWARDED_HEAD_BYTES
    }
}

/// The response of another instance to a request. It may set cookies, and so has no `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct ForwardedResponse {
    /// The HTTP status.
    pub status: u16,
    /// The headers that a client needs. Names are in lower case; a name may occur several times.
    pub headers: Vec<(String, String)>,
    /// At most [`MAX_ANSWERED_BYTES`].
    pub body: Vec<u8>,
}

/// Connections to other instances.
#[async_trait]
pub trait InstanceLinks: Send + Sync {
    /// Opens a WebSocket at another instance, within 5 s.
    ///
    /// # Errors
    /// The instance cannot be reached, or it refuses the request.
    async fn open(&self, address: &str, request: SocketRequest)
    -> Result<RelayedSocket, LinkError>;

    /// Has another instance answer a request. It is reached within 5 s, and answers within 60 s more.
    ///
    /// # Errors
    /// The instance cannot be reached or is too slow, the connection ends, or the request or the response is
    /// larger than its bounds or cannot be sent. Where the instance was reached and has not answered, it may
    /// have carried the request out all the same.
    async fn request(
        &self,
        address: &str,
        request: ForwardedRequest,
    ) -> Result<ForwardedResponse, LinkError>;

    /// Examines whether an instance answers, within 2 s.
    ///
    /// # Errors
    /// [`LinkError::Unreachable`].
    async fn reach(&self, address: &str) -> Result<(), LinkError>;
}

/// Why a WebSocket could not be opened at another instance, or a request was not answered there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// The instance does not answer, or does not prove that it belongs to this deployment.
    #[error("the instance cannot be reached: {0}")]
    Unreachable(String),
    /// The instance answers the handshake with this HTTP status.
    #[error("the instance answers with status {0}")]
    Refused(u16),
    /// The instance was reached, and has not answered a request within its time.
    #[error("the instance does not answer in time")]
    TimedOut,
    /// The instance was reached, and the connection has ended before the response was complete. The request
    /// may have been carried out.
    #[error("the connection ended before the response was complete: {0}")]
    Broken(String),
    /// The request has a path or a header that cannot be sent; nothing was sent.
    #[error("the request cannot be sent: {0}")]
    Invalid(String),
    /// The request is larger than [`MAX_FORWARDED_BYTES`] or [`MAX_FORWARDED_HEAD_BYTES`]; nothing was sent.
    #[error("the request is too large to be forwarded")]
    RequestTooLarge,
    /// The response is larger than [`MAX_ANSWERED_BYTES`].
    #[error("the response of the instance is too large")]
    ResponseTooLarge,
}
