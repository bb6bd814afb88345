//! Hostile requests as data: what is sent, what the client gets, and which bytes the application gets.

mod bodies;
mod fields;
mod framing;
mod heads;

/// One hostile request.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) sent: Vec<u8>,
    pub(crate) outcome: Outcome,
    /// What follows it on its connection belongs to it: it says that there is more than there is.
    pub(crate) is_open_ended: bool,
}

/// What comes of it. Bytes at the application are all but the lines that the gateway writes into every request, the
/// other fields in alphabetical order.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Outcome {
    /// This status, nothing at the application, and the end of the connection.
    Refused(u16),
    /// 200, exactly these bytes at the application, and the connection stays open.
    Passes(&'static str),
    /// As before, but the connection ends with the answer.
    PassesLast(&'static str),
    /// Its body breaks under way, when the application has these bytes: this status, never a whole request at the
    /// application, and the end of both connections.
    Breaks(u16, &'static str),
}

impl Row {
    /// What is sent before the application must have got something, and what is sent then.
    pub(crate) fn parts(&self) -> (&[u8], &[u8]) {
        let breaks = matches!(self.outcome, Outcome::Breaks(..));
        let first = if breaks { memchr::memmem::find(&self.sent, FIRST_CHUNK) } else { None };
        self.sent.split_at(first.map_or(self.sent.len(), |start| start + FIRST_CHUNK.len()))
    }

    pub(crate) fn open_ended(mut self) -> Self {
        self.is_open_ended = true;
        self
    }
}

/// With which every body begins that breaks.
pub(crate) const FIRST_CHUNK: &[u8] = b"3\r\nabc\r\n";

pub(crate) fn refused(name: &'static str, sent: impl AsRef<[u8]>, status: u16) -> Row {
    row(name, sent, Outcome::Refused(status))
}

pub(crate) fn passes(name: &'static str, sent: impl AsRef<[u8]>, arrives: &'static str) -> Row {
    row(name, sent, Outcome::Passes(arrives))
}

pub(crate) fn passes_last(name: &'static str, sent: impl AsRef<[u8]>, arrives: &'static str) -> Row {
    row(name, sent, Outcome::PassesLast(arrives))
}

pub(crate) fn breaks(name: &'static str, sent: impl AsRef<[u8]>, status: u16, starts: &'static str) -> Row {
    row(name, sent, Outcome::Breaks(status, starts))
}

fn row(name: &'static str, sent: impl AsRef<[u8]>, outcome: Outcome) -> Row {
    Row { name, sent: sent.as_ref().to_vec(), outcome, is_open_ended: false }
}

/// Every row of the table.
pub(crate) fn rows() -> Vec<Row> {
    [heads::lines(), heads::targets(), heads::hosts(), framing::lengths(), framing::encodings()]
        .into_iter()
        .chain([bodies::chunks(), bodies::trailers(), fields::syntax(), fields::names(), fields::between_neighbours()])
        .flatten()
        .collect()
}
