//! What gateways leave in Redis: every key expires, nothing grows without bound, and no value that a client sent is
//! readable there.

use serde_json::json;

use crate::site::{RAW, alone, ask_admin, config, store_up};
use crate::support::{Answer, Gateway, Origin, RedisServer, Request, eventually};

/// A day, in milliseconds: the longest window of these tests lasts an hour, and what a counter remembers two of them.
const LONGEST: i64 = 24 * 3600 * 1000;

/// A line for each key: its time to live in milliseconds, type, bytes in memory, length of the value, how many there
/// are in it, what it shows in clear, name. What of a word is shown may be one of several in a hash or a sorted set.
const LOOK: &str = "
    local lines = {}
    for _, name in ipairs(redis.call('KEYS', '*')) do
        local kind = redis.call('TYPE', name).ok
        local value, count = '', 1
        if kind == 'string' then
            value = redis.call('GET', name)
        elseif kind == 'hash' then
            value, count = table.concat(redis.call('HGETALL', name), ' '), redis.call('HLEN', name)
        elseif kind == 'zset' then
            value = table.concat(redis.call('ZRANGE', name, 0, -1, 'WITHSCORES'), ' ')
            count = redis.call('ZCARD', name)
        end
        local clear = ''
        for _, word in ipairs(ARGV) do
            if string.find(name, word, 1, true) or string.find(value, word, 1, true) then clear = clear .. word .. ',' end
        end
        lines[#lines + 1] = table.concat({redis.call('PTTL', name), kind, redis.call('MEMORY', 'USAGE', name), #value,
            count, '[' .. clear .. ']', name}, ' ')
    end
    return lines";

/// The keys that gateways sign with are random, and live until nothing that they signed does: 480 days.
const KEYRING: i64 = 480 * LONGEST;

/// What a client sent, or was sent for, and what only gateways are to know.
const SECRET: [&str; 3] = [RAW, "127.0.0.", "app.example"];

/// What a limit is called: bans say by which they are.
const LIMIT: &str = "of-the-test";

/// How much memory a ban takes at most, in bytes, of its own in the hash or in a sorted set.
const BAN: i64 = 512;

/// Fails unless every key of a gateway expires, has a short name, shows nothing, and is no larger than counting to
/// `most` takes.
#[track_caller]
pub(super) fn is_clean(redis: &RedisServer, most: usize) {
    shows_none_of(redis, most, &SECRET);
}

/// The same where other words are to be looked for.
#[track_caller]
fn shows_none_of(redis: &RedisServer, most: usize, secret: &[&str]) {
    let mut command = vec!["EVAL", LOOK, "0", LIMIT];
    command.extend(secret);
    let told = redis.cli(&command);
    for line in told.lines().filter(|line| !line.is_empty() && !line.contains(" filler:")) {
        let words: Vec<&str> = line.splitn(7, ' ').collect();
        let [expires, kind, memory, length, count, shown, name] = words[..] else {
            panic!("an answer of Redis: {told}")
        };
        let number = |word: &str| word.parse::<i64>().unwrap_or_else(|_| panic!("an answer of Redis: {line}"));
        let (longest, expected, may_show) = match name.strip_prefix("portcullis:") {
            Some("keyring") => (KEYRING, "string", ""),
            Some("parts") => (LONGEST, "hash", ""),
            Some("{bans}") => (LONGEST, "hash", LIMIT),
            Some("{bans}:ends" | "{bans}:kept") => (LONGEST, "zset", ""),
            // Bounded by what a gateway tells, not by what clients do.
            Some(rest) if rest.starts_with("{records}:") => continue,
            Some(_) => (LONGEST, "string", ""),
            None => panic!("a name that no gateway gives: {line}"),
        };
        // A key that never expires has -1 to live; one in its last millisecond has 0.
        assert!((0..=longest).contains(&number(expires)), "no expiry, or one too late: {line}");
        assert_eq!(kind, expected, "a layout these tests cannot look into: {line}");
        let shown = shown.trim_start_matches('[').trim_end_matches(']').trim_end_matches(',');
        assert!(shown.is_empty() || shown == may_show, "what a client sent, in clear: {line}");
        assert!(name.len() <= 64, "{line}");
        if kind != "string" {
            assert!(number(memory) <= 512 + BAN * number(count), "{line}");
            continue;
        }
        // A log takes 6 bytes an entry; a short head, and what the allocator rounds up to, come on top.
        let most = i64::try_from(most).expect("a small number");
        assert!(number(length) <= 64 + 6 * most, "{line}");
        assert!(number(memory) <= 256 + 8 * most, "{line}");
    }
}

/// A login with all that remembers something: a limit on failures that bans, one on different names, clients that are
/// known by address, and device cookies.
const LOGIN: &str = "\
routes:
  - name: login
    match: POST /login
    outcome: {success: {status: 302}}
    known_clients: {of: param.username, remember: 5, for: 1h}
    limits:
      - {name: names-of-the-test, key: client_ip, distinct: param.username, rate: 9/hour}
      - {name: account-of-the-test, key: param.username, rate: 2/hour, count: failures, reset_on: success, unless: [known_client],
         then: {ban: [1h, 2h]}}
      - {name: bearer-of-the-test, key: bearer, rate: 3/hour, then: {ban: 1h}}
      - {name: slots-of-the-test, key: [], concurrent: 20}
  - name: devices
    match: POST /devices
    outcome: {success: {status: 302}}
    known_clients: {of: param.username, by: cookie, for: 1h}
    limits:
      - {name: devices-of-the-test, key: device, rate: 9/hour}
      - {name: strangers-of-the-test, key: param.username, rate: 9/hour, unless: [known_client]}";

#[test]
fn nothing_that_a_login_sends_can_be_found_in_redis() {
    let _alone = alone();
    let redis = RedisServer::start();
    let password = "word-of-redis";
    let rights = ["ACL", "SETUSER", "gate", "on", &format!(">{password}"), "~*", "&*", "+@all"].map(str::to_owned);
    assert_eq!(redis.cli(&rights.each_ref().map(String::as_str)), "OK");
    let application = Origin::answering(|received| {
        if received.text().contains("password=right") {
            Answer::new(302, &[("Location", "/"), ("Set-Cookie", "session=cookie-of-the-application")], "")
        } else {
            Answer::new(401, &[], "")
        }
    });
    let url = redis.url().replace("redis://", &format!("redis://gate:{password}@"));
    let gateway = Gateway::start(config(&application.url(), &format!("url: \"{url}\", timeout: 10s"), "", LOGIN));
    eventually("the gateway has found Redis", || store_up(&gateway));

    let ask = |path: &str, name: &str, password: &str, token: &str| {
        let form = format!("username={name}&password={password}-geheim");
        gateway.post(path).header("Authorization", &format!("Bearer {token}")).form(&form).send()
    };
    // A client succeeds and becomes known; a name and a token are guessed at and banned.
    assert_eq!(ask("/login", "margarethe", "right", "token-a").status, 302);
    let answers = [(); 3].map(|()| ask("/login", "wolfgang", "wrong", "token-b").status);
    assert_eq!(answers, [401, 401, 429]);
    let answers =
        ["rosalinde", "friedrich", "margarethe", "hildegard"].map(|name| ask("/login", name, "wrong", "token-c"));
    assert_eq!(answers.map(|answer| answer.status), [401, 401, 401, 429]);
    let answer = ask("/devices", "margarethe", "right", "token-a");
    assert_eq!(answer.status, 302);
    let cookie = answer.headers.all("set-cookie").into_iter().find(|line| line.starts_with("portcullis_device_"));
    let cookie = cookie.and_then(|line| line.split([';', '=']).nth(1)).expect("a device cookie").to_owned();
    let own = gateway.admin().to_string();
    let by_hand = json!({"address": "203.0.113.0/24", "for": "1h", "reason": "noise"});
    let post = Request::new(gateway.admin(), "POST", "/api/v1/bans").host(&own).json(&by_hand.to_string());
    assert_eq!(post.status(), 201);

    // Two bans by limits, one by an operator; the keys that were counted, and those that gateways sign with.
    eventually("the bans are told", || redis.cli(&["HLEN", "portcullis:{bans}"]) == "4");
    let keys = redis.cli(&["KEYS", "*"]).lines().count();
    assert!(keys >= 10, "{keys} keys are not all that is remembered");
    let names = ["margarethe", "wolfgang", "rosalinde", "friedrich", "hildegard"];
    let others = ["geheim", password, "token-", "Bearer", "/login", "/devices", "of-the-application", &cookie];
    shows_none_of(&redis, 100, &[&SECRET[..], &names, &others].concat());
    // Readable are, as docs/src/redis.md says, banned addresses, reasons, and one letter of a key.
    let bans = redis.cli(&["HVALS", "portcullis:{bans}"]);
    for shown in ["203.0.113.0/24", "noise", "w***", "account-of-the-test"] {
        assert!(bans.contains(shown), "{shown} in {bans}");
    }
    let listed = ask_admin(&gateway, "GET", "/api/v1/bans").json();
    assert_eq!(listed.as_array().map(Vec::len), Some(3), "{listed}");
}
