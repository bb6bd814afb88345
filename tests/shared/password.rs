//! A password of Redis that changes while a gateway runs.

use crate::site::{alone, config, said_of_redis, store_up};
use crate::support::{Caller, Gateway, Ledger, RedisServer, Stopwatch, eventually};

#[test]
fn a_changed_password_is_read_from_its_file_when_redis_refuses_the_old_one() {
    let _alone = alone();
    let (application, redis) = (Ledger::start(), RedisServer::start());
    let change = |password: &str| {
        let user = ["ACL", "SETUSER", "gate", "on", "resetpass", password, "~*", "&*", "+@all"];
        assert_eq!(redis.cli(&user), "OK");
        redis.cli(&["CLIENT", "KILL", "USER", "gate"]);
    };
    change(">first");
    let place = format!("url: \"{}\", password_file: redis.pw", redis.url().replace("redis://", "redis://gate@"));
    let limits = "limits: [{name: of-the-test, key: header.x-key, rate: 3/hour}]";
    let config = config(&application.url(), &place, "  on_failure: deny", limits);
    let gateway = Gateway::with_files(config, &[("redis.pw", "first\n")]);
    eventually("the gateway has found Redis", || store_up(&gateway));
    let mut caller = Caller::default();
    let mut ask = || caller.call(gateway.address(), "/", "one", application.clock()).expect("an answer");
    assert_eq!([ask(), ask()], [200, 200]);

    // The file first: nothing is noticed.
    gateway.write("redis.pw", "second\n");
    change(">second");
    eventually("the gateway has found Redis again", || store_up(&gateway));
    assert_eq!([ask(), ask()], [200, 429]);

    // The server first.
    change(">third");
    let is_refused = || said_of_redis(&gateway).iter().any(|line| line.contains("it does not accept the password"));
    eventually("the gateway says that its password is refused", is_refused);
    gateway.write("redis.pw", "third\n");
    let since = Stopwatch::start();
    eventually("the gateway has read the new one", || store_up(&gateway));
    assert!(since.elapsed().as_secs() < 3, "{:?}", since.elapsed());
    assert_eq!(ask(), 429);
    let said = gateway.log_messages().join("\n");
    assert!(!["first", "second", "third"].iter().any(|password| said.contains(password)), "{said}");
}
