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
/// The most memory of an empty buffer, so that a burst does not keep its memory for ever.
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

    /// Swaps one buffer with `spare`.
    fn take(&self, index: usize, spare: &mut Vec<u8>) {
        let mut buffer = self.buffers[index].0.lock();
        mem::swap(&mut *buffer, spare);
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
        let mut idle = true;
        for index in 0..BUFFERS {
            lines.take(index, &mut spare);
            if spare.is_empty() {
                continue;
            }
            idle = false;
            if out.write_all(&spare).and_then(|()| out.flush()).is_err() {
                let lost = memchr::memchr_iter(b'\n', &spare).count();
                lines.dropped.fetch_add(u64::try_from(lost).unwrap_or(u64::MAX), Ordering::Relaxed);
            }
            spare.clear();
            spare.shrink_to(MAX_KEPT);
        }
        lines.pause(idle);
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
mod tests {
    use super::*;

    #[test]
    fn every_line_is_written_whole_and_once() {
        let out = Shared::default();
        let lines = LineWriter::start(out.clone()).unwrap();
        thread::scope(|scope| {
            for thread in 0..4 {
                let lines = &lines;
                scope.spawn(move || {
                    for number in 0..1000 {
                        lines.append(|line| writeln!(line, "{thread} {number}").unwrap());
                    }
                });
            }
        });
        lines.flush(LONG);

        let written = out.0.lock();
        let mut found: Vec<&str> = std::str::from_utf8(&written).unwrap().lines().collect();
        found.sort_unstable();
        found.dedup();
        assert_eq!((found.len(), lines.dropped()), (4000, 0));
    }

    #[test]
    fn a_line_after_a_long_silence_is_written_without_a_flush() {
        let out = Shared::default();
        let lines = LineWriter::start(out.clone()).unwrap();
        lines.flush(LONG);
        lines.append(|line| line.extend_from_slice(b"late\n"));
        let mut waited = 0;
        while out.0.lock().is_empty() && waited < 1000 {
            thread::sleep(Duration::from_millis(5));
            waited += 1;
        }
        assert_eq!(&**out.0.lock(), b"late\n");
    }

    #[test]
    fn lines_that_are_not_read_are_dropped_and_counted() {
        let lines = LineWriter::detached();
        let line = vec![b'x'; MAX_BUFFERED];
        lines.append(|buffer| buffer.extend_from_slice(&line));
        lines.append(|_| panic!("there is no room for this one"));
        assert_eq!(lines.dropped(), 1);
    }

    const LONG: Duration = Duration::from_secs(30);

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
}
