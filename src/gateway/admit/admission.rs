//! Admits a request: checks that it is exactly one, and takes out of it what is not for the rules.

use http::Version;
use http_body::Body;

use super::body::BodyBounds;
use super::body::ClientBody;
use super::body::RequestBody;
use super::framing;
use super::framing::BadRequest;
use super::strip::Stripped;
use super::strip::strip;
use crate::gateway::decide::challenge::Proofs;
use crate::gateway::exchange::Exchange;
use crate::gateway::snapshot::Snapshot;
use crate::head::KnownName;
use crate::listen::Connection;
use crate::listen::InterimSender;
use crate::listen::OnUpgrade;
use crate::listen::tls::TlsInfo;
use crate::pool::Pooled;

/// A request as it comes from its client, or as a proxy describes it.
#[derive(Debug)]
pub struct Arrival<'c> {
    pub exchange: Pooled<Exchange>,
    pub body: ClientBody,
    /// The connection of a client that may ask for another protocol.
    pub upgrade: Option<OnUpgrade>,
    /// The handshake of the client itself; `None`: without TLS, or only a proxy knows it.
    pub tls: Option<&'c TlsInfo>,
}

/// A request that passed the framing checks.
#[derive(Debug)]
pub struct Admitted {
    pub exchange: Pooled<Exchange>,
    pub body: RequestBody,
    pub proofs: Proofs,
    /// The connection of a client that asks for another protocol, and names that in `Connection`.
    pub upgrade: Option<OnUpgrade>,
}

/// Refuses ambiguous requests, and removes from the head what is not for the application.
pub fn admit(
    live: &Snapshot,
    connection: &Connection,
    arrival: Arrival<'_>,
) -> Result<Admitted, (Pooled<Exchange>, BadRequest)> {
    let Arrival { mut exchange, body, upgrade, tls } = arrival;
    let head = &mut exchange.facts.head;
    if let Err(bad_request) = framing::admit(head, connection, tls, &live.settings, body.size_hint().lower()) {
        return Err((exchange, bad_request));
    }
    let Stripped { asks_for_upgrade, proofs } = strip(&mut head.fields, &live.significant_headers, live.challenges);
    let is_unasked = body.is_unasked();
    let mut body = RequestBody::new(body, BodyBounds::of(&live.settings));
    if is_unasked {
        // Reading it asks for it: as long as nothing has, a denial does not read the rest.
        body.expect_continue(InterimSender::default());
    } else if head.version >= Version::HTTP_11 && !body.is_empty() && head.fields.has(KnownName::EXPECT) {
        body.expect_continue(exchange.interim.clone());
    }
    exchange.set_body(body.progress());
    Ok(Admitted { exchange, body, proofs, upgrade: upgrade.filter(|_| asks_for_upgrade) })
}
