//! Guesses and logins at several gateways at once: the application gets as many guesses as the limit admits, and the
//! right password gets in.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use crate::form::{Attempt, Form, Login, guess, right};
use crate::packet::post_in_one_packet;
use crate::site::alone;
use crate::support::{RawClient, Stopwatch, eventually};

const THREE: &str = "{name: failures, key: param.username, count: failures, rate: 3/hour}";
const CLEARED: &str = "{name: failures, key: param.username, count: failures, rate: 3/hour, reset_on: success}";

/// Streams that leave in one packet.
const STREAMS: usize = 20;

/// The rate of the test in which answers differ.
const MOST: usize = 5;
const WINDOW: Duration = Duration::from_secs(2);

#[test]
fn of_two_hundred_parallel_guesses_over_both_protocols_at_four_gateways_three_reach_the_application() {
    let _alone = alone();
    let form = Form::start(4, THREE, "");
    let barrier = Barrier::new(105);
    thread::scope(|scope| {
        for number in 0..100 {
            let (form, barrier) = (&form, &barrier);
            scope.spawn(move || {
                let request = form.request(number, guess(100));
                let mut client = request.connect();
                barrier.wait();
                let status = request.send_on(&mut client).status;
                assert!(matches!(status, 401 | 429), "{status}");
            });
        }
        for number in 0..5 {
            let (form, barrier) = (&form, &barrier);
            scope.spawn(move || {
                let guesses = vec![form.fields(guess(100)); STREAMS];
                barrier.wait();
                post_in_one_packet(form.address(number), "/login", &guesses);
            });
        }
    });
    assert_eq!(form.count(), 3);
    for gateway in 0..4 {
        assert_eq!(form.request(gateway, right(0)).status(), 429, "the budget is used up everywhere");
    }
    assert_eq!(form.left("alice"), [0; 4]);
}

#[test]
fn forty_parallel_logins_at_four_gateways_that_come_back_a_second_later_are_all_let_in() {
    let _alone = alone();
    let form = Form::start(4, THREE, "");
    let begun = Stopwatch::start();
    thread::scope(|scope| {
        for number in 0..40 {
            let form = &form;
            scope.spawn(move || {
                // For slots that another gateway holds, `Retry-After` is their longest duration.
                while form.request(number, right(20)).status() != 302 {
                    assert!(begun.elapsed() < Duration::from_secs(60), "still not let in");
                    // Random, so that the clients do not stay in step.
                    thread::sleep(Duration::from_millis(fastrand::u64(1000..1500)));
                }
            });
        }
    });
    assert_eq!(form.count(), 40);
    assert_eq!(form.left("alice"), [3; 4], "no login was counted as a guess");
}

#[test]
fn whatever_the_answers_are_no_window_holds_more_failures_than_the_limit_and_the_count_is_exact() {
    let _alone = alone();
    let names = ["alice", "bob", "carol", "dave", "erin"];
    let limit = "{name: failures, key: param.username, count: failures, rate: 5 per 2 seconds; 1000/hour}";
    let form = Form::start(4, limit, "");
    let begun = Stopwatch::start();
    thread::scope(|scope| {
        for _ in 0..24 {
            scope.spawn(|| {
                while begun.elapsed() < WINDOW * 4 {
                    let name = names[fastrand::usize(..names.len())];
                    let takes = Duration::from_millis(fastrand::u64(..60));
                    let login = Login { name, is_right: fastrand::bool(), takes };
                    let status = form.request(fastrand::usize(..4), login).status();
                    let expected = if login.is_right { 302 } else { 401 };
                    assert!(status == 429 || status == expected, "{status}, {expected} was expected");
                }
            });
        }
    });
    let attempts = form.attempts();
    for name in names {
        let failures: Vec<&Attempt> =
            attempts.iter().filter(|attempt| attempt.name == name && !attempt.is_right).collect();
        // A failure was surely decided within a window when it was sent and had arrived within it.
        let window = WINDOW.mul_f64(0.999);
        let within = |from: Duration| {
            failures.iter().filter(|failure| failure.sent >= from && failure.arrived < from + window).count()
        };
        let fullest = failures.iter().map(|failure| within(failure.sent)).max().unwrap_or(0);
        assert_eq!(fullest, MOST, "of {name}: more are too many, fewer prove nothing");
        let left = 1000 - failures.len() as u64;
        eventually("every gateway counts what the application saw", || form.left(name) == [left; 4]);
    }
    let successes = attempts.iter().filter(|attempt| attempt.is_right).count();
    assert!(successes > names.len() * MOST, "{successes} successes are few");
}

#[test]
fn a_success_at_one_gateway_opens_the_key_at_every_other_within_a_second() {
    let _alone = alone();
    let form = Form::start(2, CLEARED, "");
    assert_eq!([form.request(0, guess(0)).status(), form.request(1, guess(0)).status()], [401; 2]);
    let mut owner = form.gateways[0].connect();
    owner.send(form.request(0, right(2000)).bytes());
    eventually("the owner's login is under way", || form.count() == 3);
    assert_eq!(form.request(1, guess(0)).status(), 429, "the last slot is the owner's");
    assert_eq!(owner.response().status, 302);
    let cleared = Stopwatch::start();
    eventually("the other gateway knows", || form.request(1, guess(0)).status() == 401);
    assert!(cleared.elapsed() < Duration::from_secs(1), "{:?}", cleared.elapsed());
    // All three are free again, and no more than three.
    let statuses: Vec<u16> = (0..3).map(|gateway| form.request(gateway, guess(0)).status()).collect();
    assert_eq!(statuses, [401, 401, 429]);
    assert_eq!(form.left("alice"), [0; 2]);
}

#[test]
fn clients_that_hang_up_before_the_answer_gain_no_guess_at_any_gateway() {
    let _alone = alone();
    let form = Form::start(2, CLEARED, "");
    let send = |number: usize| {
        let mut client = RawClient::connect(form.address(number));
        client.send(form.request(number, guess(300)).bytes());
        client
    };
    let clients: Vec<RawClient> = (0..40).map(send).collect();
    eventually("three are at the application", || form.count() == 3);
    drop(clients);
    let answered = Stopwatch::start();
    while answered.elapsed() < Duration::from_millis(600) {
        for gateway in 0..2 {
            assert_eq!(form.request(gateway, guess(0)).status(), 429, "{:?}", answered.elapsed());
        }
    }
    assert_eq!((form.count(), form.left("alice")), (3, vec![0; 2]));
}

#[test]
fn slots_of_a_gateway_that_is_killed_amid_guesses_stay_taken() {
    let _alone = alone();
    let mut form = Form::start(2, CLEARED, "");
    // The last one would succeed, but its gateway is gone.
    let mut clients: Vec<RawClient> = (0..3).map(|_| form.gateways[0].connect()).collect();
    for (client, login) in clients.iter_mut().zip([guess(2000), guess(2000), right(2000)]) {
        client.send(form.request(0, login).bytes());
    }
    eventually("they are at the application", || form.count() == 3);
    let sent = Stopwatch::start();
    form.gateways[0].kill();
    while sent.elapsed() < Duration::from_millis(2500) {
        assert_eq!(form.request(1, guess(0)).status(), 429, "{:?}", sent.elapsed());
    }
    form.gateways[0].restart();
    assert_eq!(form.request(0, guess(0)).status(), 429, "nor does its successor give them back");
    assert_eq!(form.count(), 3);
    assert_eq!(form.left("alice"), [0; 2]);
}
