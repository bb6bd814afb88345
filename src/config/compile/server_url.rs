//! The URL of an upstream's server.

use http::Uri;
use http::uri::Authority;
use rustls::pki_types::ServerName;

use crate::config::raw::InvalidValue;
use crate::config::raw::listen_address::unix_socket_path;
use crate::glob::Glob;
use crate::upstream::Location;
use crate::upstream::ServerUrl;
use crate::upstream::UNIX_SOCKET;
use crate::upstream::address::bare_host;

/// Parses the URL of a server.
pub(super) fn server_url(url: &str) -> Result<ServerUrl, InvalidValue> {
    if url.contains('@') {
        // The message does not show the URL: it may hold a password.
        return Err(InvalidValue::with(
            "a server's URL must not contain a user name or password",
            "remove the part before the `@`",
        ));
    }
    if let Some(server) = on_unix_socket(url) {
        return server;
    }
    let Some((scheme, rest)) = url.split_once("://") else {
        let suggestion =
            if url.contains("//") { String::new() } else { format!(": `http://{}`", url.trim_matches('/')) };
        return Err(InvalidValue::with(
            format!("`{url}` is not a URL"),
            format!("a server's URL begins with `http://`{suggestion}"),
        ));
    };
    let scheme = scheme.to_ascii_lowercase();
    let is_https = match scheme.as_str() {
        "http" => false,
        "https" => true,
        "fastcgi" | "fcgi" | "scgi" | "uwsgi" | "ajp" => {
            return Err(InvalidValue::with(
                format!("`{scheme}://` is not supported: the gateway speaks HTTP to applications"),
                "write the address of the web server in front of it: `http://127.0.0.1:8000`",
            ));
        }
        "ws" => {
            return Err(InvalidValue::with("`ws://` is not supported for servers", format!("write `http://{rest}`")));
        }
        "wss" => {
            return Err(InvalidValue::with("`wss://` is not supported for servers", format!("write `https://{rest}`")));
        }
        _ => {
            return Err(InvalidValue::with(
                format!("`{scheme}://` is not supported for servers"),
                format!("write `http://{rest}` or `https://{rest}`"),
            ));
        }
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if rest.len() > authority.len() && &rest[authority.len()..] != "/" {
        return Err(InvalidValue::with(
            format!("a server's URL ends after the port, but here `{}` follows", &rest[authority.len()..]),
            format!("write `{scheme}://{authority}`: requests keep their own path"),
        ));
    }
    if Glob::looks_like_glob(authority) {
        return Err(InvalidValue::of_glob(url, "a server's URL", "write each server, in a list under `servers`"));
    }
    let malformed = || {
        InvalidValue::with(
            format!("`{url}` is not a server's URL"),
            "write one such as `http://127.0.0.1:8000` or `http://app.internal`",
        )
    };
    let parsed: Authority = authority.to_ascii_lowercase().parse().map_err(|_| malformed())?;
    // After a colon there must be a port.
    let port = authority.rsplit_once(']').map_or(authority, |(_, after)| after).rsplit_once(':').map(|(_, port)| port);
    let port_is_number = port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0));
    if parsed.host().is_empty() || !port_is_number || Uri::try_from(format!("http://{parsed}/")).is_err() {
        return Err(malformed());
    }
    if !is_https {
        return Ok(parsed.into());
    }
    let name = ServerName::try_from(bare_host(&parsed).to_owned());
    let name = name.map_err(|_| {
        InvalidValue::with(
            format!("no certificate can be for `{}`", parsed.host()),
            "write one with a DNS name or an IP address, such as `https://app.internal`",
        )
    })?;
    Ok(ServerUrl { location: Location::Authority(parsed), verified_as: Some(name) })
}

/// The server of a URL that names a Unix socket; `None`: it names none.
fn on_unix_socket(url: &str) -> Option<Result<ServerUrl, InvalidValue>> {
    let lower = url.to_ascii_lowercase();
    let spelling = ["http://unix:", "https://unix:", "unix://", "unix:", "http+unix://"]
        .into_iter()
        .find(|spelling| lower.starts_with(spelling))?;
    let written = &url[spelling.len()..];
    if spelling.ends_with("://unix:") && written.starts_with(|first: char| first.is_ascii_digit()) {
        // A port: the host is called so.
        return None;
    }
    // Some clients write the path's slashes encoded, and nginx a colon behind it.
    let path = written.replace("%2F", "/").replace("%2f", "/");
    let path = path.trim_end_matches('/').trim_end_matches(':');
    Some(match unix_socket_path(path, "http://unix:/run/app.sock") {
        Err(problem) => Err(problem),
        Ok(path) if spelling == "http://unix:" && path == written => {
            Ok(ServerUrl { location: Location::UnixSocket(format!("{UNIX_SOCKET}{path}").into()), verified_as: None })
        }
        Ok(path) if spelling == "https://unix:" => Err(InvalidValue::with(
            "TLS over a Unix socket is not supported",
            format!("write `http://unix:{path}`: what passes there stays on this machine"),
        )),
        Ok(path) => Err(InvalidValue::with(
            format!("`{url}` is not a server's URL"),
            format!("a server on a Unix socket is written `http://unix:{path}`"),
        )),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(url: &str, expected: Result<&str, &str>) {
        let found = server_url(url).map(|server| server.name().to_owned()).map_err(|problem| problem.help);
        assert_eq!(found, expected.map(str::to_owned).map_err(str::to_owned), "{url}");
    }

    #[test]
    fn a_server_is_a_url_without_a_path() {
        check("http://127.0.0.1:8000", Ok("127.0.0.1:8000"));
        check("http://127.0.0.1:8000/", Ok("127.0.0.1:8000"));
        check("HTTP://App.internal", Ok("app.internal"));
        check("http://[::1]:8000", Ok("[::1]:8000"));
        check("http://[::1]", Ok("[::1]"));
        check("HTTPS://App.internal:8443/", Ok("app.internal:8443"));
        check("http://unix:/run/App.sock", Ok("unix:/run/App.sock"));
        check("HTTP://Unix:/run/App.sock", Ok("unix:/run/App.sock"));
        check("http://unix:8080", Ok("unix:8080"));
    }

    #[test]
    fn the_help_for_an_invalid_server_says_what_to_write() {
        const ON_SOCKET: &str = "a server on a Unix socket is written `http://unix:/run/App.sock`";
        const IN_FRONT: &str = "write the address of the web server in front of it: `http://127.0.0.1:8000`";
        const EXAMPLE: &str = "write one such as `http://127.0.0.1:8000` or `http://app.internal`";
        check("127.0.0.1:8000", Err("a server's URL begins with `http://`: `http://127.0.0.1:8000`"));
        check("//app", Err("a server's URL begins with `http://`"));
        for url in [
            "unix:/run/App.sock",
            "unix:///run/App.sock",
            "http+unix://%2Frun%2FApp.sock",
            "http://unix:/run/App.sock:",
            "http://unix:/run/App.sock:/",
            "UNIX:/run/App.sock",
        ] {
            check(url, Err(ON_SOCKET));
        }
        check(
            "https://unix:/run/App.sock",
            Err("write `http://unix:/run/App.sock`: what passes there stays on this machine"),
        );
        let long = format!("http://unix:/{}", "a".repeat(107));
        for url in ["http://unix:run/app.sock", "http://unix:./app.sock", "unix:app.sock", "http://unix:", &long] {
            check(url, Err("write where the socket is: `http://unix:/run/app.sock`"));
        }
        check("fastcgi://127.0.0.1:9000", Err(IN_FRONT));
        check("wss://app", Err("write `https://app`"));
        check("ftp://app", Err("write `http://app` or `https://app`"));
        check("http://app/api", Err("write `http://app`: requests keep their own path"));
        check("http://app?x=1", Err("write `http://app`: requests keep their own path"));
        check("http://u:p@app", Err("remove the part before the `@`"));
        check("https://a_b.-", Err("write one with a DNS name or an IP address, such as `https://app.internal`"));
        for url in
            ["http://", "http://:80", "http://app:", "http://app:0", "http://app:99999", "http://a b", "http://[::1"]
        {
            check(url, Err(EXAMPLE));
        }
    }
}
