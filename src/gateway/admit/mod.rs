//! Whether what came is exactly one unambiguous request, and its body as far as anything reads it.

pub mod body;
pub mod cookies;
pub mod expect;
pub mod framing;
pub mod progress;

pub mod request_id;
