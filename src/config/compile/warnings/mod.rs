//! Warnings of what is valid and probably not meant. Each says what is wrong, why it matters and what to write instead.
//!
//! The warnings of [`examples`] and [`secrets`] are added while a file is read, all others once everything is compiled.

mod bans;
mod decisions;
mod document;
mod examples;
mod globs;
mod identities;
mod logins;
mod loops;
mod outcomes;
mod proxies;
mod routes;
mod secrets;
