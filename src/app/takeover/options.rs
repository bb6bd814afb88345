//! How a process takes part in takeovers.

use super::command_line::CommandLine;

/// Whether a process takes over from the one before it, and how its own successor is started.
#[derive(Clone, Debug, Default)]
pub struct TakeoverOptions {
    /// It takes over from the running gateway of the same configuration, if there is one.
    pub takes_over: bool,
    /// The command that starts the process that takes over from this one. `None`: none may.
    pub successor_command: Option<CommandLine>,
}
