//! Well-known programs from Debian packages, as clients of the gateway and as its neighbours.

mod ab;
mod curl;
mod exchanges;
mod h2load;
mod haproxy;
mod nginx;
mod openssl;
mod site;
mod slowhttptest;
mod tool;
mod websockets;

#[path = "../support/mod.rs"]
pub mod support;
