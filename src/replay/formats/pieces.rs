//! Joins the lines that containers write in pieces: Docker splits them after 16 KiB, and the runtimes of Kubernetes do too.

use std::borrow::Cow;
use std::mem;

use super::prefix::Layer;
use super::prefix::Stream;

/// The beginnings of lines whose rest has not come yet.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    output: Vec<u8>,
    errors: Vec<u8>,
}

/// A line, joined where it was in pieces.
#[derive(Debug)]
pub(super) struct JoinedLine<'l> {
    pub(super) text: Cow<'l, [u8]>,
    pub(super) is_too_long: bool,
}

impl Pieces {
    /// The line that ends with this layer. `None`: more of it follows.
    pub(super) fn join<'l>(&mut self, layer: Layer<'l>) -> Option<JoinedLine<'l>> {
        let Some(stream) = layer.stream else { return Some(JoinedLine::new(layer.text)) };
        let beginning = match stream {
            Stream::Output => &mut self.output,
            Stream::Errors => &mut self.errors,
        };
        if !layer.is_piece && beginning.is_empty() {
            return Some(JoinedLine::new(layer.text));
        }
        // One byte more than the bound tells that a line is longer.
        let room = MAX_LINE + 1 - beginning.len();
        beginning.extend_from_slice(&layer.text[..layer.text.len().min(room)]);
        (!layer.is_piece).then(|| JoinedLine::new(Cow::Owned(mem::take(beginning))))
    }

    /// A line whose rest did not come before the end of the file.
    pub(super) fn rest(&mut self) -> Option<JoinedLine<'static>> {
        let beginning = [&mut self.output, &mut self.errors].into_iter().find(|beginning| !beginning.is_empty())?;
        Some(JoinedLine::new(Cow::Owned(mem::take(beginning))))
    }
}

impl<'l> JoinedLine<'l> {
    fn new(text: Cow<'l, [u8]>) -> Self {
        let is_too_long = text.len() > MAX_LINE;
        Self { text, is_too_long }
    }
}

/// Longer than any line of a request within `max_header_bytes`.
pub(in crate::replay) const MAX_LINE: usize = 256 * 1024;
