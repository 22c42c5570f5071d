//! Log lines about refused access, bounded so that a flood of requests does not fill the disk.

/// Why a request was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalClass {
    /// An API key is missing, unknown, revoked or expired.
    Key,
    /// The caller lacks a permission.
    Forbidden,
    /// A form carries no valid CSRF token.
    Form,
    /// A page of a foreign origin tried to open a stream.
    Origin,
    /// A session link is invalid.
    Link,
    /// A code for another device is wrong.
    Code,
    /// A rate limit was reached.
    Limit,
    /// A sign-in or re-authentication in the portal failed.
    SignIn,
}

impl RefusalClass {
    pub const ALL: [Self; 8] = [
        Self::Key,
        Self::Forbidden,
        Self::Form,
        Self::Origin,
        Self::Link,
        Self::Code,
        Self::Limit,
        Self::SignIn,
    ];

    /// The name in log lines and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Forbidden => "forbidden",
            Self::Form => "form",
            Self::Origin => "origin",
            Self::Link => "link",
            Self::Code => "code",
            Self::Limit => "limit",
            Self::SignIn => "sign-in",
        }
    }
}

/// Counts refusals and bounds their log lines.
pub trait RefusalLog: Send + Sync {
    /// Counts a refusal. Returns whether the caller may log a line of its own: each class has a
    /// bounded number of lines per minute. Refusals without a line are summed up in one line at
    /// the end of the minute.
    fn may_log(&self, class: RefusalClass) -> bool;
}
