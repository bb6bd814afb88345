//! What the two processes of a takeover send each other over the control socket, line by line.
//!
//! | new process | running gateway |
//! | --- | --- |
//! | `take over 3` | `sockets ADDRESS COUNT` and so many descriptors, for each address; `clock MICROSECONDS`; then `end` |
//! | `state` | `state LENGTH` and so many bytes: bans, known clients and sessions; it writes no snapshot to disk from here on |
//! | `counts` | everything that is counted, as [`transfer`](crate::store::handover::transfer) sends it; it is frozen now |
//! | `serving` | after `counts`, `yours` or `mine`: which process goes on with them; else `draining` |
//!
//! `counts` comes last, when nothing is left that could fail or take long. Before `yours` the new process decides
//! nothing. After it the old one decides nothing: for the requests it still serves it asks the new one, over the same
//! socket (see [`handover`](crate::store::handover)). A connection that ends without a line means that the process at
//! the other end is gone.
//!
//! To a gateway that does not know version 3 the new process says `take over 2`: `counts` are then without sessions. To one
//! that does not know this either it says `take over 1`: without clock and `counts`.

use std::time::Duration;

/// The first line. The digit is the version of everything that follows, the encoding of counts included: a change of how
/// a key's memory is written changes it too.
pub(super) const GREETING: &str = "take over 3";

/// The first line of version 2, which hands no sessions over with the counts.
pub(super) const GREETING_V2: &str = "take over 2";

/// The first line of version 1, which hands no counts over.
pub(super) const GREETING_V1: &str = "take over 1";

/// How long counts stay frozen for a new process that does not go on.
pub(super) const FREEZE_TIMEOUT: Duration = Duration::from_secs(5);

/// How long either side waits for the other: a gateway may be reading a list of a million lines, or waiting for Redis.
pub(super) const TAKEOVER_TIMEOUT: Duration = Duration::from_secs(60);
