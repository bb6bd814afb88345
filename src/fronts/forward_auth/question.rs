//! Answers the question of a proxy.

use std::sync::Arc;

use http::Method;
use http_body::Body;

use super::answer;
use super::bad_question::BadQuestion;
use super::description::Description;
use super::endpoint::Endpoint;
use crate::client::Networks;
use crate::fronts::Complaints;
use crate::gateway::Arrival;
use crate::gateway::Gateway;
use crate::gateway::ResponseBody;
use crate::gateway::admit::body::ClientBody;
use crate::gateway::admit::body::DescribedBody;
use crate::gateway::admit::body::may_have_body;
use crate::gateway::admit::framing;
use crate::gateway::facts::Facts;
use crate::gateway::facts::Front;
use crate::gateway::judge;
use crate::head::RequestHead;
use crate::listen::Connection;
use crate::listen::IncomingRequest;
use crate::listen::InterimSender;
use crate::listen::Response;

/// Answers one question of a proxy with the decision about the request that it describes. `askers` are the proxies that may
/// ask.
pub(in crate::fronts) async fn answer_question(
    gateway: Gateway,
    complaints: Complaints,
    askers: Arc<Networks>,
    connection: Arc<Connection>,
    question: IncomingRequest,
    interim: InterimSender,
) -> Response<ResponseBody> {
    let live = gateway.snapshot();
    let IncomingRequest { mut head, body, upgrade: _ } = question;
    let body = ClientBody::new(body, head.version);
    let (omits_body, started) = (head.method == Method::HEAD, gateway.now());
    let identity = live.clients.identify_asked(connection.peer.ip(), &askers, &head.fields);
    let own_scheme = if connection.tls_info().is_some() { "https" } else { "http" };
    let (endpoint, length) = (Endpoint::of(head.path()), body.size_hint().lower());
    let read = framing::admit(&mut head, &connection, None, &live.settings, length)
        .map_err(BadQuestion::Framing)
        .and_then(|()| read(endpoint, &head, own_scheme));
    let facts = |head, scheme| Facts::described(head, identity, &live, scheme, Front::ForwardAuth, omits_body, started);
    let (endpoint, description) = match read {
        Ok(read) => read,
        Err(bad) => {
            if let BadQuestion::Description(bad) = &bad {
                complaints.bad_description(connection.peer.ip(), bad.header(), bad, started);
            }
            let refused = answer::refuse(gateway.begin(&live, facts(head, own_scheme), interim), &body, bad);
            return match (endpoint, bad) {
                // The client brought the proxy to ask so.
                (Some(endpoint), BadQuestion::Framing(_)) => answer::deny(endpoint, refused),
                _ => refused,
            };
        }
    };
    let scheme = description.scheme;
    let judged = match description.target(&mut head) {
        Ok(target) => {
            let head = description.into_head(target, head);
            let body = shown_or_unseen(body, &head);
            let exchange = gateway.begin(&live, facts(head, scheme), interim);
            judge(&live, &connection, Arrival { exchange, body, upgrade: None, tls: None }).await
        }
        Err(bad) => {
            let shown = description.shown_target(&mut head);
            let head = description.into_head(shown, head);
            let exchange = gateway.begin(&live, facts(head, scheme), interim);
            Err(answer::refuse(exchange, &body, BadQuestion::Framing(bad)))
        }
    };
    match judged {
        Ok(passed) => answer::pass(passed).await,
        Err(denied) => answer::deny(endpoint, denied),
    }
}

/// Most proxies keep the body of the request they ask about, and nothing in their question tells that from none.
fn shown_or_unseen(body: ClientBody, head: &RequestHead) -> ClientBody {
    let is_unseen = body.is_end_stream() && may_have_body(head.method.as_str(), |name| head.fields.has(name));
    if is_unseen { DescribedBody::unseen().into() } else { body }
}

/// What is asked, and how. The head has its one host. `own_scheme` is that of the proxy's connection.
fn read(
    endpoint: Option<Endpoint>,
    question: &RequestHead,
    own_scheme: &'static str,
) -> Result<(Endpoint, Description), BadQuestion> {
    let endpoint = endpoint.ok_or(BadQuestion::Path)?;
    Ok((endpoint, Description::read(endpoint, &question.fields, own_scheme)?))
}
