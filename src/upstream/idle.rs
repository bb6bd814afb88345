//! Connections of HTTP/1.1 without a request.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::sync::Weak;
use std::time::Duration;

use hashbrown::HashMap;
use parking_lot::Mutex;
use tokio::time::sleep;

use super::connect::descriptor_shortages;
use super::http1::Http1Connection;
use super::server::ServerId;

/// The idle connections of one core. Only that core takes the lock, which the compiler asks for.
#[derive(Debug)]
pub(super) struct IdleConnections {
    state: Mutex<IdleState>,
}

#[derive(Debug)]
struct IdleState {
    /// The connection that was used last is used first, so that connections that are not needed expire.
    links: HashMap<ServerId, VecDeque<IdleConnection>>,
    /// How often [`sweep`] came by: a clock that is exact enough here, and free to read.
    tick: u64,
    is_sweeping: bool,
    /// The [`descriptor_shortages`] at the last sweep.
    shortages: u64,
}

#[derive(Debug)]
struct IdleConnection {
    link: Box<Http1Connection>,
    expires: u64,
}

impl Default for IdleConnections {
    fn default() -> Self {
        let state = IdleState { links: HashMap::new(), tick: 0, is_sweeping: false, shortages: 0 };
        Self { state: Mutex::new(state) }
    }
}

impl IdleConnections {
    /// A connection that the server has not closed, as far as is known.
    pub(super) fn take(&self, server: ServerId) -> Option<Box<Http1Connection>> {
        let mut state = self.state.lock();
        let links = state.links.get_mut(&server)?;
        while let Some(mut idle) = links.pop_back() {
            if idle.link.is_ready() {
                return Some(idle.link);
            }
        }
        None
    }

    pub(super) fn put(self: &Arc<Self>, link: Box<Http1Connection>) {
        let mut state = self.state.lock();
        let ticks = link.idle.as_millis().div_ceil(TICK.as_millis());
        let expires = state.tick.saturating_add(u64::try_from(ticks).unwrap_or(u64::MAX));
        let links = state.links.entry(link.server.id).or_default();
        if links.len() < MAX_IDLE {
            links.push_back(IdleConnection { link, expires });
        }
        if !state.is_sweeping {
            state.is_sweeping = true;
            tokio::spawn(sweep(Arc::downgrade(self)));
        }
    }

    /// Closes connections that expired, that their server closed, or whose server was removed. Closes all of them if a
    /// descriptor was missing on any core. Returns false when none is left.
    fn sweep(&self) -> bool {
        let mut state = self.state.lock();
        state.tick += 1;
        let tick = state.tick;
        let shortages = descriptor_shortages();
        if shortages != mem::replace(&mut state.shortages, shortages) {
            state.links.clear();
        }
        state.links.retain(|_, links| {
            links.retain_mut(|idle| {
                idle.expires >= tick && !idle.link.server.removed.is_cancelled() && idle.link.is_ready()
            });
            !links.is_empty()
        });
        state.is_sweeping = !state.links.is_empty();
        state.is_sweeping
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

/// The connections that one core keeps to one server. Those of a burst beyond it are closed.
const MAX_IDLE: usize = 256;
