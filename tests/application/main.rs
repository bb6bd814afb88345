//! In front of a real application that nobody here wrote: a Django project with its admin login.

mod attacks;
mod browser;
mod django;
mod forms;
mod hydra;
mod large;
mod live;
mod login;
mod recipes;
mod served;

#[path = "../support/mod.rs"]
pub mod support;
