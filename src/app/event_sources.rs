//! Turns bans and reloads into audit events.

use std::sync::Arc;

use tracing::field::display;
use tracing::info;

use super::reload::ReloadError;
use crate::app::announce::Changes;
use crate::record::event::{BannedNetwork, EventKind};
use crate::record::{Event, EventBus};
use crate::store::bans::{Ban, BanObserver, BanSubject};
use crate::words::units::{Span, counted};

/// Publishes bans that begin or are lifted on this gateway. Each other gateway publishes its own; this one only keeps
/// their events, for the recent events of the API.
#[derive(Debug)]
pub(super) struct BanEvents(pub(super) Arc<EventBus>);

impl BanObserver for BanEvents {
    fn banned(&self, ban: &Ban) {
        log_unless_by_operator(ban);
        self.0.publish(&Arc::new(begin_event(ban)));
    }

    fn lifted(&self, ban: &Ban) {
        self.0.publish(&Arc::new(ban_event(EventKind::Unban, ban)));
    }

    fn ban_announced(&self, ban: &Ban) {
        self.0.keep_remote(&Arc::new(begin_event(ban)));
    }

    fn lift_announced(&self, ban: &Ban) {
        let event = ban_event(EventKind::Unban, ban);
        // All gateways receive the event. Only the one where the ban began acts on it.
        let banned_network = event.banned_network.filter(|_| ban.is_first_hand());
        self.0.keep_remote(&Arc::new(Event { banned_network, ..event }));
    }
}

/// The admin API logs the bans of operators itself.
fn log_unless_by_operator(ban: &Ban) {
    let BanSubject::Key { limit, named, client, .. } = &ban.subject else { return };
    if ban.by_operator {
        return;
    }
    let key = named.masked_words();
    let shown = if key.is_empty() { "all requests" } else { &key };
    let client = client.map(display);
    let span = Span(ban.until.since(ban.since));
    info!(ban = %ban.id, limit = &**limit, key, client, until = %ban.until, "{limit} bans {shown} for {span}");
}

fn begin_event(ban: &Ban) -> Event {
    Event { until: Some(ban.until), span: Some(ban.until.since(ban.since)), ..ban_event(EventKind::Ban, ban) }
}

fn ban_event(kind: EventKind, ban: &Ban) -> Event {
    let (address, limit, key, client) = match &ban.subject {
        BanSubject::Address(network) => (Some(network.to_string().into_boxed_str()), None, None, None),
        BanSubject::Key { limit, named, client, .. } => {
            (None, Some(Arc::clone(limit)), Some(named.masked.clone()), *client)
        }
    };
    let banned_network = ban.network().map(|network| BannedNetwork { network, by_operator: ban.by_operator });
    // The ban of a single address names its client.
    let network = ban.network().filter(|network| network.prefix_len() == network.max_prefix_len());
    Event {
        limit,
        key,
        address,
        banned_network,
        client: client.or(network.map(|network| network.addr())),
        ban: Some(ban.id.to_string().into()),
        reason: (!ban.reason.is_empty()).then(|| (*ban.reason).into()),
        ..Event::new(kind)
    }
}

/// The event of a reload, whether it changed anything or was refused.
pub(super) fn reload_event(result: &Result<Changes, ReloadError>) -> Event {
    let reason = match result {
        Ok(changes) => format!("done: {changes}"),
        Err(ReloadError::Mistakes(mistakes)) => format!("refused: {}", counted(mistakes.len(), "mistake")),
        Err(ReloadError::Panic) => "refused: reading it panicked".to_owned(),
    };
    Event { reason: Some(reason.into()), ..Event::new(EventKind::Reload) }
}
