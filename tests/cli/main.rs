//! The real binary: commands, output, exit codes.

mod bans;
mod build_release;
mod check;
mod completions;
mod compose;
mod config;
mod convert;
mod demo;
mod documents;
mod events;
mod explain;
mod full_disk;
mod health;
mod limits;
mod packages;
mod recipe;
mod replay;
mod replay_formats;
mod replay_logs;
mod run;
mod status;
mod suggest;
mod suggested_routes;
mod usage;

#[expect(dead_code, unreachable_pub, unused_imports, reason = "each test binary uses a part of it")]
#[path = "../support/mod.rs"]
mod support;
mod why;
