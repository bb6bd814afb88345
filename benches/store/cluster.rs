//! A Redis Cluster that is some way off: real servers, each behind a relay that delays.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use portcullis::rules::limit::OnFailure;
use portcullis::store;
use portcullis::store::any_store::Nodes;
use portcullis::store::redis::{HashSlot, Mode};
use portcullis::store::{Failover, memory, redis};
use portcullis::words::clock::Clock;

use crate::delay::relay;
use crate::measure::Unobserved;
use crate::server::{Server, unused_address};

/// Three masters that share the slots.
pub(crate) struct Cluster {
    /// End with the cluster.
    _masters: Vec<Server>,
    /// Where clients reach them.
    relays: Vec<SocketAddr>,
}

/// Half of a round trip between two machines of one region.
const EACH_WAY: Duration = Duration::from_millis(1);

impl Cluster {
    pub(crate) fn start() -> Self {
        let listeners: Vec<TcpListener> =
            (0..3).map(|_| TcpListener::bind("127.0.0.1:0").expect("a free port")).collect();
        let relays: Vec<SocketAddr> =
            listeners.iter().map(|listener| listener.local_addr().expect("an address")).collect();
        let buses: Vec<String> = (0..3).map(|_| unused_address().port().to_string()).collect();
        let member = |(address, bus): (&SocketAddr, &String)| {
            // The servers tell clients the addresses of the relays.
            let announced = ["--cluster-announce-port", &address.port().to_string()];
            Server::with_options(&[&["--cluster-enabled", "yes", "--cluster-port", bus], &announced[..]].concat())
        };
        let masters: Vec<Server> = relays.iter().zip(&buses).map(member).collect();
        for (place, (master, listener)) in masters.iter().zip(listeners).enumerate() {
            relay(listener, master.address(), EACH_WAY);
            let (first, last) = (place * 5462, (place * 5462 + 5461).min(16383));
            master.ask(&format!("CLUSTER ADDSLOTSRANGE {first} {last}"));
            master.ask(&format!("CLUSTER SET-CONFIG-EPOCH {}", place + 1));
        }
        for (master, bus) in masters.iter().zip(&buses).skip(1) {
            masters[0].ask(&format!("CLUSTER MEET 127.0.0.1 {} {bus}", master.address().port()));
        }
        let is_whole = |master: &Server| {
            let told = master.ask("CLUSTER INFO");
            told.contains("cluster_known_nodes:3") && told.contains("cluster_state:ok")
        };
        while !masters.iter().all(is_whole) {
            thread::sleep(Duration::from_millis(50));
        }
        Self { _masters: masters, relays }
    }

    /// The store of a gateway.
    pub(crate) fn store(&self, hash_slot: HashSlot) -> Failover {
        let settings = store::StoreSettings {
            memory: memory::MemorySettings { max_keys: 100_000, max_sessions: 1000, snapshot: None },
            redis: None,
            on_failure: OnFailure::Deny,
            nodes: Nodes::Fixed(NonZeroU32::MIN),
        };
        let redis = redis::RedisSettings {
            urls: self.relays.iter().map(|relay| format!("redis://{relay}").parse().expect("an address")).collect(),
            mode: Mode::Cluster,
            timeout: Duration::from_secs(5),
            password_file: None,
            wait: 0,
            key_prefix: "portcullis".to_owned(),
            hash_slot,
        };
        Failover::new(&settings, redis, Clock::system(), Arc::new(Unobserved))
    }

    /// How long servers take that have nothing to decide.
    pub(crate) fn round_trips(&self) -> Vec<Duration> {
        let mut server = TcpStream::connect(self.relays[0]).expect("the server answers");
        server.set_nodelay(true).expect("a connected socket");
        let mut answer = [0; 7];
        let mut round_trip = || {
            let begun = Instant::now();
            server.write_all(b"PING\r\n").expect("the server reads");
            server.read_exact(&mut answer).expect("the server answers");
            begun.elapsed()
        };
        (0..300).map(|_| round_trip()).collect()
    }
}
