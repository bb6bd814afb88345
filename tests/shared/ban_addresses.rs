//! Who is banned by address is shown and exported alike by every gateway, and Redis does not know the address.

use std::fs::File;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::site::{Site, alone, ask_admin, config, store_up};
use crate::support::{Gateway, RedisServer, eventually};

/// The clients are named by a proxy on this machine.
const LIMITS: &str = "\
client_ip: {trusted_proxies: [127.0.0.1]}
limits:
  - {name: of-the-test, key: client_ip, rate: 1/hour, then: {ban: 1h}, on_failure: local}
  - {name: pairs-of-the-test, key: [client_ip, param.username], rate: 1/hour, missing: skip, then: {ban: 1h}}";

const V4: &str = "198.51.100.7";
const V6: &str = "2001:db8:1:2::9";

/// What of these clients may be nowhere in Redis, as Lua writes it: text, and the bytes of the addresses.
const SECRET: &str = "'100.7', 'db8:1', 'wilhelmine', string.char(198, 51, 100, 7), string.char(32, 1, 13, 184, 0, 1)";

/// The bytes of the addresses as MONITOR writes them.
const SHOWN: [&str; 5] = ["100.7", "db8:1", "wilhelmine", r"\xc63d\a", r" \x01\r\xb8"];

fn site(gateways: usize) -> Site {
    Site::start(gateways, "timeout: 10s", "", LIMITS)
}

/// Two requests of a client, of which the second begins its ban.
#[track_caller]
fn trip(gateway: &Gateway, client: &str, path: &str) {
    let ask = || gateway.get(path).header("X-Forwarded-For", client).status();
    assert_eq!([ask(), ask()], [200, 429]);
}

/// The addresses in the keys of the bans that a gateway lists, sorted.
fn listed(gateway: &Gateway) -> Vec<String> {
    let bans = ask_admin(gateway, "GET", "/api/v1/bans").json();
    let address = |ban: &Value| ban["key"]["client_ip"].as_str().expect("an address").to_owned();
    let mut found: Vec<_> = bans.as_array().expect("a list").iter().map(address).collect();
    found.sort();
    found
}

fn exported(gateway: &Gateway) -> String {
    ask_admin(gateway, "GET", "/api/v1/bans/export").text()
}

/// Fails unless each of these lists and exports the bans of both clients.
#[track_caller]
fn know_both<'g>(gateways: impl IntoIterator<Item = &'g Gateway>) {
    for gateway in gateways {
        let expected = [V4, "2001:db8:1:2::/64", "2001:db8:1:2::/64"];
        eventually("the bans are listed with their addresses", || listed(gateway) == expected);
        assert_eq!(exported(gateway), format!("{V4}\n2001:db8:1:2::/64\n"));
    }
}

/// The names of the keys in Redis that hold something of these clients in clear.
fn shown_in(redis: &RedisServer) -> String {
    let look = format!(
        "local shown = {{}}
        for _, name in ipairs(redis.call('KEYS', '*')) do
            local kind, value = redis.call('TYPE', name).ok, ''
            if kind == 'string' then
                value = redis.call('GET', name)
            elseif kind == 'hash' then
                value = table.concat(redis.call('HGETALL', name), ' ')
            elseif kind == 'zset' then
                value = table.concat(redis.call('ZRANGE', name, 0, -1), ' ')
            end
            for _, secret in ipairs({{{SECRET}}}) do
                if string.find(name .. value, secret, 1, true) then shown[#shown + 1] = name end
            end
        end
        return shown"
    );
    redis.cli(&["EVAL", &look, "0"])
}

/// What `redis-cli` prints of all commands, and of all messages.
struct Listener {
    folder: TempDir,
    children: [Child; 2],
}

impl Listener {
    fn start(redis: &RedisServer) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let listen = |name: &str, command: &[&str]| {
            let out = File::create(folder.path().join(name)).expect("a file");
            let port = redis.address().port().to_string();
            let mut listening = Command::new("redis-cli");
            listening.args(["-h", "127.0.0.1", "-p", &port]).args(command).stdin(Stdio::null()).stdout(out);
            listening.spawn().expect("redis-cli is installed")
        };
        let children = [listen("commands", &["MONITOR"]), listen("messages", &["PSUBSCRIBE", "*"])];
        let listener = Self { folder, children };
        eventually("both listen", || !listener.text("commands").is_empty() && !listener.text("messages").is_empty());
        listener
    }

    fn text(&self, name: &str) -> String {
        String::from_utf8_lossy(&std::fs::read(self.folder.path().join(name)).expect("a file")).into_owned()
    }

    /// Fails if what was heard tells of a ban and shows something of these clients.
    #[track_caller]
    fn check(&self) {
        for name in ["commands", "messages"] {
            eventually("the ban is heard", || self.text(name).contains("sealed"));
            let text = self.text(name);
            for secret in SHOWN {
                assert!(!text.contains(secret), "{secret} in the {name}: {text}");
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        for child in &mut self.children {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

#[test]
fn every_gateway_shows_and_exports_banned_clients_and_redis_does_not_know_them() {
    let _alone = alone();
    let mut site = site(2);
    let listener = Listener::start(&site.redis);
    trip(&site.gateways[0], V4, "/");
    trip(&site.gateways[1], V6, "/?username=wilhelmine");
    know_both(&site.gateways);
    let bans = ask_admin(&site.gateways[0], "GET", "/api/v1/bans").text();
    assert!(!bans.contains("wilhelmine") && bans.contains("w***"), "another gateway has seen that name: {bans}");
    listener.check();
    // One that starts later, and one that starts again.
    site.add(&[]);
    site.gateways[0].kill();
    site.gateways[0].restart();
    eventually("it has found Redis", || store_up(&site.gateways[0]));
    know_both(&site.gateways);
    assert_eq!(shown_in(&site.redis), "");
    // What Redis has lost is written again, for those who come later.
    assert_eq!(site.redis.cli(&["FLUSHALL"]), "OK");
    eventually("it is told again", || site.redis.cli(&["HLEN", "portcullis:{bans}"]) == "4");
    site.add(&[]);
    know_both(&site.gateways);
    assert_eq!(shown_in(&site.redis), "");
    // A ban can be lifted by its address wherever it began.
    assert_eq!(ask_admin(&site.gateways[3], "DELETE", &format!("/api/v1/bans?address={V4}")).status, 200);
    eventually("it is lifted everywhere", || site.gateways.iter().all(|gateway| listed(gateway).len() == 2));
}

#[test]
fn a_ban_begun_while_redis_is_away_is_known_by_its_address_when_it_is_back() {
    let _alone = alone();
    let mut site = site(2);
    site.redis.kill();
    for (client, path) in [(V4, "/"), (V6, "/?username=wilhelmine")] {
        let ask = || site.gateways[0].get(path).header("X-Forwarded-For", client).status();
        eventually("it is banned", || ask() == 429);
    }
    site.redis.restart();
    know_both(&site.gateways);
    site.add(&[]);
    know_both(&site.gateways);
    assert_eq!(shown_in(&site.redis), "");
}

#[test]
fn a_gateway_with_another_password_shows_the_mask() {
    let _alone = alone();
    let site = site(1);
    let rights = ["ACL", "SETUSER", "stranger", "on", ">any", "~*", "&*", "+@all"];
    assert_eq!(site.redis.cli(&rights), "OK");
    let url = site.redis.url().replace("redis://", "redis://stranger:any@");
    let redis = format!("url: \"{url}\", timeout: 10s");
    let stranger = Gateway::start(config(&site.application.url(), &redis, "", LIMITS));
    eventually("it has found Redis", || store_up(&stranger));
    trip(&site.gateways[0], V4, "/");
    eventually("it knows of the ban", || listed(&stranger) == ["198.51.*.*"]);
    assert_eq!((exported(&stranger), exported(&site.gateways[0])), (String::new(), format!("{V4}\n")));
    assert_eq!(stranger.get("/").header("X-Forwarded-For", V4).status(), 429);
}
