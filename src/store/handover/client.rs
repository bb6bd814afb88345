//! Sends requests to the successor, which has the counts.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::os::unix::net;
use std::sync::{Arc, Weak};
use std::time::Duration;
use std::{io, mem};

use parking_lot::Mutex;
use tokio::net::UnixStream;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::sleep;
use tracing::warn;

use super::message::{HandoverReply, HandoverRequest, ReplyFrame, RequestFrame};
use crate::rules::decision::OwnedBatch;
use crate::store::bans::codec::SavedBan;
use crate::store::handover::message;
use crate::store::handover::moving_keys::LeavingKeys;
use crate::store::{Bans, StoreError};

/// A connection to the successor, shared by all callers of this process.
#[derive(Debug)]
pub struct SuccessorClient {
    state: Mutex<ClientState>,
    /// There are bytes to send.
    wake: Notify,
    /// Bounds how many requests wait for their reply.
    room: Arc<Semaphore>,
    /// The bans of this process; the successor sends its new bans.
    bans: Arc<Bans>,
    /// Whether the successor has the sessions, too.
    has_sessions: bool,
}

/// The task that exchanges requests and replies. If it is dropped, the connection has ended.
struct RunningExchange {
    client: Arc<SuccessorClient>,
    /// How the successor ended it. `None`: it did not, this process ends.
    ended: Option<io::Result<()>>,
}

/// Requests that are under way.
#[derive(Debug, Default)]
struct ClientState {
    unsent: Vec<u8>,
    pending: HashMap<u64, PendingRequest>,
    /// How many requests there were so far.
    count: u64,
    /// Keys that have not left for the successor yet.
    keys: Option<LeavingKeys>,
    is_gone: bool,
    /// It was gone before it had all keys.
    has_failed: bool,
}

/// A request that waits for its reply.
#[derive(Debug)]
struct PendingRequest {
    sender: oneshot::Sender<DeliveredReply>,
    /// The batch, if the request is to decide one.
    batch: Option<OwnedBatch>,
    _room: OwnedSemaphorePermit,
}

/// A reply on its way to the caller. If the caller has left, dropping it gives back what was charged.
#[derive(Debug)]
struct DeliveredReply {
    reply: Option<HandoverReply>,
    batch: Option<OwnedBatch>,
    client: Weak<SuccessorClient>,
}

impl SuccessorClient {
    /// Starts a task that exchanges requests and replies, on the runtime of the caller.
    pub(super) fn begin(
        stream: net::UnixStream,
        bans: &Arc<Bans>,
        has_sessions: bool,
        keys: Option<LeavingKeys>,
    ) -> Arc<Self> {
        let room = Arc::new(Semaphore::new(MOST_PENDING));
        let state = Mutex::new(ClientState { keys, ..ClientState::default() });
        let (wake, bans) = (Notify::new(), Arc::clone(bans));
        let client = Arc::new(Self { state, wake, room, bans, has_sessions });
        tokio::spawn(RunningExchange { client: Arc::clone(&client), ended: None }.run(stream));
        client
    }

    /// Has the successor decide a batch. If the caller is dropped, the slots and reservations of the batch are given
    /// back.
    pub(in crate::store) async fn decide(self: &Arc<Self>, batch: OwnedBatch) -> Result<HandoverReply, StoreError> {
        self.request(HandoverRequest::Decide(Box::new(batch.clone())), Some(batch)).await
    }

    /// Whether it may be asked about sessions: one of an earlier version may not.
    pub(in crate::store) fn has_sessions(&self) -> bool {
        self.has_sessions
    }

    /// Whether it was gone before it had all keys, so that this process goes on with those that are left.
    pub(in crate::store) fn has_failed(&self) -> bool {
        self.state.lock().has_failed
    }

    pub(in crate::store) async fn ask(self: &Arc<Self>, request: HandoverRequest) -> Result<HandoverReply, StoreError> {
        self.request(request, None).await
    }

    /// Sends a request without waiting for its reply.
    pub(in crate::store) fn send(&self, request: HandoverRequest) {
        let mut state = self.state.lock();
        if state.is_gone {
            return;
        }
        state.push(request);
        drop(state);
        self.wake.notify_one();
    }

    async fn request(
        self: &Arc<Self>,
        request: HandoverRequest,
        batch: Option<OwnedBatch>,
    ) -> Result<HandoverReply, StoreError> {
        let room = Arc::clone(&self.room).acquire_owned().await.map_err(|_| StoreError::SuccessorGone)?;
        let (sender, delivered) = oneshot::channel();
        {
            let mut state = self.state.lock();
            if state.is_gone {
                return Err(StoreError::SuccessorGone);
            }
            let number = state.push(request);
            state.pending.insert(number, PendingRequest { sender, batch, _room: room });
        }
        self.wake.notify_one();
        let mut delivered = delivered.await.map_err(|_| StoreError::SuccessorGone)?;
        let (reply, batch) = (delivered.reply.take(), delivered.batch.take());
        if let (Some(HandoverReply::Verdicts(verdicts)), Some(batch)) = (&reply, batch)
            && let Some(keys) = &mut self.state.lock().keys
        {
            keys.note(&batch.batch(), verdicts);
        }
        reply.ok_or(StoreError::SuccessorGone)
    }

    async fn exchange(self: &Arc<Self>, stream: net::UnixStream) -> io::Result<()> {
        stream.set_nonblocking(true)?;
        let stream = UnixStream::from_std(stream)?;
        let (mut received, mut sending, mut sent) = (Vec::new(), Vec::new(), 0);
        let mut keys_leave = false;
        loop {
            if sent == sending.len() {
                sending.clear();
                sent = 0;
                keys_leave = self.state.lock().fill(&mut sending);
            }
            let is_sending = !sending.is_empty();
            tokio::select! {
                ready = stream.readable() => {
                    ready?;
                    received.reserve(READ);
                    match stream.try_read_buf(&mut received) {
                        Ok(0) => return Ok(()),
                        Ok(_) => self.deliver(&mut received)?,
                        Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                        Err(error) => return Err(error),
                    }
                }
                ready = stream.writable(), if is_sending => {
                    ready?;
                    match stream.try_write(&sending[sent..]) {
                        Ok(length) => sent += length,
                        Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                        Err(error) => return Err(error),
                    }
                }
                () = self.wake.notified(), if !is_sending => {}
                () = sleep(STUCK), if keys_leave => return Err(ErrorKind::TimedOut.into()),
            }
        }
    }

    fn deliver(self: &Arc<Self>, received: &mut Vec<u8>) -> io::Result<()> {
        let mut at = 0;
        while let Some(ReplyFrame { number, reply }) = message::next(received, &mut at)? {
            if let HandoverReply::NewBans(bans) = reply {
                bans.iter().filter_map(SavedBan::read).for_each(|record| self.bans.insert(record));
                continue;
            }
            let replied = self.state.lock().replied(number);
            let Some(PendingRequest { sender, batch, .. }) = replied else { continue };
            // If it is dropped, here or on its way, it gives back what was charged.
            drop(sender.send(DeliveredReply { reply: Some(reply), batch, client: Arc::downgrade(self) }));
        }
        received.drain(..at);
        Ok(())
    }

    /// Fails all requests that wait.
    fn end(&self, ended: Option<io::Result<()>>) {
        let (pending, keys) = {
            let mut state = self.state.lock();
            state.is_gone = true;
            state.has_failed = state.keys.is_some();
            state.unsent = Vec::new();
            (mem::take(&mut state.pending), state.keys.take())
        };
        if let Some(keys) = keys {
            // Before the requests that wait fail: they are decided here then.
            keys.stay();
        } else if let Some(ended) = ended {
            let how = ended.err().map(|error| format!(": {error}")).unwrap_or_default();
            warn!(
                "the process that has taken over is gone{how}: this process denies every request that a limit holds \
                 for until it has drained"
            );
        }
        drop(pending);
    }
}

impl ClientState {
    /// Appends a request to the bytes to be sent, behind its keys, and returns its number.
    fn push(&mut self, request: HandoverRequest) -> u64 {
        if let Some(piece) = self.keys.as_mut().and_then(|keys| keys.take_for(&request)) {
            self.push_alone(piece);
        }
        self.push_alone(request)
    }

    /// Gets the bytes to be sent next, when all before are sent: requests, and some keys behind them. Returns whether
    /// keys are still leaving.
    fn fill(&mut self, sending: &mut Vec<u8>) -> bool {
        if let Some(keys) = self.keys.take_if(|keys| keys.is_last_said()) {
            keys.finish();
        }
        if let Some(piece) = self.keys.as_mut().and_then(LeavingKeys::take_next) {
            let number = self.push_alone(piece);
            self.keys.iter_mut().for_each(|keys| keys.sent(number));
        }
        mem::swap(sending, &mut self.unsent);
        self.keys.is_some()
    }

    /// Returns the request that waited for this reply.
    fn replied(&mut self, number: u64) -> Option<PendingRequest> {
        self.keys.iter_mut().for_each(|keys| keys.replied(number));
        self.pending.remove(&number)
    }

    fn push_alone(&mut self, request: HandoverRequest) -> u64 {
        self.count += 1;
        message::push(&mut self.unsent, &RequestFrame { number: self.count, request });
        self.count
    }
}

impl RunningExchange {
    async fn run(mut self, stream: net::UnixStream) {
        self.ended = Some(self.client.exchange(stream).await);
    }
}

impl Drop for RunningExchange {
    fn drop(&mut self) {
        self.client.end(self.ended.take());
    }
}

impl Drop for DeliveredReply {
    fn drop(&mut self) {
        let (Some(HandoverReply::Verdicts(verdicts)), Some(batch)) = (self.reply.take(), self.batch.take()) else {
            return;
        };
        let undo = message::undo(&batch.batch(), verdicts);
        if let Some(client) = self.client.upgrade().filter(|_| !undo.is_empty()) {
            client.send(HandoverRequest::Settle(undo));
        }
    }
}

/// At least this much is read at a time.
const READ: usize = 16 << 10;

/// More requests than this wait for room before they are sent.
const MOST_PENDING: usize = 4096;

/// A successor that takes no keys for so long, and replies to nothing, does not get the others.
const STUCK: Duration = Duration::from_secs(5);
