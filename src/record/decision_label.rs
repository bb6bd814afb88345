//! The `decision` of a request, in the request log, metrics and events.

/// What the gateway decided about a request.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum DecisionLabel {
    Allowed,
    Denied,
    /// Denied by a ban that was in force, or that this request began.
    Banned,
    /// Denied by a deny list or by `only`.
    Listed,
    /// Held, then forwarded.
    Delayed,
    /// Held, then denied.
    Tarpitted,
    /// Denied, with a proof of work that the client may solve.
    Challenged,
    /// Refused before any rule, or not answered by the application.
    Error,
}

impl DecisionLabel {
    pub const ALL: [Self; 8] = [
        Self::Allowed,
        Self::Denied,
        Self::Banned,
        Self::Listed,
        Self::Delayed,
        Self::Tarpitted,
        Self::Challenged,
        Self::Error,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Denied => "denied",
            Self::Banned => "banned",
            Self::Listed => "listed",
            Self::Delayed => "delayed",
            Self::Tarpitted => "tarpitted",
            Self::Challenged => "challenged",
            Self::Error => "error",
        }
    }
}
