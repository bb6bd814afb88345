//! A reset by one gateway is seen by all.

use std::process::Child;
use std::time::Duration;

use crate::bans::{cpu_micros, subscriber};
use crate::form::{Form, guess, right};
use crate::questions::calls;
use crate::site::{RAW, Site, alone, ask_admin};
use crate::support::{Stopwatch, eventually};

#[test]
fn a_reset_by_one_gateway_is_seen_by_all_within_a_second() {
    let _alone = alone();
    let limits = "limits:\n  - {name: of-the-test, key: header.x-key, rate: 8/hour}";
    let site = Site::start(4, "timeout: 10s", "  on_failure: deny", limits);
    let other = format!("{RAW}-other");
    for key in [RAW, &other] {
        assert_eq!((0..12).filter(|number| site.status(number % 4, "/", key) == 200).count(), 8);
        for gateway in 0..4 {
            assert_eq!(site.status(gateway, "/", key), 429);
        }
    }
    let path = format!("/api/v1/limits/of-the-test/state?header.x-key={RAW}");
    let answer = ask_admin(&site.gateways[2], "DELETE", &path);
    assert!(matches!(answer.status, 200 | 204), "{answer:?}");
    let reset = Stopwatch::start();
    for gateway in 0..4 {
        eventually("the reset is seen", || site.status(gateway, "/", RAW) == 200);
    }
    assert!(reset.elapsed() < Duration::from_secs(1), "{:?}", reset.elapsed());
    assert_eq!(site.status(3, "/", &other), 429, "another key is as it was");
    // Four have passed since, one at each gateway; four more may, all together.
    assert_eq!((0..12).filter(|number| site.status(number % 4, "/", RAW) == 200).count(), 4);
}

/// Each success settles in one call, and gateways are told only where something was counted.
#[test]
fn a_success_of_one_who_never_failed_is_told_to_nobody() {
    let _alone = alone();
    let form =
        Form::start(2, "{name: failures, key: param.username, count: failures, rate: 3/hour, reset_on: success}", "");
    let told = || calls(&form.redis, "publish");
    let settled = |count: u32, act: &dyn Fn()| {
        let before = calls(&form.redis, "evalsha");
        act();
        // A decision, and what settles it.
        eventually("it is settled", || calls(&form.redis, "evalsha") >= before + 2 * count);
    };
    let sign_in = |gateway: usize| assert_eq!(form.request(gateway, right(0)).status(), 302);
    // What gateways tell at their start is told.
    settled(1, &|| sign_in(0));
    let before = told();
    settled(20, &|| (0..20).for_each(sign_in));
    assert_eq!(told(), before);
    assert_eq!(form.request(0, guess(0)).status(), 401);
    settled(1, &|| sign_in(1));
    assert_eq!(told(), before + 1);
}

#[test]
#[ignore = "measures"]
#[expect(clippy::print_stdout, reason = "that is what it is for")]
fn what_a_success_costs_redis_with_fifty_gateways_is_printed() {
    let _alone = alone();
    let counted = "name: failures, key: param.username, count: failures, rate: 3/hour";
    let settled = format!("{counted}, reset_on: success");
    for (what, limit, others, is_first_wrong) in [
        ("a sign-in, without `reset_on`", counted, 50, false),
        ("a sign-in, `reset_on: success`, one gateway", &settled, 0, false),
        ("a sign-in, `reset_on: success`", &settled, 50, false),
        ("a failure and a sign-in, `reset_on: success`", &settled, 50, true),
    ] {
        println!("{what}: {:.0} us of Redis", of_sign_ins(limit, others, is_first_wrong));
    }
}

/// How many us of Redis each of many sign-ins takes, beside so many gateways that listen.
fn of_sign_ins(limit: &str, others: usize, is_first_wrong: bool) -> f64 {
    let form = Form::start(1, &format!("{{{limit}}}"), "");
    let others: Vec<Child> = (0..others).map(|_| subscriber(&form.redis)).collect();
    let before = cpu_micros(&form.redis);
    for _ in 0..1000 {
        if is_first_wrong {
            assert_eq!(form.request(0, guess(0)).status(), 401);
        }
        assert_eq!(form.request(0, right(0)).status(), 302);
    }
    let each = (cpu_micros(&form.redis) - before) / 1000.0;
    for mut other in others {
        let _ = other.kill();
        let _ = other.wait();
    }
    each
}
