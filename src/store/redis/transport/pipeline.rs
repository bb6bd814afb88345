//! One connection that many callers use at once: what they send goes out together, and what comes back is handed out in
//! order.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::pin::pin;
use std::sync::Arc;
use std::task::Context;
use std::task::Poll;
use std::task::Waker;
use std::task::ready;

use bytes::Buf;
use bytes::BytesMut;
use parking_lot::Mutex;
use redis::Cmd;
use redis::Value;
use tokio::io::AsyncRead;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWrite;

use super::reply;

/// What callers have of a connection; clones are the same one.
#[derive(Clone, Debug, Default)]
pub(in crate::store::redis) struct Pipeline(Arc<Mutex<Queue>>);

/// What callers hand to the connection, and it to them. No one holds the lock across an await.
#[derive(Debug, Default)]
struct Queue {
    /// What is still to be written.
    outgoing: Vec<u8>,
    /// Commands whose answers were not all taken, oldest first.
    commands: VecDeque<Command>,
    /// How many of `commands` are answered.
    answered: usize,
    /// How many commands came before those in `commands`.
    before: u64,
    /// Woken when there is something to write.
    driver: Option<Waker>,
    is_closed: bool,
}

#[derive(Debug)]
enum Command {
    Awaited(Option<Waker>),
    /// The caller does not wait for the answer any more.
    Abandoned,
    Answered(Value),
    Done,
}

/// The answer to come of a command. Dropped, the command is executed all the same.
#[derive(Debug)]
struct Answer<'w> {
    pipeline: &'w Pipeline,
    number: u64,
}

/// The side of the connection.
struct Driver<S> {
    pipeline: Pipeline,
    stream: S,
    writing: Vec<u8>,
    written: usize,
    reading: BytesMut,
}

/// As much is read at once.
const READ: usize = 16 << 10;

/// A buffer that had to hold more than this is given back afterwards.
const KEPT: usize = 64 << 10;

impl Pipeline {
    /// Over this stream, which is served for as long as the future is polled.
    pub(in crate::store::redis) fn over<S: AsyncRead + AsyncWrite + Unpin>(
        stream: S,
    ) -> (Self, impl Future<Output = ()>) {
        let pipeline = Self::default();
        let mut driver = Driver {
            pipeline: pipeline.clone(),
            stream,
            writing: Vec::new(),
            written: 0,
            reading: BytesMut::with_capacity(READ),
        };
        (pipeline, async move {
            // Why it ended is of no interest: nobody knows what became of what was asked.
            let _ended = poll_fn(|context| driver.poll(context)).await;
            driver.pipeline.close();
        })
    }

    /// Sends a command and waits for its answer, however long that takes. An answer may be an error.
    pub(in crate::store::redis) async fn send(&self, command: &Cmd) -> io::Result<Value> {
        self.ask(&[command]).await
    }

    /// Sends commands between which no other caller's can come, and waits for the answer to the last one.
    pub(in crate::store::redis) async fn send_together(&self, commands: &[&Cmd]) -> io::Result<Value> {
        self.ask(commands).await
    }

    fn ask(&self, commands: &[&Cmd]) -> Answer<'_> {
        let mut queue = self.0.lock();
        if queue.outgoing.is_empty()
            && let Some(driver) = &queue.driver
        {
            driver.wake_by_ref();
        }
        for command in commands {
            command.write_packed_command(&mut queue.outgoing);
            queue.commands.push_back(Command::Abandoned);
        }
        if let Some(last) = queue.commands.back_mut() {
            *last = Command::Awaited(None);
        }
        Answer { pipeline: self, number: queue.before + queue.commands.len() as u64 - 1 }
    }

    fn close(&self) {
        let mut queue = self.0.lock();
        queue.is_closed = true;
        for command in &mut queue.commands {
            if let Command::Awaited(Some(caller)) = command {
                caller.wake_by_ref();
            }
        }
    }
}

impl Future for Answer<'_> {
    type Output = io::Result<Value>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<Value>> {
        let mut queue = self.pipeline.0.lock();
        let is_closed = queue.is_closed;
        let Some(command) = queue.command(self.number) else { return Poll::Ready(Err(gone())) };
        match command {
            Command::Answered(value) => {
                let value = std::mem::take(value);
                *command = Command::Done;
                queue.trim();
                Poll::Ready(Ok(value))
            }
            Command::Awaited(_) if is_closed => Poll::Ready(Err(gone())),
            Command::Awaited(caller) => {
                caller.get_or_insert_with(|| context.waker().clone()).clone_from(context.waker());
                Poll::Pending
            }
            Command::Abandoned | Command::Done => Poll::Ready(Err(gone())),
        }
    }
}

impl Drop for Answer<'_> {
    fn drop(&mut self) {
        let mut queue = self.pipeline.0.lock();
        let Some(command) = queue.command(self.number) else { return };
        *command = if matches!(command, Command::Awaited(_)) { Command::Abandoned } else { Command::Done };
        queue.trim();
    }
}

impl Queue {
    /// `None`: its answer was taken.
    fn command(&mut self, number: u64) -> Option<&mut Command> {
        let place = usize::try_from(number.checked_sub(self.before)?).ok()?;
        self.commands.get_mut(place)
    }

    /// Hands the next answer out.
    fn answer(&mut self, value: Value) -> io::Result<()> {
        let unasked = || io::Error::new(io::ErrorKind::InvalidData, "an answer to nothing");
        let command = self.commands.get_mut(self.answered).ok_or_else(unasked)?;
        *command = match std::mem::replace(command, Command::Done) {
            Command::Awaited(caller) => {
                if let Some(caller) = caller {
                    caller.wake();
                }
                Command::Answered(value)
            }
            Command::Abandoned | Command::Answered(_) | Command::Done => Command::Done,
        };
        self.answered += 1;
        self.trim();
        Ok(())
    }

    fn trim(&mut self) {
        while let Some(Command::Done) = self.commands.front() {
            self.commands.pop_front();
            self.before += 1;
            self.answered -= 1;
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Driver<S> {
    /// Ready when there is nobody at the other end.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.note(context);
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

    /// From now on callers wake this task.
    fn note(&self, context: &Context<'_>) {
        let mut queue = self.pipeline.0.lock();
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
                std::mem::swap(&mut self.writing, &mut self.pipeline.0.lock().outgoing);
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
        let mut queue = self.pipeline.0.lock();
        while let Some((value, length)) = reply::first(&self.reading)? {
            self.reading.advance(length);
            queue.answer(value)?;
        }
        Ok(())
    }
}

fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "the server closed the connection")
}

#[cfg(test)]
mod tests;
