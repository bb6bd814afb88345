//! The command line: commands, output, exit codes.

mod arguments;
mod check;
mod completions;
mod convert;
mod demo;
mod exit;
mod explain;
mod help;
mod man;
mod output;
mod program;
mod progress;
mod remote;
mod replay;
mod run;
mod sample;
mod schema;
mod suggest;

pub use self::program::main;
