//! A request's way, told from top to bottom.

use std::sync::Arc;
use std::time::Duration;

use http::Request;
use http::Response;
use http::Version;
use http::header::EXPECT;
use http::request::Parts;
use http_body::Body;

use crate::decision;
use crate::decision::Decision;
use crate::decision::Denial;
use crate::decision::conclude::Penalty;
use crate::decision::device::Recognition;
use crate::gateway::admit::body::Bounds;
use crate::gateway::admit::body::RequestBody;
use crate::gateway::admit::body::Source;
use crate::gateway::admit::framing;
use crate::gateway::admit::framing::Unfit;
use crate::gateway::answer::ResponseBody;
use crate::gateway::core::Core;
use crate::gateway::decide::bans;
use crate::gateway::decide::challenge;
use crate::gateway::decide::challenge::Proofs;
use crate::gateway::decide::subject;
use crate::gateway::forward::exchange;
use crate::gateway::forward::headers;
use crate::gateway::forward::upgrade::Wanted;
use crate::gateway::hold;
use crate::gateway::hold::Held;
use crate::gateway::respond::reply;
use crate::gateway::story::Story;
use crate::limit::LimitId;
use crate::listen::Connection;
use crate::listen::Incoming;
use crate::listen::Interim;
use crate::request::Fields;
use crate::request::Head;

/// Answers one request. Dropped when the client goes away: the story tells of that as well.
pub(super) fn handle(
    core: Arc<Core>,
    connection: Arc<Connection>,
    request: Request<Incoming>,
    interim: Interim,
) -> impl Future<Output = Response<ResponseBody>> + Send + 'static {
    // Out here, or the future would have room for it twice.
    let (mut parts, incoming) = Source::of(request);
    async move {
        // This request's world, to the end.
        let live = core.live.load_full();
        let version = parts.version;
        let identity = live.clients.identify(connection.peer.ip(), &parts.headers);
        let mut story = Story::begin(core, Arc::clone(&live), identity, &connection, &parts, interim);

        if parts.headers.len() > connection.max_headers {
            return reply::refuse(story, version, Unfit::TooManyFields);
        }
        let host = match framing::check(&mut parts, connection.local) {
            Ok(host) => host,
            Err(unfit) => return reply::refuse(story, version, unfit),
        };
        story.is_for(host.clone());
        if let Err(unfit) = framing::check_direction(&host, connection.secured()) {
            return reply::refuse(story, version, unfit);
        }
        if live.settings.max_body.is_some_and(|most| incoming.size_hint().lower() > most) {
            return reply::refuse(story, version, Unfit::TooLong);
        }
        let asks_for_upgrade = headers::strip_connection(&mut parts.headers, |name| live.looked_at.in_requests(name));
        let proofs = if live.challenges { Proofs::take(&mut parts.headers) } else { Proofs::default() };
        let mut body = RequestBody::new(incoming, Bounds::of(&live.settings));
        if version >= Version::HTTP_11 && !body.is_empty() && parts.headers.contains_key(EXPECT) {
            body.await_invitation(story.interim.clone());
        }
        story.intake = body.intake();

        let (upstream, delay) = {
            let head = Head::read(&parts, host.to_str().unwrap_or_default(), identity.client);
            let core = Arc::clone(&story.core);
            let recognition = Recognition { ring: core.store.ring(), now: story.started() };
            let mut entry = decision::enter(&live.policy, &head).recognising(recognition);
            let banned = core.store.bans().of_address(identity.client.address()).map(|(ban, _)| ban);
            if banned.is_some() {
                entry.ban();
            }
            let reads_body = !body.is_empty() && entry.needs_body();
            let fields = if reads_body {
                let bound = live.settings.inspect_body;
                match Box::pin(body.peek(bound, &connection.peeked)).await {
                    Ok(peeked) => Fields::read(&parts.headers, &peeked.start, peeked.is_whole, bound),
                    Err(unfit) => return reply::refuse(story, version, unfit),
                }
            } else {
                Fields::none()
            };
            let since = story.deciding_since(reads_body);
            let (route, decision) = {
                let mut plan = entry.plan(&fields, &story.core.store.hasher());
                if story.core.store.bans().has_keys() {
                    plan = Box::pin(bans::heed(plan, &story.core.store)).await;
                }
                (plan.route(), challenge::decide(&story, &plan, &proofs).await)
            };
            story.was_decided(since);
            match decision {
                Err(error) => {
                    reply::tell_undecided(&mut story, route, error);
                    let is_body_read = body.is_empty() || Box::pin(body.discard()).await;
                    return reply::cannot_decide(story, &parts, is_body_read);
                }
                Ok(Decision::Deny(mut denial)) => {
                    story.takes_over(&mut denial);
                    if !denial.trips.is_empty() {
                        Box::pin(bans::begin(&mut denial, &live, &entry, &fields, &story.core.store)).await;
                    }
                    reply::tell(&mut story, &mut denial);
                    story.ban = bans::behind(&denial, banned);
                    story.subject = subject::of_denial(&denial, &live, &entry, &fields, &story.core.store);
                    drop((fields, host));
                    if let Penalty::Tarpit(span) = denial.penalty {
                        story.copy_head(&mut parts);
                        (story, body) = Box::pin(tarpit(story, body, &connection, span)).await;
                    }
                    // What is left of a short body is read, so that the connection can go on. Few denials have one.
                    let is_body_read = body.is_empty() || Box::pin(body.discard()).await;
                    return reply::deny(story, &live, &parts, is_body_read, &denial);
                }
                Ok(Decision::Pass(pass)) => {
                    story.subject = subject::of_delay(&pass, &live, &entry, &fields, &story.core.store);
                    story.passes(pass.route, pass.slots, pass.report);
                    story.awaits(pass.pending);
                    (pass.upstream, pass.delay)
                }
            }
        };
        drop(host);

        if let Some(delay) = delay {
            story.copy_head(&mut parts);
            match Box::pin(hold_back(story, body, &connection, &parts, delay)).await {
                Ok(held) => (story, body) = held,
                Err(answer) => return answer,
            }
        }

        let wanted = Wanted::read(&mut parts, asks_for_upgrade, !body.is_empty());
        if story.outcome_rule().is_some() {
            return exchange::to_its_end(story, connection, parts, body, upstream, wanted).await;
        }
        exchange::forward(story, connection, parts, body, upstream, wanted).await
    }
}

/// Holds a request that is denied afterwards. Never returns when its client leaves.
async fn tarpit(
    mut story: Box<Story>,
    body: RequestBody,
    connection: &Connection,
    span: Duration,
) -> (Box<Story>, RequestBody) {
    match story.core.holding.hold(connection, span, story.live.settings.max_held).await {
        Held::Through | Held::Ending => (story, body),
        Held::Full => {
            story.is_not_held();
            (story, body)
        }
        Held::Left => {
            drop((story, body));
            hold::until_it_ends().await
        }
    }
}

/// Holds a request that is forwarded afterwards, or answers it when it cannot be held. Never returns when its client
/// leaves.
async fn hold_back(
    mut story: Box<Story>,
    body: RequestBody,
    connection: &Connection,
    parts: &Parts,
    (limit, span): (LimitId, Duration),
) -> Result<(Box<Story>, RequestBody), Response<ResponseBody>> {
    story.is_delayed_by(limit);
    let live = Arc::clone(&story.live);
    match story.core.holding.hold(connection, span, live.settings.max_held).await {
        Held::Through => Ok((story, body)),
        Held::Full | Held::Ending => {
            story.is_not_held();
            let denial = Denial::instead_of_delay(&live.policy, story.route, limit, span);
            let is_body_read = body.is_empty() || body.discard().await;
            Err(reply::deny(story, &live, parts, is_body_read, &denial))
        }
        Held::Left => {
            drop((story, body));
            hold::until_it_ends().await
        }
    }
}
