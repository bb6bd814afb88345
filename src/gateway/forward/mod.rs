//! Forwards allowed requests to the application, and relays its answers.

mod answers;
pub mod device;
pub mod header_kind;
pub mod headers;
pub mod inspected_body;
pub mod loop_mark;
mod one_client;
pub mod outcome_watch;
pub mod relayed_body;
pub mod send;
pub mod shown_answer;
pub mod significant_headers;
pub mod survive_disconnect;
pub mod untrusted_forwarding;
pub mod upgrade;
mod websocket;
