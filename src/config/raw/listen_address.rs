//! Where a listener is, and who may connect to it.

use std::net::SocketAddr;

use serde_json::Value;
use serde_json::json;

use super::invalid_value::InvalidValue;
use super::scalar::ScalarValue;
use crate::listen::ListenAddress;
use crate::listen::address::UNIX_SOCKET;

impl ScalarValue for ListenAddress {
    const EXPECTED: &'static str = "an address with a port, or `unix:` and a path";
    const IS_TEXT: bool = true;

    fn parse(text: &str) -> Result<Self, InvalidValue> {
        if let Some(path) = text.strip_prefix(UNIX_SOCKET) {
            let path = unix_socket_path(path, "unix:/run/portcullis.sock")?;
            return Ok(Self::UnixSocket(path.into()));
        }
        if text.starts_with('/') {
            return Err(InvalidValue::with(
                format!("`{text}` is not an address with a port"),
                format!("write `unix:{text}` for a Unix socket"),
            ));
        }
        SocketAddr::parse(text).map(Self::Ip)
    }

    fn schema() -> Value {
        json!({ "type": "string", "examples": ["0.0.0.0:8080", "[::]:8080", "unix:/run/portcullis.sock"] })
    }
}

/// The path of a Unix socket: absolute, and no longer than the kernel takes. `example` is how one is written.
pub fn unix_socket_path<'p>(path: &'p str, example: &str) -> Result<&'p str, InvalidValue> {
    let fault = if !path.starts_with('/') {
        "is not an absolute path"
    } else if path.contains(|char: char| char.is_control()) {
        "is not a path: it holds a control character"
    } else if path.len() > LONGEST_SOCKET_PATH {
        "is longer than the 107 bytes that a Unix socket's path may have"
    } else {
        return Ok(path);
    };
    Err(InvalidValue::with(format!("`{path}` {fault}"), format!("write where the socket is: `{example}`")))
}

/// In bytes: what the kernel takes (unix(7)), less the zero byte at its end.
const LONGEST_SOCKET_PATH: usize = 107;

/// The permissions of a file, as chmod takes them in digits.
#[derive(Clone, Copy, Debug)]
pub struct FileMode(pub u32);

impl ScalarValue for FileMode {
    const EXPECTED: &'static str = "the permissions of a file, such as `0660`";

    fn parse(text: &str) -> Result<Self, InvalidValue> {
        let digits = text.strip_prefix("0o").or_else(|| text.strip_prefix('0')).unwrap_or(text);
        let is_mode = digits.len() == 3 && digits.bytes().all(|digit| matches!(digit, b'0'..=b'7'));
        match u32::from_str_radix(digits, 8) {
            Ok(mode) if is_mode => Ok(Self(mode)),
            _ => Err(InvalidValue::with(
                format!("`{text}` is not the permissions of a file"),
                "write three octal digits behind a zero, as chmod takes them: `0660` for the gateway's user and group",
            )),
        }
    }

    fn schema() -> Value {
        json!({ "type": ["string", "integer"], "pattern": "^0?o?[0-7]{3}$", "examples": ["0660"] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unix_socket_is_an_absolute_path_behind_its_word() {
        let address = ListenAddress::parse("unix:/run/A file.sock").unwrap();
        assert_eq!(address.to_string(), "unix:/run/A file.sock");
        assert!(matches!(ListenAddress::parse("127.0.0.1:80"), Ok(ListenAddress::Ip(_))));
        for text in
            ["unix:", "unix:run.sock", "unix:@name", "/run/a.sock", "unix:/a\nb", &format!("unix:/{}", "a".repeat(107))]
        {
            assert!(ListenAddress::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_mode_is_three_octal_digits() {
        for text in ["0660", "660", "0o660"] {
            assert_eq!(FileMode::parse(text).unwrap().0, 0o660);
        }
        for text in ["066", "6600", "0x1b0", "0680", "rw-rw----", "+660", "01660"] {
            assert!(FileMode::parse(text).is_err(), "{text}");
        }
    }
}
