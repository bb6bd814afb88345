//! One request of the generator.

use std::fmt;

/// A request that may hold the name in some reading.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Case {
    /// What follows the path: empty, or `?` and a query.
    pub(crate) query: Vec<u8>,
    /// Header lines without `Host` and `Content-Length`.
    pub(crate) lines: Vec<(&'static str, Vec<u8>)>,
    pub(crate) body: Vec<u8>,
    /// What is odd about it, for whoever looks at a failure.
    pub(crate) tricks: Vec<&'static str>,
}

impl Case {
    /// The request as it goes over the wire to this path.
    pub(crate) fn bytes(&self, path: &str) -> Vec<u8> {
        let mut bytes = self.head(path);
        bytes.extend_from_slice(&self.body);
        bytes
    }

    pub(crate) fn head(&self, path: &str) -> Vec<u8> {
        let mut head = format!("POST {path}").into_bytes();
        head.extend_from_slice(&self.query);
        head.extend_from_slice(b" HTTP/1.1\r\nHost: app.example\r\n");
        for (name, value) in &self.lines {
            head.extend_from_slice(name.as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(value);
            head.extend_from_slice(b"\r\n");
        }
        head.extend_from_slice(format!("Content-Length: {}\r\n\r\n", self.body.len()).as_bytes());
        head
    }
}

/// As a person reads it: one line of the request a line, other bytes escaped.
impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.bytes("/");
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            writeln!(f, "    {}", line.escape_ascii())?;
        }
        Ok(())
    }
}
