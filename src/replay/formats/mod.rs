//! The formats of access logs. Each parser makes a request of one line, or says that the line has none.
//!
//! - [`mod@format`]: the formats as one type, and which of them a line has; `log_line`: what was read.
//! - `portcullis`, `portcullis_otel`, `portcullis_human`: our own request log.
//! - `combined`: the common and the combined format of nginx and Apache. `traefik_common` is that of Traefik.
//! - `caddy`, `traefik`, `haproxy`, `haproxy_clf`, `load_balancers` (Envoy, AWS), `iis`, `nginx_proxy_manager`; `json`: fields of any name.
//! - `line_reader`: the lines of one file; `prefix`: what syslog and containers write around them; `pieces`: joins what
//!   containers split.
//! - `scanner`, `request_line`, `time`: what several of them share.

mod caddy;
mod combined;
pub mod format;
mod haproxy;
mod iis;
mod json;
mod load_balancers;
mod portcullis;
mod prefix;
mod scanner;
mod traefik;

pub(in crate::replay) use self::combined::begins_with_addresses;
pub use self::format::{LineContent, LineFormat, LineReader, LogFormat, LogLine};
pub use self::json::{FieldNames, InvalidFields};
pub(in crate::replay) use self::prefix::MAX_LINE;

#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz {
    //! The fuzz target of these parsers.

    use super::{FieldNames, LineContent, LineReader, LogFormat, LogLine};
    use crate::replay::formats::format::ReadState;
    use crate::replay::logged_request;
    #[cfg(test)]
    use crate::words::corpus;

    /// A line becomes no longer by being read, and what it says of a request can be asked of the rules.
    pub fn check(bytes: &[u8]) {
        for format in LogFormat::Auto.candidates() {
            let read = format.read(bytes, &mut ReadState::default());
            assert_eq!(
                format.read(bytes, &mut ReadState::default()),
                read,
                "{format:?} reads a line twice and differently"
            );
            let Some(LogLine::Request(request)) = read else { continue };
            assert!(request.target.len() <= bytes.len(), "{format:?} made a target of {} bytes", request.target.len());
            if let Some(head) = logged_request::head(&request) {
                assert!(head.path_and_query().is_ascii(), "{format:?} passes a target that the gateway refuses");
            }
        }
        check_lines(bytes);
    }

    /// Lines become no longer together by being joined and taken out of what stands around them.
    fn check_lines(bytes: &[u8]) {
        let mut reader = LineReader::new(LogFormat::Auto, &FieldNames::default());
        let mut length = 0;
        let mut add = |content| {
            length += match content {
                LineContent::Line(LogLine::Request(request)) => request.target.len(),
                LineContent::Unreadable(text) => text.len(),
                LineContent::Line(_) | LineContent::Piece => 0,
            };
        };
        for line in bytes.split(|byte| *byte == b'\n') {
            add(reader.read(line));
        }
        while let Some(rest) = reader.rest() {
            add(rest);
        }
        assert!(length <= bytes.len(), "{} bytes became {length}", bytes.len());
    }

    #[cfg(test)]
    #[test]
    fn the_corpus_keeps_its_promises() {
        corpus::feed("access_log", check);
    }
}

#[cfg(test)]
mod tests;
