//! What both processes of a takeover understand of a transfer.

/// The version of a transfer: that of the process that knows fewer.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum TransferVersion {
    /// All keys arrive before either process decides again. Sessions do not move.
    V2,
    /// Sessions move, too.
    V3,
    /// Keys move while decisions are made.
    V4,
}

impl TransferVersion {
    pub(super) fn has_sessions(self) -> bool {
        self >= Self::V3
    }

    pub(super) fn keys_follow(self) -> bool {
        self >= Self::V4
    }
}
