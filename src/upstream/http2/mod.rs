//! HTTP/2 to the servers: the connections of one core, each with many requests at a time.

mod connection;
mod driver;
mod exchange;
mod keepalive;
mod open;
mod pool;
mod read_monitor;
mod upload;

pub(super) use self::exchange::Http2ResponseBody;

pub(super) use self::pool::Http2Pool;
