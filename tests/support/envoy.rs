//! A real Envoy with a ready file of `config/with`.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;

use super::program::Program;

/// A running `envoy`; killed when it is dropped.
#[derive(Debug)]
pub struct Envoy(Program);

impl Envoy {
    /// With the file of that name, whose addresses are replaced: in front of `application`, and asking `portcullis`.
    /// `changes` are more texts to replace.
    #[track_caller]
    pub fn start(name: &str, application: SocketAddr, portcullis: SocketAddr, changes: &[(&str, &str)]) -> Self {
        let path = format!("{}/config/with/{name}", env!("CARGO_MANIFEST_DIR"));
        let mut text = fs::read_to_string(path).expect("a ready file of that name");
        for (written, wanted) in changes {
            assert!(text.contains(written), "{name} has no {written}");
            text = text.replace(written, wanted);
        }
        Self(Program::start(&[], |folder, address| {
            let socket = |address: SocketAddr| format!("{{address: {}, port_value: {}}}", address.ip(), address.port());
            let text = text
                .replace("{address: 0.0.0.0, port_value: 8080}", &socket(address))
                .replace("{address: 127.0.0.1, port_value: 8000}", &socket(application))
                .replace("{address: 127.0.0.1, port_value: 9191}", &socket(portcullis));
            fs::write(folder.join("envoy.yaml"), text).expect("a file in the folder");
            let mut command = Command::new(binary());
            command.args([
                "-c",
                "envoy.yaml",
                "--concurrency",
                "1",
                "--use-dynamic-base-id",
                "--log-path",
                "envoy.log",
            ]);
            command
        }))
    }

    pub fn address(&self) -> SocketAddr {
        self.0.address()
    }

    /// It hangs from now on.
    pub fn pause(&self) {
        self.0.pause();
    }
}

/// In the virtual environment that `tests/run` makes, with the packages of `tests/envoy/requirements.txt`.
fn binary() -> PathBuf {
    let binary: PathBuf = [env!("CARGO_MANIFEST_DIR"), "target", "envoy", "bin", "envoy"].iter().collect();
    assert!(binary.exists(), "{} is missing: ./tests/run installs it", binary.display());
    binary
}
