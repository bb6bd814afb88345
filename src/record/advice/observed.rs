//! What advice is judged from: the counts so far, under the names in force.

use super::UntrustedPeer;
use crate::limit::Missing;

/// All counts are since the start of the process.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Observed {
    /// Requests that were forwarded.
    pub passed: u64,
    /// Forwarded requests in which a peer that is no trusted proxy named its client.
    pub untrusted_forwarding: u64,
    /// Those peers, since the last time.
    pub untrusted_peers: Vec<UntrustedPeer>,
    /// The client with the most requests in the last minutes.
    pub busiest_client: Option<BusiestClient>,
    pub limits: Vec<ObservedLimit>,
    pub routes: Vec<ObservedRoute>,
    /// Routes that a proxy has asked about, and that need more than a question.
    pub unseen: Vec<UnseenRoute>,
    /// The keys that tokens are verified with, where they cannot be fetched.
    pub unavailable_keys: Option<UnavailableKeys>,
}

/// Keys that could not be fetched the last time.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UnavailableKeys {
    /// The URL.
    pub source: String,
    pub reason: String,
    /// Whether keys are known from before.
    pub are_known: bool,
}

/// A client, and its part of all requests.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BusiestClient {
    /// Its address, or the network that counts as one client.
    pub client: String,
    pub is_trusted_proxy: bool,
    pub requests: u64,
    pub all: u64,
}

/// A limit in force.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ObservedLimit {
    pub name: String,
    /// The selectors of its key, as the configuration writes them.
    pub key: Vec<String>,
    /// The login field among them; `None`: its key has none.
    pub login_field: Option<String>,
    pub missing: Missing,
    /// Whether some clients are free of it.
    pub spares_some: bool,
    /// The routes that it stands on; empty: it holds for every request.
    pub routes: Vec<String>,
    /// The domain whose descriptors it counts; `None`: it counts requests.
    pub domain: Option<String>,
    /// Whether those routes wait for requests with something that most lack, such as a header: for long there may be none.
    pub waits_for_rare_requests: bool,
    /// Requests that were forwarded on those routes.
    pub passed: u64,
    /// Requests that it decided about.
    pub decided: u64,
    /// Those of them that lacked a part of its key.
    pub lacking: u64,
    /// A `pattern` of its names.
    pub pattern: Option<String>,
    /// Those of the requests that it decided about whose name does not match it.
    pub unmatched: u64,
}

/// A route in force about which a proxy has asked that forwards its requests itself, so that their answers and ends are not
/// seen here.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UnseenRoute {
    pub name: String,
    /// The limits that wait for answers.
    pub waiting: Vec<String>,
    /// The limits on concurrent requests.
    pub concurrent: Vec<String>,
    /// Whether successes would make clients known.
    pub knows_clients: bool,
    /// Whether successes would give sessions.
    pub learns_sessions: bool,
    /// Whether it is asked about by descriptors, so that it can never have requests.
    pub is_of_domain: bool,
}

/// A route in force that says what answers mean.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ObservedRoute {
    pub name: String,
    /// Answers of the application.
    pub answers: u64,
    /// Those that were neither a success nor a failure.
    pub neither: u64,
}
