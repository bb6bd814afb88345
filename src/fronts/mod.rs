//! Answers proxies that ask for decisions, and forward their requests themselves.
//!
//! A front builds the head and the client of a request from the proxy's description, has it judged like one that
//! arrived ([`judge`](crate::gateway::judge())), and gives the decision back in its own protocol. It has no rules and
//! no records of its own.

pub mod envoy;
pub mod forward_auth;

use std::collections::HashMap;
use std::fmt::Display;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio_util::either::Either;
use tracing::{debug, warn};

use crate::admin::AdminState;
use crate::gateway::{Gateway, ResponseBody};
use crate::listen::{Connection, IncomingRequest, InterimSender, Refusal, RefusedHead, RequestHandler, Response};
use crate::words::clock::Timestamp;

/// A proxy that is set up wrongly asks so for each of its requests.
const INTERVAL: Duration = Duration::from_secs(60);

/// More kinds than there are mistakes to make.
const MAX_KINDS: usize = 64;

/// Logs mistakes of the proxies that ask. Clones share when each kind of mistake was logged last.
#[derive(Clone, Debug, Default)]
pub struct Complaints(Arc<Mutex<HashMap<String, Timestamp>>>);

impl Complaints {
    /// Logs that a proxy describes its request badly: `part` is the header or the attribute that it is about, and `bad` has the
    /// same words for each mistake of a kind.
    pub(super) fn bad_description(&self, asker: IpAddr, part: &str, bad: &impl Display, now: Timestamp) {
        let bad = bad.to_string();
        self.log_bad_question(&bad, asker, part, &bad, now);
    }

    /// Logs that a proxy makes a call that cannot be decided. What is wrong with this `part` of it has different words each
    /// time.
    pub(super) fn bad_call(&self, asker: IpAddr, part: &str, bad: &impl Display, now: Timestamp) {
        self.log_bad_question(part, asker, part, &bad.to_string(), now);
    }

    fn log_bad_question(&self, kind: &str, asker: IpAddr, part: &str, bad: &str, now: Timestamp) {
        if self.is_due(kind, now) {
            warn!(%asker, part, "a proxy asked and got no decision: {bad}; more of this kind only at level debug for a minute");
        } else {
            debug!(%asker, part, "a proxy asked and got no decision: {bad}");
        }
    }

    fn is_due(&self, kind: &str, now: Timestamp) -> bool {
        let mut logged = self.0.lock();
        if let Some(last) = logged.get_mut(kind) {
            let is_due = now.since(*last) >= INTERVAL;
            if is_due {
                *last = now;
            }
            return is_due;
        }
        if logged.len() >= MAX_KINDS {
            logged.retain(|_, last| now.since(*last) < INTERVAL);
        }
        let is_due = logged.len() < MAX_KINDS;
        if is_due {
            logged.insert(kind.to_owned(), now);
        }
        is_due
    }
}

// Chooses the front of a request: the gateway, which forwards, or one that answers a proxy.

/// Handles the requests of one worker, on every listener. Clones share its state.
#[derive(Clone, Debug)]
pub struct Fronts {
    gateway: Gateway,
    complaints: Complaints,
    admin: Arc<AdminState>,
}

impl Fronts {
    /// All workers share `complaints` and `admin`, which knows whether the gateway is ready.
    pub fn new(gateway: Gateway, complaints: Complaints, admin: Arc<AdminState>) -> Self {
        Self { gateway, complaints, admin }
    }

    /// Waits briefly for what outlives its request. Called after the worker's last request.
    pub async fn finish(&self) {
        self.gateway.finish().await;
    }
}

impl RequestHandler for Fronts {
    type Body = ResponseBody;

    fn handle(
        &self,
        connection: Arc<Connection>,
        request: IncomingRequest,
        interim: InterimSender,
    ) -> impl Future<Output = Response<ResponseBody>> + Send + Unpin + 'static {
        let Some(askers) = &connection.askers else {
            return Either::Left(self.gateway.handle(connection, request, interim));
        };
        let (askers, Self { gateway, complaints, admin }) = (Arc::clone(askers), self.clone());
        let answered: Pin<Box<dyn Future<Output = _> + Send>> = if envoy::is_call(&request.head) {
            Box::pin(envoy::answer_call(gateway, complaints, admin, connection, request))
        } else {
            Box::pin(forward_auth::answer_question(gateway, complaints, askers, connection, request, interim))
        };
        Either::Right(answered)
    }

    fn refuse(&self, connection: &Connection, refused: RefusedHead) -> Refusal {
        self.gateway.refuse(connection, &refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_due_once_a_minute_and_all_together_have_a_bound() {
        let complaints = Complaints::default();
        let at = |seconds: u64| Timestamp::from_micros(seconds * 1_000_000);
        assert!(complaints.is_due("one", at(1)) && complaints.is_due("other", at(1)));
        assert!(!complaints.is_due("one", at(60)) && complaints.is_due("one", at(61)));
        let due = (0..1000).filter(|number| complaints.is_due(&number.to_string(), at(62))).count();
        assert_eq!(due, MAX_KINDS - 1, "`other` is forgotten");
        assert!(complaints.is_due("late", at(122)));
    }
}
