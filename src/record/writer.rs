//! Lines for a slow reader from threads that must not wait: buffers per core, one thread that writes them out.

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

/// Gathers lines and writes them in the background. What does not fit is dropped and counted, never waited for.
#[derive(Debug)]
pub struct LineWriter {
    buffers: Vec<Buffer>,
    dropped: AtomicU64,
    /// Whether the writing thread waits to be woken; whoever finds it so wakes it.
    asleep: AtomicBool,
    rounds: Mutex<Rounds>,
    wake: Condvar,
    written: Condvar,
}

/// On a cache line of its own, or cores would slow each other down.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Buffer(Mutex<Vec<u8>>);

/// What the writing thread and those who wait for it tell each other.
#[derive(Debug, Default)]
struct Rounds {
    /// A round writes all that was appended before it began.
    finished: u64,
    /// Up to this one there is no pause between rounds.
    wanted: u64,
}

/// Of one buffer: beyond it the reader has stopped reading.
const MAX_BUFFERED: usize = 2 * 1024 * 1024;
/// Of an empty buffer: a burst does not keep its memory for ever.
const MAX_KEPT: usize = 256 * 1024;
const BUFFERS: usize = 16;
/// How long lines are gathered before they are written together.
const GATHERING: Duration = Duration::from_millis(10);

impl LineWriter {
    /// Starts the thread that writes to `out`. It ends when nobody else holds the writer.
    pub fn start(out: impl Write + Send + 'static) -> std::io::Result<Arc<Self>> {
        let lines = Arc::new(Self::detached());
        let writer = Arc::downgrade(&lines);
        thread::Builder::new().name("lines".to_owned()).spawn(move || write_out(&writer, out))?;
        Ok(lines)
    }

    /// One that nobody writes out.
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

    /// Appends what `write` puts at the end, whole lines only.
    pub fn append(&self, write: impl FnOnce(&mut Vec<u8>)) {
        let mut buffer = self.buffers[home()].0.lock();
        if buffer.len() >= MAX_BUFFERED {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        write(&mut buffer);
        drop(buffer);
        if self.asleep.load(Ordering::SeqCst) && self.asleep.swap(false, Ordering::SeqCst) {
            // Under the lock, so that the wake-up cannot fall between the writer's last look and its sleep.
            let _rounds = self.rounds.lock();
            self.wake.notify_one();
        }
    }

    /// Waits until everything appended so far is written, `at_most` so long.
    pub fn flush(&self, at_most: Duration) {
        let mut rounds = self.rounds.lock();
        // The round under way may have begun before the last line: only the one after it is sure to have seen it.
        let enough = rounds.finished + 2;
        rounds.wanted = rounds.wanted.max(enough);
        self.asleep.store(false, Ordering::SeqCst);
        self.wake.notify_one();
        self.written.wait_while_for(&mut rounds, |rounds| rounds.finished < enough, at_most);
    }

    /// How many lines nobody read in time.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Takes what has gathered in one buffer, leaving `spare` in its place.
    fn take(&self, index: usize, spare: &mut Vec<u8>) {
        let mut buffer = self.buffers[index].0.lock();
        mem::swap(&mut *buffer, spare);
    }

    fn is_empty(&self) -> bool {
        self.buffers.iter().all(|buffer| buffer.0.lock().is_empty())
    }

    /// Pauses until the next round is due: soon after a round that wrote something, else when there is a line.
    fn pause(&self, idle: bool) {
        let mut rounds = self.rounds.lock();
        rounds.finished += 1;
        self.written.notify_all();
        if rounds.finished < rounds.wanted {
            return;
        }
        if !idle {
            self.wake.wait_for(&mut rounds, GATHERING);
            return;
        }
        // Whoever appends after this store wakes us; what was appended before it is seen by `is_empty`.
        self.asleep.store(true, Ordering::SeqCst);
        if self.is_empty() {
            self.wake.wait_while_for(&mut rounds, |_| self.asleep.load(Ordering::SeqCst), LONGEST_SLEEP);
        }
        self.asleep.store(false, Ordering::SeqCst);
    }
}

/// So that the thread notices when nobody is left who could wake it.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

fn write_out(lines: &Weak<LineWriter>, mut out: impl Write) {
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

/// The buffer of this thread, the same one always.
fn home() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static HOME: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    HOME.with(|home| {
        if home.get() == usize::MAX {
            home.set(NEXT.fetch_add(1, Ordering::Relaxed) % BUFFERS);
        }
        home.get()
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
    fn a_line_after_a_long_silence_is_written_without_being_asked_for() {
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
    fn what_nobody_reads_is_dropped_and_counted() {
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
