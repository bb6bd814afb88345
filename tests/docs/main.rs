//! The README and the book under `docs/`: every configuration in them loads, every command runs, every link leads
//! somewhere, and what is generated is up to date.

mod commands;
mod configurations;
mod generated;
mod links;
mod names;
mod page;
mod session;
mod shown;

#[expect(dead_code, unreachable_pub, unused_imports, reason = "each test binary uses a part of it")]
#[path = "../support/mod.rs"]
mod support;
