//! HTTP/1.1 to a server: one connection for many requests in a row. Each request runs in its own task.

mod connection;
mod exchange;
mod request_writer;
mod response_body;

pub(super) use self::connection::Http1Connection;
pub(super) use self::request_writer::RequestWriter;
pub(super) use self::response_body::Http1ResponseBody;
