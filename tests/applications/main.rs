//! The gateway in front of real applications: Django, WordPress, DokuWiki, Express, and login forms of other kinds.

mod admin;
mod alphabet;
mod attack;
mod attacks;
mod browser;
mod calibre;
mod django;
mod dokuwiki;
mod express;
mod forged;
mod forms;
mod hydra;
mod identity;
mod jar;
mod large;
mod live;
mod login;
mod mediawiki;
mod names;
mod php;
mod phpmyadmin;
mod recipes;
mod roundcube;
mod served;
mod wordpress;

#[path = "../support/mod.rs"]
pub mod support;
