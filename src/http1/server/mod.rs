//! The server's side of HTTP/1.1: heads of requests are read, heads of responses are written.

pub mod request;
pub mod response;
