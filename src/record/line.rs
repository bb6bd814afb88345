//! Writes the parts of a log line: JSON without an intermediate value, and text that is safe on a terminal.

use std::cell::Cell;
use std::fmt::Display;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use std::{mem, thread};

use parking_lot::{Condvar, Mutex};

use crate::record::log::LogFailure;
use crate::words::clock::Timestamp;
use crate::words::digits::{HEX_PAIRS, push_decimal, three_digits};

/// A one in each byte.
const ONES: u64 = u64::MAX / 255;

const HIGH_BITS: u64 = ONES << 7;

#[inline]
pub(in crate::record) fn raw(line: &mut Vec<u8>, text: &str) {
    line.extend_from_slice(text.as_bytes());
}

pub(in crate::record) fn put(line: &mut Vec<u8>, value: impl Display) {
    write!(line, "{value}").expect("writing to a vector does not fail");
}

/// Text as a JSON string.
#[inline]
pub(in crate::record) fn quoted(line: &mut Vec<u8>, value: &str) {
    line.push(b'"');
    escaped(line, value);
    line.push(b'"');
}

/// Text within a JSON string.
pub(in crate::record) fn escaped(line: &mut Vec<u8>, value: &str) {
    if any(value.as_bytes(), need_escape) {
        escape(line, value);
    } else {
        raw(line, value);
    }
}

/// Bytes within a JSON string. They need not be UTF-8.
pub(in crate::record) fn escaped_bytes(line: &mut Vec<u8>, value: &[u8]) {
    if !any(value, |word| need_escape(word) | not_ascii(word)) {
        return line.extend_from_slice(value);
    }
    for part in value.utf8_chunks() {
        escaped(line, part.valid());
        if !part.invalid().is_empty() {
            raw(line, "\u{fffd}");
        }
    }
}

/// Text in which control characters are escaped, so that it cannot move a terminal's cursor or begin another line.
pub(in crate::record) fn plain(line: &mut Vec<u8>, text: &str) {
    if any(text.as_bytes(), |word| below(word, b' ') | equal(word, 0x7f) | not_ascii(word)) {
        put(line, text.escape_debug());
    } else {
        raw(line, text);
    }
}

#[cold]
fn escape(line: &mut Vec<u8>, value: &str) {
    let mut rest = value.as_bytes();
    while let Some(at) = rest.iter().position(|byte| matches!(byte, 0..b' ' | b'"' | b'\\')) {
        line.extend_from_slice(&rest[..at]);
        let short = match rest[at] {
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0x08 => b'b',
            0x0c => b'f',
            byte @ (b'"' | b'\\') => byte,
            _ => b'u',
        };
        line.extend_from_slice(&[b'\\', short]);
        if short == b'u' {
            raw(line, "00");
            line.extend_from_slice(&HEX_PAIRS[usize::from(rest[at])]);
        }
        rest = &rest[at + 1..];
    }
    line.extend_from_slice(rest);
}

/// Whether `find` sees a byte that it looks for. It gets eight at once, and sets the highest bit of each that it finds.
#[inline]
fn any(bytes: &[u8], find: impl Fn(u64) -> u64) -> bool {
    let find = |word: [u8; 8]| find(u64::from_le_bytes(word)) & HIGH_BITS;
    // The last chunk may overlap the others, which is cheaper than looking at single bytes.
    if let Some(last) = bytes.last_chunk() {
        let (words, _) = bytes.as_chunks();
        return words.iter().fold(find(*last), |found, word| found | find(*word)) != 0;
    }
    if let (Some(&[a, b, c, d]), Some(&[w, x, y, z])) = (bytes.first_chunk(), bytes.last_chunk()) {
        return find([a, b, c, d, w, x, y, z]) != 0;
    }
    match *bytes {
        [] => false,
        [first, .., last] => find([first, bytes[1], last, b' ', b' ', b' ', b' ', b' ']) != 0,
        [only] => find([only, b' ', b' ', b' ', b' ', b' ', b' ', b' ']) != 0,
    }
}

/// Bytes that need an escape within a JSON string.
#[inline]
fn need_escape(word: u64) -> u64 {
    (below(word, b' ') | equal(word, b'"') | equal(word, b'\\')) & !word
}

#[inline]
fn not_ascii(word: u64) -> u64 {
    word
}

/// Marks ASCII bytes below a bound. The byte after such a byte may be marked too, which does not matter: one is there
/// anyway.
#[inline]
fn below(word: u64, bound: u8) -> u64 {
    word.wrapping_sub(ONES * u64::from(bound))
}

/// Marks ASCII bytes that are equal to this one.
#[inline]
fn equal(word: u64, byte: u8) -> u64 {
    below(word ^ (ONES * u64::from(byte)), 1)
}

// Times and spans of a line.

/// The length of `2026-11-21T07:58:52`.
const TO_THE_SECOND: usize = 19;

/// Milliseconds with three decimals, as a number.
pub(in crate::record) fn millis(line: &mut Vec<u8>, duration: Duration) {
    let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    push_decimal(line, micros / 1000);
    let [hundreds, tens, ones] = three_digits(micros);
    line.extend_from_slice(&[b'.', hundreds, tens, ones]);
}

/// RFC 3339 in UTC, to the millisecond. The part down to the second is formatted once a second.
pub(in crate::record) fn time(line: &mut Vec<u8>, at: Timestamp) {
    thread_local! {
        static SECOND: Cell<(u64, [u8; TO_THE_SECOND])> = const { Cell::new((u64::MAX, [0; TO_THE_SECOND])) };
    }
    let millis = at.as_micros() / 1000;
    let (mut second, mut text) = SECOND.get();
    if second != millis / 1000 {
        second = millis / 1000;
        let whole = Timestamp::from_micros(second * 1_000_000).to_string();
        text = *whole.as_bytes().first_chunk().expect("it has a fraction, or more digits than any date");
        SECOND.set((second, text));
    }
    line.extend_from_slice(&text);
    let [hundreds, tens, ones] = three_digits(millis);
    line.extend_from_slice(&[b'.', hundreds, tens, ones, b'Z']);
}

/// Nanoseconds since 1970 as text, as OpenTelemetry writes them: JSON numbers need not hold 64 bits.
pub(in crate::record) fn nanos(line: &mut Vec<u8>, at: Timestamp) {
    line.push(b'"');
    push_decimal(line, at.as_micros());
    line.extend_from_slice(b"000\"");
}

// Takes lines from threads that must not wait, and writes them from a thread of its own.

/// The most bytes in one buffer. A reader that lets it fill up has stopped reading.
const MAX_BUFFERED: usize = 2 * 1024 * 1024;

/// So much memory an empty buffer may always keep.
const MAX_KEPT: usize = 256 * 1024;

const BUFFERS: usize = 16;

/// How long lines are buffered before they are written together.
const WRITE_INTERVAL: Duration = Duration::from_millis(10);

/// After this time the thread checks whether the writer still has a holder.
const MAX_SLEEP: Duration = Duration::from_secs(1);

/// Buffers lines and writes them in the background. Lines that do not fit are dropped and counted.
#[derive(Debug)]
pub struct LineWriter {
    buffers: Vec<Buffer>,
    dropped: AtomicU64,
    /// Whether the writing thread sleeps. A thread that appends a line then wakes it.
    asleep: AtomicBool,
    rounds: Mutex<Rounds>,
    /// Why the last lines could not be written.
    failure: Mutex<Option<LogFailure>>,
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
            failure: Mutex::default(),
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

    /// Why lines are lost: the last ones could not be written.
    pub(in crate::record) fn failure(&self) -> Option<LogFailure> {
        self.failure.lock().clone()
    }

    /// Writes the lines of every buffer. `swap_buffer` is an empty buffer. `true`: there was nothing.
    fn write_round(&self, swap_buffer: &mut Vec<u8>, mut out: impl Write) -> bool {
        let mut idle = true;
        for index in 0..BUFFERS {
            self.take(index, swap_buffer);
            if swap_buffer.is_empty() {
                continue;
            }
            idle = false;
            let written = out.write_all(swap_buffer).and_then(|()| out.flush());
            if written.is_err() {
                let lost = memchr::memchr_iter(b'\n', swap_buffer).count();
                self.dropped.fetch_add(u64::try_from(lost).unwrap_or(u64::MAX), Ordering::Relaxed);
            }
            let mut failure = self.failure.lock();
            *failure = written.err().map(|error| failure.take().unwrap_or_else(|| LogFailure::of(&error)));
            clear(swap_buffer);
        }
        if idle {
            clear(swap_buffer);
        }
        idle
    }

    /// Swaps one buffer with `swap_buffer`. An empty buffer keeps its memory: the threads that append are always the same, and
    /// need not ask for memory again.
    fn take(&self, index: usize, swap_buffer: &mut Vec<u8>) {
        let mut buffer = self.buffers[index].0.lock();
        if buffer.is_empty() {
            clear(&mut buffer);
        } else {
            mem::swap(&mut *buffer, swap_buffer);
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

fn write_lines(lines: &Weak<LineWriter>, mut out: impl Write) {
    let mut swap_buffer = Vec::new();
    while let Some(lines) = lines.upgrade() {
        let idle = lines.write_round(&mut swap_buffer, &mut out);
        lines.pause(idle);
    }
}

/// Empties a buffer. It keeps the memory that it needs usually, and frees the memory of a burst that is over.
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
