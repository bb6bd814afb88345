//! HTTP/2 to the servers: the connections of one core, each with many requests at a time.

mod connection;
mod driver;
mod exchange;
mod head_check;

pub(super) use self::connection::Http2Pool;
pub(super) use self::exchange::Http2ResponseBody;
