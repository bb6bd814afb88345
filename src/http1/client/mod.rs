//! The client's side of HTTP/1.1: heads of requests are written, heads of responses are read.

pub mod request;
pub mod response;
