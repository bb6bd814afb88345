//! The command line: commands, output, exit codes.

mod check;
mod completions;
mod convert;
mod demo;
mod explain;
mod manual;
mod output;
mod program;
mod remote;
mod replay;
mod run;

pub use self::program::main;
