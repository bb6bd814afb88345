//! What advice is judged from: the counts so far, under the names in force.

/// All counts are since the start of the process.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Observed {
    /// Requests that were forwarded.
    pub passed: u64,
    /// Forwarded requests in which a peer that is no trusted proxy named its client.
    pub untrusted_forwarding: u64,
    /// The client with the most requests in the last minutes: how many they were, and how many there were of all.
    pub busiest_client: Option<(String, u64, u64)>,
    pub limits: Vec<ObservedLimit>,
    pub routes: Vec<ObservedRoute>,
}

/// A limit in force.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ObservedLimit {
    pub name: String,
    /// The login field in its key, as the configuration writes it; `None`: its key has none.
    pub login_field: Option<String>,
    /// Requests that it decided about.
    pub decided: u64,
    /// Those of them that lacked a part of its key.
    pub lacking: u64,
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
