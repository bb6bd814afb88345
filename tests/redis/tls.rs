//! TLS: the server must have a certificate that the system trusts.

use std::io;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::reach::Reach;
use crate::support::RedisServer;

/// An authority, and a server it vouches for under the name `localhost`.
struct Authority(TempDir);

impl Authority {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let run = |arguments: &[&str]| {
            let output = Command::new("openssl").args(arguments).current_dir(folder.path()).output();
            let output = output.expect("openssl is installed");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        };
        let curve = "ec_paramgen_curve:prime256v1";
        run(&[
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            curve,
            "-nodes",
            "-keyout",
            "ca.key",
            "-out",
            "ca.pem",
            "-days",
            "2",
            "-subj",
            "/CN=authority",
        ]);
        run(&[
            "req",
            "-newkey",
            "ec",
            "-pkeyopt",
            curve,
            "-nodes",
            "-keyout",
            "key.pem",
            "-out",
            "csr.pem",
            "-subj",
            "/CN=redis",
        ]);
        std::fs::write(folder.path().join("names"), "subjectAltName=DNS:localhost").expect("a file");
        run(&[
            "x509", "-req", "-in", "csr.pem", "-CA", "ca.pem", "-CAkey", "ca.key", "-days", "2", "-out", "cert.pem",
            "-extfile", "names",
        ]);
        Self(folder)
    }

    fn file(&self, name: &str) -> String {
        self.0.path().join(name).to_str().expect("plain").to_owned()
    }
}

/// A server with TLS, and its port.
fn server(authority: &Authority) -> (RedisServer, u16) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    drop(listener);
    let (certificate, key) = (authority.file("cert.pem"), authority.file("key.pem"));
    let server = RedisServer::with_options(&[
        "--tls-port",
        &port.to_string(),
        "--tls-cert-file",
        &certificate,
        "--tls-key-file",
        &key,
        "--tls-auth-clients",
        "no",
    ]);
    (server, port)
}

/// The part of the test below that runs in its own process.
const URL: &str = "PORTCULLIS_TEST_URL";

#[tokio::test]
async fn a_server_that_the_system_vouches_for_is_believed() {
    let authority = Authority::new();
    let (server, port) = server(&authority);
    let says = |name: &str, roots: &str| asked_elsewhere(&format!("rediss://{name}:{port}"), &authority.file(roots));
    assert_eq!(says("localhost", "ca.pem"), "up");
    assert_eq!(server.cli(&["EXISTS", "gate:probe"]), "1");
    assert_eq!(says("127.0.0.1", "ca.pem"), "connection", "the certificate has another name");
    let stranger = Authority::new();
    std::fs::copy(stranger.file("ca.pem"), authority.file("other.pem")).expect("a copy");
    assert_eq!(says("localhost", "other.pem"), "connection", "the system does not trust that authority");
}

/// The system's roots are read from a file that the environment names, and a test cannot change its own.
fn asked_elsewhere(url: &str, roots: &str) -> String {
    assert!(Path::new(roots).exists());
    let output = Command::new(std::env::current_exe().expect("a test runs"))
        .args(["--exact", "tls::says_how_a_server_is_reached", "--ignored", "--nocapture"])
        .env(URL, url)
        .env("SSL_CERT_FILE", roots)
        .output()
        .expect("a test runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let word = text.split_once("reached: ").and_then(|(_, rest)| rest.split_whitespace().next());
    word.unwrap_or_else(|| panic!("{text}")).to_owned()
}

#[ignore = "is run by the test above, in a process of its own"]
#[tokio::test]
async fn says_how_a_server_is_reached() {
    let Ok(url) = std::env::var(URL) else { return };
    let reach = Reach::patient(url).await;
    let away = reach.causes().first().copied();
    // Read by the test above.
    let mut out = io::stdout().lock();
    writeln!(out, "reached: {}", away.unwrap_or("up")).expect("someone reads");
}
