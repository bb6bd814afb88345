//! A request that passed, on its way to the application and back.

pub mod device;
pub mod header_names;
pub mod headers;
pub mod inspect;
pub mod outlive;
pub mod relay;
pub mod send;
pub mod unheeded;
pub mod upgrade;
mod websocket;
