//! Reads the lines of one file, whose format its first line that can be read decides.

use super::FieldNames;
use super::LineFormat;
use super::LogFormat;
use super::LogLine;
use super::format::ReadState;
use super::prefix;

/// Reads the lines of one file.
#[derive(Debug)]
pub struct LineReader {
    candidates: Vec<LineFormat>,
    /// `None`: no line could be read yet.
    pub format: Option<LineFormat>,
    state: ReadState,
}

impl LineReader {
    pub fn new(format: LogFormat, fields: &FieldNames) -> Self {
        let mut candidates = format.candidates().to_vec();
        if fields.is_any_named() && format == LogFormat::Auto {
            // Whoever names fields has lines that no other format shall take.
            candidates.insert(0, LineFormat::Json);
        }
        Self { candidates, format: None, state: ReadState { fields: fields.clone(), ..ReadState::default() } }
    }

    /// Reads one line, without its end, as it is or within what syslog and containers write around it.
    pub fn read(&mut self, line: &[u8]) -> Option<LogLine> {
        if let Some(read) = self.read_bare(line) {
            return Some(read);
        }
        let inner = prefix::without(line)?;
        self.read_bare(&inner).or_else(|| {
            let innermost = prefix::without(&inner)?;
            self.read_bare(&innermost)
        })
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
