//! Well-known programs from Debian packages, as clients of the gateway and as its neighbours.

mod ab;
mod curl;
mod exchanges;
mod fail2ban;
mod grafana;
mod h2load;
mod haproxy;
mod metric_names;
mod nginx;
mod openssl;
mod prometheus;
mod site;
mod slowhttptest;
mod tool;
mod websockets;

#[path = "../support/mod.rs"]
pub mod support;
