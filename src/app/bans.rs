//! Bans that begin and end here, told to the audit trail and the live stream.

use std::sync::Arc;

use crate::record::Happening;
use crate::record::Sinks;
use crate::record::happening::Kind;
use crate::store::bans::Ban;
use crate::store::bans::Listener;
use crate::store::bans::Subject;

/// Tells whoever listens.
#[derive(Debug)]
pub(super) struct Teller(Sinks);

impl Teller {
    pub(super) fn new(sinks: &Sinks) -> Arc<Self> {
        Arc::new(Self(sinks.clone()))
    }
}

impl Listener for Teller {
    fn banned(&self, ban: &Ban) {
        let span = ban.until.since(ban.since);
        self.0.tell(Happening { until: Some(ban.until), span: Some(span), ..told(Kind::Ban, ban) });
    }

    fn lifted(&self, ban: &Ban) {
        self.0.tell(told(Kind::Unban, ban));
    }
}

fn told(event: Kind, ban: &Ban) -> Happening {
    let (address, limit, key) = match &ban.subject {
        Subject::Address(network) => (Some(network.to_string().into()), None, None),
        Subject::Key { limit, named, .. } => (None, Some(Arc::clone(limit)), Some(named.parts.clone())),
    };
    Happening {
        address,
        limit,
        key,
        ban: Some(ban.id.to_string().into()),
        reason: (!ban.reason.is_empty()).then(|| (&*ban.reason).into()),
        ..Happening::of(event)
    }
}
