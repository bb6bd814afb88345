//! Connections of one core to the servers, kept between requests.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::sync::Weak;
use std::time::Duration;

use hashbrown::HashMap;
use parking_lot::Mutex;
use tokio::time::sleep;

use super::connect::descriptor_shortages;
use super::http1::Link;
use super::http2::Http2Pool;
use super::server::ServerId;

/// The connections of one core.
#[derive(Debug, Default)]
pub struct Pool {
    pub(super) idle: Arc<IdleConnections>,
    pub(super) http2: Arc<Http2Pool>,
}

impl Pool {
    pub fn new() -> Self {
        Self::default()
    }
}

/// Connections without a request. The lock is for the compiler: only one core comes here.
#[derive(Debug)]
pub(super) struct IdleConnections {
    resting: Mutex<IdleState>,
}

#[derive(Debug)]
struct IdleState {
    /// The last one in is the first one out, so that what is not needed grows old.
    links: HashMap<ServerId, VecDeque<IdleConnection>>,
    /// How often the sweeper came by: time enough for this, and free to read.
    tick: u64,
    sweeping: bool,
    /// What `descriptor_shortages` said when the sweeper came by.
    missed: u64,
}

#[derive(Debug)]
struct IdleConnection {
    link: Box<Link>,
    expires: u64,
}

impl Default for IdleConnections {
    fn default() -> Self {
        Self { resting: Mutex::new(IdleState { links: HashMap::new(), tick: 0, sweeping: false, missed: 0 }) }
    }
}

impl IdleConnections {
    /// A connection that the server has not closed, as far as is known.
    pub(super) fn take(&self, server: ServerId) -> Option<Box<Link>> {
        let mut resting = self.resting.lock();
        let links = resting.links.get_mut(&server)?;
        while let Some(mut aging) = links.pop_back() {
            if aging.link.is_ready() {
                return Some(aging.link);
            }
        }
        None
    }

    pub(super) fn put(self: &Arc<Self>, link: Box<Link>) {
        let mut resting = self.resting.lock();
        let ticks = link.idle.as_millis().div_ceil(TICK.as_millis());
        let expires = resting.tick.saturating_add(u64::try_from(ticks).unwrap_or(u64::MAX));
        let links = resting.links.entry(link.server.id).or_default();
        if links.len() < MOST_IDLE {
            links.push_back(IdleConnection { link, expires });
        }
        if !resting.sweeping {
            resting.sweeping = true;
            tokio::spawn(sweep(Arc::downgrade(self)));
        }
    }

    /// Closes what leads to a server that is gone, what has rested too long, or was closed by its server, or everything where descriptors were missing, be it on another core; false when
    /// nothing is left to come back for.
    fn sweep(&self) -> bool {
        let mut resting = self.resting.lock();
        resting.tick += 1;
        let tick = resting.tick;
        let missed = descriptor_shortages();
        if missed != mem::replace(&mut resting.missed, missed) {
            resting.links.clear();
        }
        resting.links.retain(|_, links| {
            links.retain_mut(|aging| {
                aging.expires >= tick && !aging.link.server.gone.is_cancelled() && aging.link.is_ready()
            });
            !links.is_empty()
        });
        resting.sweeping = !resting.links.is_empty();
        resting.sweeping
    }
}

async fn sweep(idle: Weak<IdleConnections>) {
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
