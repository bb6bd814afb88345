//! Sends an allowed request to its upstream.

use std::sync::Arc;

use http::HeaderName;
use http::HeaderValue;
use http::Request;
use http::Response;
use http::StatusCode;
use http::Uri;
use http::header::CONTENT_LENGTH;
use http::header::EXPECT;
use http::request::Parts;

use super::answers;
use super::answers::NO_ANSWER;
use super::headers;
use super::headers::BodyLength;
use super::survive_disconnect::SurviveDisconnect;
use super::untrusted_forwarding;
use super::upgrade::UpgradeError;
use super::upgrade::UpgradeRequest;
use crate::gateway::admit::body::RequestBody;
use crate::gateway::admit::expect;
use crate::gateway::admit::expect::ContinueSignal;
use crate::gateway::exchange::Exchange;
use crate::gateway::respond::reply;
use crate::gateway::respond::reply::AfterReply;
use crate::gateway::response_body::ResponseBody;
use crate::listen::Connection;
use crate::outcome::Outcome;
use crate::record::ObservedOutcome;
use crate::route::UpstreamId;
use crate::upstream::HostHeader;

/// Sends a request to its upstream and returns the answer.
///
/// The request is prepared outside the future, so that the future keeps only what it needs while it waits for the
/// answer.
pub fn forward(
    mut exchange: Box<Exchange>,
    connection: Arc<Connection>,
    parts: Parts,
    mut body: RequestBody,
    upstream: UpstreamId,
    upgrade: Option<UpgradeRequest>,
) -> impl Future<Output = Response<ResponseBody>> + Send + 'static {
    exchange.set_upstream(upstream);
    let has_body = !body.is_empty();
    let is_tls = connection.tls_info().is_some();
    let (parts, continue_signal) = prepare(&exchange, is_tls, parts, &mut body, upstream, upgrade.as_ref());
    let on_informational = informational_handler(&exchange, continue_signal.as_ref());
    let request = outgoing(parts, body);
    async move {
        let Some(target) = exchange.live.upstreams.get(usize::from(upstream.0)) else {
            exchange.set_error("the upstream does not exist");
            return reply::fail(exchange, StatusCode::BAD_GATEWAY, NO_ANSWER, AfterReply::Close);
        };
        let client = exchange.facts.identity.client.address();
        match exchange.worker.pool.send(target, request, client, on_informational).await {
            Ok(answer) if answer.response.status() == StatusCode::SWITCHING_PROTOCOLS => {
                Box::pin(answers::switch(exchange, &connection, answer, upgrade)).await
            }
            Ok(answer) if exchange.facts.asks_for_tunnel && answer.response.status().is_success() => {
                exchange.set_server(Some(Arc::clone(&answer.server)), answer.previous_attempts);
                answers::reject_upgrade(exchange, &answer.server, UpgradeError::NotSwitched)
            }
            Ok(answer) if exchange.outcome_rule().is_some() => {
                answers::watch(exchange, &connection, answer, continue_signal).await
            }
            Ok(answer) => answers::relay(exchange, answer, continue_signal, None),
            Err(error) => {
                // A request that never reached the application is neither a success nor a failure.
                let meaning =
                    if error.is_sent { ObservedOutcome::Unknown } else { ObservedOutcome::Known(Outcome::Neither) };
                exchange.settle(meaning, true).await;
                answers::fail(exchange, has_body, error)
            }
        }
    }
}

/// Like [`forward`], but continues after the client has disconnected: for requests whose outcome counts.
pub fn to_its_end(
    exchange: Box<Exchange>,
    connection: Arc<Connection>,
    parts: Parts,
    body: RequestBody,
    upstream: UpstreamId,
    upgrade: Option<UpgradeRequest>,
) -> SurviveDisconnect {
    let (worker, progress) = (Arc::clone(&exchange.worker), exchange.body().cloned());
    SurviveDisconnect::new(forward(exchange, connection, parts, body, upstream, upgrade), worker, progress)
}

/// Turns the head into the one that the application gets.
fn prepare(
    exchange: &Exchange,
    is_tls: bool,
    mut parts: Parts,
    body: &mut RequestBody,
    upstream: UpstreamId,
    upgrade: Option<&UpgradeRequest>,
) -> (Parts, Option<ContinueSignal>) {
    let live = &exchange.live;
    let settings = live.upstreams.get(usize::from(upstream.0)).map(|it| it.settings());
    let host = settings.map_or(&HostHeader::Preserve, |it| &it.host);
    let (identity, id) = (&exchange.facts.identity, exchange.facts.request_id);
    let on_untrusted = |name: &HeaderName| {
        untrusted_forwarding::report(name, &live.significant_headers, identity.peer, exchange.facts.started);
    };
    let states_length = headers::prepare_request(
        &mut parts.headers,
        identity,
        is_tls,
        id,
        host,
        &live.significant_headers,
        on_untrusted,
    );
    if let Some(rule) = exchange.outcome_rule() {
        headers::prepare_for_outcome(&mut parts.headers, rule.needs_body());
    }
    if states_length && body.is_empty() {
        parts.headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
    }
    if let Some(upgrade) = upgrade {
        upgrade.ask(&mut parts.headers);
    }
    let continue_signal = pass_expect_on(&mut parts, body);
    (parts, continue_signal)
}

/// If the client waits for a 100, passes its `Expect` on, so that the client gets the 100 of the application.
fn pass_expect_on(parts: &mut Parts, body: &mut RequestBody) -> Option<ContinueSignal> {
    if !body.expects_continue() {
        return None;
    }
    // Once, even if the client sent it several times.
    parts.headers.insert(EXPECT, HeaderValue::from_static("100-continue"));
    let (continue_signal, gate) = expect::continue_gate();
    body.wait_for(gate);
    Some(continue_signal)
}

/// The handler of informational answers: 100 opens the gate of the body, all others go to the client.
fn informational_handler(
    exchange: &Exchange,
    continue_signal: Option<&ContinueSignal>,
) -> impl FnMut(Response<()>) + Send + use<> {
    let open = continue_signal.map(ContinueSignal::opener);
    let (interim, live) = (exchange.interim.clone(), Arc::clone(&exchange.live));
    move |mut answer| {
        if answer.status() != StatusCode::CONTINUE {
            headers::prepare_answer(answer.headers_mut(), BodyLength::Sent, &live.significant_headers);
            interim.send(answer);
        } else if let Some(open) = &open {
            open();
        }
    }
}

fn outgoing(parts: Parts, body: RequestBody) -> Request<RequestBody> {
    let mut request = Request::new(body);
    *request.method_mut() = parts.method;
    *request.uri_mut() = origin_form(parts.uri);
    *request.headers_mut() = parts.headers;
    request
}

/// The target without scheme and authority: the authority is in `Host`.
fn origin_form(target: Uri) -> Uri {
    if target.authority().is_none() && target.scheme().is_none() {
        return target;
    }
    target.path_and_query().cloned().map_or_else(|| Uri::from_static("/"), Uri::from)
}
