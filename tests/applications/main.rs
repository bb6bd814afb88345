//! The gateway in front of real applications: Django, WordPress, DokuWiki, Express, and login forms of other kinds.

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
