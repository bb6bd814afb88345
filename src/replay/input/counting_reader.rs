//! Counts the bytes of a file that were read, for the progress.

use std::cell::Cell;
use std::io;
use std::io::Read;
use std::rc::Rc;

#[derive(Debug)]
pub(super) struct CountingReader<R> {
    input: R,
    read: Rc<Cell<u64>>,
}

impl<R> CountingReader<R> {
    /// Adds to `read`.
    pub(super) fn new(input: R, read: Rc<Cell<u64>>) -> Self {
        Self { input, read }
    }
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.input.read(buffer)?;
        self.read.set(self.read.get() + length as u64);
        Ok(length)
    }
}
