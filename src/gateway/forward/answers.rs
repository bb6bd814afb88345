//! Brings answers of applications back to their clients.

use std::error::Error;
use std::sync::Arc;

use http::HeaderValue;
use http::Method;
use http::Response;
use http::StatusCode;
use http::Version;
use http::header::CONNECTION;
use http::header::SET_COOKIE;
use http::header::UPGRADE;
use http_body::Body;
use tracing::warn;

use super::headers;
use super::headers::BodyLength;
use super::outcome_watch::OutcomeWatch;
use super::upgrade;
use super::upgrade::UpgradeError;
use super::upgrade::UpgradeRequest;
use crate::gateway::admit::expect::ContinueSignal;
use crate::gateway::admit::progress::BodyProgress;
use crate::gateway::exchange::Exchange;
use crate::gateway::respond::reply;
use crate::gateway::respond::reply::AfterReply;
use crate::gateway::response_body::ResponseBody;
use crate::listen::Connection;
use crate::outcome::inspection;
use crate::upstream::ForwardError;
use crate::upstream::UpstreamResponse;

/// Relays an answer, and watches it for its outcome.
pub(super) async fn watch(
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

pub(super) fn relay(
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
pub(super) async fn switch(
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
pub(super) fn reject_upgrade(mut exchange: Box<Exchange>, server: &str, error: UpgradeError) -> Response<ResponseBody> {
    warn!(request_id = exchange.facts.request_id.as_str(), server, "{error}");
    exchange.set_failure(error.label());
    exchange.set_error(error.to_string());
    reply::fail(exchange, StatusCode::BAD_GATEWAY, "the application sent an invalid answer", AfterReply::Close)
}

pub(super) fn fail(mut exchange: Box<Exchange>, has_body: bool, error: ForwardError) -> Response<ResponseBody> {
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

pub(super) const NO_ANSWER: &str = "the application did not answer";
