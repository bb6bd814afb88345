//! Proxies that ask for decisions and forward the requests themselves: their questions, byte by byte, and real proxies with
//! the ready configurations of `config/with`.

mod apache;
mod caddy;
mod descriptions;
mod forward_auth;
mod haproxy;
mod listener;
mod nginx;
mod proxies;
mod question;
mod traefik;

#[path = "../support/mod.rs"]
pub mod support;
