//! The formats of access logs. Each parser makes a request of one line, or says that the line has none.
//!
//! - [`mod@format`]: the formats as one type, and which of them a line has; `log_line`: what was read.
//! - `portcullis`, `portcullis_otel`, `portcullis_human`: our own request log.
//! - `combined`: the common and the combined format of nginx and Apache. `traefik_common` is that of Traefik.
//! - `caddy`, `traefik`, `haproxy`, `haproxy_clf`, `envoy`, `alb`, `iis`, `nginx_proxy_manager`; `json`: fields of any name.
//! - `line_reader`: the lines of one file; `prefix`: what syslog and containers write around them; `pieces`: joins what
//!   containers split.
//! - `scanner`, `request_line`, `time`: what several of them share.

mod alb;
mod caddy;
mod combined;
mod envoy;
pub mod format;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
mod haproxy;
mod haproxy_clf;
mod iis;
mod json;
mod line_reader;
mod log_line;
mod nginx_proxy_manager;
mod pieces;
mod portcullis;
mod portcullis_human;
mod portcullis_otel;
mod prefix;
mod request_line;
mod scanner;
#[cfg(test)]
mod tests;
mod time;
mod traefik;
mod traefik_common;

pub(in crate::replay) use self::combined::begins_with_addresses;
pub use self::format::LineFormat;
pub use self::format::LogFormat;
pub use self::json::FieldNames;
pub use self::json::InvalidFields;
pub use self::line_reader::LineContent;
pub use self::line_reader::LineReader;
pub use self::log_line::LogLine;
pub(in crate::replay) use self::pieces::MAX_LINE;
