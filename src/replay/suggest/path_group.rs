//! Paths of one shape, as a pattern of the configuration.

use std::fmt;

/// Paths of one shape.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct PathGroup {
    /// `None`: any segment.
    pub(super) segments: Vec<Option<Box<str>>>,
    /// More segments may follow.
    pub(super) is_open: bool,
}

impl PathGroup {
    /// How much it matches: least first.
    pub(super) fn width(&self) -> (bool, usize) {
        (self.is_open, self.segments.iter().filter(|segment| segment.is_none()).count())
    }
}

/// As a pattern of the configuration.
impl fmt::Display for PathGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut captures = 0;
        for segment in &self.segments {
            if let Some(name) = segment {
                write!(f, "/{name}")?;
            } else {
                captures += 1;
                let number = if captures == 1 { String::new() } else { captures.to_string() };
                write!(f, "/{{id{number}}}")?;
            }
        }
        match (self.segments.is_empty(), self.is_open) {
            (_, true) => f.write_str("/*"),
            (true, false) => f.write_str("/"),
            (false, false) => Ok(()),
        }
    }
}
