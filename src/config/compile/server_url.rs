//! The URL of an upstream's server.

use http::Uri;
use http::uri::Authority;
use rustls::pki_types::ServerName;

use crate::config::raw::InvalidValue;
use crate::glob::Glob;
use crate::upstream::ServerUrl;
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
    let lower = url.to_ascii_lowercase();
    if ["unix:", "http://unix:", "https://unix:", "http+unix:"].iter().any(|start| lower.starts_with(start)) {
        return Err(InvalidValue::with(
            "a server on a Unix socket is not supported yet",
            "let the application listen on an address too, and write that: `http://127.0.0.1:8000`",
        ));
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
            "write a DNS name or an IP address",
        )
    })?;
    Ok(ServerUrl { authority: parsed, verified_as: Some(name) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(url: &str, expected: Result<&str, &str>) {
        let found = server_url(url).map(|server| server.authority.to_string()).map_err(|problem| problem.help);
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
    }

    #[test]
    fn the_help_for_an_invalid_server_says_what_to_write() {
        const ADDRESS: &str = "let the application listen on an address too, and write that: `http://127.0.0.1:8000`";
        const IN_FRONT: &str = "write the address of the web server in front of it: `http://127.0.0.1:8000`";
        const EXAMPLE: &str = "write one such as `http://127.0.0.1:8000` or `http://app.internal`";
        check("127.0.0.1:8000", Err("a server's URL begins with `http://`: `http://127.0.0.1:8000`"));
        check("//app", Err("a server's URL begins with `http://`"));
        for url in
            ["unix:/run/app.sock", "http://unix:/run/app.sock", "unix:///run/app.sock", "http+unix://%2Frun%2Fapp"]
        {
            check(url, Err(ADDRESS));
        }
        check("fastcgi://127.0.0.1:9000", Err(IN_FRONT));
        check("wss://app", Err("write `https://app`"));
        check("ftp://app", Err("write `http://app` or `https://app`"));
        check("http://app/api", Err("write `http://app`: requests keep their own path"));
        check("http://app?x=1", Err("write `http://app`: requests keep their own path"));
        check("http://u:p@app", Err("remove the part before the `@`"));
        check("https://a_b.-", Err("write a DNS name or an IP address"));
        for url in
            ["http://", "http://:80", "http://app:", "http://app:0", "http://app:99999", "http://a b", "http://[::1"]
        {
            check(url, Err(EXAMPLE));
        }
    }
}
