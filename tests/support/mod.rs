//! What black-box tests need: the real binary, a programmable origin, and clients that speak raw bytes.

mod caller;
mod clock;
mod gateway;
mod haproxy;
mod ledger;
mod message;
mod origin;
mod over;
mod raw_client;
mod redis;
mod redis_cluster;
mod request;
mod secure_origin;

pub use self::caller::Caller;
pub use self::clock::Stopwatch;
pub use self::clock::eventually;
pub use self::gateway::Gateway;
pub use self::haproxy::Haproxy;
pub use self::ledger::Arrival;
pub use self::ledger::Ledger;
pub use self::message::Response;
pub use self::message::digest;
pub use self::origin::Answer;
pub use self::origin::Exchange;
pub use self::origin::Origin;
pub use self::over::Over;
pub use self::raw_client::RawClient;
pub use self::redis::RedisServer;
pub use self::redis_cluster::RedisCluster;
pub use self::redis_cluster::RedisSentinels;
pub use self::request::Request;
pub use self::secure_origin::Authority;
pub use self::secure_origin::SecureOrigin;
