//! Whatever a real server reads as the login was matched by the gateway, and charged to the route of the login.
//!
//! Each server is asked directly which of many spellings reach its login. Each of those is then sent through the gateway,
//! where it must use up the one request that its client has.

mod apache;
mod fpm;
mod gunicorn;
mod login;
mod methods;
mod nginx;
mod node;
mod php;
mod site;
mod spelling;
mod tomcat;
mod uwsgi;

#[path = "../support/mod.rs"]
pub mod support;
