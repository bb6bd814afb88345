//! What gateways cost while nobody asks for anything.

use std::thread;
use std::time::Duration;

use crate::bans::cpu_micros;
use crate::site::{Site, alone};
use crate::support::Gateway;

#[test]
#[ignore = "measures"]
#[expect(clippy::print_stdout, reason = "that is what it is for")]
fn what_gateways_at_rest_cost_is_printed() {
    let _alone = alone();
    let limits = "limits:\n  - {name: of-the-test, key: client_ip, rate: 20/hour}";
    for gateways in [1, 20] {
        let site = Site::start(gateways, "timeout: 10s", "  nodes: auto", limits);
        // Parts settle within 10 s.
        thread::sleep(Duration::from_secs(15));
        let span = Duration::from_secs(60);
        let ticks = || site.gateways.iter().map(Gateway::cpu_ticks).sum::<u64>();
        let commands = || commands(&site);
        let before = (cpu_micros(&site.redis), commands(), ticks());
        thread::sleep(span);
        let after = (cpu_micros(&site.redis), commands(), ticks());
        println!(
            "{gateways} gateways at rest: {:.2} ms of Redis and {:.1} commands a second, {:.2} ms a second of each gateway",
            (after.0 - before.0) / 1e3 / span.as_secs_f64(),
            (after.1 - before.1) / span.as_secs_f64(),
            f64::from(u32::try_from((after.2 - before.2) * 10).expect("few"))
                / span.as_secs_f64()
                / f64::from(u32::try_from(gateways).expect("few")),
        );
    }
}

/// How many commands Redis has carried out.
fn commands(site: &Site) -> f64 {
    let told = site.redis.cli(&["INFO", "stats"]);
    let line = told.lines().find_map(|line| line.strip_prefix("total_commands_processed:")).expect("it is told");
    line.trim().parse().expect("a number")
}
