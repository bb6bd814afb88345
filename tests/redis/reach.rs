//! One gateway's connections to Redis, the task that monitors them, and their log.

use std::io;
use std::io::Write;
use std::num::NonZeroU32;
use std::sync::{Arc, LazyLock, Mutex, Once};
use std::time::Duration;

use portcullis::store::denied_until::DeniedUntil;
use portcullis::store::key_ring::Resets;
use portcullis::store::redis::links::Links;
use portcullis::store::redis::scripts::{Invocation, Script};
use portcullis::store::redis::settings::watch;
use portcullis::store::redis::{Failure, HashSlot, Mode, RedisSettings, SharedRedis, Time};
use portcullis::store::{MemoryStore, Observer, memory};
use portcullis::words::clock::{Clock, ManualClock};
use tokio_util::sync::CancellationToken;

use crate::support::Stopwatch;

/// How long a call waits for Redis.
pub(crate) const TIMEOUT: Duration = Duration::from_millis(250);

/// What a call takes at most that does not wait for Redis, on a machine that is busy with other tests.
pub(crate) const AT_ONCE: Duration = Duration::from_millis(50);

/// Normal again after this.
pub(crate) const SOON: Duration = Duration::from_secs(1);

pub(crate) const PREFIX: &str = "gate";

#[derive(Debug)]
pub(crate) struct Reach {
    pub(crate) shared: Arc<SharedRedis>,
    pub(crate) links: Links,
    pub(crate) denied: Arc<DeniedUntil>,
    pub(crate) seen: Arc<Seen>,
    stop: CancellationToken,
}

/// What metrics would show.
#[derive(Debug, Default)]
pub(crate) struct Seen(Mutex<Vec<&'static str>>);

impl Seen {
    pub(crate) fn failures(&self) -> Vec<&'static str> {
        self.0.lock().expect("no panic here").clone()
    }
}

impl Observer for Seen {
    fn round_trip(&self, _span: Duration) {}

    fn failed(&self, cause: &'static str) {
        self.0.lock().expect("no panic here").push(cause);
    }

    fn went_down(&self) {}

    fn overloaded(&self) {}
}

impl Reach {
    /// Begins to watch, and waits for the first contact.
    pub(crate) async fn begin(mode: Mode, urls: &[String]) -> Self {
        Self::waiting(mode, urls, TIMEOUT, Some(NonZeroU32::MIN)).await
    }

    /// The same, with calls that wait so long.
    async fn waiting(mode: Mode, urls: &[String], timeout: Duration, nodes: Option<NonZeroU32>) -> Self {
        log();
        let urls = urls.iter().map(|url| url.parse().expect("a url")).collect();
        let settings = RedisSettings {
            urls,
            mode,
            timeout,
            password_file: None,
            wait: 0,
            key_prefix: PREFIX.to_owned(),
            hash_slot: HashSlot::Key,
        };
        let seen = Arc::new(Seen::default());
        let shared = Arc::new(SharedRedis::new(settings, Time::OfServer, Arc::<Seen>::clone(&seen)));
        // Without a part nothing is sent that a test does not ask for.
        if let Some(nodes) = nodes {
            shared.fix_nodes(nodes);
        }
        let denied = Arc::new(DeniedUntil::new(100));
        let clock = Clock::Manual(ManualClock::default());
        let local = Arc::new(MemoryStore::new(
            &memory::MemorySettings { max_keys: 100, max_sessions: 1000, snapshot: None },
            clock,
        ));
        let stop = CancellationToken::new();
        let resets = Resets::new(&denied, &local, shared.key_ring());
        tokio::spawn(watch(Arc::clone(&shared), resets, stop.clone()));
        shared.first_contact(SOON.max(2 * timeout)).await;
        Self { links: Links::new(&shared), shared, denied, seen, stop }
    }

    pub(crate) async fn single(url: String) -> Self {
        Self::begin(Mode::Single, &[url]).await
    }

    /// With the patience that a handshake takes on a machine that is busy with other tests.
    pub(crate) async fn patient(url: String) -> Self {
        Self::waiting(Mode::Single, &[url], SOON * 20, Some(NonZeroU32::MIN)).await
    }

    /// With a part of every limit, which is asked for.
    pub(crate) async fn with_part(url: String) -> Self {
        Self::waiting(Mode::Single, &[url], TIMEOUT, None).await
    }

    /// Counts one up under this name; how many there are now, and how long that took.
    pub(crate) async fn call(&self, name: &str) -> (Result<i64, Failure>, Duration) {
        let name = format!("{PREFIX}:{name}");
        let begun = Stopwatch::start();
        let answer = self.links.call(self.links.slot(name.as_bytes()), &invocation(&name)).await;
        let count = answer.map(|value| redis::from_redis_value(value).expect("a number"));
        (count, begun.elapsed())
    }

    /// Calls until it is answered, and says how long that took.
    #[track_caller]
    pub(crate) fn until_well(&self, name: &str) -> impl Future<Output = Duration> {
        let caller = std::panic::Location::caller();
        let begun = Stopwatch::start();
        async move {
            while self.call(name).await.0.is_err() {
                assert!(begun.elapsed() < SOON * 20, "{caller}: not well after {:?}", begun.elapsed());
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            begun.elapsed()
        }
    }

    /// Calls until the outage is known. No call takes longer than the timeout.
    pub(crate) async fn until_away(&self, name: &str) {
        let begun = Stopwatch::start();
        loop {
            let (answer, took) = self.call(name).await;
            assert!(took < TIMEOUT + AT_ONCE, "{answer:?} took {took:?}");
            if answer == Err(Failure::Open) && !self.shared.status().up {
                return;
            }
            assert!(begun.elapsed() < SOON * 20, "no outage was noticed");
        }
    }

    /// Checks that calls fail at once.
    pub(crate) async fn is_away_at_once(&self, name: &str) {
        for _ in 0..20 {
            let (answer, took) = self.call(name).await;
            assert_eq!(answer, Err(Failure::Open));
            assert!(took < AT_ONCE, "failed after {took:?}");
        }
    }

    pub(crate) fn causes(&self) -> Vec<&'static str> {
        self.shared.status().down.iter().map(|server| server.cause).collect()
    }
}

impl Drop for Reach {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// A script that counts, and whose keys expire.
pub(crate) fn invocation(name: &str) -> Invocation {
    static SCRIPT: LazyLock<Script> = LazyLock::new(|| {
        let text = "local n = redis.call('INCR', KEYS[1]) redis.call('PEXPIRE', KEYS[1], 600000) return n".to_owned();
        Script { sha: redis::Script::new(&text).get_hash().to_owned(), text }
    });
    let mut command = redis::cmd("EVALSHA");
    command.arg(&SCRIPT.sha).arg(1).arg(name);
    Invocation { script: &SCRIPT, command }
}

static LOG: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// The lines of the log that hold all of these words.
pub(crate) fn logged(words: &[&str]) -> Vec<String> {
    let text = String::from_utf8_lossy(&LOG.lock().expect("no panic here")).into_owned();
    let lines = text.lines().filter(|line| words.iter().all(|word| line.contains(word)));
    lines.map(str::to_owned).collect()
}

fn log() {
    struct Lines;
    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            LOG.lock().expect("no panic here").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    static ONCE: Once = Once::new();
    ONCE.call_once(|| tracing_subscriber::fmt().with_ansi(false).with_writer(|| Lines).init());
}
