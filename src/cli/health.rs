//! `portcullis health`: asks a running gateway whether it is well.

use std::io::Read;
use std::io::Write;
use std::net::SocketAddr;
use std::net::TcpStream;
use std::net::ToSocketAddrs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use anyhow::bail;

use super::Exit;
use super::output;
use crate::config;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portcullis health
  portcullis health --admin http://10.0.0.5:9090
  portcullis health -c /etc/portcullis/portcullis.yaml

Exit codes: 0 the gateway is well, 1 it is not, 3 it could not be reached.")]
pub(super) struct Arguments {
    /// Where the gateway's admin listener is
    #[arg(long, value_name = "URL", env = "PORTCULLIS_ADMIN", default_value = DEFAULT_ADMIN)]
    admin: String,
    /// Take the address from this configuration instead
    #[arg(short, long = "config", value_name = "FILE")]
    config: Option<PathBuf>,
}

pub(super) fn health(arguments: &Arguments) -> anyhow::Result<Exit> {
    let authority = match &arguments.config {
        None => authority(or_usual(&arguments.admin))?,
        Some(file) => match config::load(file) {
            Ok(settings) => {
                let admin = settings.admin.with_context(|| format!("{} has no `admin` section", file.display()))?;
                admin.address.to_string()
            }
            Err(mistakes) => {
                output::complain_of(&mistakes);
                return Ok(Exit::Wrong);
            }
        },
    };
    match ask(&authority) {
        Ok(200) => {
            output::say("ok");
            Ok(Exit::Done)
        }
        Ok(status) => {
            output::complain(&format!("the gateway at {authority} is not well: it answered {status}"));
            Ok(Exit::Wrong)
        }
        Err(error) => {
            output::complain(&format!("the gateway at {authority} could not be reached: {error:#}"));
            Ok(Exit::Unreachable)
        }
    }
}

/// A variable that is set to nothing says nothing.
fn or_usual(admin: &str) -> &str {
    if admin.is_empty() { DEFAULT_ADMIN } else { admin }
}

/// `host:port` out of a URL.
fn authority(url: &str) -> anyhow::Result<String> {
    let expected = || format!("`{url}` is no admin address, write one such as http://127.0.0.1:9090");
    let uri: http::Uri = url.trim_end_matches('/').parse().with_context(expected)?;
    if uri.scheme_str().is_some_and(|scheme| scheme != "http") {
        bail!("{}", expected());
    }
    let host = uri.host().with_context(expected)?;
    Ok(format!("{host}:{}", uri.port_u16().unwrap_or(DEFAULT_PORT)))
}

const DEFAULT_ADMIN: &str = "http://127.0.0.1:9090";

const DEFAULT_PORT: u16 = 80;

/// The status that `/healthz` answers with.
fn ask(authority: &str) -> anyhow::Result<u16> {
    let mut failure = None;
    for address in authority.to_socket_addrs()? {
        // An address to listen on everywhere is here, too.
        let address = if address.ip().is_unspecified() { loopback_of(address) } else { address };
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => return exchange(stream, authority),
            Err(error) => failure = Some(error),
        }
    }
    Err(failure.context("the name has no address")?.into())
}

fn loopback_of(address: SocketAddr) -> SocketAddr {
    let host: std::net::IpAddr =
        if address.is_ipv4() { std::net::Ipv4Addr::LOCALHOST.into() } else { std::net::Ipv6Addr::LOCALHOST.into() };
    SocketAddr::new(host, address.port())
}

fn exchange(mut stream: TcpStream, authority: &str) -> anyhow::Result<u16> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let request = format!("GET /healthz HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = [0; "HTTP/1.1 200".len()];
    stream.read_exact(&mut answer)?;
    let status = answer.strip_prefix(b"HTTP/1.1 ").and_then(|status| std::str::from_utf8(status).ok());
    status.and_then(|status| status.parse().ok()).context("what answers there is not the gateway")
}

/// A gateway that takes longer than this is not well.
const PATIENCE: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_admin_address_may_leave_out_what_is_usual() {
        assert_eq!(authority("http://127.0.0.1:9090").unwrap(), "127.0.0.1:9090");
        assert_eq!(authority(or_usual("")).unwrap(), "127.0.0.1:9090");
        assert_eq!(authority("http://gateway:9090/").unwrap(), "gateway:9090");
        assert_eq!(authority("http://[::1]:9090").unwrap(), "[::1]:9090");
        assert_eq!(authority("127.0.0.1:9090").unwrap(), "127.0.0.1:9090");
        assert_eq!(authority("http://gateway").unwrap(), "gateway:80");
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in ["", "https://gateway:9090", "not an address"] {
            assert!(authority(text).is_err(), "{text}");
        }
    }
}
