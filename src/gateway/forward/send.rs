//! Sends an allowed request to its upstream.

use std::net::IpAddr;
use std::sync::Arc;

use http::{StatusCode, Version};

use super::answers;
use super::upgrade::UpgradeRequest;
use crate::gateway::body::expect::ContinueSignal;
use crate::gateway::body::{RequestBody, expect};
use crate::gateway::exchange::Exchange;
use crate::gateway::header_kind::ClientHeader;
use crate::gateway::headers;
use crate::gateway::headers::BodyLength;
use crate::gateway::response_body::ResponseBody;
use crate::listen::{Connection, Response};
use crate::rules::client::Identity;
use crate::rules::route::UpstreamId;
use crate::upstream::{Client, HostHeader, OutgoingRequest, OwnConnections};
use crate::wire::head::{Fields, KnownName, Name, ResponseHead};
use crate::words::pool::Pooled;

/// Sends a request to its upstream and returns the answer.
pub async fn forward(
    mut exchange: Pooled<Exchange>,
    connection: Arc<Connection>,
    mut body: RequestBody,
    upstream: UpstreamId,
    upgrade: Option<UpgradeRequest>,
) -> Response<ResponseBody> {
    let has_body = !body.is_empty();
    let continue_signal = prepare(&mut exchange, &connection, &mut body, upstream, upgrade.as_ref());
    let on_informational = informational_handler(&exchange, continue_signal.as_ref());
    let Exchange { live, worker, facts, reservation, .. } = &mut *exchange;
    let Some(target) = live.upstreams.get(usize::from(upstream.0)) else {
        return answers::no_upstream(exchange);
    };
    let client = OneClient { identity: &facts.identity, connection: &connection, version: facts.head.version };
    let request = OutgoingRequest { head: &mut facts.head, body: &mut body, awaits_end: reservation.holds_slots() };
    let answer = worker.pool.send(target, request, &client, on_informational).await;
    if let Ok(answer) = &answer {
        exchange.renew_sessions(&answer.head.fields);
    }
    match answer {
        Ok(answer) if answer.head.status == StatusCode::SWITCHING_PROTOCOLS => {
            Box::pin(answers::switch(exchange, &connection, answer, upgrade)).await
        }
        Ok(answer) if exchange.facts.asks_for_tunnel && answer.head.status.is_success() => {
            answers::reject_tunnel(exchange, answer)
        }
        Ok(answer) if exchange.reservation.outcome_rule().is_some() => {
            Box::pin(answers::watch(exchange, &connection, answer, continue_signal)).await
        }
        Ok(answer) => answers::relay(exchange, answer, continue_signal, None),
        Err(error) => Box::pin(answers::fail(exchange, has_body, error)).await,
    }
}

/// Turns the head into the one that the application gets.
fn prepare(
    exchange: &mut Exchange,
    connection: &Connection,
    body: &mut RequestBody,
    upstream: UpstreamId,
    upgrade: Option<&UpgradeRequest>,
) -> Option<ContinueSignal> {
    let has_tokens = exchange.reservation.awaited_tokens().is_some();
    let needs_body = exchange.reservation.outcome_rule().map(|rule| rule.needs_body() || has_tokens);
    let Exchange { live, worker, facts, trace, .. } = exchange;
    if let Some(trace) = trace {
        trace.forward(&mut facts.head.fields, worker.clock.now());
    }
    let (identity, fields) = (&facts.identity, &mut facts.head.fields);
    let mut client_header = None;
    let on_untrusted = |name: Name<'_>| {
        client_header = ClientHeader::of(name, &live.significant_headers).into_iter().chain(client_header).min();
    };
    let is_tls = connection.tls_info().is_some();
    let states_length = headers::prepare_request(
        fields,
        identity,
        is_tls,
        || connection.added_fields(|| headers::forwarding_of_peer(identity.peer, is_tls)),
        facts.request_id,
        &live.significant_headers,
        on_untrusted,
    );
    let settings = live.upstreams.get(usize::from(upstream.0)).map(|it| it.settings());
    if let Some(HostHeader::Fixed(host)) = settings.map(|it| &it.host) {
        fields.insert(KnownName::HOST, host.as_bytes());
    }
    if let Some(header) = client_header {
        live.recorder.count_untrusted_forwarding(identity.peer.address(), header.name(&live.significant_headers));
    }
    if let Some(needs_body) = needs_body {
        headers::prepare_for_outcome(fields, needs_body);
    }
    if states_length && body.is_empty() {
        fields.append(KnownName::CONTENT_LENGTH, b"0");
    }
    if let Some(upgrade) = upgrade {
        upgrade.ask(fields);
    }
    pass_expect_on(fields, body)
}

/// If the client waits for a 100, passes its `Expect` on, so that the client gets the 100 of the application.
fn pass_expect_on(fields: &mut Fields, body: &mut RequestBody) -> Option<ContinueSignal> {
    if !body.expects_continue() {
        return None;
    }
    // Once, even if the client sent it several times.
    fields.insert(KnownName::EXPECT, b"100-continue");
    let (continue_signal, gate) = expect::continue_gate();
    body.wait_for(gate);
    Some(continue_signal)
}

/// The handler of informational answers: 100 opens the gate of the body, all others go to the client.
fn informational_handler(
    exchange: &Exchange,
    continue_signal: Option<&ContinueSignal>,
) -> impl FnMut(ResponseHead) + Send + use<> {
    let open = continue_signal.map(ContinueSignal::opener);
    let (interim, live) = (exchange.interim.clone(), Arc::clone(&exchange.live));
    move |mut answer| {
        if answer.status != StatusCode::CONTINUE {
            headers::prepare_answer(&mut answer.fields, BodyLength::Sent, &live.significant_headers);
            interim.send(answer);
        } else if let Some(open) = &open {
            open();
        }
    }
}

// The client of a request as its upstream knows it.

/// Connections to servers that belong to a client are kept with its connection. Over HTTP/2 many requests share one, so that
/// an application that signs in connections would take one request for another's: there is none then.
pub(super) struct OneClient<'a> {
    pub(super) identity: &'a Identity,
    pub(super) connection: &'a Connection,
    /// The HTTP version of the request.
    pub(super) version: Version,
}

impl Client for OneClient<'_> {
    fn address(&self) -> IpAddr {
        self.identity.client.address()
    }

    fn own_connections(&self) -> Option<Arc<OwnConnections>> {
        self.connection.kept()
    }

    fn own_connections_or_new(&self) -> Option<Arc<OwnConnections>> {
        if self.version == Version::HTTP_2 { None } else { self.connection.keep() }
    }
}
