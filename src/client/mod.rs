//! Who asks: the address and the device that limits and lists are applied to.

pub mod device;
pub mod forwarded;
pub mod identity;
pub mod ip;
pub mod networks;
pub mod own_cookies;
pub mod prefix;
pub mod reputation;

pub use self::device::DeviceId;
pub use self::forwarded::ForwardingHeader;
pub use self::identity::Identity;
pub use self::identity::TrustedProxies;
pub use self::ip::ClientIp;
pub use self::networks::Networks;
pub use self::prefix::Prefix;
pub use self::reputation::Reputation;
