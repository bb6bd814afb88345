//! A request that passed, on its way to the application and back.

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
use super::headers::Length;
use super::inspect::Watch;
use super::outlive::Outliving;
use super::unheeded;
use super::upgrade;
use super::upgrade::Unsound;
use super::upgrade::Wanted;
use crate::gateway::admit::body::RequestBody;
use crate::gateway::admit::expect;
use crate::gateway::admit::expect::Invitation;
use crate::gateway::answer::ResponseBody;
use crate::gateway::respond::reply;
use crate::gateway::respond::reply::Connection as Ending;
use crate::gateway::story::Sent;
use crate::gateway::story::Story;
use crate::listen::Connection;
use crate::outcome::Outcome;
use crate::outcome::inspection;
use crate::record::Meaning;
use crate::route::UpstreamId;
use crate::upstream::Answer;
use crate::upstream::ForwardError;
use crate::upstream::HostHeader;
use crate::upstream::Passed;

/// Sends a request to its upstream and brings the answer back.
///
/// What can be done before is done before: while the answer is awaited only what it needs is kept.
pub fn forward(
    mut story: Box<Story>,
    connection: Arc<Connection>,
    parts: Parts,
    mut body: RequestBody,
    upstream: UpstreamId,
    wanted: Option<Wanted>,
) -> impl Future<Output = Response<ResponseBody>> + Send + 'static {
    story.sent = Some(Sent { upstream, server: None, failure: None, passed: Passed::new() });
    let (version, has_body) = (parts.version, !body.is_empty());
    let is_tls = connection.secured().is_some();
    let (parts, invitation) = prepare(&story, is_tls, parts, &mut body, upstream, wanted.as_ref());
    if story.may_be_welcome() {
        // Written anew: what it says is believed.
        story.is_secure = is_tls || parts.headers.get(headers::X_FORWARDED_PROTO).is_some_and(|proto| proto == "https");
    }
    let hear = hearing(&story, invitation.as_ref());
    let request = outgoing(parts, body);
    async move {
        let Some(target) = story.live.upstreams.get(usize::from(upstream.0)) else {
            story.error = Some("the upstream does not exist".into());
            return reply::fail(story, StatusCode::BAD_GATEWAY, NO_ANSWER, Ending::Ends);
        };
        match story.core.pool.send(target, request, story.identity.client.address(), hear).await {
            Ok(answer) if answer.response.status() == StatusCode::SWITCHING_PROTOCOLS => {
                Box::pin(switch(story, &connection, answer, wanted)).await
            }
            Ok(answer) if story.asks_for_tunnel && answer.response.status().is_success() => {
                story.is_answered_by(Some(Arc::clone(&answer.server)), answer.passed);
                make_no_sense(story, &answer.server, Unsound::NotSwitched)
            }
            Ok(answer) if story.outcome_rule().is_some() => {
                watch(story, &connection, version, answer, invitation).await
            }
            Ok(answer) => relay(story, version, answer, invitation, None),
            Err(error) => {
                // What never reached the application says nothing about the client.
                let meaning = if error.is_sent { Meaning::Unknown } else { Meaning::Known(Outcome::Neither) };
                story.settle(meaning, true).await;
                fail(story, version, has_body, error)
            }
        }
    }
}

/// As [`forward`], to the end of the answer though the client leaves before: for requests whose outcome counts.
pub fn to_its_end(
    story: Box<Story>,
    connection: Arc<Connection>,
    parts: Parts,
    body: RequestBody,
    upstream: UpstreamId,
    wanted: Option<Wanted>,
) -> Outliving {
    let (core, intake) = (Arc::clone(&story.core), story.intake.clone());
    Outliving::new(forward(story, connection, parts, body, upstream, wanted), core, intake)
}

/// Makes the head what the application is to see.
fn prepare(
    story: &Story,
    is_tls: bool,
    mut parts: Parts,
    body: &mut RequestBody,
    upstream: UpstreamId,
    wanted: Option<&Wanted>,
) -> (Parts, Option<Invitation>) {
    let live = &story.live;
    let settings = live.upstreams.get(usize::from(upstream.0)).map(|it| it.settings());
    let host = settings.map_or(&HostHeader::Preserve, |it| &it.host);
    let (identity, id) = (&story.identity, story.request_id);
    let unheeded = |name: &HeaderName| unheeded::notice(name, &live.looked_at, identity.peer, story.started());
    let states_length =
        headers::prepare_request(&mut parts.headers, identity, is_tls, id, host, &live.looked_at, unheeded);
    if let Some(rule) = story.outcome_rule() {
        headers::prepare_for_outcome(&mut parts.headers, rule.needs_body());
    }
    if states_length && body.is_empty() {
        parts.headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
    }
    if let Some(wanted) = wanted {
        wanted.ask(&mut parts.headers);
    }
    // An invitation over HTTP/2 would not be heard: the body is asked for at once.
    let is_heard = !settings.is_some_and(|it| it.http2);
    let invitation = invite(&mut parts, body, is_heard);
    (parts, invitation)
}

const NO_ANSWER: &str = "the application did not answer";

/// A client that waits to be asked for its body is asked when the application asks.
fn invite(parts: &mut Parts, body: &mut RequestBody, is_heard: bool) -> Option<Invitation> {
    if !is_heard || !body.is_awaiting_invitation() {
        return None;
    }
    // Once, however often it was said.
    parts.headers.insert(EXPECT, HeaderValue::from_static("100-continue"));
    let (invitation, gate) = expect::gate();
    body.hold_behind(gate);
    Some(invitation)
}

/// What is done with informational answers: one asks for the body, all others are the client's.
fn hearing(story: &Story, invitation: Option<&Invitation>) -> impl FnMut(Response<()>) + Send + use<> {
    let open = invitation.map(Invitation::opener);
    let (interim, live) = (story.interim.clone(), Arc::clone(&story.live));
    move |mut answer| {
        if answer.status() != StatusCode::CONTINUE {
            headers::prepare_answer(answer.headers_mut(), Length::OfTheBody, &live.looked_at);
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

/// The authority went into `Host`.
fn origin_form(target: Uri) -> Uri {
    if target.authority().is_none() && target.scheme().is_none() {
        return target;
    }
    target.path_and_query().cloned().map_or_else(|| Uri::from_static("/"), Uri::from)
}

/// Relays an answer, and looks for its outcome.
async fn watch(
    mut story: Box<Story>,
    connection: &Connection,
    version: Version,
    answer: Answer,
    invitation: Option<Invitation>,
) -> Response<ResponseBody> {
    let is_through = answer.response.body().is_end_stream();
    let (status, headers) = (answer.response.status(), answer.response.headers());
    let mut watch = Watch::begin(&mut story, status, headers, is_through);
    if is_through && let Some(watch) = watch.take() {
        // The head is the end. What it stands for was not sent.
        let ending = if is_bodiless(&story, status) { inspection::Ending::Cut } else { inspection::Ending::Whole };
        watch.end(&mut story, ending, true).await;
    }
    if let Some(watch) = &mut watch {
        watch.find_room(&story, &answer.response.body().size_hint(), &connection.inspected).await;
    }
    let mut response = relay(story, version, answer, invitation, watch);
    if let Some(cookie) = response.body_mut().welcome().await {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    response
}

fn relay(
    mut story: Box<Story>,
    version: Version,
    answer: Answer,
    invitation: Option<Invitation>,
    watch: Option<Watch>,
) -> Response<ResponseBody> {
    let (mut parts, body) = answer.response.into_parts();
    let is_bodiless = is_bodiless(&story, parts.status);
    let length = if is_bodiless { Length::OfWhatIsNotSent } else { Length::OfTheBody };
    headers::prepare_answer(&mut parts.headers, length, &story.live.looked_at);
    story.live.shown.write(&mut parts.headers, &story.report.limits);
    let was_invited = invitation.as_ref().is_none_or(Invitation::close);
    if !was_invited && version < Version::HTTP_2 {
        // The body may still come, or may not: nobody can tell what follows on this connection.
        parts.headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    // The version is ours to write, whatever the application spoke.
    parts.version = Version::HTTP_11;
    story.status = Some(parts.status);
    story.is_answered_by(Some(answer.server), answer.passed);
    Response::from_parts(parts, ResponseBody::relay(body, story, invitation, watch))
}

/// Whether an answer stands for a body that is not sent. Where no request would get one, it stands for itself.
fn is_bodiless(story: &Story, status: StatusCode) -> bool {
    let has_one = !status.is_informational() && status != StatusCode::NO_CONTENT;
    has_one && story.method() == Method::HEAD || status == StatusCode::NOT_MODIFIED
}

/// The application switched protocols: from now on bytes are carried both ways.
async fn switch(
    mut story: Box<Story>,
    connection: &Connection,
    answer: Answer,
    wanted: Option<Wanted>,
) -> Response<ResponseBody> {
    let Answer { response, server, passed } = answer;
    let (mut parts, body) = response.into_parts();
    story.is_answered_by(Some(Arc::clone(&server)), passed);
    let switched = wanted.ok_or(Unsound::Unasked).and_then(|wanted| {
        wanted.check(&mut parts.headers)?;
        Ok((wanted, body.into_tunnel().ok_or(Unsound::Unasked)?))
    });
    let (wanted, application) = match switched {
        Ok(switched) => switched,
        Err(unsound) => return make_no_sense(story, &server, unsound),
    };
    if let Some(watch) = Watch::begin(&mut story, parts.status, &parts.headers, false) {
        watch.end(&mut story, inspection::Ending::Cut, false).await;
    }
    let protocol = parts.headers.get(UPGRADE).cloned();
    headers::prepare_answer(&mut parts.headers, Length::OfTheBody, &story.live.looked_at);
    story.live.shown.write(&mut parts.headers, &story.report.limits);
    parts.headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    if let Some(protocol) = protocol {
        parts.headers.insert(UPGRADE, protocol);
    }
    parts.version = Version::HTTP_11;
    story.status = Some(parts.status);
    connection.spawn(upgrade::tunnel(wanted.client, application, story));
    Response::from_parts(parts, ResponseBody::Empty)
}

/// The application's answer is none to what it was asked.
fn make_no_sense(mut story: Box<Story>, server: &str, unsound: Unsound) -> Response<ResponseBody> {
    warn!(request_id = story.request_id.as_str(), server, "{unsound}");
    story.has_failed(unsound.label());
    story.error = Some(unsound.to_string().into());
    reply::fail(story, StatusCode::BAD_GATEWAY, "the application's answer makes no sense", Ending::Ends)
}

fn fail(mut story: Box<Story>, version: Version, has_body: bool, error: ForwardError) -> Response<ResponseBody> {
    if let Some(fault) = story.intake.as_ref().and_then(crate::gateway::admit::intake::Intake::fault) {
        return reply::refuse(story, version, fault);
    }
    let status = error.status();
    let cause = with_sources(&error);
    warn!(
        request_id = story.request_id.as_str(),
        server = error.server.as_deref(),
        cause = error.label(),
        "{status} for a request: {cause}"
    );
    story.has_failed(error.label());
    story.is_answered_by(error.server, error.passed);
    story.error = Some(cause.into());
    let words = match status {
        StatusCode::SERVICE_UNAVAILABLE => "no server of the application is healthy",
        StatusCode::GATEWAY_TIMEOUT => "the application took too long",
        _ => NO_ANSWER,
    };
    let ending = if has_body && version < Version::HTTP_2 { Ending::Ends } else { Ending::GoesOn };
    reply::fail(story, status, words, ending)
}

/// An error and what is behind it, as one sentence.
fn with_sources(error: &ForwardError) -> String {
    let mut sentence = error.to_string();
    let mut source = error.source();
    while let Some(behind) = source {
        let said = behind.to_string();
        if !sentence.contains(&said) {
            sentence.push_str(": ");
            sentence.push_str(&said);
        }
        source = behind.source();
    }
    sentence
}
