//! Admits requests: checks that the head is exactly one unambiguous request, and reads the start of the body.

pub mod admission;
pub mod body;
pub mod cookies;
pub mod expect;
pub mod framing;
pub mod progress;
pub mod request_id;
pub mod strip;
