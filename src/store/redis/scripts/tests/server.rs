//! A real Redis for the tests of this process, and one connection to it.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use redis::{ConnectionLike, Value};

use super::redis_server::RedisServer;
use crate::rules::decision::batch::{Charged, KnownClientKey};
use crate::rules::decision::{Charge, Verdict};
use crate::rules::key::KeyHash;
use crate::rules::limit::Rule;
use crate::store::redis::scripts::{
    DecisionCall, Invocation, KeySettlement, LeaseQuestions, Purpose, SettlementAction, invocation, settle,
};
use crate::store::redis::{HashSlot, KeyNames, Time};
use crate::words::clock::{Clock, ManualClock, Timestamp};

/// Keys of one test, under a prefix of its own. When it is over, each of them has an end and is no larger than it may
/// be.
pub(super) struct Keys {
    _server: Arc<RedisServer>,
    connection: redis::Connection,
    pub(super) prefix: String,
    pub(super) hand: ManualClock,
    pub(super) time: Time,
    pub(super) largest: usize,
}

impl Keys {
    /// With a manual clock that starts at midnight.
    pub(super) fn new() -> Self {
        let hand = ManualClock::at(Timestamp::from_micros(20_513 * 86_400_000_000));
        Self::on(shared(), Time::Given(Clock::Manual(hand.clone())), hand)
    }

    /// With the clock of the server.
    pub(super) fn of_server() -> Self {
        Self::on(shared(), Time::OfServer, ManualClock::default())
    }

    pub(super) fn on(server: Arc<RedisServer>, time: Time, hand: ManualClock) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let prefix = format!("test-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let client = redis::Client::open(server.url()).expect("an address");
        let connection = client.get_connection().expect("the server answers");
        Self { _server: server, connection, prefix, hand, time, largest: 20_000 }
    }

    /// Sends a command. An error is returned as a value.
    pub(super) fn send(&mut self, command: &redis::Cmd) -> Value {
        self.connection.req_packed_command(&command.get_packed_command()).unwrap_or_else(|error| {
            let server = error.into_server_errors().and_then(|errors| errors.first().map(|(_, error)| error.clone()));
            Value::ServerError(server.expect("the connection stands"))
        })
    }

    /// Runs a script, and loads it first if the server does not have it.
    pub(super) fn run(&mut self, invocation: &Invocation) -> Value {
        let value = self.send(&invocation.command);
        if matches!(&value, Value::ServerError(error) if error.code() == "NOSCRIPT") {
            let mut load = redis::cmd("SCRIPT");
            load.arg("LOAD").arg(&invocation.script.text);
            assert_eq!(self.send(&load), Value::BulkString(invocation.script.sha.clone().into_bytes()));
            return self.send(&invocation.command);
        }
        value
    }

    pub(super) fn invocation(&self, purpose: Purpose, holder: u32, charges: &[&Charge<'_>]) -> Invocation {
        self.invocation_of(purpose, holder, charges, &[])
    }

    fn invocation_of(
        &self,
        purpose: Purpose,
        holder: u32,
        charges: &[&Charge<'_>],
        known: &[KnownClientKey],
    ) -> Invocation {
        let (names, time) = (self.names(), &self.time);
        let leases = Some(LeaseQuestions { nodes: NonZeroU32::MIN, requests: &[] });
        DecisionCall { names, time, holder, charges, known, leases }.invocation(purpose)
    }

    #[track_caller]
    pub(super) fn decide_for_client(
        &mut self,
        purpose: Purpose,
        charges: &[&Charge<'_>],
        known: &[KnownClientKey],
    ) -> Vec<Verdict> {
        let value = self.run(&self.invocation_of(purpose, 7, charges, known));
        invocation::read(&value, charges).unwrap_or_else(|| panic!("{value:?}")).verdicts
    }

    #[track_caller]
    pub(super) fn decide(&mut self, purpose: Purpose, charges: &[&Charge<'_>]) -> Vec<Verdict> {
        self.decide_for(7, purpose, charges)
    }

    #[track_caller]
    pub(super) fn decide_for(&mut self, holder: u32, purpose: Purpose, charges: &[&Charge<'_>]) -> Vec<Verdict> {
        let value = self.run(&self.invocation(purpose, holder, charges));
        invocation::read(&value, charges).unwrap_or_else(|| panic!("{value:?}")).verdicts
    }

    /// Settles, and returns which of the settlements made room again, or remember a client that was known.
    #[track_caller]
    pub(super) fn settle(&mut self, entries: &[KeySettlement<'_>]) -> Vec<usize> {
        let value = self.run(&settle(self.names(), &self.channel(), &self.time, entries));
        let (published, _, reopened) = invocation::settled(&value).unwrap_or_else(|| panic!("{value:?}"));
        assert!(published);
        reopened
    }

    pub(super) fn names(&self) -> KeyNames<'_> {
        KeyNames { prefix: &self.prefix, hash_slot: HashSlot::Key }
    }

    pub(super) fn channel(&self) -> String {
        format!("{}:resets", self.prefix)
    }

    #[track_caller]
    pub(super) fn give_back(&mut self, charges: &[&Charge<'_>], taken: &[&Charged]) {
        let mut entries = Vec::new();
        for (charge, charged) in charges.iter().zip(taken) {
            let action = match charge.rule {
                Rule::Concurrent(_) => SettlementAction::Release { holder: 7, slots: 1 },
                rule => SettlementAction::TakeBack { rule, charged },
            };
            entries.push(KeySettlement { key: charge.key, action });
        }
        self.settle(&entries);
    }

    /// The state of a key as `DUMP` shows it, or nil.
    pub(super) fn dump(&mut self, key: KeyHash) -> Value {
        let mut command = redis::cmd("DUMP");
        command.arg(self.names().name(key));
        self.send(&command)
    }

    fn strings(&mut self, words: &[&str]) -> Vec<String> {
        let mut command = redis::cmd(words[0]);
        words[1..].iter().for_each(|word| _ = command.arg(*word));
        redis::from_redis_value(self.send(&command)).expect("names")
    }

    pub(super) fn number(&mut self, words: &[&str]) -> i64 {
        let mut command = redis::cmd(words[0]);
        words[1..].iter().for_each(|word| _ = command.arg(*word));
        redis::from_redis_value(self.send(&command)).unwrap_or(-9)
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        for key in self.strings(&["KEYS", &format!("{}:*", self.prefix)]) {
            let (ttl, size) = (self.number(&["PTTL", &key]), self.number(&["STRLEN", &key]));
            // -2: the key has expired meanwhile. 0: it does so within this millisecond.
            assert!(ttl == -2 || ttl >= 0, "{key} lives {ttl} ms");
            assert!(size <= i64::try_from(self.largest).expect("a size"), "{key} has {size} bytes");
            let is_leases = key.starts_with(&format!("{}:leases:", self.prefix));
            assert!(is_leases || key.len() == self.prefix.len() + 33, "{key}");
            self.number(&["DEL", &key]);
        }
    }
}

/// The server of this process. It ends with its last user.
fn shared() -> Arc<RedisServer> {
    static SERVER: Mutex<Weak<RedisServer>> = Mutex::new(Weak::new());
    let mut shared = SERVER.lock().unwrap_or_else(PoisonError::into_inner);
    shared.upgrade().unwrap_or_else(|| {
        let server = Arc::new(RedisServer::start());
        *shared = Arc::downgrade(&server);
        server
    })
}
