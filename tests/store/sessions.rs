//! Sessions that the gateways on one Redis share.

use std::collections::HashMap;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use portcullis::rules::decision::{SessionChange, SignIn};
use portcullis::rules::key::KeyHash;
use portcullis::store::memory::MemorySettings;
use portcullis::store::redis::Mode;
use portcullis::store::{AnyStore, MemoryStore, MovableStore};
use portcullis::words::clock::Clock;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use crate::node::{Node, SOON};
use crate::surroundings::{RedisCluster, RedisServer, Stopwatch, within};

/// What one gateway learns, the others know within this.
const SECOND: Duration = Duration::from_secs(1);

const HOUR: Duration = Duration::from_secs(3600);

/// A gateway as far as its sessions go.
struct Gateway {
    _node: Node,
    store: AnyStore,
}

impl Gateway {
    fn of(node: Node) -> Self {
        Self { store: AnyStore::Shared(node.store.on_another_core()), _node: node }
    }

    async fn on(server: &RedisServer) -> Self {
        Self::of(Node::on(server, 1).await)
    }

    fn account(&self, session: u128) -> Option<u128> {
        self.store.sessions().account(KeyHash(session), Clock::system().now()).map(|account| account.0)
    }

    async fn sign_in(&self, account: u128, learned: &[u128], carried: &[u128]) -> bool {
        self.sign_in_for(HOUR, account, learned, carried).await
    }

    async fn sign_in_for(&self, keep: Duration, account: u128, learned: &[u128], carried: &[u128]) -> bool {
        let hashes = |numbers: &[u128]| numbers.iter().copied().map(KeyHash).collect();
        let (learned, carried) = (hashes(learned), hashes(carried));
        self.store.sign_in(SignIn { account: KeyHash(account), keep, learned, carried }).await
    }

    async fn renew(&self, old: u128, new: u128) {
        let change = SessionChange::Renew { old: KeyHash(old), new: KeyHash(new) };
        self.store.change_sessions(vec![change]).await;
    }

    async fn learn(&self, session: u128, account: u128) {
        let change = SessionChange::Learn { session: KeyHash(session), account: KeyHash(account), keep: HOUR };
        self.store.change_sessions(vec![change]).await;
    }

    async fn forget(&self, session: u128) {
        self.store.change_sessions(vec![SessionChange::Forget(KeyHash(session))]).await;
    }
}

/// Fails unless every gateway knows this account of the session within a second.
async fn know<'g>(gateways: impl IntoIterator<Item = &'g Gateway>, session: u128, account: Option<u128>) {
    for gateway in gateways {
        let promise = format!("{session} is of {account:?}");
        within(&promise, SECOND, async || gateway.account(session) == account).await;
    }
}

/// The sessions that Redis has.
fn kept(server: &RedisServer) -> usize {
    server.cli(&["ZCARD", "away:{sessions}:stamps"]).parse().expect("a number")
}

#[tokio::test]
async fn what_one_gateway_learns_the_others_know_within_a_second() {
    let server = RedisServer::start();
    let gateways = [Gateway::on(&server).await, Gateway::on(&server).await, Gateway::on(&server).await];
    assert!(gateways[0].sign_in(7, &[1, 2], &[]).await);
    assert_eq!(gateways[0].account(1), Some(7), "at once here");
    know(&gateways, 1, Some(7)).await;
    know(&gateways, 2, Some(7)).await;
    gateways[1].renew(1, 3).await;
    know(&gateways, 3, Some(7)).await;
    gateways[2].forget(1).await;
    know(&gateways, 1, None).await;
    assert_eq!(gateways[0].account(3), Some(7));
    // One that starts later knows what there is, and no more.
    let later = Gateway::on(&server).await;
    know([&later], 3, Some(7)).await;
    assert_eq!((later.account(1), later.account(2)), (None, Some(7)));
    for key in ["away:{sessions}", "away:{sessions}:stamps", "away:{sessions}:forgotten"] {
        assert!(server.cli(&["PTTL", key]).parse::<i64>().expect("a number") > 3_500_000, "{key}");
    }
}

#[tokio::test]
async fn a_session_of_another_account_is_seen_by_every_gateway_at_once() {
    let server = RedisServer::start();
    let gateways = [Gateway::on(&server).await, Gateway::on(&server).await];
    for round in 0..300_u128 {
        let (here, there) = (usize::from(round % 2 == 1), usize::from(round % 2 == 0));
        let (mallory, victim) = (1000 + round, 5000 + round);
        let session = 10_000 * (round + 1);
        assert!(gateways[here].sign_in(mallory, &[session], &[]).await);
        assert!(!gateways[there].sign_in(victim, &[session + 1], &[session]).await, "{round}");
        gateways[there].renew(session, session + 2).await;
        assert!(!gateways[here].sign_in(victim, &[session + 1], &[session + 2]).await, "{round}, renewed");
        assert!(gateways[there].sign_in(mallory, &[session + 3], &[session, session + 2]).await, "its own");
    }
    assert!(gateways.iter().all(|gateway| (1..300).all(|round| gateway.account(10_000 * round + 1).is_none())));
}

#[tokio::test]
async fn a_session_that_is_used_at_one_gateway_is_remembered_by_all() {
    let server = RedisServer::start();
    let gateways = [Gateway::on(&server).await, Gateway::on(&server).await];
    let keep = Duration::from_secs(3);
    assert!(gateways[0].sign_in_for(keep, 7, &[1, 2], &[]).await);
    know(&gateways, 1, Some(7)).await;
    let begun = Stopwatch::start();
    while begun.elapsed() < Duration::from_secs(6) {
        assert_eq!(gateways[0].account(1), Some(7), "{:?}", begun.elapsed());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(gateways[1].account(1), Some(7), "it was used elsewhere");
    assert_eq!([gateways[0].account(2), gateways[1].account(2)], [None; 2], "it was not used");
    let later = Gateway::on(&server).await;
    assert_eq!([later.account(1), later.account(2)], [Some(7), None]);
    within("it is forgotten", SOON, async || {
        tokio::time::sleep(keep + SECOND).await;
        gateways[1].account(1).is_none()
    })
    .await;
    assert!(later.sign_in(8, &[9], &[1]).await, "its time is over in Redis too");
}

#[tokio::test]
async fn while_redis_is_down_every_gateway_decides_by_what_it_knows_and_tells_it_later() {
    let mut server = RedisServer::start();
    let gateways = [Gateway::on(&server).await, Gateway::on(&server).await];
    assert!(gateways[0].sign_in(7, &[1, 2], &[]).await);
    know(&gateways, 2, Some(7)).await;
    server.kill();
    assert!(!gateways[1].sign_in(8, &[3], &[1]).await);
    assert!(gateways[1].sign_in(8, &[4], &[5]).await);
    assert_eq!((gateways[1].account(4), gateways[1].account(1)), (Some(8), Some(7)));
    gateways[1].renew(4, 6).await;
    gateways[0].forget(2).await;
    server.restart();
    for session in [4, 6] {
        within("the other knows it", SOON, async || gateways[0].account(session) == Some(8)).await;
    }
    within("Redis has all again", SOON, async || kept(&server) >= 3).await;
    let later = Gateway::on(&server).await;
    assert_eq!([1, 4, 6].map(|session| later.account(session)), [Some(7), Some(8), Some(8)]);
}

#[tokio::test]
async fn what_is_forgotten_while_redis_does_not_answer_stays_forgotten() {
    let server = RedisServer::start();
    let gateways = [Gateway::on(&server).await, Gateway::on(&server).await];
    assert!(gateways[0].sign_in(7, &[1, 2], &[]).await);
    know(&gateways, 2, Some(7)).await;
    server.pause();
    gateways[0].forget(1).await;
    assert_eq!((gateways[0].account(1), gateways[1].account(1)), (None, Some(7)));
    server.resume();
    within("the other forgets it", SOON, async || gateways[1].account(1).is_none()).await;
    within("Redis forgets it", SOON, async || kept(&server) == 1).await;
    tokio::time::sleep(SECOND).await;
    assert_eq!((gateways[0].account(1), gateways[0].account(2)), (None, Some(7)));
}

#[tokio::test]
async fn a_redis_that_was_emptied_gets_all_sessions_again() {
    let server = RedisServer::start();
    let gateways = [Gateway::on(&server).await, Gateway::on(&server).await];
    for session in 1..=1200 {
        assert!(gateways[usize::from(session % 2 == 0)].sign_in(session % 50, &[session], &[]).await);
        if session == 200 {
            // Last uses are known to a tenth of a second.
            tokio::time::sleep(SECOND / 2).await;
        }
    }
    know(&gateways, 1200, Some(0)).await;
    assert_eq!(server.cli(&["FLUSHALL"]), "OK");
    // Nodes have room for 1000.
    within("Redis has them again", SOON, async || kept(&server) == 1000).await;
    let later = Gateway::on(&server).await;
    assert!((201..=1200).all(|session| later.account(session) == Some(session % 50)));
    assert!(!later.sign_in(99, &[5000], &[1000]).await);
}

#[tokio::test]
async fn when_there_is_no_more_room_the_longest_unused_go_first_everywhere() {
    let server = RedisServer::start();
    let gateways = [Gateway::on(&server).await, Gateway::on(&server).await];
    assert!(gateways[0].sign_in(7, &[1], &[]).await && gateways[0].sign_in(7, &[2], &[]).await);
    tokio::time::sleep(Duration::from_millis(1100)).await;
    for session in 10..1008 {
        gateways[0].sign_in(8, &[session], &[]).await;
    }
    // Uses are told when a part of an hour has passed: a use of a session that nobody was told of counts here only.
    assert_eq!(gateways[0].account(1), Some(7));
    gateways[0].sign_in(8, &[5000], &[]).await;
    know(&gateways, 5000, Some(8)).await;
    assert_eq!((gateways[0].account(1), gateways[0].account(2)), (Some(7), None));
    assert_eq!(kept(&server), 1000);
    assert_eq!(server.cli(&["HLEN", "away:{sessions}"]), "1001", "and the version");
}

#[tokio::test]
async fn gateways_that_may_not_publish_know_sessions_within_a_second_all_the_same() {
    let server = RedisServer::start();
    let rules = "on >secret ~* &* +@all -publish";
    let rules = ["ACL", "SETUSER", "mute"].into_iter().chain(rules.split(' ')).collect::<Vec<_>>();
    assert_eq!(server.cli(&rules), "OK");
    let url = server.url().replace("redis://", "redis://mute:secret@");
    let start = async || Gateway::of(Node::start(std::slice::from_ref(&url), Mode::Single, 1).await);
    let gateways = [start().await, start().await];
    for session in 1..20 {
        assert!(gateways[0].sign_in(7, &[session], &[]).await);
        know(&gateways, session, Some(7)).await;
    }
    gateways[1].forget(3).await;
    know(&gateways, 3, None).await;
}

#[tokio::test]
async fn the_rights_that_the_book_lists_are_enough_for_sessions() {
    let server = RedisServer::start();
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/src/redis.md")).expect("the page");
    let lines = page.lines().skip_while(|line| !line.contains("ACL SETUSER gate")).take_while(|line| *line != "```");
    let words: Vec<String> =
        lines.flat_map(str::split_whitespace).map(|word| word.replace("portcullis:", "away:")).collect();
    assert_eq!(server.cli(&words.iter().map(String::as_str).collect::<Vec<_>>()), "OK", "{words:?}");
    let url = server.url().replace("redis://", "redis://gate:PASSWORD@");
    let start = async || Gateway::of(Node::start(std::slice::from_ref(&url), Mode::Single, 1).await);
    let gateways = [start().await, start().await];
    for session in 1..1100 {
        assert!(gateways[0].sign_in_for(Duration::from_secs(16), 7, &[session], &[]).await);
    }
    know(&gateways, 1099, Some(7)).await;
    gateways[1].renew(1099, 2000).await;
    gateways[1].forget(1099).await;
    know(&gateways, 2000, Some(7)).await;
    know(&gateways, 1099, None).await;
    tokio::time::sleep(SECOND).await;
    assert_eq!(gateways[0].account(2000), Some(7), "a use that is told");
    let later = start().await;
    know([&later], 2000, Some(7)).await;
    assert_eq!(server.cli(&["ACL", "LOG"]), "", "nothing was refused");
}

#[tokio::test]
async fn gateways_that_missed_messages_load_what_they_missed() {
    let server = RedisServer::start();
    let gateways = [Gateway::on(&server).await, Gateway::on(&server).await];
    assert!(gateways[0].sign_in(7, &[1, 2], &[]).await);
    know(&gateways, 2, Some(7)).await;
    for round in 0..5 {
        server.cli(&["CLIENT", "KILL", "TYPE", "pubsub"]);
        assert!(gateways[0].sign_in(8, &[100 + round], &[]).await);
        gateways[0].forget(if round == 0 { 1 } else { 99 + round }).await;
        for gateway in &gateways {
            within("it is known", SOON, async || gateway.account(100 + round) == Some(8)).await;
            within("it is forgotten", SOON, async || {
                gateway.account(if round == 0 { 1 } else { 99 + round }).is_none()
            })
            .await;
        }
    }
}

#[tokio::test]
async fn every_gateway_of_a_cluster_knows_sessions() {
    let cluster = RedisCluster::start();
    let urls: Vec<String> =
        cluster.urls().split([',', '[', ']', '"', ' ']).filter(|url| !url.is_empty()).map(str::to_owned).collect();
    let start = async || Gateway::of(Node::start(&urls, Mode::Cluster, 1).await);
    let gateways = [start().await, start().await, start().await];
    assert!(gateways[0].sign_in(7, &[1], &[]).await);
    assert!(!gateways[1].sign_in(8, &[2], &[1]).await);
    know(&gateways, 1, Some(7)).await;
    gateways[1].renew(1, 3).await;
    know(&gateways, 3, Some(7)).await;
    gateways[2].forget(1).await;
    know(&gateways, 1, None).await;
}

#[derive(Clone, Debug)]
enum Step {
    SignIn { by: usize, account: u128, learned: Vec<u128>, carried: Vec<u128> },
    Renew { by: usize, old: u128, new: u128 },
    Learn { by: usize, session: u128, account: u128 },
    Forget { by: usize, session: u128 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let session = 0..12_u128;
    vec(
        prop_oneof![
            3 => (0..2_usize, 0..3_u128, vec(session.clone(), 0..3), vec(session.clone(), 0..3))
                .prop_map(|(by, account, learned, carried)| Step::SignIn { by, account, learned, carried }),
            2 => (0..2_usize, session.clone(), session.clone()).prop_map(|(by, old, new)| Step::Renew { by, old, new }),
            1 => (0..2_usize, session.clone(), 0..3_u128)
                .prop_map(|(by, session, account)| Step::Learn { by, session, account }),
            1 => (0..2_usize, session).prop_map(|(by, session)| Step::Forget { by, session }),
        ],
        0..60,
    )
}

#[test]
fn any_history_at_two_gateways_is_that_of_one_table() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let server = RedisServer::start();
    let gateways = runtime.block_on(async { Arc::new([Gateway::on(&server).await, Gateway::on(&server).await]) });
    let histories = AtomicU32::new(1);
    let mut runner = TestRunner::new(ProptestConfig::default());
    let result = runner.run(&steps(), |steps| {
        let history = u128::from(histories.fetch_add(1, Ordering::Relaxed));
        let at = |session: u128| history * 1000 + session;
        runtime.block_on(async {
            let mut model: HashMap<u128, u128> = HashMap::new();
            for step in &steps {
                match step {
                    Step::SignIn { by, account, learned, carried } => {
                        let own = carried.iter().all(|session| model.get(session).is_none_or(|of| of == account));
                        let wide = |numbers: &[u128]| numbers.iter().map(|number| at(*number)).collect::<Vec<_>>();
                        // What another gateway has ended less than a second ago may count against a success here.
                        let is_own = gateways[*by].sign_in(*account, &wide(learned), &wide(carried)).await;
                        assert!(own || !is_own, "{step:?}");
                        for session in learned.iter().filter(|_| is_own) {
                            model.insert(*session, *account);
                        }
                    }
                    Step::Renew { by, old, new } => {
                        // A gateway that does not know yet that a session has ended renews it.
                        know([&gateways[*by]], at(*old), model.get(old).copied()).await;
                        gateways[*by].renew(at(*old), at(*new)).await;
                        if let Some(account) = model.get(old).copied() {
                            model.insert(*new, account);
                        }
                    }
                    Step::Learn { by, session, account } => {
                        know([&gateways[*by]], at(*session), model.get(session).copied()).await;
                        gateways[*by].learn(at(*session), *account).await;
                        model.entry(*session).or_insert(*account);
                    }
                    Step::Forget { by, session } => {
                        gateways[*by].forget(at(*session)).await;
                        model.remove(session);
                    }
                }
            }
            for gateway in &*gateways {
                for session in 0..12 {
                    know([gateway], at(session), model.get(&session).copied()).await;
                }
            }
        });
        Ok(())
    });
    result.expect("every history holds");
    drop(gateways);
}

#[tokio::test]
#[ignore = "measures"]
#[expect(clippy::print_stderr, reason = "it is for people")]
async fn what_a_million_sessions_take_is_printed() {
    const MOST: usize = 1_000_000;
    let resident = || {
        let pages = fs::read_to_string("/proc/self/statm").expect("Linux");
        pages.split(' ').nth(1).expect("a number").parse::<usize>().expect("a number") * 4096
    };
    let settings = MemorySettings { max_keys: 1, max_sessions: MOST, snapshot: None };
    let store = AnyStore::Memory(Arc::new(MovableStore::from(MemoryStore::new(&settings, Clock::system()))));
    let before = resident();
    for session in 0..MOST as u128 * 11 / 10 {
        let learned = [KeyHash(session)].into_iter().collect();
        let sign_in = SignIn { account: KeyHash(session), keep: HOUR, learned, carried: [].into_iter().collect() };
        assert!(store.sign_in(sign_in).await);
    }
    let count = store.sessions().count();
    eprintln!("{count} sessions, {} B each", (resident() - before) / count);
}
