//! Brings answers of applications back to their clients.

use std::error::Error;
use std::sync::Arc;

use http::Method;
use http::StatusCode;
use http::Version;
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
use crate::head::Fields;
use crate::head::KnownName;
use crate::listen::Connection;
use crate::listen::Response;
use crate::outcome::inspection;
use crate::pool::Pooled;
use crate::upstream::ForwardError;
use crate::upstream::UpstreamResponse;

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
        watch.end(&mut exchange, ending, true).await;
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
    exchange.live.ratelimit_headers.write(&mut head.fields, &exchange.decision().report);
    name_request(&mut head.fields, &mut exchange);
    let asked_for_body = continue_signal.as_ref().is_none_or(ContinueSignal::close);
    if !asked_for_body && exchange.facts.head.version < Version::HTTP_2 {
        // The client may or may not send the body, so the next bytes on this connection are ambiguous.
        head.fields.append(KnownName::CONNECTION, b"close");
    }
    exchange.set_status(head.status);
    exchange.set_server(Some(server), previous_attempts);
    Response { head, body: ResponseBody::relay(body, exchange, continue_signal, watch) }
}

/// Every answer has the id that the log and the admin API know the request by. Where an application has another one for the
/// request, the log has both.
fn name_request(fields: &mut Fields, exchange: &mut Exchange) {
    if let Some(own) = fields.get(KnownName::X_REQUEST_ID)
        && own != exchange.facts.request_id.as_bytes()
    {
        exchange.set_upstream_request_id(own);
    }
    fields.insert(KnownName::X_REQUEST_ID, exchange.facts.request_id.as_bytes());
}

/// Whether an answer stands for a body that is not sent. A status that never has a body stands for none.
pub(super) fn is_bodiless(exchange: &Exchange, status: StatusCode) -> bool {
    let has_one = !status.is_informational() && status != StatusCode::NO_CONTENT;
    has_one && exchange.facts.head.method == Method::HEAD || status == StatusCode::NOT_MODIFIED
}

/// The application switched protocols: from now on bytes are copied both ways.
pub(super) async fn switch(
    mut exchange: Pooled<Exchange>,
    connection: &Connection,
    answer: UpstreamResponse,
    upgrade: Option<UpgradeRequest>,
) -> Response<ResponseBody> {
    let UpstreamResponse { mut head, body, server, previous_attempts } = answer;
    exchange.set_server(Some(Arc::clone(&server)), previous_attempts);
    let switched = upgrade.ok_or(UpgradeError::Unasked).and_then(|upgrade| {
        upgrade.check(&mut head.fields)?;
        Ok((upgrade, body.into_tunnel().ok_or(UpgradeError::Unasked)?))
    });
    let (upgrade, application) = match switched {
        Ok(switched) => switched,
        Err(error) => return reject_upgrade(exchange, &server, error),
    };
    if let Some(watch) = OutcomeWatch::begin(&mut exchange, head.status, &head.fields, false) {
        watch.end(&mut exchange, inspection::BodyEnd::Cut, false).await;
    }
    let protocol = head.fields.get(KnownName::UPGRADE).map(<[u8]>::to_vec);
    headers::prepare_answer(&mut head.fields, BodyLength::Sent, &exchange.live.significant_headers);
    exchange.live.ratelimit_headers.write(&mut head.fields, &exchange.decision().report);
    name_request(&mut head.fields, &mut exchange);
    head.fields.append(KnownName::CONNECTION, b"upgrade");
    if let Some(protocol) = protocol {
        head.fields.append(KnownName::UPGRADE, &protocol);
    }
    exchange.set_status(head.status);
    connection.spawn(upgrade::tunnel(upgrade.client, application, exchange));
    Response { head, body: ResponseBody::Empty }
}

/// The application's answer does not match the request for an upgrade.
pub(super) fn reject_upgrade(
    mut exchange: Pooled<Exchange>,
    server: &str,
    error: UpgradeError,
) -> Response<ResponseBody> {
    warn!(request_id = exchange.facts.request_id.as_str(), server, "{error}");
    exchange.set_failure(error.label());
    exchange.set_error(error.to_string());
    reply::fail(exchange, StatusCode::BAD_GATEWAY, "the application sent an invalid answer", AfterReply::Close)
}

pub(super) fn fail(mut exchange: Pooled<Exchange>, has_body: bool, error: ForwardError) -> Response<ResponseBody> {
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
    let after = if has_body && exchange.facts.head.version < Version::HTTP_2 {
        AfterReply::Close
    } else {
        AfterReply::KeepAlive
    };
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
