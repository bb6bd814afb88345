//! Sends an allowed request to its upstream, and brings the answer back.

use std::error::Error;
use std::sync::Arc;

use http::HeaderName;
use http::HeaderValue;
use http::Method;
use http::Request;
use http::Response;
use http::StatusCode;
use http::Uri;
use http::Version;
use http::header::CONNECTION;
use http::header::CONTENT_LENGTH;
use http::header::EXPECT;
use http::header::SET_COOKIE;
use http::header::UPGRADE;
use http::request::Parts;
use http_body::Body;
use tracing::warn;

use super::headers;
use super::headers::BodyLength;
use super::outcome_watch::OutcomeWatch;
use super::survive_disconnect::SurviveDisconnect;
use super::untrusted_forwarding;
use super::upgrade;
use super::upgrade::UpgradeError;
use super::upgrade::UpgradeRequest;
use crate::gateway::admit::body::RequestBody;
use crate::gateway::admit::expect;
use crate::gateway::admit::expect::ContinueSignal;
use crate::gateway::admit::progress::BodyProgress;
use crate::gateway::exchange::Exchange;
use crate::gateway::respond::reply;
use crate::gateway::respond::reply::AfterReply;
use crate::gateway::response_body::ResponseBody;
use crate::listen::Connection;
use crate::outcome::Outcome;
use crate::outcome::inspection;
use crate::record::ObservedOutcome;
use crate::route::UpstreamId;
use crate::upstream::ForwardError;
use crate::upstream::HostHeader;
use crate::upstream::UpstreamResponse;

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
                Box::pin(switch(exchange, &connection, answer, upgrade)).await
            }
            Ok(answer) if exchange.facts.asks_for_tunnel && answer.response.status().is_success() => {
                exchange.set_server(Some(Arc::clone(&answer.server)), answer.previous_attempts);
                reject_upgrade(exchange, &answer.server, UpgradeError::NotSwitched)
            }
            Ok(answer) if exchange.outcome_rule().is_some() => {
                watch(exchange, &connection, answer, continue_signal).await
            }
            Ok(answer) => relay(exchange, answer, continue_signal, None),
            Err(error) => {
                // A request that never reached the application is neither a success nor a failure.
                let meaning =
                    if error.is_sent { ObservedOutcome::Unknown } else { ObservedOutcome::Known(Outcome::Neither) };
                exchange.settle(meaning, true).await;
                fail(exchange, has_body, error)
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

const NO_ANSWER: &str = "the application did not answer";

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

/// Relays an answer, and watches it for its outcome.
async fn watch(
    mut exchange: Box<Exchange>,
    connection: &Connection,
    answer: UpstreamResponse,
    continue_signal: Option<ContinueSignal>,
) -> Response<ResponseBody> {
    let is_through = answer.response.body().is_end_stream();
    let (status, headers) = (answer.response.status(), answer.response.headers());
    let mut watch = OutcomeWatch::begin(&mut exchange, status, headers, is_through);
    if is_through && let Some(watch) = watch.take() {
        // The answer has only a head. It may stand for a body that was not sent.
        let ending = if is_bodiless(&exchange, status) { inspection::BodyEnd::Cut } else { inspection::BodyEnd::Whole };
        watch.end(&mut exchange, ending, true).await;
    }
    if let Some(watch) = &mut watch {
        watch.find_room(&exchange, &answer.response.body().size_hint(), &connection.inspected).await;
    }
    let mut response = relay(exchange, answer, continue_signal, watch);
    if let Some(cookie) = response.body_mut().take_device_cookie().await {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    response
}

fn relay(
    mut exchange: Box<Exchange>,
    answer: UpstreamResponse,
    continue_signal: Option<ContinueSignal>,
    watch: Option<OutcomeWatch>,
) -> Response<ResponseBody> {
    let (mut parts, body) = answer.response.into_parts();
    let is_bodiless = is_bodiless(&exchange, parts.status);
    let length = if is_bodiless { BodyLength::NotSent } else { BodyLength::Sent };
    headers::prepare_answer(&mut parts.headers, length, &exchange.live.significant_headers);
    exchange.live.ratelimit_headers.write(&mut parts.headers, &exchange.decision().report.limits);
    let asked_for_body = continue_signal.as_ref().is_none_or(ContinueSignal::close);
    if !asked_for_body && exchange.facts.version < Version::HTTP_2 {
        // The client may or may not send the body, so the next bytes on this connection are ambiguous.
        parts.headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    // The gateway's own version, whichever the application used.
    parts.version = Version::HTTP_11;
    exchange.set_status(parts.status);
    exchange.set_server(Some(answer.server), answer.previous_attempts);
    Response::from_parts(parts, ResponseBody::relay(body, exchange, continue_signal, watch))
}

/// Whether an answer stands for a body that is not sent. A status that never has a body stands for none.
fn is_bodiless(exchange: &Exchange, status: StatusCode) -> bool {
    let has_one = !status.is_informational() && status != StatusCode::NO_CONTENT;
    has_one && exchange.facts.method == Method::HEAD || status == StatusCode::NOT_MODIFIED
}

/// The application switched protocols: from now on bytes are copied both ways.
async fn switch(
    mut exchange: Box<Exchange>,
    connection: &Connection,
    answer: UpstreamResponse,
    upgrade: Option<UpgradeRequest>,
) -> Response<ResponseBody> {
    let UpstreamResponse { response, server, previous_attempts } = answer;
    let (mut parts, body) = response.into_parts();
    exchange.set_server(Some(Arc::clone(&server)), previous_attempts);
    let switched = upgrade.ok_or(UpgradeError::Unasked).and_then(|upgrade| {
        upgrade.check(&mut parts.headers)?;
        Ok((upgrade, body.into_tunnel().ok_or(UpgradeError::Unasked)?))
    });
    let (upgrade, application) = match switched {
        Ok(switched) => switched,
        Err(error) => return reject_upgrade(exchange, &server, error),
    };
    if let Some(watch) = OutcomeWatch::begin(&mut exchange, parts.status, &parts.headers, false) {
        watch.end(&mut exchange, inspection::BodyEnd::Cut, false).await;
    }
    let protocol = parts.headers.get(UPGRADE).cloned();
    headers::prepare_answer(&mut parts.headers, BodyLength::Sent, &exchange.live.significant_headers);
    exchange.live.ratelimit_headers.write(&mut parts.headers, &exchange.decision().report.limits);
    parts.headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    if let Some(protocol) = protocol {
        parts.headers.insert(UPGRADE, protocol);
    }
    parts.version = Version::HTTP_11;
    exchange.set_status(parts.status);
    connection.spawn(upgrade::tunnel(upgrade.client, application, exchange));
    Response::from_parts(parts, ResponseBody::Empty)
}

/// The application's answer does not match the request for an upgrade.
fn reject_upgrade(mut exchange: Box<Exchange>, server: &str, error: UpgradeError) -> Response<ResponseBody> {
    warn!(request_id = exchange.facts.request_id.as_str(), server, "{error}");
    exchange.set_failure(error.label());
    exchange.set_error(error.to_string());
    reply::fail(exchange, StatusCode::BAD_GATEWAY, "the application sent an invalid answer", AfterReply::Close)
}

fn fail(mut exchange: Box<Exchange>, has_body: bool, error: ForwardError) -> Response<ResponseBody> {
    if let Some(fault) = exchange.body().and_then(BodyProgress::fault) {
        return reply::refuse(exchange, fault);
    }
    let status = error.status();
    let cause = with_sources(&error);
    warn!(
        request_id = exchange.facts.request_id.as_str(),
        server = error.server.as_deref(),
        cause = error.label(),
        "{status} for a request: {cause}"
    );
    exchange.set_failure(error.label());
    exchange.set_server(error.server, error.previous_attempts);
    exchange.set_error(cause);
    let words = match status {
        StatusCode::SERVICE_UNAVAILABLE => "no server of the application is healthy",
        StatusCode::GATEWAY_TIMEOUT => "the application took too long",
        _ => NO_ANSWER,
    };
    let after =
        if has_body && exchange.facts.version < Version::HTTP_2 { AfterReply::Close } else { AfterReply::KeepAlive };
    reply::fail(exchange, status, words, after)
}

/// An error and its sources as one sentence.
fn with_sources(error: &ForwardError) -> String {
    let mut sentence = error.to_string();
    let mut source = error.source();
    while let Some(behind) = source {
        let text = behind.to_string();
        if !sentence.contains(&text) {
            sentence.push_str(": ");
            sentence.push_str(&text);
        }
        source = behind.source();
    }
    sentence
}
