//! Connections of one core to the servers, kept between requests.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::sync::Weak;
use std::time::Duration;

use bytes::Bytes;
use hashbrown::HashMap;
use http_body::Body;
use parking_lot::Mutex;
use tokio::time::sleep;

use super::connect::missed_descriptors;
use super::link::Link;
use super::server::ServerId;
use super::trunk::Shared;

/// The connections of one core. `B` is the body of requests; its default is an empty one.
#[derive(Debug)]
pub struct Pool<B> {
    pub(super) idle: Arc<Idle<B>>,
    pub(super) trunks: Arc<Shared<B>>,
}

impl<B> Pool<B>
where
    B: Body<Data = Bytes> + Default + Send + Unpin + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    pub fn new() -> Self {
        Self { idle: Arc::default(), trunks: Arc::default() }
    }
}

impl<B> Default for Pool<B>
where
    B: Body<Data = Bytes> + Default + Send + Unpin + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    fn default() -> Self {
        Self::new()
    }
}

/// Connections without a request. The lock is for the compiler: only one core comes here.
#[derive(Debug)]
pub(super) struct Idle<B> {
    resting: Mutex<Resting<B>>,
}

#[derive(Debug)]
struct Resting<B> {
    /// The last one in is the first one out, so that what is not needed grows old.
    links: HashMap<ServerId, VecDeque<Aging<B>>>,
    /// How often the sweeper came by: time enough for this, and free to read.
    tick: u64,
    sweeping: bool,
    /// What `missed_descriptors` said when the sweeper came by.
    missed: u64,
}

#[derive(Debug)]
struct Aging<B> {
    link: Box<Link<B>>,
    expires: u64,
}

impl<B> Default for Idle<B> {
    fn default() -> Self {
        Self { resting: Mutex::new(Resting { links: HashMap::new(), tick: 0, sweeping: false, missed: 0 }) }
    }
}

impl<B> Idle<B>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    /// A connection that the server has not closed, as far as is known.
    pub(super) fn take(&self, server: ServerId) -> Option<Box<Link<B>>> {
        let mut resting = self.resting.lock();
        let links = resting.links.get_mut(&server)?;
        while let Some(aging) = links.pop_back() {
            if aging.link.is_ready() {
                return Some(aging.link);
            }
        }
        None
    }
}

impl<B: Send + 'static> Idle<B> {
    pub(super) fn put(self: &Arc<Self>, link: Box<Link<B>>) {
        let mut resting = self.resting.lock();
        let ticks = link.idle.as_millis().div_ceil(TICK.as_millis());
        let expires = resting.tick.saturating_add(u64::try_from(ticks).unwrap_or(u64::MAX));
        let links = resting.links.entry(link.server).or_default();
        if links.len() < MOST_IDLE {
            links.push_back(Aging { link, expires });
        }
        if !resting.sweeping {
            resting.sweeping = true;
            tokio::spawn(sweep(Arc::downgrade(self)));
        }
    }

    /// Closes what has rested too long, or everything where descriptors were missing, be it on another core; false when
    /// nothing is left to come back for.
    fn sweep(&self) -> bool {
        let mut resting = self.resting.lock();
        resting.tick += 1;
        let tick = resting.tick;
        let missed = missed_descriptors();
        if missed != mem::replace(&mut resting.missed, missed) {
            resting.links.clear();
        }
        resting.links.retain(|_, links| {
            while links.front().is_some_and(|oldest| oldest.expires < tick) {
                links.pop_front();
            }
            !links.is_empty()
        });
        resting.sweeping = !resting.links.is_empty();
        resting.sweeping
    }
}

async fn sweep<B: Send + 'static>(idle: Weak<Idle<B>>) {
    loop {
        sleep(TICK).await;
        if !idle.upgrade().is_some_and(|idle| idle.sweep()) {
            return;
        }
    }
}

/// How exactly an idle timeout is kept.
const TICK: Duration = Duration::from_millis(250);

/// Connections kept to one server by one core; those of a burst beyond it are closed.
const MOST_IDLE: usize = 256;
