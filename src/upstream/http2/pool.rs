//! The HTTP/2 connections of one core, by server.

use std::io;
use std::sync::Arc;
use std::sync::Weak;

use hashbrown::HashMap;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::connection::ConnectionState;
use super::connection::Http2Connection;
use super::connection::StreamGuard;
use super::driver::Driver;
use super::exchange::Http2Stream;
use super::open::open;
use crate::upstream::error::FailureCause;
use crate::upstream::server::Server;
use crate::upstream::server::ServerId;
use crate::upstream::settings::Settings;

/// The connections of one core. Only that core takes the lock, which the compiler asks for.
#[derive(Debug, Default)]
pub(in crate::upstream) struct Http2Pool {
    servers: Mutex<HashMap<ServerId, ServerConnections>>,
}

#[derive(Debug, Default)]
struct ServerConnections {
    open: Vec<Http2Connection>,
    /// A further connection is being opened. Requests that wait for it learn here whether it failed.
    opening: Option<watch::Receiver<Option<Result<(), FailureCause>>>>,
}

impl Http2Pool {
    /// A stream on a connection that is open and has room.
    pub(in crate::upstream) fn open_stream(&self, server: &Server) -> Option<Http2Stream> {
        self.servers.lock().get_mut(&server.id)?.stream(server)
    }

    /// A stream on a connection that has room. Where there is none, one request opens a further connection for all that
    /// wait.
    pub(in crate::upstream) async fn stream(
        self: &Arc<Self>,
        server: &Arc<Server>,
        settings: &Settings,
    ) -> Result<Http2Stream, FailureCause> {
        loop {
            let mut opening = {
                let mut servers = self.servers.lock();
                let connections = servers.entry(server.id).or_default();
                if let Some(stream) = connections.stream(server) {
                    return Ok(stream);
                }
                connections.opening.get_or_insert_with(|| self.start_opening(server, settings)).clone()
            };
            match opening.wait_for(Option::is_some).await.as_deref() {
                Ok(Some(Err(cause))) => return Err(cause.again()),
                Ok(_) => {}
                Err(_) => return Err(FailureCause::Connect(io::Error::other("opening a connection was given up"))),
            }
        }
    }

    /// Opens a connection in a task of its own: the request that asked for it may be given up.
    fn start_opening(
        self: &Arc<Self>,
        server: &Arc<Server>,
        settings: &Settings,
    ) -> watch::Receiver<Option<Result<(), FailureCause>>> {
        let (done, waiting) = watch::channel(None);
        let (pool, server) = (Arc::downgrade(self), Arc::clone(server));
        let (timeouts, heads) = (settings.timeouts, settings.heads);
        tokio::spawn(async move {
            let opened = match open(&server, &timeouts, heads).await {
                Ok((connection, driver)) => {
                    add(&pool, &server, connection);
                    tokio::spawn(run(driver, Weak::clone(&pool)));
                    Ok(())
                }
                Err(cause) => Err(cause),
            };
            if let Some(pool) = pool.upgrade()
                && let Some(connections) = pool.servers.lock().get_mut(&server.id)
            {
                connections.opening = None;
            }
            done.send_replace(Some(opened));
        });
        waiting
    }
}

impl ServerConnections {
    fn stream(&mut self, server: &Server) -> Option<Http2Stream> {
        self.open.retain(Http2Connection::is_usable);
        // The fullest that has room: connections that are not needed become idle and close.
        let with_room = self.open.iter().filter(|connection| connection.state.has_room());
        let connection = with_room.max_by_key(|connection| connection.state.streams())?;
        Some(Http2Stream::new(connection.sender.clone(), StreamGuard::new(&connection.state), server))
    }
}

fn add(pool: &Weak<Http2Pool>, server: &Server, connection: Http2Connection) {
    if let Some(pool) = pool.upgrade()
        && let Some(connections) = pool.servers.lock().get_mut(&server.id)
    {
        connections.open.push(connection);
    }
}

async fn run(driver: Driver, pool: Weak<Http2Pool>) {
    driver.run(|server, state| remove(&pool, server, state)).await;
}

fn remove(pool: &Weak<Http2Pool>, server: &Server, state: &Arc<ConnectionState>) {
    let Some(pool) = pool.upgrade() else { return };
    let mut servers = pool.servers.lock();
    if let Some(connections) = servers.get_mut(&server.id) {
        connections.open.retain(|connection| !Arc::ptr_eq(&connection.state, state));
        if connections.open.is_empty() && connections.opening.is_none() {
            servers.remove(&server.id);
        }
    }
}
