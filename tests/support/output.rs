//! What a program prints.

use std::io::{BufRead, BufReader, Read};
use std::sync::{Arc, Mutex};
use std::thread;
use std::thread::JoinHandle;

/// The lines that come from a pipe, collected while the program runs.
#[derive(Debug)]
pub(super) struct Output {
    lines: Arc<Mutex<Vec<String>>>,
    reader: JoinHandle<()>,
}

impl Output {
    pub(super) fn of(pipe: impl Read + Send + 'static) -> Self {
        let lines = Arc::default();
        let sink: Arc<Mutex<Vec<String>>> = Arc::clone(&lines);
        let reader = thread::spawn(move || {
            for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                sink.lock().expect("no panic here").push(line);
            }
        });
        Self { lines, reader }
    }

    pub(super) fn lines(&self) -> Vec<String> {
        self.lines.lock().expect("no panic here").clone()
    }

    /// Whether no process has the other end of the pipe any more: a process that the program started may outlive it.
    pub(super) fn has_ended(&self) -> bool {
        self.reader.is_finished()
    }
}
