//! Scripts in a real Redis against [`State`](crate::limit::State).

#[path = "../../../../../tests/support/clock.rs"]
#[expect(unreachable_pub, reason = "shared with the tests of whole processes")]
mod clock;
#[path = "../../../../../tests/support/redis.rs"]
#[expect(dead_code, unreachable_pub, reason = "shared with the tests of whole processes")]
mod redis_server;
#[path = "../../../../../tests/support/signals.rs"]
mod signals;
#[path = "../../../../../tests/support/unused_address.rs"]
#[expect(unreachable_pub, reason = "shared with the tests of whole processes")]
mod unused_address;

mod changed_scripts;
mod edges;
mod histories;
mod lease_model;
mod leases;
mod part_model;
mod server;
mod settlements;
mod slot_model;
mod text;
