//! Takes lines from threads that must not wait, and writes them from a thread of its own.

use std::cell::Cell;
use std::io::Write;
use std::mem;
use std::sync::Arc;
use std::sync::Weak;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use parking_lot::Condvar;
use parking_lot::Mutex;

/// Buffers lines and writes them in the background. Lines that do not fit are dropped and counted.
#[derive(Debug)]
pub struct LineWriter {
    buffers: Vec<Buffer>,
    dropped: AtomicU64,
    /// Whether the writing thread sleeps. A thread that appends a line then wakes it.
    asleep: AtomicBool,
    rounds: Mutex<Rounds>,
    wake: Condvar,
    written: Condvar,
}

/// On a cache line of its own, so that cores do not slow each other down.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Buffer(Mutex<Vec<u8>>);

/// Shared by the writing thread and the threads that wait in `flush`.
#[derive(Debug, Default)]
struct Rounds {
    /// How many rounds are finished. A round writes all lines that were appended before it began.
    finished: u64,
    /// The writing thread makes no pause before this round is finished.
    wanted: u64,
}

/// The most bytes in one buffer. A reader that lets it fill up has stopped reading.
const MAX_BUFFERED: usize = 2 * 1024 * 1024;
/// So much memory an empty buffer may always keep.
const MAX_KEPT: usize = 256 * 1024;
const BUFFERS: usize = 16;
/// How long lines are buffered before they are written together.
const WRITE_INTERVAL: Duration = Duration::from_millis(10);

impl LineWriter {
    /// Starts the thread that writes to `out`. It ends when the last holder drops the writer.
    pub fn start(out: impl Write + Send + 'static) -> std::io::Result<Arc<Self>> {
        let lines = Arc::new(Self::detached());
        let writer = Arc::downgrade(&lines);
        thread::Builder::new().name("lines".to_owned()).spawn(move || write_lines(&writer, out))?;
        Ok(lines)
    }

    /// A writer without a thread: its lines are never written.
    pub fn detached() -> Self {
        Self {
            buffers: (0..BUFFERS).map(|_| Buffer::default()).collect(),
            dropped: AtomicU64::new(0),
            asleep: AtomicBool::new(false),
            rounds: Mutex::new(Rounds::default()),
            wake: Condvar::new(),
            written: Condvar::new(),
        }
    }

    /// Appends what `write` adds, which must be whole lines.
    pub fn append(&self, write: impl FnOnce(&mut Vec<u8>)) {
        let mut buffer = self.buffers[buffer_of_this_thread()].0.lock();
        if buffer.len() >= MAX_BUFFERED {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        write(&mut buffer);
        drop(buffer);
        if self.asleep.load(Ordering::SeqCst) && self.asleep.swap(false, Ordering::SeqCst) {
            // Under the lock, so that the thread is not woken between its last check and its sleep.
            let _rounds = self.rounds.lock();
            self.wake.notify_one();
        }
    }

    /// Waits until everything appended so far is written, but no longer than `at_most`.
    pub fn flush(&self, at_most: Duration) {
        let mut rounds = self.rounds.lock();
        // The present round may have begun before the last line was appended. The round after it writes that line.
        let enough = rounds.finished + 2;
        rounds.wanted = rounds.wanted.max(enough);
        self.asleep.store(false, Ordering::SeqCst);
        self.wake.notify_one();
        self.written.wait_while_for(&mut rounds, |rounds| rounds.finished < enough, at_most);
    }

    /// How many lines were dropped because the reader was too slow.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Writes what every buffer has. `spare` is an empty buffer. `true`: there was nothing.
    fn write_round(&self, spare: &mut Vec<u8>, mut out: impl Write) -> bool {
        let mut idle = true;
        for index in 0..BUFFERS {
            self.take(index, spare);
            if spare.is_empty() {
                continue;
            }
            idle = false;
            if out.write_all(spare).and_then(|()| out.flush()).is_err() {
                let lost = memchr::memchr_iter(b'\n', spare).count();
                self.dropped.fetch_add(u64::try_from(lost).unwrap_or(u64::MAX), Ordering::Relaxed);
            }
            clear(spare);
        }
        if idle {
            clear(spare);
        }
        idle
    }

    /// Swaps one buffer with `spare`. An empty buffer keeps its memory: the threads that append are always the same, and
    /// need not ask for memory again.
    fn take(&self, index: usize, spare: &mut Vec<u8>) {
        let mut buffer = self.buffers[index].0.lock();
        if buffer.is_empty() {
            clear(&mut buffer);
        } else {
            mem::swap(&mut *buffer, spare);
        }
    }

    fn is_empty(&self) -> bool {
        self.buffers.iter().all(|buffer| buffer.0.lock().is_empty())
    }

    /// Pauses before the next round: shortly after a round that wrote something, else until a line is appended.
    fn pause(&self, idle: bool) {
        let mut rounds = self.rounds.lock();
        rounds.finished += 1;
        self.written.notify_all();
        if rounds.finished < rounds.wanted {
            return;
        }
        if !idle {
            self.wake.wait_for(&mut rounds, WRITE_INTERVAL);
            return;
        }
        // A thread that appends after this store wakes this one. Lines appended before it are seen by `is_empty`.
        self.asleep.store(true, Ordering::SeqCst);
        if self.is_empty() {
            self.wake.wait_while_for(&mut rounds, |_| self.asleep.load(Ordering::SeqCst), MAX_SLEEP);
        }
        self.asleep.store(false, Ordering::SeqCst);
    }
}

/// After this time the thread checks whether the writer still has a holder.
const MAX_SLEEP: Duration = Duration::from_secs(1);

fn write_lines(lines: &Weak<LineWriter>, mut out: impl Write) {
    let mut spare = Vec::new();
    while let Some(lines) = lines.upgrade() {
        let idle = lines.write_round(&mut spare, &mut out);
        lines.pause(idle);
    }
}

/// Empties a buffer. It keeps its memory while there is use for it, and not that of a burst that is over.
fn clear(buffer: &mut Vec<u8>) {
    let used = buffer.len();
    buffer.clear();
    if used < buffer.capacity() / 4 {
        buffer.shrink_to(MAX_KEPT.max(2 * used));
    }
}

/// The index of this thread's buffer, always the same one.
fn buffer_of_this_thread() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static INDEX: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    INDEX.with(|index| {
        if index.get() == usize::MAX {
            index.set(NEXT.fetch_add(1, Ordering::Relaxed) % BUFFERS);
        }
        index.get()
    })
}

#[cfg(test)]
mod tests;
