//! portcullis stands in front of web applications and decides for every request, before they spend anything on it,
//! whether it may pass.
//!
//! `docs/` is the book for those who run it. This page is for those who change it: a request's way, where each thing
//! lives, and what must stay true.
//!
//! # A request's way
//!
//! `gateway/handle.rs` is the way of a request on one page: `admit`, `decide`, `enforce`, `forward`. Each hands its value to
//! the next, so that data flows one way only.
//!
//! 1. [`listen`] accepts a connection on one core and reads a request off it, within its timeouts. The head of the request
//!    becomes a [`RequestHead`](head::RequestHead): the text that arrived, and a flat table of where its fields stand.
//! 2. **Admit.** [`gateway`] takes the [`Snapshot`](gateway::Snapshot) in force, which the request keeps to its end, and
//!    refuses what is not exactly one unambiguous request. [`client`] says who asks:
//!    [`TrustedProxies::identify`](client::TrustedProxies::identify) judges the peer first, then the header it sent.
//! 3. **Decide.** [`request`] puts path, host and fields into the one spelling that rules compare:
//!    [`RequestHead`](request::RequestHead). [`decision`] decides in three pure steps. [`enter`](decision::enter())
//!    looks at lists and routes and says whether the body must be read, and whether [`gateway::tokens`] must verify a token;
//!    [`plan`](decision::RoutedRequest::plan)
//!    extracts the keys into a [`Batch`](decision::Batch); [`conclude`](decision::Plan::conclude) turns the store's
//!    verdicts into a [`Decision`](decision::Decision).
//! 4. Between plan and conclude, [`store`] decides the whole batch in one step: charged to every limit, or to none. In
//!    Redis that step is one call of a Lua script; [`store::failover`] answers by itself what Redis has refused before,
//!    and decides everything while Redis is down. A [`Reservation`](gateway::reservation::Reservation) keeps what the
//!    store has reserved, and gives it back however the request ends.
//! 5. **Enforce.** A denied request is answered by [`gateway`], after a while where it is tarpitted. A request that passes goes
//!    on, after a while where it is delayed.
//! 6. **Forward.** It goes to one server of an [`upstream`], and both bodies stream.
//! 7. Where answers are counted, [`outcome`] reads what this one means while it streams by, in a task that survives the
//!    client's disconnect. [`settlements`](decision::PendingOutcome::settlements) then tells the store which slots it
//!    releases, which keys it resets and which clients it knows from now on.
//! 8. When its [`Exchange`](gateway::exchange::Exchange) ends, [`record`] gets one
//!    [`RequestRecord`](record::RequestRecord). It writes a log line, adds to counters found by position, and publishes
//!    an [`Event`](record::Event) of a denial or a delay to the audit trail, webhooks and the event stream.
//!    Where the request is traced, it also queues [spans](record::spans) for a collector.
//!
//! # Who asks only
//!
//! A proxy that forwards its requests itself asks [`fronts`] about them, on a listener of its own. A front makes the head and
//! the client of a request from what the proxy says, and takes the same steps: [`judge`](gateway::judge()) is
//! everything of `gateway/handle.rs` but forwarding. What passes is answered to the proxy. What is reserved is settled as if the
//! answer of the application never came, unless the proxy shows that answer: `ext_proc` of Envoy does.
//!
//! # Who may import whom
//!
//! The modules below are listed in reading order, and each uses only modules above it; `tests/architecture` holds
//! the table and reads the sources.
//!
//! | layer | modules | what they know |
//! | --- | --- | --- |
//! | words | [`units`] [`spelling`] [`glob`] [`regular_expression`] [`clock`] [`pending_reservations`] [`timer`] [`base64`] [`byte_count`] [`digits`] [`network_width`] [`files`] [`coalesce`] [`pool`] [`secret`] [`head`] [`http1`] [`http2`] [`http_client`] [`tls`] [`crowdsec`] | nothing of the crate but each other |
//! | facts | [`signing`] [`client`] [`request`] [`jwt`] | who asks, and what for |
//! | rules | [`list`] [`key`] [`challenge`] [`outcome`] [`limit`] [`route`] | one kind of rule each |
//! | decision | [`decision`] | the rules together |
//! | adapters | [`store`] [`upstream`] [`listen`] [`record`] | the outside; never one another |
//! | pipeline | [`gateway`] [`admin`] | the way of a request |
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
//! same [`config::load`]. A reload reads, checks, builds and binds everything before it swaps anything ([`app::reload`]),
//! the reading on a thread of its own ([`files`] says what may be read). The old snapshot is freed when no request holds it,
//! never on a core that serves.
//!
//! # Heads
//!
//! Heads of requests and answers are [`head::Fields`]: one buffer of text and a table of positions, whatever the protocol
//! was. Names are in lower case, and those that the gateway itself uses have a number ([`KnownName`](head::KnownName)), found
//! by a perfect hash, so that an absent field is one test of a bit. Rules, framing, outcomes and forwarding read that
//! table. What goes on to the next hop is copied from the text, many lines at once, and fields of our own are appended to the text.
//! The types of the library `http` for headers begin where h2, axum and trailers want them (`head/convert.rs`).
//!
//! Heads, exchanges, futures of responses and buffers for output take their memory from pools of the thread ([`pool`]), and
//! give it back.
//!
//! # Protocols
//!
//! The gateway speaks HTTP/1.1 itself: [`http1`] reads and writes its bytes, `listen/http1` and `upstream/http1` have the
//! connections. One task carries a request from its head to the last byte of its answer, and no part of a body waits
//! in a channel: hyper needs a task and two channels more for each request. The library h2 speaks
//! HTTP/2, without hyper, whose client hides informational answers. Towards clients, `listen/http2` reads the heads of
//! requests before h2 sees them, so that a malformed one ends its own stream alone, and an extended CONNECT becomes the GET
//! of an upgrade. Towards servers, `upstream/http2` has a few connections with many requests each. Requests of the gateway itself (health checks,
//! webhooks, commands to the admin API) use hyper's client: [`http_client`].
//!
//! # Threads
//!
//! One thread a core, each with a current-thread runtime, its own socket on every address and its own connections to
//! the applications and to Redis ([`app::workers`]): a request lives and dies on one core. Shared are the snapshot, the
//! shards of the memory store, what is known of the Redis servers, and the counters. One more thread, [`app::process`], has
//! the admin listener, health checks, the watch over Redis ([`store::redis::watch`]), files and signals, and hands
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
//! - While Redis is away the parts of every limit that gateways grant are at most the whole. One shrinks before it tells, and grows
//!   only by what Redis grants from what is free ([`store::parts`]).
//! - A reservation is settled exactly once, also when the client goes away. What reached the application and was not
//!   answered keeps its slot.
//! - Bans are looked up in this process, without a call: other gateways have announced theirs before.
//! - Sessions are looked up in this process too. Whether a success is the account's own is asked of Redis at the sign-in,
//!   before the client has its session: no gateway can take a session that another one has learned for none.
//! - What gateways know together is in no request's way: they write for each other what has changed, and ask each other when an
//!   operator asks one of them ([`store::shared_records`]).
//! - A denial is a value, not an error. Errors mean that something broke.
//! - A path, host, key or address is compared only in its canonical type.
//! - Bodies are streams with a bound; nothing collects one. What the requests of one connection keep has a bound for all of
//!   them together: [`Budget`](listen::Budget).
//!
//! # Parsers of bytes from outside
//!
//! Each has a module `fuzz` beside it, whose function `check` panics where the parser breaks a promise: it must not panic,
//! its output is bounded, and where bytes may arrive in parts the parts must not matter. The tests call `check` with the
//! files in `fuzz/corpus/`, cut short and mutated (`corpus.rs`); the targets in `fuzz/` call it with what libFuzzer finds
//! (`fuzzing.rs`).
//!
//! # A login denied, file by file
//!
//! `POST //LOGIN/` arrives; `listen` reads its head. `gateway/admit/framing.rs` finds one host and one framing.
//! `client/identity.rs` finds that the peer is no trusted proxy, so that the peer is the client. `request/path/canonical.rs`
//! makes the path `/login`. `decision/enter.rs` finds no list and the route `login`. `decision/plan.rs` asks
//! `key/extract.rs` for the key and has one charge to ask for. `store/memory` finds that the log of
//! `limit/sliding_log.rs` is full for another 4 s. `decision/conclude.rs` names the limit;
//! `gateway/decide/final_decision.rs` makes the denial final; `gateway/respond/reply.rs` writes 429, `Retry-After: 4`
//! and a page or a problem document; `record/access_log/write.rs` writes the line. The application has seen nothing.

pub mod base64;
pub mod byte_count;
pub mod clock;
pub mod coalesce;
#[cfg(any(test, feature = "fuzzing"))]
pub mod corpus;
pub mod crowdsec;
pub mod digits;
pub mod files;
pub mod glob;
pub mod head;
pub mod http1;
pub mod http2;
pub mod http_client;
pub mod network_width;
pub mod pending_reservations;
pub mod pool;
pub mod regular_expression;
pub mod secret;
pub mod spelling;
pub mod timer;
pub mod tls;
pub mod units;

pub mod signing;

pub mod client;
pub mod jwt;
pub mod request;

pub mod list;

pub mod key;

pub mod challenge;

pub mod outcome;

pub mod limit;

pub mod route;

pub mod decision;

pub mod listen;
pub mod record;
pub mod store;
pub mod upstream;

pub mod admin;
pub mod gateway;

pub mod fronts;

pub mod config;

pub mod convert;

pub mod replay;

pub mod app;

pub mod cli;

#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
