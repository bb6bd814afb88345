//! What is no mistake, and probably not meant. Each function knows one such thing, and says what is wrong, why it
//! matters and what to write instead.
//!
//! What shows while a file is read ([`examples`], [`secrets`]) is said there; everything else here, once all is read.

mod bans;
mod document;
mod examples;
mod globs;
mod logins;
mod outcomes;
mod proxies;
mod routes;
mod secrets;
