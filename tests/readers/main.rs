//! Whatever name the body readers of many languages read in a request, the gateway has charged that name or the empty value;
//! and what real clients send is understood.

mod case;
mod charged;
mod clients;
mod differential;
mod generate;
mod reader;
mod recorder;
mod regressions;
mod shrink;

#[path = "../support/mod.rs"]
pub mod support;
