//! One connection that many callers use at once: their commands are written together, and the answers are handed out in
//! order.
//!
//! It is our own because the connection of the library takes a fifth of the time of a whole request.

use std::collections::VecDeque;
use std::future::{pending, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;
use std::{io, mem};

use bytes::{Buf, BytesMut};
use parking_lot::Mutex;
use redis::{Cmd, Value};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::sync::Semaphore;

use super::reply;
use crate::words::timer::step;

/// The callers' side of a connection. Clones share it.
#[derive(Clone, Debug)]
pub(in crate::store::redis) struct Pipeline(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    queue: Mutex<CommandQueue>,
    /// A permit for each command that may still be sent. Callers beyond wait here in the order in which they came.
    room: Semaphore,
}

/// Why a command has no answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::store::redis) enum NoAnswer {
    /// The connection ended before the command was its turn.
    NotSent,
    /// The server brought no byte for the whole timeout.
    Silent,
    Closed,
}

/// Commands and answers between callers and the task of the connection. The lock is never held across an await.
#[derive(Debug, Default)]
struct CommandQueue {
    /// Bytes that are still to be written.
    outgoing: Vec<u8>,
    /// Commands whose answers are not all taken yet, the oldest first.
    commands: VecDeque<CommandState>,
    /// How many of `commands` have an answer.
    answered: usize,
    /// How many commands were removed from the front of `commands`.
    before: u64,
    /// Wakes the task of the connection when there are bytes to write.
    driver: Option<Waker>,
    /// Since [`watch`] looked last, bytes have come, or the server was asked that owed nothing.
    heard: bool,
    /// Why the connection has ended.
    ended: Option<NoAnswer>,
}

#[derive(Debug)]
enum CommandState {
    Awaited(Option<Waker>),
    /// The caller no longer waits for the answer.
    Abandoned,
    Answered(Value),
    Done,
}

/// Waits for the answer of a command. If this is dropped, the server still runs the command.
#[derive(Debug)]
struct PendingAnswer<'w> {
    pipeline: &'w Pipeline,
    number: u64,
}

/// The connection's side: writes commands and reads answers.
struct PipelineDriver<S> {
    pipeline: Pipeline,
    stream: S,
    writing: Vec<u8>,
    written: usize,
    reading: BytesMut,
}

/// At least this much is read at once.
const READ: usize = 16 << 10;

/// A buffer larger than this is freed after use.
const KEPT: usize = 64 << 10;

/// So many commands of one connection are under way at once: enough for 100,000 a second where an answer takes 10 ms, and few
/// enough that the connections of many gateways do not fill the server with more than it answers within a timeout.
const UNDER_WAY: usize = 1_000;

impl Pipeline {
    /// A pipeline over this stream, which works while the future is polled. It ends when the server is silent for
    /// `timeout` although something was asked; `None`: it waits for ever.
    pub(in crate::store::redis) fn over<S: AsyncRead + AsyncWrite + Unpin>(
        stream: S,
        timeout: Option<Duration>,
    ) -> (Self, impl Future<Output = ()>) {
        let shared = Shared { queue: Mutex::default(), room: Semaphore::new(UNDER_WAY) };
        let pipeline = Self(Arc::new(shared));
        let mut driver = PipelineDriver {
            pipeline: pipeline.clone(),
            stream,
            writing: Vec::new(),
            written: 0,
            reading: BytesMut::with_capacity(READ),
        };
        (pipeline, async move {
            let pipeline = driver.pipeline.clone();
            let why = tokio::select! {
                // The socket is read before the watch looks. The error is not used: whatever it was, it is not known
                // which commands the server has run.
                biased;
                _ended = poll_fn(|context| driver.poll(context)) => NoAnswer::Closed,
                () = watch(&pipeline, timeout) => NoAnswer::Silent,
            };
            pipeline.close(why);
        })
    }

    /// Sends a command and waits for its answer without a timeout. The answer may be an error.
    pub(in crate::store::redis) async fn send(&self, command: &Cmd) -> Result<Value, NoAnswer> {
        self.send_together(&[command]).await
    }

    /// Sends commands without a command of another caller in between, and waits for the answer to the last one.
    pub(in crate::store::redis) async fn send_together(&self, commands: &[&Cmd]) -> Result<Value, NoAnswer> {
        let permits = u32::try_from(commands.len()).unwrap_or(u32::MAX);
        match self.0.room.try_acquire_many(permits) {
            Ok(room) => room.forget(),
            // Boxed, so that the future of a decision stays small.
            Err(_) => Box::pin(self.0.room.acquire_many(permits)).await.map_err(|_| NoAnswer::NotSent)?.forget(),
        }
        self.ask(commands).await
    }

    fn ask(&self, commands: &[&Cmd]) -> PendingAnswer<'_> {
        let mut queue = self.0.queue.lock();
        if queue.outgoing.is_empty()
            && let Some(driver) = &queue.driver
        {
            driver.wake_by_ref();
        }
        queue.heard |= !queue.is_asked();
        for command in commands {
            command.write_packed_command(&mut queue.outgoing);
            queue.commands.push_back(CommandState::Abandoned);
        }
        if let Some(last) = queue.commands.back_mut() {
            *last = CommandState::Awaited(None);
        }
        PendingAnswer { pipeline: self, number: queue.before + queue.commands.len() as u64 - 1 }
    }

    fn close(&self, why: NoAnswer) {
        self.0.room.close();
        let mut queue = self.0.queue.lock();
        queue.ended = Some(why);
        for command in &mut queue.commands {
            if let CommandState::Awaited(Some(caller)) = command {
                caller.wake_by_ref();
            }
        }
    }
}

impl Future for PendingAnswer<'_> {
    type Output = Result<Value, NoAnswer>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<Value, NoAnswer>> {
        let mut queue = self.pipeline.0.queue.lock();
        let ended = queue.ended;
        let Some(command) = queue.command(self.number) else { return Poll::Ready(Err(NoAnswer::Closed)) };
        match command {
            CommandState::Answered(value) => {
                let value = mem::take(value);
                *command = CommandState::Done;
                queue.trim();
                Poll::Ready(Ok(value))
            }
            CommandState::Awaited(caller) => {
                if let Some(why) = ended {
                    return Poll::Ready(Err(why));
                }
                caller.get_or_insert_with(|| context.waker().clone()).clone_from(context.waker());
                Poll::Pending
            }
            CommandState::Abandoned | CommandState::Done => Poll::Ready(Err(NoAnswer::Closed)),
        }
    }
}

impl Drop for PendingAnswer<'_> {
    fn drop(&mut self) {
        let mut queue = self.pipeline.0.queue.lock();
        let Some(command) = queue.command(self.number) else { return };
        *command =
            if matches!(command, CommandState::Awaited(_)) { CommandState::Abandoned } else { CommandState::Done };
        queue.trim();
    }
}

impl CommandQueue {
    /// Whether the server owes an answer, whoever may wait for it.
    fn is_asked(&self) -> bool {
        self.answered < self.commands.len()
    }

    /// `None`: the answer was taken.
    fn command(&mut self, number: u64) -> Option<&mut CommandState> {
        let place = usize::try_from(number.checked_sub(self.before)?).ok()?;
        self.commands.get_mut(place)
    }

    /// Hands out the next answer.
    fn answer(&mut self, value: Value) -> io::Result<()> {
        let unasked = || io::Error::new(io::ErrorKind::InvalidData, "an answer without a command");
        let command = self.commands.get_mut(self.answered).ok_or_else(unasked)?;
        *command = match mem::replace(command, CommandState::Done) {
            CommandState::Awaited(caller) => {
                if let Some(caller) = caller {
                    caller.wake();
                }
                CommandState::Answered(value)
            }
            CommandState::Abandoned | CommandState::Answered(_) | CommandState::Done => CommandState::Done,
        };
        self.answered += 1;
        self.trim();
        Ok(())
    }

    fn trim(&mut self) {
        while let Some(CommandState::Done) = self.commands.front() {
            self.commands.pop_front();
            self.before += 1;
            self.answered -= 1;
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> PipelineDriver<S> {
    /// Ready when the connection has ended.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.register(context);
        loop {
            if let Poll::Ready(Err(error)) = self.poll_write(context) {
                return Poll::Ready(Err(error));
            }
            self.reading.reserve(READ);
            let read = pin!(self.stream.read_buf(&mut self.reading)).poll(context);
            if ready!(read)? == 0 {
                return Poll::Ready(Ok(()));
            }
            self.hand_out()?;
        }
    }

    /// Makes callers wake this task.
    fn register(&self, context: &Context<'_>) {
        let mut queue = self.pipeline.0.queue.lock();
        match &mut queue.driver {
            Some(known) => known.clone_from(context.waker()),
            none => *none = Some(context.waker().clone()),
        }
    }

    fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            if self.written == self.writing.len() {
                self.written = 0;
                self.writing.clear();
                if self.writing.capacity() > KEPT {
                    self.writing = Vec::new();
                }
                mem::swap(&mut self.writing, &mut self.pipeline.0.queue.lock().outgoing);
                if self.writing.is_empty() {
                    return Pin::new(&mut self.stream).poll_flush(context);
                }
            }
            let rest = &self.writing[self.written..];
            match ready!(Pin::new(&mut self.stream).poll_write(context, rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                length => self.written += length,
            }
        }
    }

    fn hand_out(&mut self) -> io::Result<()> {
        let mut queue = self.pipeline.0.queue.lock();
        queue.heard = true;
        let mut answers = 0;
        while let Some((value, length)) = reply::first(&self.reading)? {
            self.reading.advance(length);
            queue.answer(value)?;
            answers += 1;
        }
        drop(queue);
        self.pipeline.0.room.add_permits(answers);
        Ok(())
    }
}

/// Waits until the server has brought no byte for `timeout` while it owed an answer. It runs in the task of the driver, after
/// it: the socket has been read whenever this looks.
async fn watch(pipeline: &Pipeline, timeout: Option<Duration>) {
    let Some(timeout) = timeout else { return pending().await };
    let mut silent = Duration::ZERO;
    while silent < timeout {
        // Whoever asks wakes the driver, and so this.
        poll_fn(|_| if pipeline.0.queue.lock().is_asked() { Poll::Ready(()) } else { Poll::Pending }).await;
        let seen = step(timeout).await;
        let mut queue = pipeline.0.queue.lock();
        let begins_anew = mem::take(&mut queue.heard) || !queue.is_asked();
        silent = if begins_anew { Duration::ZERO } else { silent + seen };
    }
}

#[cfg(test)]
mod tests;
