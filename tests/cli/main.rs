//! The real binary: commands, output, exit codes.

mod bans;
mod build_release;
mod check;
mod command;
mod compose;
mod config;
mod demo;
mod documents;
mod events;
mod explain;
mod health;
mod limits;
mod packages;
mod replay;
mod run;
mod status;
mod suggest;
mod usage;

#[expect(dead_code, unreachable_pub, unused_imports, reason = "each test binary uses a part of it")]
#[path = "../support/mod.rs"]
mod support;
mod why;
