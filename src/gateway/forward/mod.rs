//! Forwards allowed requests to the application, and relays its answers.

mod answers;
pub mod send;
pub mod upgrade;
