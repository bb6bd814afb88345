//! A flood of one exhausted key is refused by the gateways without asking Redis.

use std::thread;
use std::time::Duration;

use crate::site::{RAW, Site, alone};
use crate::support::{Caller, RedisServer, Stopwatch};

const GATEWAYS: usize = 4;
const STARTS: Duration = Duration::from_secs(2);
const LASTS: Duration = Duration::from_secs(8);

#[test]
fn a_flood_against_an_exhausted_key_costs_redis_less_than_a_command_a_second_for_each_gateway() {
    let _alone = alone();
    let limits = "limits:\n  - {name: of-the-test, key: header.x-key, rate: 5/hour; 100/day}";
    let site = Site::start(GATEWAYS, "timeout: 10s", "  on_failure: deny", limits);
    let passed = (0..10).filter(|number| site.status(number % GATEWAYS, "/", RAW) == 200).count();
    assert_eq!(passed, 5);
    // Each gateway knows of the denial.
    for gateway in 0..GATEWAYS {
        assert_eq!(site.status(gateway, "/", RAW), 429);
    }
    let began = Stopwatch::start();
    let ((before, then), refused): (_, usize) = thread::scope(|scope| {
        let flood = |gateway: usize| {
            let (address, clock) = (site.gateways[gateway].address(), site.application.clock());
            scope.spawn(move || {
                let mut callers: Vec<Caller> = (0..8).map(|_| Caller::default()).collect();
                let mut refused = 0;
                while began.elapsed() < LASTS {
                    for caller in &mut callers {
                        caller.ask(address, "/", RAW, clock);
                    }
                    for caller in &mut callers {
                        assert_eq!(caller.answer(), Some(429));
                        refused += 1;
                    }
                }
                refused
            })
        };
        let floods: Vec<_> = (0..GATEWAYS).map(flood).collect();
        // What a gateway asks for once, after its start, is no part of a flood.
        thread::sleep(STARTS);
        let before = (commands(&site.redis), began.elapsed());
        (before, floods.into_iter().map(|thread| thread.join().expect("only refusals")).sum())
    });
    let lasted = began.elapsed().as_secs_f64() - then.as_secs_f64();
    // The second query counts itself. The gateways' own polling is in the count too.
    let grown = commands(&site.redis) - before - 1.0;
    let gateways = f64::from(u32::try_from(GATEWAYS).expect("four"));
    assert!(refused > 2000, "{refused} requests are no flood");
    assert!(grown < lasted * gateways, "{grown} commands in {lasted} s for {refused} refused requests");
    assert_eq!(site.application.count("/"), 5);
}

/// How many commands a Redis has run, this question included.
pub(super) fn commands(redis: &RedisServer) -> f64 {
    let told = redis.cli(&["INFO", "stats"]);
    let line = told.lines().find_map(|line| line.strip_prefix("total_commands_processed:"));
    line.and_then(|number| number.trim().parse().ok()).expect("a number of commands")
}
