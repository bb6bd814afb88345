//! Thousands of almost correct requests: the application gets only requests that the gateway decided on.

use std::collections::HashMap;
use std::thread;

use fastrand::Rng;

use crate::strict::{Arrival, Rest};
use crate::support::eventually;
use crate::watched::Watched;
use crate::{mutations, strict};

/// Always the same, so that a failure can be looked at.
const SEED: u64 = 0x706f_7274;
const CONNECTIONS: usize = 3000;
/// What is cut short keeps its connection for a moment; the others go on meanwhile.
const AT_A_TIME: usize = 24;

#[test]
fn whatever_is_sent_the_application_gets_requests_that_were_decided_on() {
    let mut watched =
        Watched::start("{max_body: 64KiB, max_header_bytes: 16KiB, timeouts: {header: 1s, body_idle: 150ms}}");
    let cases: Vec<(String, Vec<u8>)> = (0..CONNECTIONS).map(case).collect();
    let gateway = &watched.gateway;
    thread::scope(|scope| {
        for worker in 0..AT_A_TIME {
            let cases = &cases;
            scope.spawn(move || {
                for (number, (_, bytes)) in cases.iter().enumerate().skip(worker).step_by(AT_A_TIME) {
                    let mut client = gateway.connect();
                    // Half of them in two pieces.
                    let cut =
                        if number % 2 == 0 { bytes.len() } else { Rng::with_seed(number as u64).usize(..=bytes.len()) };
                    client.send(&bytes[..cut]).send(&bytes[cut..]).finish();
                    client.rest();
                }
            });
        }
    });
    eventually("no request is under way", || watched.origin.heads().len() == watched.origin.requests().len());
    let news = watched.news("what was sent");
    watched.were_decided_on();

    let mut by_mark: HashMap<&str, Vec<&Arrival>> = HashMap::new();
    for arrival in &news.whole {
        if let [mark] = arrival.all("x-mark").as_slice() {
            by_mark.entry(mark).or_default().push(arrival);
        }
    }
    let mut plain = 0;
    for (mark, bytes) in &cases {
        let (meant, Rest::Nothing) = strict::requests(bytes) else { continue };
        plain += 1;
        let arrived = by_mark.get(mark.as_str()).map_or(&[][..], Vec::as_slice);
        assert_are_among(arrived, &meant, bytes);
    }
    // Without both kinds nothing was shown.
    assert!(news.whole.len() > 1000 && plain > 400, "{} arrived, {plain} plain", news.whole.len());
    let refused = watched.log().iter().filter(|line| line["decision"] == "error").count();
    assert!(refused > 500, "{refused} refused");
}

fn case(number: usize) -> (String, Vec<u8>) {
    let mut rng = Rng::with_seed(SEED.wrapping_add(number as u64));
    let mark = format!("{:016x}", rng.u64(..));
    let bytes = mutations::connection(&mut rng, &mark);
    (mark, bytes)
}

/// What was meant without doubt arrives as it was meant, once, or not at all. Which came first cannot be told: they may have
/// gone over several connections.
#[track_caller]
fn assert_are_among(arrived: &[&Arrival], meant: &[Arrival], sent: &[u8]) {
    let mut meant: Vec<&Arrival> = meant.iter().collect();
    for arrival in arrived {
        let is_it =
            |one: &Arrival| one.method == arrival.method && one.target == arrival.target && one.body == arrival.body;
        let position = meant.iter().position(|one| is_it(one));
        let position = position.unwrap_or_else(|| panic!("{} of {}", arrival.shape(), sent.escape_ascii()));
        meant.remove(position);
    }
}
