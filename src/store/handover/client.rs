//! Asking the successor what it counts.

use std::collections::HashMap;
use std::io;
use std::io::ErrorKind;
use std::mem;
use std::os::unix::net;
use std::sync::Arc;
use std::sync::Weak;

use parking_lot::Mutex;
use tokio::net::UnixStream;
use tokio::sync::Notify;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::Semaphore;
use tokio::sync::oneshot;
use tracing::warn;

use super::frame;
use super::message::Answer;
use super::message::Answered;
use super::message::Asked;
use super::message::OwnedSettlement;
use super::message::Question;
use crate::decision::OwnedBatch;
use crate::store::Bans;
use crate::store::StoreError;
use crate::store::bans::shared::Written;

/// The way to the successor. It ends when that does.
#[derive(Debug)]
pub struct SuccessorClient {
    desk: Mutex<Desk>,
    /// There is something to be sent.
    wake: Notify,
    /// For as many questions as may wait for their answer at a time.
    room: Arc<Semaphore>,
    /// Those of this process, which hears of the successor's.
    bans: Arc<Bans>,
}

/// What is under way.
#[derive(Debug, Default)]
struct Desk {
    unsent: Vec<u8>,
    asked: HashMap<u64, Waiting>,
    /// How many questions there were.
    count: u64,
    is_gone: bool,
}

/// Who waits for an answer.
#[derive(Debug)]
struct Waiting {
    tell: oneshot::Sender<Told>,
    /// What was to be decided.
    batch: Option<OwnedBatch>,
    _room: OwnedSemaphorePermit,
}

/// An answer on its way to whoever asked. Where nobody takes it, what it says was charged is given back.
#[derive(Debug)]
struct Told {
    answer: Option<Answer>,
    batch: Option<OwnedBatch>,
    relay: Weak<SuccessorClient>,
}

impl SuccessorClient {
    /// Begins to carry questions and answers, on the runtime of the caller.
    pub(super) fn begin(stream: net::UnixStream, bans: &Arc<Bans>) -> Arc<Self> {
        let room = Arc::new(Semaphore::new(MOST_UNANSWERED));
        let relay = Arc::new(Self { desk: Mutex::default(), wake: Notify::new(), room, bans: Arc::clone(bans) });
        let carrying = Arc::clone(&relay);
        tokio::spawn(async move {
            let ended = carrying.carry(stream).await;
            carrying.end(ended);
        });
        relay
    }

    /// Has a batch decided. Slots it takes are given back, and so is what waits for an outcome, if the caller leaves.
    pub(in crate::store) async fn decide(self: &Arc<Self>, batch: OwnedBatch) -> Result<Answer, StoreError> {
        self.put(Question::Decide(batch.clone()), Some(batch)).await
    }

    pub(in crate::store) async fn ask(self: &Arc<Self>, question: Question) -> Result<Answer, StoreError> {
        self.put(question, None).await
    }

    /// Says what needs no answer.
    pub(in crate::store) fn tell(&self, question: Question) {
        let mut desk = self.desk.lock();
        if desk.is_gone {
            return;
        }
        desk.send(question);
        drop(desk);
        self.wake.notify_one();
    }

    async fn put(self: &Arc<Self>, question: Question, batch: Option<OwnedBatch>) -> Result<Answer, StoreError> {
        let room = Arc::clone(&self.room).acquire_owned().await.map_err(|_| StoreError::SuccessorGone)?;
        let (tell, told) = oneshot::channel();
        {
            let mut desk = self.desk.lock();
            if desk.is_gone {
                return Err(StoreError::SuccessorGone);
            }
            let number = desk.send(question);
            desk.asked.insert(number, Waiting { tell, batch, _room: room });
        }
        self.wake.notify_one();
        let mut told = told.await.map_err(|_| StoreError::SuccessorGone)?;
        told.answer.take().ok_or(StoreError::SuccessorGone)
    }

    async fn carry(self: &Arc<Self>, stream: net::UnixStream) -> io::Result<()> {
        stream.set_nonblocking(true)?;
        let stream = UnixStream::from_std(stream)?;
        let (mut received, mut sending, mut sent) = (Vec::new(), Vec::new(), 0);
        loop {
            if sent == sending.len() {
                sending.clear();
                sent = 0;
                mem::swap(&mut sending, &mut self.desk.lock().unsent);
            }
            let is_sending = !sending.is_empty();
            tokio::select! {
                ready = stream.readable() => {
                    ready?;
                    received.reserve(READ);
                    match stream.try_read_buf(&mut received) {
                        Ok(0) => return Ok(()),
                        Ok(_) => self.hear(&mut received)?,
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
            }
        }
    }

    fn hear(self: &Arc<Self>, received: &mut Vec<u8>) -> io::Result<()> {
        let mut at = 0;
        while let Some(Answered { number, answer }) = frame::next(received, &mut at)? {
            if let Answer::Banned(begun) = answer {
                begun.iter().filter_map(Written::read).for_each(|record| self.bans.keep(record));
                continue;
            }
            let Some(Waiting { tell, batch, .. }) = self.desk.lock().asked.remove(&number) else { continue };
            // Dropped, here or on its way, it gives back what was charged.
            drop(tell.send(Told { answer: Some(answer), batch, relay: Arc::downgrade(self) }));
        }
        received.drain(..at);
        Ok(())
    }

    /// Whoever waits learns that there is no answer.
    fn end(&self, ended: io::Result<()>) {
        let how = ended.err().map(|error| format!(": {error}")).unwrap_or_default();
        warn!(
            "the process that has taken over is gone{how}; what this one still serves and limits hold for is denied \
             until it has drained"
        );
        let asked = {
            let mut desk = self.desk.lock();
            desk.is_gone = true;
            desk.unsent = Vec::new();
            mem::take(&mut desk.asked)
        };
        drop(asked);
    }
}

impl Desk {
    /// Answers the number of the question.
    fn send(&mut self, question: Question) -> u64 {
        self.count += 1;
        frame::push(&mut self.unsent, &Asked { number: self.count, question });
        self.count
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        let (Some(Answer::Verdicts(verdicts)), Some(batch)) = (self.answer.take(), self.batch.take()) else { return };
        let undone = OwnedSettlement::undoing(&batch.batch(), verdicts);
        if let Some(relay) = self.relay.upgrade().filter(|_| !undone.is_empty()) {
            relay.tell(Question::Settle(undone));
        }
    }
}

/// How much is read at a time, at least.
const READ: usize = 16 << 10;

/// More than cores can make at once of requests that each wait for one; what comes beyond waits here.
const MOST_UNANSWERED: usize = 4096;
