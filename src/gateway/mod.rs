//! A request's way, from its connection to its log line.

pub mod accept;
pub mod answer;
pub mod audience;
pub mod bans;
pub mod body;
pub mod challenge;
pub mod cookies;
pub mod device;
pub mod expect;
pub mod forward;
pub mod framing;
pub mod grpc;
pub mod handle;
pub mod header_names;
pub mod headers;
pub mod hold;
pub mod inspect;
pub mod intake;
pub mod outlive;
pub mod page;
pub mod problem;
pub mod ratelimit_headers;
pub mod refusal;
pub mod request_id;
pub mod respond;
pub mod settle;
pub mod story;
mod subject;
mod unheeded;
pub mod upgrade;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use http::Request;
use http::Response;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use crate::client::TrustedProxies;
use crate::clock::Clock;
use crate::decision::Policy;
use crate::listen::Connection;
use crate::listen::Handle;
use crate::listen::Incoming;
use crate::listen::Interim;
use crate::listen::Refused;
use crate::record::Recorder;
use crate::store::AnyStore;
use crate::upstream::Pool;
use crate::upstream::Upstream;

pub use self::answer::ResponseBody;
pub use self::body::RequestBody;
pub use self::hold::Holding;

use self::header_names::LookedAt;
use self::ratelimit_headers::Shown;

/// The part of the `server` and `headers` sections that requests meet.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Settings {
    /// The longest body that passes; `None`: any.
    pub max_body: Option<u64>,
    /// How much of a body a key may read.
    pub inspect_body: usize,
    /// Reading a body without progress.
    pub body_idle: Duration,
    /// The least bytes per second of a body that is awaited, over each `body_idle` after the first; zero: any.
    pub body_rate: u32,
    pub headers: HeaderStyle,
    /// So many delayed and tarpitted requests at a time.
    pub max_held: usize,
}

/// Which rate limit headers responses carry.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum HeaderStyle {
    #[default]
    Ietf,
    Legacy,
    Both,
    Off,
}

/// Everything a request needs of the configuration, swapped whole; a request keeps the one it started with.
#[derive(Debug)]
pub struct Snapshot {
    pub policy: Policy,
    pub clients: TrustedProxies,
    /// By `UpstreamId`.
    pub upstreams: Vec<Arc<Upstream>>,
    pub settings: Settings,
    pub recorder: Recorder,
    shown: Shown,
    looked_at: LookedAt,
    challenges: bool,
}

impl Snapshot {
    /// `upstreams` are in the order of `UpstreamId`, and the recorder knows the names of all this.
    pub fn new(
        policy: Policy,
        clients: TrustedProxies,
        upstreams: Vec<Arc<Upstream>>,
        settings: Settings,
        recorder: Recorder,
    ) -> Self {
        let shown = Shown::new(&policy, settings.headers);
        let looked_at = LookedAt::new(&policy, &clients);
        let challenges = challenge::is_used_by(&policy);
        Self { policy, clients, upstreams, settings, recorder, shown, looked_at, challenges }
    }
}

/// What answers the requests of one core. Clones are the same gateway.
#[derive(Clone, Debug)]
pub struct Gateway {
    core: Arc<Core>,
}

/// The parts of a gateway; every request under way holds on to them.
#[derive(Debug)]
pub struct Core {
    live: Arc<ArcSwap<Snapshot>>,
    store: Arc<AnyStore>,
    pool: Pool<RequestBody>,
    holding: Holding,
    /// Requests whose client has left while their outcome is awaited.
    left_behind: TaskTracker,
    clock: Clock,
}

impl Gateway {
    /// One for each core: connections to applications are kept by core. `live`, `store` and
    /// `holding` are shared by all.
    pub fn new(live: Arc<ArcSwap<Snapshot>>, store: Arc<AnyStore>, holding: Holding, clock: Clock) -> Self {
        Self {
            core: Arc::new(Core { live, store, pool: Pool::new(), holding, left_behind: TaskTracker::new(), clock }),
        }
    }

    /// Waits a moment for answers whose client has left, and for what this core still has to tell its store. Asked when
    /// its last request is through.
    pub async fn finish(&self) {
        let left_behind = &self.core.left_behind;
        left_behind.close();
        drop(timeout(FAREWELL, left_behind.wait()).await);
        self.core.store.finish().await;
    }
}

/// Whoever left before the answer and before the end keeps the slot.
const FAREWELL: Duration = Duration::from_millis(500);

impl Handle for Gateway {
    type Body = ResponseBody;

    fn handle(
        &self,
        connection: Arc<Connection>,
        request: Request<Incoming>,
        interim: Interim,
    ) -> impl Future<Output = Response<ResponseBody>> + Send + 'static {
        handle::handle(Arc::clone(&self.core), connection, request, interim)
    }

    fn refused(&self, connection: &Connection, refused: Refused) {
        story::tell_of_no_request(&self.core, connection, &refused);
    }
}
