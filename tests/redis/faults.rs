//! A server that answers with errors: each fault has a name in the metrics, and the gateway recovers by itself.

use portcullis::store::redis::{Failure, Mode};

use crate::reach::{Reach, SOON, logged};
use crate::support::{RedisServer, until};

/// How many commands the server has refused so far.
fn refusals(server: &RedisServer, login: &[&str]) -> i64 {
    number(&server.cli(&[login, &["INFO", "stats"]].concat()), "total_error_replies:")
}

/// The number behind this name in what `INFO` says.
fn number(info: &str, name: &str) -> i64 {
    let found = info.lines().find_map(|line| line.strip_prefix(name));
    let digits = found.unwrap_or_default().split(|letter: char| !letter.is_ascii_digit()).next();
    digits.unwrap_or_default().parse().unwrap_or_default()
}

/// Breaks the server, checks that the outage has this cause, repairs it, and checks that it is used again within a second.
async fn goes_and_comes(server: &RedisServer, cause: &str, break_it: &[&str], mend_it: &[&str]) {
    let reach = Reach::single(server.url()).await;
    assert_eq!(reach.call("a").await.0, Ok(1));
    assert_eq!(server.cli(break_it), "OK");
    assert_eq!(reach.call("a").await.0, Err(Failure::Refused));
    assert_eq!(reach.seen.failures(), [cause]);
    reach.is_away_at_once("a").await;
    let before = refusals(server, &[]);
    until("it was probed again, and refused that", || refusals(server, &[]) > before + 1).await;
    reach.is_away_at_once("a").await;
    assert_eq!(reach.causes(), [cause]);
    assert_eq!(server.cli(mend_it), "OK");
    let waited = reach.until_well("a").await;
    assert!(waited < SOON / 2, "back after {waited:?}");
    let address = server.address().to_string();
    until("it is said to be back", || logged(&[&address, "is back, "]).len() == 1).await;
    assert_eq!(logged(&[&address, "is down", cause]).len(), 1);
}

#[tokio::test]
async fn readonly_after_it_became_a_replica() {
    let server = RedisServer::start();
    goes_and_comes(&server, "readonly", &["REPLICAOF", "127.0.0.1", "1"], &["REPLICAOF", "NO", "ONE"]).await;
}

#[tokio::test]
async fn out_of_memory() {
    let server = RedisServer::start();
    let (out, back) = (["CONFIG", "SET", "maxmemory", "1"], ["CONFIG", "SET", "maxmemory", "0"]);
    goes_and_comes(&server, "oom", &out, &back).await;
}

#[tokio::test]
async fn too_few_replicas() {
    let server = RedisServer::start();
    let (out, back) =
        (["CONFIG", "SET", "min-replicas-to-write", "1"], ["CONFIG", "SET", "min-replicas-to-write", "0"]);
    goes_and_comes(&server, "noreplicas", &out, &back).await;
}

#[tokio::test]
async fn no_permission_any_more() {
    let server = RedisServer::start();
    let (out, back) = (["ACL", "SETUSER", "default", "-evalsha"], ["ACL", "SETUSER", "default", "+evalsha"]);
    goes_and_comes(&server, "noperm", &out, &back).await;
    let address = server.address().to_string();
    assert_eq!(logged(&[&address, "is down", "add `+evalsha` to its rules"]).len(), 1, "{:?}", logged(&[&address]));
}

#[tokio::test]
async fn a_command_that_is_renamed_is_named() {
    let server = RedisServer::with_options(&["--rename-command", "EVALSHA", "hidden"]);
    let reach = Reach::single(server.url()).await;
    reach.is_away_at_once("a").await;
    let address = server.address().to_string();
    let told = || logged(&[&address, "is down", "it does not know", "`rename-command`"]);
    until("the command is named", || told().len() == 1).await;
    assert!(told()[0].to_ascii_lowercase().contains("evalsha"), "{:?}", told());
}

#[tokio::test]
async fn a_wrong_password_is_away_until_it_is_right() {
    let server = RedisServer::start();
    let reach = Reach::single(format!("redis://:right@{}", server.address())).await;
    assert_eq!(reach.causes(), ["noauth"], "the server has no password at all");
    reach.is_away_at_once("a").await;
    assert_eq!(server.cli(&["CONFIG", "SET", "requirepass", "other"]), "OK");
    let before = refusals(&server, &["-a", "other"]);
    until("it was tried again", || refusals(&server, &["-a", "other"]) > before + 1).await;
    assert_eq!(reach.causes(), ["noauth"]);
    server.cli(&["-a", "other", "CONFIG", "SET", "requirepass", "right"]);
    let waited = reach.until_well("a").await;
    assert!(waited < SOON / 2, "back after {waited:?}");
    let address = server.address().to_string();
    assert_eq!(logged(&[&address, "is down", "noauth"]).len(), 1);
    assert_eq!(logged(&["right"]), [""; 0], "no password in the log");
}

#[tokio::test]
async fn a_password_that_the_gateway_lacks_is_named_too() {
    let server = RedisServer::with_options(&["--requirepass", "secret"]);
    let reach = Reach::single(server.url()).await;
    assert_eq!(reach.causes(), ["noauth"]);
    server.cli(&["-a", "secret", "CONFIG", "SET", "requirepass", ""]);
    assert!(reach.until_well("a").await < SOON / 2);
}

#[tokio::test]
async fn a_server_that_is_not_what_the_configuration_says_is_told_in_words() {
    let server = RedisServer::start();
    let url = server.url();
    let told = [
        (Mode::Single, format!("redis://{}/99", server.address()), "it has no database with that number"),
        (Mode::Sentinel, url.clone(), "it is not a sentinel"),
        (Mode::Cluster, url, "it is not part of a cluster"),
    ];
    for (mode, url, words) in told {
        let _reach = Reach::begin(mode, &[url]).await;
        until(words, || logged(&[words]).len() == 1).await;
    }
}

#[tokio::test]
async fn loading() {
    let options = [
        "--enable-debug-command",
        "yes",
        "--key-load-delay",
        "1000",
        "--loading-process-events-interval-bytes",
        "1024",
    ];
    let mut server = RedisServer::with_options(&options);
    server.cli(&["DEBUG", "POPULATE", "1500"]);
    assert_eq!(server.cli(&["SAVE"]), "OK");
    let reach = Reach::single(server.url()).await;
    reach.until_well("a").await;
    server.restart();
    until("it is away because it loads", || reach.causes() == ["loading"]).await;
    reach.is_away_at_once("a").await;
    until("it has loaded", || !server.cli(&["GET", "x"]).contains("LOADING")).await;
    let waited = reach.until_well("a").await;
    assert!(waited < SOON / 2, "back after {waited:?}");
}

#[tokio::test]
async fn a_script_of_others_that_never_ends() {
    let server = RedisServer::with_options(&["--busy-reply-threshold", "50"]);
    let reach = Reach::single(server.url()).await;
    let port = server.address().port().to_string();
    let mut endless = std::process::Command::new("redis-cli")
        .args(["-p", &port, "EVAL", "while true do end", "0"])
        .spawn()
        .expect("redis-cli is installed");
    until("it is busy", || server.cli(&["PING"]).contains("BUSY")).await;
    reach.until_away("a").await;
    reach.is_away_at_once("a").await;
    until("it is named", || reach.causes() == ["busy"]).await;
    assert_eq!(server.cli(&["SCRIPT", "KILL"]), "OK");
    let waited = reach.until_well("a").await;
    assert!(waited < SOON / 2, "back after {waited:?}");
    endless.wait().expect("it ended");
}

#[tokio::test]
async fn scripts_that_are_flushed_under_load_are_loaded_again() {
    let server = RedisServer::start();
    let reach = Reach::single(server.url()).await;
    let mut answered = 0;
    for _ in 0..20 {
        let calls = futures_util::future::join_all((0..100).map(|_| reach.call("a")));
        let (calls, flushed) = tokio::join!(calls, async { server.cli(&["SCRIPT", "FLUSH"]) });
        assert_eq!(flushed, "OK");
        answered += calls.iter().filter(|(answer, _)| answer.is_ok()).count();
    }
    assert_eq!(answered, 2000);
    assert_eq!(server.cli(&["GET", "gate:a"]), "2000", "each was done once");
    assert_eq!(reach.seen.failures(), [""; 0]);
}

#[tokio::test]
async fn a_user_with_few_rights_is_enough() {
    let server = RedisServer::start();
    let rights =
        ["ACL", "SETUSER", "gateway", "on", ">secret", "~gate:*", "resetchannels", "&gate:*", "+@all", "-@dangerous"];
    assert_eq!(server.cli(&rights), "OK");
    let reach = Reach::single(format!("redis://gateway:secret@{}/0", server.address())).await;
    assert_eq!(reach.call("a").await.0, Ok(1));
    let before = reach.denied.epoch();
    until("it hears of resets", || {
        server.cli(&["PUBLISH", "gate:resets", &format!("{:032x}", 1)]);
        reach.denied.epoch() > before + 2
    })
    .await;
    assert_eq!(logged(&[&server.address().to_string()]), [""; 0]);
}

#[tokio::test]
async fn a_user_who_may_not_subscribe_is_told_once() {
    let server = RedisServer::start();
    let rights = ["ACL", "SETUSER", "gateway", "on", ">secret", "~gate:*", "resetchannels", "+@all"];
    assert_eq!(server.cli(&rights), "OK");
    let reach = Reach::single(format!("redis://gateway:secret@{}/0", server.address())).await;
    assert_eq!(reach.call("a").await.0, Ok(1));
    let address = server.address().to_string();
    until("it is said", || logged(&[&address, "subscribe", "gate:resets"]).len() == 1).await;
}

#[tokio::test]
async fn an_eviction_policy_that_drops_counters_is_warned_about() {
    let server = RedisServer::with_options(&["--maxmemory-policy", "allkeys-lru"]);
    let reach = Reach::single(server.url()).await;
    let address = server.address().to_string();
    let warned = || logged(&[&address, "maxmemory-policy allkeys-lru"]).len();
    until("it is warned about", || warned() == 1).await;
    // Each look is a question itself.
    let mut own = 0;
    let mut asked = || {
        own += 1;
        number(&server.cli(&["INFO", "commandstats"]), "cmdstat_info:calls=") - own
    };
    let before = asked();
    server.cli(&["CLIENT", "KILL", "TYPE", "normal"]);
    reach.until_well("a").await;
    until("it was asked for its policy again", || asked() > before + 1).await;
    assert_eq!(warned(), 1, "and once");
    assert_eq!(logged(&[&address, "WARN"]).len(), 1 + logged(&[&address, "is down"]).len(), "and nothing else");
}
