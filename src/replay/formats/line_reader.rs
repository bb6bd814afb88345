//! Reads the lines of one file, whose format its first line that can be read decides.

use std::borrow::Cow;

use super::FieldNames;
use super::LineFormat;
use super::LogFormat;
use super::LogLine;
use super::format::ReadState;
use super::pieces::JoinedLine;
use super::pieces::Pieces;
use super::prefix;

/// Reads the lines of one file.
#[derive(Debug)]
pub struct LineReader {
    candidates: Vec<LineFormat>,
    /// `None`: no line could be read yet.
    pub format: Option<LineFormat>,
    state: ReadState,
    pieces: Pieces,
}

/// What a line was.
#[derive(Debug, PartialEq)]
pub enum LineContent<'l> {
    Line(LogLine),
    /// A piece of a line, which is read with its last piece.
    Piece,
    /// With its text, without what stands around it, and joined where it was in pieces.
    Unreadable(Cow<'l, [u8]>),
}

impl LineReader {
    pub fn new(format: LogFormat, fields: &FieldNames) -> Self {
        let mut candidates = format.candidates().to_vec();
        if fields.is_any_named() && format == LogFormat::Auto {
            // Whoever names fields has lines that no other format shall take.
            candidates.insert(0, LineFormat::Json);
        }
        let state = ReadState { fields: fields.clone(), ..ReadState::default() };
        Self { candidates, format: None, state, pieces: Pieces::default() }
    }

    /// Reads one line, without its end, as it is or within what syslog and containers write around it.
    pub fn read<'l>(&mut self, line: &'l [u8]) -> LineContent<'l> {
        self.read_within(line, MOST_LAYERS)
    }

    /// Reads a line whose last piece is not in the file. `None`: there is none.
    pub fn rest(&mut self) -> Option<LineContent<'static>> {
        self.pieces.rest().map(|line| self.read_joined(line, MOST_LAYERS - 1))
    }

    fn read_within<'l>(&mut self, line: &'l [u8], layers: usize) -> LineContent<'l> {
        if let Some(read) = self.read_bare(line) {
            return LineContent::Line(read);
        }
        let layer = if layers > 0 { prefix::without(line) } else { None };
        let Some(layer) = layer else { return LineContent::Unreadable(Cow::Borrowed(line)) };
        match self.pieces.join(layer) {
            None => LineContent::Piece,
            Some(joined) => self.read_joined(joined, layers - 1),
        }
    }

    fn read_joined<'l>(&mut self, line: JoinedLine<'l>, layers: usize) -> LineContent<'l> {
        if line.is_too_long {
            return LineContent::Unreadable(line.text);
        }
        match line.text {
            Cow::Borrowed(text) => self.read_within(text, layers),
            Cow::Owned(text) => match self.read_within(&text, layers) {
                LineContent::Line(read) => LineContent::Line(read),
                LineContent::Piece => LineContent::Piece,
                LineContent::Unreadable(_) => LineContent::Unreadable(Cow::Owned(text)),
            },
        }
    }

    fn read_bare(&mut self, line: &[u8]) -> Option<LogLine> {
        if let Some(format) = self.format {
            return format.read(line, &mut self.state);
        }
        let state = &mut self.state;
        let (format, read) = self.candidates.iter().find_map(|format| Some((*format, format.read(line, state)?)))?;
        self.format = Some(format);
        Some(read)
    }
}

/// As syslog within the log of a container.
const MOST_LAYERS: usize = 2;
