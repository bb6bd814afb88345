//! In front of real applications that nobody here wrote, and of logins that answer as others do.

mod admin;
mod attack;
mod attacks;
mod browser;
mod django;
mod dokuwiki;
mod express;
mod forms;
mod hydra;
mod large;
mod live;
mod login;
mod php;
mod recipes;
mod served;
mod wordpress;

#[path = "../support/mod.rs"]
pub mod support;
