//! Scripts in a real Redis against [`State`](crate::rules::limit::State).

mod changed_scripts;
#[path = "../../../../../tests/support/clock.rs"]
#[expect(dead_code, unreachable_pub, reason = "shared with the tests of whole processes")]
mod clock;
mod edges;
mod histories;
mod lease_model;
mod leases;
mod part_model;
#[path = "../../../../../tests/support/redis.rs"]
#[expect(dead_code, unreachable_pub, reason = "shared with the tests of whole processes")]
mod redis_server;
mod server;
mod settlements;
#[path = "../../../../../tests/support/signals.rs"]
mod signals;
mod slot_model;
mod text;
#[path = "../../../../../tests/support/unused_address.rs"]
#[expect(unreachable_pub, reason = "shared with the tests of whole processes")]
mod unused_address;
