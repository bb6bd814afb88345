//! The fleet: an application on this machine, three gateways and six Redis servers in containers.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use std::{fs, thread};

use tempfile::TempDir;

use crate::containers::{Container, Network};
use crate::support::{Ledger, binary, eventually};

pub(super) const GATEWAYS: usize = 3;

/// What a key may do under each of the policies: so many in so many seconds.
pub(super) const MOST: usize = 18;
pub(super) const WINDOW_SECONDS: u64 = 3;

/// How long each gateway waits for Redis. The last one is impatient: to it a network that delays every packet by 200 ms is one
/// without Redis, and one that is whole is not, however busy this machine is.
const TIMEOUTS: [&str; GATEWAYS] = ["2s", "2s", "350ms"];

/// A route for each policy. The rest of the path names the gateway to the application.
const ROUTES: &str = "routes:
  - match: /deny/*
    limits: [{name: denying, key: header.x-key, rate: MOST per WINDOW seconds, on_failure: deny}]
  - match: /local/*
    limits: [{name: local, key: header.x-key, rate: MOST per WINDOW seconds}]";

/// How long a Redis is silent until the others take it for dead.
const DEAD_AFTER: &str = "1000";

const REDIS_PORT: u16 = 6379;
const GATEWAY_PORT: u16 = 8080;

#[derive(Debug)]
pub(super) struct Fleet {
    pub(super) gateways: Vec<Container>,
    /// Three masters, then the replica of each; before a failover.
    pub(super) redis: Vec<Container>,
    pub(super) application: Ledger,
    _folder: TempDir,
    // Containers leave the network before it is removed.
    _network: Network,
}

impl Fleet {
    #[track_caller]
    pub(super) fn start() -> Self {
        let network = Network::new();
        let application = Ledger::on(network.host);
        let redis = cluster(&network);
        let folder = tempfile::tempdir().expect("a folder for the configuration");
        fs::write(folder.path().join("portcullis.yaml"), configuration(&application, &redis)).expect("a file");
        let binary = Path::new(binary());
        let gateway = |number: usize| {
            let timeout = format!("TIMEOUT={}", TIMEOUTS[number]);
            let program = ["env", &timeout, "/tmp/portcullis", "run", "-c", "/etc/portcullis.yaml"];
            let file = folder.path().join("portcullis.yaml");
            let files = [(binary, "/tmp/portcullis"), (&*file, "/etc/portcullis.yaml"), delay_script()];
            network.start(&format!("gateway-{number}"), &files, GATEWAY_PORT, &program)
        };
        let gateways: Vec<Container> = (0..GATEWAYS).map(gateway).collect();
        Self { gateways, redis, application, _folder: folder, _network: network }
    }

    /// Where on the loopback each gateway answers.
    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        self.gateways.iter().map(|gateway| gateway.published(GATEWAY_PORT)).collect()
    }

    /// Cuts the links between these containers, both ways. What they hear from others, and others from them, stays.
    pub(super) fn cut(one: &[&Container], other: &[&Container]) {
        let addresses = addresses(other);
        for container in one {
            container.exec(&["iptables-nft", "-A", "INPUT", "-s", &addresses, "-j", "DROP"]);
            container.exec(&["iptables-nft", "-A", "OUTPUT", "-d", &addresses, "-j", "DROP"]);
        }
    }

    /// Loses so much of what these containers hear from one another.
    pub(super) fn lose(among: &[&Container], probability: &str) {
        let random = ["-m", "statistic", "--mode", "random", "--probability", probability, "-j", "DROP"];
        for container in among {
            container.exec(&[&["iptables-nft", "-A", "INPUT", "-s", &*addresses(among)], &random[..]].concat());
        }
    }

    /// Delays every packet that these containers send to one another.
    pub(super) fn delay(among: &[&Container], milliseconds: &str) {
        let to = addresses(among);
        for container in among {
            container.spawn(&["python3", "/tmp/delay.py", milliseconds]);
            let queues = || container.exec(&["cat", "/proc/net/netfilter/nfnetlink_queue"]);
            eventually("packets are delayed", || !queues().is_empty());
            container.exec(&["iptables-nft", "-A", "OUTPUT", "-d", &to, "-j", "NFQUEUE", "--queue-num", "0"]);
        }
    }

    /// Stops what runs in this container for a second, as a debugger does.
    pub(super) fn stop_for_a_second(container: &Container) {
        container.pause();
        thread::sleep(Duration::from_secs(1));
        container.resume();
        thread::sleep(Duration::from_millis(500));
    }

    /// Every link is whole again.
    pub(super) fn heal(&self) {
        for container in self.all() {
            container.exec(&["iptables-nft", "-F"]);
        }
    }

    pub(super) fn all(&self) -> Vec<&Container> {
        self.gateways.iter().chain(&self.redis).collect()
    }
}

/// A list of addresses as `iptables` takes it.
fn addresses(containers: &[&Container]) -> String {
    containers.iter().map(|container| container.address.to_string()).collect::<Vec<_>>().join(",")
}

/// The program that delays packets, and where containers find it.
fn delay_script() -> (&'static Path, &'static str) {
    (Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fleet/delay.py")), "/tmp/delay.py")
}

#[track_caller]
fn cluster(network: &Network) -> Vec<Container> {
    let port = REDIS_PORT.to_string();
    let program = [
        "redis-server",
        "--port",
        &port,
        "--protected-mode",
        "no",
        "--save",
        "",
        "--cluster-enabled",
        "yes",
        "--cluster-config-file",
        "/tmp/nodes.conf",
        "--cluster-node-timeout",
        DEAD_AFTER,
        "--repl-diskless-sync-delay",
        "0",
    ];
    let start = |number: usize| network.start(&format!("redis-{number}"), &[delay_script()], REDIS_PORT, &program);
    let nodes: Vec<Container> = (0..6).map(start).collect();
    for node in &nodes {
        eventually("redis-server answers", || node.exec(&["redis-cli", "PING"]) == "PONG");
    }
    for (place, master) in nodes[..3].iter().enumerate() {
        let (first, last) = (place * 5462, (place * 5462 + 5461).min(16383));
        master.exec(&["redis-cli", "CLUSTER", "ADDSLOTSRANGE", &first.to_string(), &last.to_string()]);
        master.exec(&["redis-cli", "CLUSTER", "SET-CONFIG-EPOCH", &(place + 1).to_string()]);
    }
    for node in &nodes[1..] {
        nodes[0].exec(&["redis-cli", "CLUSTER", "MEET", &node.address.to_string(), &port]);
    }
    let all = |word: &str| nodes.iter().all(|node| node.exec(&["redis-cli", "CLUSTER", "INFO"]).contains(word));
    eventually("the nodes know each other", || all("cluster_known_nodes:6") && all("cluster_state:ok"));
    for (master, replica) in nodes[..3].iter().zip(&nodes[3..]) {
        let id = master.exec(&["redis-cli", "CLUSTER", "MYID"]);
        eventually("the replica follows", || replica.exec(&["redis-cli", "CLUSTER", "REPLICATE", &id]) == "OK");
        eventually("the replica is in step", || {
            replica.exec(&["redis-cli", "INFO", "replication"]).contains("master_link_status:up")
        });
    }
    nodes
}

fn configuration(application: &Ledger, redis: &[Container]) -> String {
    let urls: Vec<String> = redis.iter().map(|node| format!("\"redis://{}:{REDIS_PORT}\"", node.address)).collect();
    let routes = ROUTES.replace("MOST", &MOST.to_string()).replace("WINDOW", &WINDOW_SECONDS.to_string());
    format!(
        "listen: 0.0.0.0:{GATEWAY_PORT}
upstream: {}
log: {{level: info, format: json, requests: false}}
store:
  redis: {{url: [{}], mode: cluster, wait: 1, timeout: \"${{TIMEOUT}}\"}}
  on_failure: local
{routes}
",
        application.url(),
        urls.join(", ")
    )
}
