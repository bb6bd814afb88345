//! A Redis Cluster of six servers, and a master with three sentinels: real servers on loopback.

use std::fs;
use std::net::SocketAddr;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;

use tempfile::TempDir;

use super::clock::eventually;
use super::redis::RedisServer;
use super::unused_address::unused_address;

/// A server that is silent for so long counts as dead.
const DEAD_AFTER: &str = "1000";

/// Three masters that share the slots, and a replica of each; killed when it is dropped.
#[derive(Debug)]
pub struct RedisCluster {
    /// Three masters, then their replicas in the same order.
    pub nodes: Vec<RedisServer>,
}

impl RedisCluster {
    #[track_caller]
    pub fn start() -> Self {
        let nodes: Vec<RedisServer> = (0..6).map(|_| RedisServer::on_a_free_port(member)).collect();
        for (place, master) in nodes[..3].iter().enumerate() {
            let (first, last) = (place * 5462, (place * 5462 + 5461).min(16383));
            said_ok(master, &["CLUSTER", "ADDSLOTSRANGE", &first.to_string(), &last.to_string()]);
            said_ok(master, &["CLUSTER", "SET-CONFIG-EPOCH", &(place + 1).to_string()]);
        }
        for node in &nodes[1..] {
            let bus = node.cli(&["--raw", "CONFIG", "GET", "cluster-port"]);
            let bus = bus.lines().last().expect("a name and a value");
            said_ok(&nodes[0], &["CLUSTER", "MEET", "127.0.0.1", &node.address().port().to_string(), bus]);
        }
        let all = |word: &str| nodes.iter().all(|node| node.cli(&["CLUSTER", "INFO"]).contains(word));
        eventually("the nodes know each other", || all("cluster_known_nodes:6") && all("cluster_state:ok"));
        for (master, replica) in nodes[..3].iter().zip(&nodes[3..]) {
            let id = master.cli(&["CLUSTER", "MYID"]);
            eventually("the replica follows", || replica.cli(&["CLUSTER", "REPLICATE", &id]) == "OK");
        }
        let cluster = Self { nodes };
        cluster.is_whole(&cluster.nodes[3..]);
        cluster
    }

    /// Waits until these replicas are in step and every node knows them.
    #[track_caller]
    pub fn is_whole(&self, replicas: &[RedisServer]) {
        eventually("replicas are in step", || {
            replicas.iter().all(|replica| replica.cli(&["INFO", "replication"]).contains("master_link_status:up"))
        });
        eventually("everyone knows of the replicas", || {
            self.nodes.iter().all(|node| {
                node.cli(&["CLUSTER", "NODES"]).matches(" slave ").count()
                    + node.cli(&["CLUSTER", "NODES"]).matches("myself,slave").count()
                    >= 3
            })
        });
    }

    /// The url list of the configuration, of some of the nodes.
    pub fn urls(&self) -> String {
        let urls: Vec<String> = self.nodes[..3].iter().map(|node| format!("\"redis://{}\"", node.address())).collect();
        format!("[{}]", urls.join(", "))
    }

    /// The nodes that answer and are masters now.
    pub fn masters(&self) -> Vec<&RedisServer> {
        self.nodes.iter().filter(|node| node.cli(&["ROLE"]).starts_with("master")).collect()
    }
}

/// A master, its replica, and three sentinels that watch over them; killed when it is dropped.
#[derive(Debug)]
pub struct RedisSentinels {
    sentinels: Vec<Sentinel>,
    /// The master at first, then the replica.
    pub servers: Vec<RedisServer>,
}

#[derive(Debug)]
struct Sentinel {
    child: Child,
    address: SocketAddr,
    _folder: TempDir,
}

impl RedisSentinels {
    #[track_caller]
    pub fn start() -> Self {
        let master = RedisServer::with_options(&["--repl-diskless-sync-delay", "0"]);
        let replica = RedisServer::with_options(&["--repl-diskless-sync-delay", "0"]);
        said_ok(&replica, &["REPLICAOF", "127.0.0.1", &master.address().port().to_string()]);
        eventually("the replica is in step", || {
            replica.cli(&["INFO", "replication"]).contains("master_link_status:up")
        });
        let sentinels: Vec<Sentinel> = (0..3).map(|_| Sentinel::start(master.address())).collect();
        let know = |sentinel: &Sentinel| {
            let told = sentinel.cli(&["SENTINEL", "MASTER", "sessions"]);
            let value = |name: &str| told.lines().skip_while(|line| *line != name).nth(1).map(str::to_owned);
            value("num-other-sentinels").as_deref() == Some("2") && value("num-slaves").as_deref() == Some("1")
        };
        eventually("the sentinels know each other and the replica", || sentinels.iter().all(know));
        Self { sentinels, servers: vec![master, replica] }
    }

    /// The url list of the configuration: the sentinels, and the name of the master.
    pub fn urls(&self) -> String {
        let url = |sentinel: &Sentinel| format!("\"redis://{}/sessions\"", sentinel.address);
        format!("[{}]", self.sentinels.iter().map(url).collect::<Vec<_>>().join(", "))
    }

    /// Whether every sentinel names this server as the master.
    pub fn agree_on_master(&self, server: &RedisServer) -> bool {
        let port = server.address().port().to_string();
        let told = |sentinel: &Sentinel| sentinel.cli(&["SENTINEL", "get-master-addr-by-name", "sessions"]);
        self.sentinels.iter().all(|sentinel| told(sentinel).lines().nth(1) == Some(&*port))
    }
}

impl Sentinel {
    fn start(master: SocketAddr) -> Self {
        let folder = tempfile::tempdir().expect("a folder for the sentinel");
        let address = unused_address();
        // A sentinel keeps what it learns in its configuration.
        let config = format!(
            "bind 127.0.0.1\nport {}\nsentinel monitor sessions 127.0.0.1 {} 2\nsentinel down-after-milliseconds sessions {DEAD_AFTER}\nsentinel failover-timeout sessions 5000\n",
            address.port(),
            master.port()
        );
        fs::write(folder.path().join("sentinel.conf"), config).expect("a file in the folder");
        let child = Command::new("redis-sentinel")
            .arg("sentinel.conf")
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("redis-sentinel is installed: ./tests/run installs it");
        Self { child, address, _folder: folder }
    }

    fn cli(&self, command: &[&str]) -> String {
        let port = self.address.port().to_string();
        let output = Command::new("redis-cli").args(["-p", &port]).args(command).output();
        String::from_utf8_lossy(&output.expect("redis-cli is installed").stdout).into_owned()
    }
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The options of one node; its bus has a port of its own.
fn member() -> Vec<String> {
    let bus = unused_address().port().to_string();
    let options = ["--cluster-enabled", "yes", "--cluster-node-timeout", DEAD_AFTER, "--cluster-port", &bus];
    let replication = ["--repl-diskless-sync-delay", "0"];
    options.iter().chain(&replication).map(|option| (*option).to_owned()).collect()
}

#[track_caller]
fn said_ok(server: &RedisServer, command: &[&str]) {
    assert_eq!(server.cli(command), "OK", "{command:?}");
}
