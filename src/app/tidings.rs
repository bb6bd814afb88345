//! What the record is told by others than requests, and what it needs of them.

use std::pin::Pin;
use std::sync::Arc;

use tracing::field::display;
use tracing::info;

use super::reload::Refused;
use crate::app::changes::Changes;
use crate::record::Happening;
use crate::record::Herald;
use crate::record::audit::Append;
use crate::record::audit::Appended;
use crate::record::audit::RedisStream;
use crate::record::happening::Kind;
use crate::store::AnyStore;
use crate::store::bans::Ban;
use crate::store::bans::BanObserver;
use crate::store::bans::BanSubject;
use crate::store::redis::links::Failure;
use crate::units::Span;

/// Tells of bans that begin or are lifted here. Other gateways tell of theirs.
#[derive(Debug)]
pub(super) struct Bans(pub(super) Arc<Herald>);

impl BanObserver for Bans {
    fn banned(&self, ban: &Ban) {
        log_unless_by_operator(ban);
        self.0.tell(&Arc::new(Happening {
            until: Some(ban.until),
            span: Some(ban.until.since(ban.since)),
            ..of_ban(Kind::Ban, ban)
        }));
    }

    fn lifted(&self, ban: &Ban) {
        self.0.tell(&Arc::new(of_ban(Kind::Unban, ban)));
    }
}

/// Whoever bans by hand is told by the admin API.
fn log_unless_by_operator(ban: &Ban) {
    let BanSubject::Key { limit, named, client, .. } = &ban.subject else { return };
    if ban.by_operator {
        return;
    }
    let key = named.masked_words();
    let whom = if key.is_empty() { "everybody" } else { &key };
    let client = client.map(display);
    let span = Span(ban.until.since(ban.since));
    info!(ban = %ban.id, limit = &**limit, key, client, until = %ban.until, "{limit} bans {whom} for {span}");
}

fn of_ban(event: Kind, ban: &Ban) -> Happening {
    let (address, limit, key, client) = match &ban.subject {
        BanSubject::Address(network) => (Some(network.to_string().into_boxed_str()), None, None, None),
        BanSubject::Key { limit, named, client, .. } => {
            (None, Some(Arc::clone(limit)), Some(named.masked.clone()), *client)
        }
    };
    // A ban of one address says who it is about.
    let network = ban.network().filter(|network| network.prefix_len() == network.max_prefix_len());
    Happening {
        limit,
        key,
        address,
        client: client.or(network.map(|network| network.addr())),
        ban: Some(ban.id.to_string().into()),
        reason: (!ban.reason.is_empty()).then(|| (*ban.reason).into()),
        ..Happening::of(event)
    }
}

/// What came of reading the configuration anew.
pub(super) fn of_reload(outcome: &Result<Changes, Refused>) -> Happening {
    let reason = match outcome {
        Ok(changes) => format!("done: {changes}"),
        Err(Refused::Mistakes(mistakes)) => format!("refused: {} mistakes", mistakes.len()),
        Err(Refused::Start(_)) => "refused: an address or a file cannot be opened".to_owned(),
        Err(Refused::Defect) => "refused: reading it panicked".to_owned(),
    };
    Happening { reason: Some(reason.into()), ..Happening::of(Kind::Reload) }
}

/// The store's Redis as a place for streams.
#[derive(Debug)]
pub(super) struct Streams(AnyStore);

impl Streams {
    /// Over connections of their own, of the thread that calls this; `None`: the store is no Redis.
    pub(super) fn of(store: &AnyStore) -> Option<Arc<dyn Append>> {
        matches!(store, AnyStore::Shared(_)).then(|| Arc::new(Self(store.on_another_core())) as Arc<dyn Append>)
    }
}

impl Append for Streams {
    fn append<'a>(
        &'a self,
        stream: &'a RedisStream,
        fields: &'a [(&'static str, String)],
    ) -> Pin<Box<dyn Future<Output = Appended> + Send + 'a>> {
        Box::pin(async {
            let AnyStore::Shared(shared) = &self.0 else { return Appended::Away };
            match shared.append(&stream.key, stream.max_entries, fields).await {
                Ok(()) => Appended::Done,
                Err((Failure::Open, _)) => Appended::Away,
                Err((Failure::Refused, words)) => Appended::Lost(words),
                Err((Failure::Unknown, _)) => Appended::Lost("redis did not answer in time".to_owned()),
            }
        })
    }
}
