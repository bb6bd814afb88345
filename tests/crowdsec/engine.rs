//! A real Local API without an engine, and `cscli`.

use std::fs;
use std::fs::File;
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{eventually, unused_address};

/// The key of the bouncer that [`Engine`] knows.
pub(super) const KEY: &str = "0123456789abcdef0123456789abcdef";

/// The password of the machine `gateways` that [`Engine`] knows.
pub(super) const PASSWORD: &str = "machine-passw0rd";

/// A Local API that is asked for nothing but decisions and alerts, and asks nobody else.
#[derive(Debug)]
pub(super) struct Engine {
    folder: TempDir,
    address: SocketAddr,
    api: Option<Child>,
}

impl Engine {
    /// Starts with a bouncer and a machine.
    #[track_caller]
    pub(super) fn start() -> Self {
        Self::with_tls(None)
    }

    /// Starts with HTTPS, with a PEM certificate and its key.
    #[track_caller]
    pub(super) fn with_tls(certificate: Option<(&str, &str)>) -> Self {
        for _ in 0..5 {
            let mut engine = Self { folder: folder(), address: unused_address(), api: None };
            engine.configure(certificate);
            let url = format!("{}://{}", if certificate.is_some() { "https" } else { "http" }, engine.address);
            for (machine, password) in [("operator", "operator"), ("gateways", PASSWORD)] {
                let file = engine.path(&format!("{machine}.yaml"));
                engine.cscli(&["machines", "add", machine, "--password", password, "-f", &file, "-u", &url]);
            }
            engine.cscli(&["bouncers", "add", "gateway", "-k", KEY]);
            if engine.run() {
                return engine;
            }
        }
        panic!("crowdsec started on none of five ports: tests/run installs it");
    }

    fn configure(&self, certificate: Option<(&str, &str)>) {
        let (folder, address) = (self.folder.path().display(), self.address);
        let tls = certificate.map_or(String::new(), |(certificate, key)| {
            fs::write(self.path("api.pem"), certificate).expect("a file in the folder");
            fs::write(self.path("api.key"), key).expect("a file in the folder");
            format!(", tls: {{cert_file: {folder}/api.pem, key_file: {folder}/api.key}}")
        });
        let config = format!(
            "common: {{daemonize: false, log_media: stdout, log_level: info, working_dir: {folder}}}\n\
             config_paths: {{config_dir: {folder}, data_dir: {folder}, simulation_path: {folder}/simulation.yaml, \
             hub_dir: {folder}/hub, index_path: {folder}/hub/.index.json, notification_dir: {folder}, plugin_dir: {folder}}}\n\
             crowdsec_service: {{enable: false}}\n\
             cscli: {{output: json}}\n\
             db_config: {{type: sqlite, db_path: {folder}/crowdsec.db, use_wal: true}}\n\
             api:\n  client: {{insecure_skip_verify: true, credentials_path: {folder}/operator.yaml}}\n  server: \
             {{log_level: info, listen_uri: \"{address}\", profiles_path: {folder}/profiles.yaml{tls}}}\n\
             prometheus: {{enabled: false}}\n"
        );
        let files = [
            ("config.yaml", config.as_str()),
            ("operator.yaml", ""),
            ("hub/.index.json", "{}"),
            ("simulation.yaml", "simulation: false\n"),
            (
                "profiles.yaml",
                "name: never\nfilters: [\"false\"]\ndecisions: [{type: ban, duration: 1s}]\non_success: break\n",
            ),
        ];
        fs::create_dir(self.folder.path().join("hub")).expect("a folder in the folder");
        for (name, text) in files {
            fs::write(self.path(name), text).expect("a file in the folder");
        }
    }

    /// Starts the API where it was before.
    #[track_caller]
    pub(super) fn start_again(&mut self) {
        assert!(self.run(), "another process has taken the port");
    }

    /// Whether it listens. If not, another process has taken the port.
    fn run(&mut self) -> bool {
        let log = File::create(self.path("log")).expect("a file in the folder");
        let api = Command::new("crowdsec")
            .args(["-c", &self.path("config.yaml"), "-no-cs"])
            .stdin(Stdio::null())
            .stderr(log.try_clone().expect("a descriptor"))
            .stdout(log)
            .spawn()
            .expect("crowdsec is installed: tests/run does that");
        let api = self.api.insert(api);
        let mut is_there = false;
        eventually("the Local API listens, or ends", || {
            is_there = TcpStream::connect(self.address).is_ok();
            is_there || api.try_wait().expect("a child of ours").is_some()
        });
        is_there && api.try_wait().expect("a child of ours").is_none()
    }

    /// Kills the API.
    pub(super) fn stop(&mut self) {
        if let Some(mut api) = self.api.take() {
            let _ = api.kill();
            let _ = api.wait();
        }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Runs `cscli`, which must succeed.
    #[track_caller]
    pub(super) fn cscli(&self, arguments: &[&str]) -> String {
        let output = Command::new("cscli")
            .args(["-c", &self.path("config.yaml")])
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .expect("cscli is installed: tests/run does that");
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "cscli {}: {out}{err}", arguments.join(" "));
        out.into_owned()
    }

    /// Decides about an address or a range, for an hour.
    #[track_caller]
    pub(super) fn decide(&self, decision_type: &str, value: &str) {
        self.decide_for(decision_type, value, "1h");
    }

    #[track_caller]
    pub(super) fn decide_for(&self, decision_type: &str, value: &str, duration: &str) {
        let kind = if value.contains('/') { "--range" } else { "--ip" };
        self.cscli(&["decisions", "add", kind, value, "--type", decision_type, "--duration", duration]);
    }

    /// Deletes all decisions on an address or a range.
    #[track_caller]
    pub(super) fn delete(&self, value: &str) {
        let kind = if value.contains('/') { "--range" } else { "--ip" };
        self.cscli(&["decisions", "delete", kind, value]);
    }

    /// The decisions in force, of every origin.
    #[track_caller]
    pub(super) fn decisions(&self) -> Vec<Value> {
        let alerts: Value = serde_json::from_str(&self.cscli(&["decisions", "list", "-a"])).expect("JSON");
        let alerts = alerts.as_array().cloned().unwrap_or_default();
        alerts.iter().flat_map(|alert| alert["decisions"].as_array().cloned().unwrap_or_default()).collect()
    }

    /// How many questions of bouncers the API has answered.
    pub(super) fn questions(&self) -> usize {
        self.logged("GET /v1/decisions/stream")
    }

    /// How often a gateway tried to log in.
    pub(super) fn logins(&self) -> usize {
        self.logged("POST /v1/watchers/login HTTP/1.1 401")
    }

    /// How many requests with alerts of gateways the API has taken.
    pub(super) fn alerts(&self) -> usize {
        self.logged("POST /v1/alerts HTTP/1.1 201")
    }

    fn logged(&self, words: &str) -> usize {
        fs::read_to_string(self.path("log")).expect("its log").matches(words).count()
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.stop();
    }
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder for the configuration")
}
