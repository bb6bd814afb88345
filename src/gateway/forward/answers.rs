//! Brings answers of applications back to their clients.

use std::error::Error;
use std::sync::Arc;

use http::{StatusCode, Version};
use http_body::Body;
use tracing::warn;

use super::upgrade;
use super::upgrade::{UpgradeError, UpgradeRequest};
use crate::gateway::body::expect::{BodyProgress, ContinueSignal};
use crate::gateway::exchange::Exchange;
use crate::gateway::headers;
use crate::gateway::headers::BodyLength;
use crate::gateway::outcome_watch::{OutcomeWatch, is_bodiless};
use crate::gateway::reservation::Answered;
use crate::gateway::respond::reply;
use crate::gateway::respond::reply::AfterReply;
use crate::gateway::response_body::ResponseBody;
use crate::listen::{Connection, Response};
use crate::rules::outcome::{Outcome, inspection};
use crate::upstream::{ForwardError, UpstreamResponse};
use crate::wire::head::{Fields, KnownName};
use crate::words::pool::Pooled;

/// Relays an answer, and watches it for its outcome.
pub(super) async fn watch(
    mut exchange: Pooled<Exchange>,
    connection: &Connection,
    answer: UpstreamResponse,
    continue_signal: Option<ContinueSignal>,
) -> Response<ResponseBody> {
    let is_through = answer.body.is_end_stream();
    let status = answer.head.status;
    let mut watch = OutcomeWatch::begin(&mut exchange, status, &answer.head.fields, is_through);
    if is_through && let Some(watch) = watch.take() {
        // The answer has only a head. It may stand for a body that was not sent.
        let ending = if is_bodiless(&exchange, status) { inspection::BodyEnd::Cut } else { inspection::BodyEnd::Whole };
        watch.end(&mut exchange.reservation, ending, true).await;
    }
    if let Some(watch) = &mut watch {
        watch.find_room(&exchange, &answer.body.size_hint(), &connection.inspected).await;
    }
    let mut response = relay(exchange, answer, continue_signal, watch);
    if let Some(cookie) = response.body.take_device_cookie().await {
        response.head.fields.append(KnownName::SET_COOKIE, cookie.as_bytes());
    }
    response
}

pub(super) fn relay(
    mut exchange: Pooled<Exchange>,
    answer: UpstreamResponse,
    continue_signal: Option<ContinueSignal>,
    watch: Option<OutcomeWatch>,
) -> Response<ResponseBody> {
    let UpstreamResponse { mut head, body, server, previous_attempts } = answer;
    let length = if is_bodiless(&exchange, head.status) { BodyLength::NotSent } else { BodyLength::Sent };
    headers::prepare_answer(&mut head.fields, length, &exchange.live.significant_headers);
    exchange.live.ratelimit_headers.write(&mut head.fields, &exchange.decided().report);
    exchange.reach(Some(server), previous_attempts, head.fields.get(KnownName::X_REQUEST_ID));
    name_request(&mut head.fields, &exchange);
    let asked_for_body = continue_signal.as_ref().is_none_or(ContinueSignal::close);
    if !asked_for_body && exchange.facts.head.version < Version::HTTP_2 {
        // The client may or may not send the body, so the next bytes on this connection are ambiguous.
        head.fields.append(KnownName::CONNECTION, b"close");
    }
    exchange.answer(head.status);
    Response { head, body: ResponseBody::relay(body, exchange, continue_signal, watch) }
}

/// Every answer has the id that the log and the admin API know the request by. Where an application has another one for the
/// request, the log has both.
fn name_request(fields: &mut Fields, exchange: &Exchange) {
    fields.insert(KnownName::X_REQUEST_ID, exchange.facts.request_id.as_bytes());
}

/// The application switched protocols: from now on bytes are copied both ways.
pub(super) async fn switch(
    mut exchange: Pooled<Exchange>,
    connection: &Connection,
    answer: UpstreamResponse,
    upgrade: Option<UpgradeRequest>,
) -> Response<ResponseBody> {
    let UpstreamResponse { mut head, body, server, previous_attempts } = answer;
    exchange.reach(Some(Arc::clone(&server)), previous_attempts, head.fields.get(KnownName::X_REQUEST_ID));
    let switched = upgrade.ok_or(UpgradeError::Unasked).and_then(|upgrade| {
        upgrade.check(&mut head.fields)?;
        Ok((upgrade, body.into_tunnel().ok_or(UpgradeError::Unasked)?))
    });
    let (upgrade, application) = match switched {
        Ok(switched) => switched,
        Err(error) => return reject_upgrade(exchange, &server, error),
    };
    if let Some(watch) = OutcomeWatch::begin(&mut exchange, head.status, &head.fields, false) {
        watch.end(&mut exchange.reservation, inspection::BodyEnd::Cut, false).await;
    }
    let protocol = head.fields.get(KnownName::UPGRADE).map(<[u8]>::to_vec);
    headers::prepare_answer(&mut head.fields, BodyLength::Sent, &exchange.live.significant_headers);
    exchange.live.ratelimit_headers.write(&mut head.fields, &exchange.decided().report);
    name_request(&mut head.fields, &exchange);
    head.fields.append(KnownName::CONNECTION, b"upgrade");
    if let Some(protocol) = protocol {
        head.fields.append(KnownName::UPGRADE, &protocol);
    }
    exchange.answer(head.status);
    let counted = (BodyProgress::default(), BodyProgress::default());
    exchange.tunnel(counted.0.clone(), counted.1.clone());
    connection.spawn(upgrade::tunnel(upgrade.client, application, exchange, counted));
    Response { head, body: ResponseBody::Empty }
}

/// The application answered a request for a tunnel with a success that is none.
pub(super) fn reject_tunnel(mut exchange: Pooled<Exchange>, answer: UpstreamResponse) -> Response<ResponseBody> {
    let UpstreamResponse { server, previous_attempts, .. } = answer;
    exchange.reach(Some(Arc::clone(&server)), previous_attempts, None);
    reject_upgrade(exchange, &server, UpgradeError::NotSwitched)
}

/// The application's answer does not match the request for an upgrade.
fn reject_upgrade(mut exchange: Pooled<Exchange>, server: &str, error: UpgradeError) -> Response<ResponseBody> {
    warn!(request_id = exchange.facts.request_id.as_str(), server, "{error}");
    exchange.fail(error.label());
    let words = "the application sent an invalid answer";
    reply::fail(exchange, StatusCode::BAD_GATEWAY, words, error.to_string(), AfterReply::Close)
}

/// No server has answered.
pub(super) async fn fail(
    mut exchange: Pooled<Exchange>,
    has_body: bool,
    error: ForwardError,
) -> Response<ResponseBody> {
    // A request that never reached the application is neither a success nor a failure.
    let outcome = (!error.is_sent).then_some(Outcome::Neither);
    exchange.reservation.settle(Answered { outcome, ..Answered::default() }, true).await;
    if let Some(fault) = exchange.received().and_then(BodyProgress::fault) {
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
    exchange.fail(error.label());
    exchange.reach(error.server, error.previous_attempts, None);
    let words = match status {
        StatusCode::SERVICE_UNAVAILABLE => "no server of the application is healthy",
        StatusCode::GATEWAY_TIMEOUT => "the application took too long",
        _ => NO_ANSWER,
    };
    let after = if has_body && exchange.facts.head.version < Version::HTTP_2 {
        AfterReply::Close
    } else {
        AfterReply::KeepAlive
    };
    reply::fail(exchange, status, words, cause, after)
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

/// The configuration names no such upstream any more.
pub(super) fn no_upstream(exchange: Pooled<Exchange>) -> Response<ResponseBody> {
    reply::fail(exchange, StatusCode::BAD_GATEWAY, NO_ANSWER, "the upstream does not exist", AfterReply::Close)
}

const NO_ANSWER: &str = "the application did not answer";
