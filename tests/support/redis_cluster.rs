//! A Redis Cluster of six servers, and a master with three sentinels: real servers on loopback.

use std::fs;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

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
        // The master sends nothing until the replica has acknowledged what it has, although both call it up to date before.
        said_ok(&master, &["SET", "of the set-up", "here"]);
        eventually("the replica is in step", || replica.cli(&["GET", "of the set-up"]) == "here");
        assert_eq!(master.cli(&["DEL", "of the set-up"]), "1");
        let watchers: Vec<Watcher> = (0..3).map(|_| Watcher::new()).collect();
        let sentinels: Vec<Sentinel> = (0..3).map(|own| Sentinel::start(&watchers, own, &master, &replica)).collect();
        let are_ready = |sentinel: &Sentinel| {
            let replicas = sentinel.cli(&["SENTINEL", "REPLICAS", "sessions"]);
            let others = sentinel.cli(&["SENTINEL", "CKQUORUM", "sessions"]);
            replicas.contains("master-link-status\nok") && others.starts_with("OK 3 usable Sentinels")
        };
        eventually("the sentinels reach each other and the replica", || sentinels.iter().all(are_ready));
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

/// How one sentinel is named and reached by the others.
#[derive(Debug)]
struct Watcher {
    id: String,
    address: SocketAddr,
}

impl Watcher {
    fn new() -> Self {
        Self { id: format!("{:040x}", fastrand::u128(..)), address: unused_address() }
    }
}

impl Sentinel {
    /// Starts one of these watchers. As after a restart, it knows the others and the replica: it would find them too, in
    /// some seconds, and on a busy machine in many.
    fn start(watchers: &[Watcher], own: usize, master: &RedisServer, replica: &RedisServer) -> Self {
        let folder = tempfile::tempdir().expect("a folder for the sentinel");
        let Watcher { id, address } = &watchers[own];
        // A sentinel keeps what it learns in its configuration.
        let mut config = format!(
            "bind 127.0.0.1\nport {}\nsentinel myid {id}\nsentinel monitor sessions 127.0.0.1 {} 2\nsentinel down-after-milliseconds sessions {DEAD_AFTER}\nsentinel failover-timeout sessions 5000\nsentinel known-replica sessions 127.0.0.1 {}\n",
            address.port(),
            master.address().port(),
            replica.address().port()
        );
        for other in watchers.iter().filter(|other| other.id != *id) {
            let known = format!("sentinel known-sentinel sessions 127.0.0.1 {} {}\n", other.address.port(), other.id);
            config.push_str(&known);
        }
        fs::write(folder.path().join("sentinel.conf"), config).expect("a file in the folder");
        let child = Command::new("redis-sentinel")
            .arg("sentinel.conf")
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("redis-sentinel is installed: ./tests/run installs it");
        Self { child, address: *address, _folder: folder }
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
