//! A reset by one gateway is seen by all.

use std::time::Duration;

use crate::site::RAW;
use crate::site::Site;
use crate::site::alone;
use crate::site::ask_admin;
use crate::support::Stopwatch;
use crate::support::eventually;

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
