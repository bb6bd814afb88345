//! A request that passed, on its way to the application and back.

pub mod device;
pub mod header_names;
pub mod headers;
pub mod inspect;
pub mod relayed_body;
pub mod send;
pub mod survive_disconnect;
pub mod untrusted_forwarding;
pub mod upgrade;
mod websocket;
