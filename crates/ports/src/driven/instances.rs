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
    /// Returns the next bytes, at most [`MAX_READ`]; `None` at the end or after an error. Nothing is read
    /// ahead: while nobody asks, the sender waits.
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

/// Connections to other instances.
#[async_trait]
pub trait InstanceLinks: Send + Sync {
    /// Opens a WebSocket at another instance, within 5 s.
    ///
    /// # Errors
    /// The instance cannot be reached, or it refuses the request.
    async fn open(&self, address: &str, request: SocketRequest)
    -> Result<RelayedSocket, LinkError>;

    /// Examines whether an instance answers, within 2 s.
    ///
    /// # Errors
    /// [`LinkError::Unreachable`].
    async fn reach(&self, address: &str) -> Result<(), LinkError>;
}

/// Why a WebSocket could not be opened at another instance.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// The instance does not answer, or does not prove that it belongs to this deployment.
    #[error("the instance cannot be reached: {0}")]
    Unreachable(String),
    /// The instance answers the handshake with this HTTP status.
    #[error("the instance answers with status {0}")]
    Refused(u16),
}
