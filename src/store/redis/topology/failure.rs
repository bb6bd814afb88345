//! Why a call has no answer.

/// Why a call has no answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Failure {
    /// The breaker is open, or the server cannot be reached: nothing was sent.
    Open,
    /// The command was sent, or may have been, and the server may have run it.
    Unknown,
    /// The server answered that it did not run the command.
    Refused,
}
