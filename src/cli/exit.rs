//! Exit codes.

use std::process::ExitCode;

/// How a command ended. Usage errors (2) are reported as the parser of the command line does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Exit {
    Done,
    /// The input was wrong.
    Wrong,
    /// The gateway could not be reached.
    Unreachable,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Done => Self::SUCCESS,
            Exit::Wrong => Self::from(1),
            Exit::Unreachable => Self::from(3),
        }
    }
}
