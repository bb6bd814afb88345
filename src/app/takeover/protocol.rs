//! What the two processes of a takeover send each other over the control socket, line by line.
//!
//! | new process | running gateway |
//! | --- | --- |
//! | `take over 4` | `sockets ADDRESS COUNT` and so many descriptors, for each address; `clock MICROSECONDS`; then `end` |
//! | `state` | `state LENGTH` and so many bytes: bans, known clients and sessions; it writes no snapshot to disk from here on |
//! | `counts` | all that is counted but the keys, as [`transfer`](crate::store::handover::transfer) sends it; it is frozen now |
//! | `serving` | after `counts`, `yours` or `mine`: which process goes on with them; else `draining` |
//!
//! `counts` comes last, when nothing is left that could fail or take long. Before `yours` the new process decides
//! nothing. After it the old one decides nothing: for the requests it serves it asks the new one, over the same
//! socket, on which the keys follow (see [`handover`](crate::store::handover)). The new process accepts connections when
//! it has all keys. A connection that ends without a line means that the process at the other end is gone.
//!
//! The new process greets a gateway that does not know version 4 with the next older one: in version 3 the keys come before
//! `serving`, version 2 has no sessions, and version 1 neither clock nor `counts`.

use std::time::Duration;

use crate::store::handover::version::TransferVersion;

/// The first lines, the newest version first, and how counts are transferred then. The digit is the version of
/// everything that follows, the encoding of counts included: a change of how a key's memory is written changes it too.
pub(super) const GREETINGS: [(&str, Option<TransferVersion>); 4] = [
    ("take over 4", Some(TransferVersion::V4)),
    ("take over 3", Some(TransferVersion::V3)),
    ("take over 2", Some(TransferVersion::V2)),
    ("take over 1", None),
];

/// How long counts stay frozen for a new process that does not go on.
pub(super) const FREEZE_TIMEOUT: Duration = Duration::from_secs(5);

/// How long either side waits for the other: a gateway may be reading a list of a million lines, or waiting for Redis.
pub(super) const TAKEOVER_TIMEOUT: Duration = Duration::from_secs(60);
