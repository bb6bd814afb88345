//! In front of a real application that nobody here wrote: a Django project with its admin login.

mod browser;
mod django;
mod large;
mod live;
mod login;

#[path = "../support/mod.rs"]
pub mod support;
