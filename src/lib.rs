//! portcullis stands in front of web applications and decides for every request, before they spend anything on it,
//! whether it may pass.
//!
//! `docs/` is for operators. This page is for developers: a request's way, where each thing lives, and what must stay
//! true.
//!
//! # A request's way
//!
//! `gateway/handle.rs` is the way of a request on one page: `admit`, `decide`, `enforce`, `forward`. Each hands its value to
//! the next, so that data flows one way only: what is known of the request is its [`Facts`](gateway::stages::Facts), then
//! what was [`Decided`](gateway::stages::Decided), how it was [`Forwarded`](gateway::stages::Forwarded), and how it
//! [`Ended`](gateway::stages::Ended).
//!
//! 1. [`listen`] accepts a connection on one core and reads a request off it, within its timeouts. The head of the request
//!    becomes a [`RequestHead`](wire::head::RequestHead): the text that arrived, and a flat table of where its fields stand.
//! 2. **Admit.** [`gateway`] takes the [`Snapshot`](gateway::Snapshot) in force, which the request keeps to its end, and
//!    refuses everything but exactly one unambiguous request. [`client`](rules::client) identifies the client:
//!    [`TrustedProxies::identify`](rules::client::TrustedProxies::identify) judges the peer first, then the header it sent.
//! 3. **Decide.** [`request`](rules::request) puts path, host and fields into the one spelling that rules compare:
//!    [`CanonicalHead`](rules::request::CanonicalHead). [`decision`](rules::decision) decides in three pure steps. [`enter`](rules::decision::enter())
//!    looks at lists and routes and says whether the body must be read, and whether [`gateway::tokens`] must verify a token;
//!    [`plan`](rules::decision::RoutedRequest::plan)
//!    extracts the keys into a [`Batch`](rules::decision::Batch); [`conclude`](rules::decision::Plan::conclude) turns the store's
//!    verdicts into a [`Decision`](rules::decision::Decision).
//! 4. Between plan and conclude, [`store`] decides the whole batch in one step: charged to every limit, or to none. In
//!    Redis that step is one call of a Lua script; [`store::failover`] repeats denials of Redis without a call,
//!    and decides everything while Redis is down. A [`Reservation`](gateway::reservation::Reservation) holds what the
//!    store has reserved, and gives it back at any end of the request.
//! 5. **Enforce.** A denied request is answered by [`gateway`], after a while where it is tarpitted. A request that passes goes
//!    on, after a while where it is delayed.
//! 6. **Forward.** It goes to one server of an [`upstream`], and both bodies stream.
//! 7. Where answers are counted, [`outcome`](rules::outcome) reads what this one means while it streams by, in a task that survives the
//!    client's disconnect. [`settlements`](rules::decision::PendingOutcome::settlements) then tells the store which slots it
//!    releases, which keys it resets and which clients it knows from now on.
//! 8. When its [`Exchange`](gateway::exchange::Exchange), which carries these stages, ends, [`record`] gets one
//!    [`RequestRecord`](record::RequestRecord). It writes a log line, adds to counters found by position, and publishes
//!    an [`Event`](record::Event) of a denial or a delay to the audit trail, webhooks and the event stream.
//!    Where the request is traced, it also queues [spans](record::spans) for a collector.
//!
//! # Proxies that only ask
//!
//! A proxy that forwards its requests itself asks [`fronts`] about them, on a listener of its own. A front makes the head and
//! the client of a request from what the proxy says, and takes the same steps: [`judge`](gateway::judge()) is
//! everything of `gateway/handle.rs` but forwarding. The front sends the decision to the proxy. The reservation is settled as if
//! the application gave no answer, unless the proxy shows the answer: `ext_proc` of Envoy does.
//!
//! # Who may import whom
//!
//! The modules below are listed in reading order, and each uses only modules above it; `tests/architecture` holds
//! the table and reads the sources. The first five rows are three folders: `words`, `wire` and `rules`.
//!
//! | layer | modules | what they know |
//! | --- | --- | --- |
//! | words | [`word`](words::word) [`units`](words::units) [`recipes`](words::recipes) [`glob`](words::glob) [`regular_expression`](words::regular_expression) [`clock`](words::clock) [`pending_reservations`](words::pending_reservations) [`timer`](words::timer) [`turn`](words::turn) [`base64`](words::base64) [`digits`](words::digits) [`network_width`](words::network_width) [`files`](words::files) [`coalesce`](words::coalesce) [`pool`](words::pool) [`secret`](words::secret) [`signing`](words::signing) | nothing of the crate but each other |
//! | wire | [`head`](wire::head) [`http1`](wire::http1) [`http2`](wire::http2) [`tls`](wire::tls) [`http_client`](wire::http_client) [`crowdsec`](wire::crowdsec) | bytes, and clients of other services |
//! | facts | [`client`](rules::client) [`request`](rules::request) [`jwt`](rules::jwt) | who asks, and what for |
//! | rules | [`list`](rules::list) [`key`](rules::key) [`challenge`](rules::challenge) [`outcome`](rules::outcome) [`limit`](rules::limit) [`route`](rules::route) | one kind of rule each |
//! | decision | [`decision`](rules::decision) | the rules together |
//! | adapters | [`store`] [`upstream`] [`listen`] [`record`] | the outside; never one another |
//! | pipeline | [`gateway`] [`api`] [`admin`] | the way of a request, and what operators are told |
//! | fronts | [`fronts`] | what other proxies ask, and how they are answered |
//! | text | [`config`] | files, and all of the above that they describe |
//! | convert | [`convert`] | configurations of other programs |
//! | replay | [`replay`] | access logs, and what a configuration makes of them |
//! | assembly | [`app`] | builds, swaps, watches, drains |
//! | edge | [`cli`] | commands and exit codes |
//!
//! Everything from facts to decision is pure: it does not wait, read a clock, spawn, log, draw random bytes or keep state
//! behind a shared reference, and so it cannot fail, parsing aside. What it needs is an argument.
//!
//! # The configuration, three times
//!
//! Text with positions ([`config::yaml`]) becomes [`Settings`](config::Settings), in which no error is left; from them
//! [`app`] builds the [`Snapshot`](gateway::Snapshot) that requests hold. `run`, `check`, `explain` and a reload use the
//! same [`config::load`](config::load()). A reload reads, checks, builds and binds everything before it swaps anything ([`app::reload`]),
//! the reading on a thread of its own ([`files`](words::files) says what may be read). The old snapshot is freed when no request holds it,
//! never on a core that serves.
//!
//! # Heads
//!
//! Heads of requests and answers are [`head::Fields`](wire::head::Fields): one buffer of text and a table of positions, whatever the protocol
//! was. Names are in lower case, and those that the gateway itself uses have a number ([`KnownName`](wire::head::KnownName)), found
//! by a perfect hash, so that an absent field is one test of a bit. Rules, framing, outcomes and forwarding read that
//! table. The lines for the next hop are copied from the text, many at once, and fields of the gateway are appended.
//! The types of the library `http` for headers begin where h2, axum and trailers want them (`wire/head/convert.rs`).
//!
//! Heads, exchanges, futures of responses and buffers for output take their memory from pools of the thread ([`pool`](words::pool)), and
//! give it back.
//!
//! # Protocols
//!
//! The gateway speaks HTTP/1.1 itself: [`http1`](wire::http1) reads and writes its bytes, `listen/http1` and `upstream/http1` have the
//! connections. One task carries a request from its head to the last byte of its answer, and no part of a body waits
//! in a channel: hyper needs a task and two channels more for each request. The library h2 speaks
//! HTTP/2, without hyper, whose client hides informational answers. Towards clients, `listen/http2` reads the heads of
//! requests before h2 sees them, so that a malformed one ends its own stream alone, and an extended CONNECT becomes the GET
//! of an upgrade; and it writes those of answers behind h2, which would copy their fields twice. Towards servers, `upstream/http2` has a few connections with many requests each. Requests of the gateway itself (health checks,
//! webhooks, commands to the admin API) use hyper's client: [`http_client`](wire::http_client).
//!
//! # Threads
//!
//! One thread a core, each with a current-thread runtime, its own socket on every address and its own connections to
//! the applications and to Redis ([`app::workers`]): a request lives and dies on one core. Where many are under way, they take each
//! step one after another ([`turn`](words::turn)): behind the head, before a request is sent to its server, and before an answer is sent
//! to its client, each lets the others come as far. Shared are the snapshot, the
//! shards of the memory store, what is known of the Redis servers, and the counters. One more thread, [`app::process`], has
//! the admin listener, health checks, the watch over Redis ([`store::redis::settings`]), files and signals, and hands
//! the sockets to a process that takes over ([`app::takeover`]). Counts in memory move with them, and the old process asks
//! the new one while they do and from then on ([`store::handover`]).
//!
//! # What must stay true
//!
//! - Stores never see a request; they see a `Batch`. Rules never see a store; they see verdicts.
//! - Each key in memory is counted by exactly one process at any moment. In a takeover it leaves the old one before the first
//!   request about it is decided in the new one.
//! - Verdicts carry spans, never moments: the store's clock is not ours.
//! - A Redis call that was sent is never retried, so a request is charged at most once. A cached denial never outlives the
//!   one in Redis.
//! - Nothing below the gateway loads the live snapshot; it gets a reference to the one the request started with.
//! - Units that a gateway has leased count in Redis as spent from the lease until it is given back or a window after its end. Its
//!   holder stops by its own clock, counted from when it asked ([`store::leases`]).
//! - While Redis is away the parts of every limit that gateways grant are at most the whole. A gateway shrinks its part
//!   before it reports that, and grows it only by free units that Redis grants ([`store::parts`]).
//! - A reservation is settled exactly once, also when the client goes away. A request that reached the
//!   application and got no answer keeps its slot.
//! - Bans are looked up in this process, without a call: other gateways have announced theirs before.
//! - Sessions are looked up in this process too. At a sign-in the gateway asks Redis whether the success belongs to
//!   the account, before the client gets its session: no gateway can miss a session that another one has learned.
//! - Gateways exchange their records outside of requests: each writes its changes to Redis, and asks the others when an
//!   operator asks it ([`store::shared_records`]).
//! - A denial is a value, not an error. Errors mean that something broke.
//! - A path, host, key or address is compared only in its canonical type.
//! - Bodies are streams with a bound; nothing collects one. All requests of one connection share one bound on the
//!   bytes that they keep: [`Budget`](listen::Budget).
//!
//! # Parsers of bytes from outside
//!
//! Each has a module `fuzz` beside it, whose function `check` panics where the parser breaks a promise: it must not panic,
//! its output is bounded, and where bytes may arrive in parts the parts must not matter. The tests call `check` with the
//! files in `fuzz/corpus/`, cut short and mutated (`words/corpus.rs`); the targets in `fuzz/` call it with what libFuzzer finds
//! (`fuzzing.rs`).
//!
//! # A login denied, file by file
//!
//! `POST //LOGIN/` arrives; `listen` reads its head. `gateway/admit/framing.rs` finds one host and one framing.
//! `rules/client/mod.rs` finds that the peer is no trusted proxy, so that the peer is the client. `rules/request/path/mod.rs`
//! makes the path `/login`. `rules/decision/enter.rs` finds no list and the route `login`. `rules/decision/plan.rs` asks
//! `rules/key/extract.rs` for the key and has one charge to ask for. `store/memory` finds that the log of
//! `rules/limit/sliding_log.rs` is full for another 4 s. `rules/decision/conclude.rs` names the limit;
//! `gateway/decide/request.rs` makes the denial final; `gateway/respond/reply.rs` writes 429, `Retry-After: 4`
//! and a page or a problem document; `record/access_log/write.rs` writes the line. The application has seen nothing.

pub mod words {
    //! Small things that know nothing of the rest of the crate: units, clocks, texts, files and memory.

    pub mod base64;
    pub mod clock;
    pub mod coalesce;
    #[cfg(any(test, feature = "fuzzing"))]
    pub mod corpus;
    pub mod digits;
    pub mod files;
    pub mod glob;
    pub mod network_width;
    pub mod pending_reservations;
    pub mod pool;
    pub mod recipes;
    pub mod regular_expression;
    pub mod secret;
    pub mod signing;
    pub mod timer;
    pub mod turn;
    pub mod units;
    pub mod word;
}

pub mod wire {
    //! What stands on the wire: heads of requests and answers, HTTP/1.1, HTTP/2, TLS, and a few clients.

    pub mod crowdsec;
    pub mod head;
    pub mod http1;
    pub mod http2;
    pub mod http_client;
    pub mod tls;
}

pub mod rules {
    //! Who asks, what for, and what the rules say: one kind of rule each, and the decision over all of them. All of it is pure.

    pub mod challenge;
    pub mod client;
    pub mod decision;
    pub mod jwt;
    pub mod key;
    pub mod limit;
    pub mod list;
    pub mod outcome;
    pub mod request;
    pub mod route;
}

pub mod admin;
pub mod api;
pub mod app;
pub mod cli;
pub mod config;
pub mod convert;
pub mod fronts;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
pub mod gateway;
pub mod listen;
pub mod record;
pub mod replay;
pub mod store;
pub mod upstream;
