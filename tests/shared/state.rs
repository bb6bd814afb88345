//! What gateways leave in Redis: everything expires, nothing grows, and no value that a client sent can be read there.

use crate::site::RAW;
use crate::support::RedisServer;

/// A day, in milliseconds: the longest window of these tests lasts an hour, and what a counter remembers two of them.
const LONGEST: i64 = 24 * 3600 * 1000;

/// A line for each key: its time to live in milliseconds, type, bytes in memory, length of the value, what it shows
/// in clear, name.
const LOOK: &str = "
    local lines = {}
    for _, name in ipairs(redis.call('KEYS', '*')) do
        local kind = redis.call('TYPE', name).ok
        local value = kind == 'string' and redis.call('GET', name) or ''
        local clear = ''
        for _, word in ipairs(ARGV) do
            if string.find(name, word, 1, true) or string.find(value, word, 1, true) then clear = clear .. word .. ',' end
        end
        lines[#lines + 1] = table.concat({
            redis.call('PTTL', name), kind, redis.call('MEMORY', 'USAGE', name), #value, '[' .. clear .. ']', name}, ' ')
    end
    return lines";

/// The keys that gateways sign with are random, and live until nothing that they signed does: 480 days.
const KEYRING: i64 = 480 * LONGEST;

/// Fails unless every key of a gateway expires, has a short name, shows nothing, and is no larger than counting to
/// `most` takes.
#[track_caller]
pub(super) fn is_clean(redis: &RedisServer, most: usize) {
    let clear = [RAW, "127.0.0.", "app.example", "of-the-test"];
    let mut command = vec!["EVAL", LOOK, "0"];
    command.extend(clear);
    let told = redis.cli(&command);
    for line in told.lines().filter(|line| !line.is_empty() && !line.contains(" filler:")) {
        let words: Vec<&str> = line.splitn(6, ' ').collect();
        let [expires, kind, memory, length, shown, name] = words[..] else { panic!("an answer of Redis: {told}") };
        let number = |word: &str| word.parse::<i64>().unwrap_or_else(|_| panic!("an answer of Redis: {line}"));
        let longest = if name == "portcullis:keyring" { KEYRING } else { LONGEST };
        assert!((1..=longest).contains(&number(expires)), "no expiry, or one too late: {line}");
        assert_eq!(kind, "string", "a layout these tests cannot look into: {line}");
        assert_eq!(shown, "[]", "what a client sent, in clear: {line}");
        assert!(name.starts_with("portcullis:") && name.len() <= 64, "{line}");
        // A log takes 6 bytes an entry; a short head, and what the allocator rounds up to, come on top.
        let most = i64::try_from(most).expect("a small number");
        assert!(number(length) <= 64 + 6 * most, "{line}");
        assert!(number(memory) <= 256 + 8 * most, "{line}");
    }
}
