//! What a login costs Redis: commands and round trips, counted at Redis.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::thread::JoinHandle;

use crate::form::{Form, Login, guess, right};
use crate::site::alone;
use crate::support::{RedisServer, eventually};

/// What clients of a Redis say to it, while this is there.
struct Overheard {
    monitor: Child,
    lines: Arc<Mutex<Vec<String>>>,
    reader: Option<JoinHandle<()>>,
}

impl Overheard {
    #[track_caller]
    fn start(redis: &RedisServer) -> Self {
        let mut monitor = Command::new("redis-cli")
            .args(["-h", "127.0.0.1", "-p", &redis.address().port().to_string(), "MONITOR"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("redis-cli is installed");
        let output = BufReader::new(monitor.stdout.take().expect("piped"));
        let lines = Arc::<Mutex<Vec<String>>>::default();
        let heard = Arc::clone(&lines);
        let reader = thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                heard.lock().expect("no panic here").push(line);
            }
        });
        let overheard = Self { monitor, lines, reader: Some(reader) };
        eventually("the monitor listens", || !overheard.lines.lock().expect("no panic here").is_empty());
        overheard
    }

    /// The commands since the last time that were sent by clients, and neither to see whether Redis is well nor at the
    /// beginning of a connection: each worker makes one of its own when it needs it.
    #[track_caller]
    fn commands(&self, redis: &RedisServer) -> Vec<String> {
        // The monitor prints commands in their order.
        let mark = format!("mark-{}", fastrand::u64(..));
        assert_eq!(redis.cli(&["ECHO", &mark]), mark);
        let mut commands = Vec::new();
        eventually("the mark is heard", || {
            let mut lines = self.lines.lock().expect("no panic here");
            let Some(end) = lines.iter().position(|line| line.contains(&mark)) else { return false };
            commands = lines.drain(..=end).filter_map(|line| command(&line)).collect();
            true
        });
        commands
    }
}

impl Drop for Overheard {
    fn drop(&mut self) {
        let _ = self.monitor.kill();
        let _ = self.monitor.wait();
        let _ = self.reader.take().map(JoinHandle::join);
    }
}

/// The command of a line like `1700000000.123456 [0 127.0.0.1:4000] "evalsha" ..`; none where a script says it.
fn command(line: &str) -> Option<String> {
    let (from, said) = line.split_once("] ")?;
    let name = said.trim_start_matches('"').split('"').next()?.to_ascii_lowercase();
    // With `hget` one task asks every half second for bans and sessions that it has missed; and once a second gateways tell
    // each other which accounts failed, however many did.
    let is_beside = ["echo", "ping", "dbsize", "info", "role", "client", "hget"].contains(&name.as_str())
        || said.contains(":{records}");
    (!from.ends_with(" lua") && !is_beside).then_some(name)
}

/// What so many such logins, one after the other, make gateways say to Redis.
#[track_caller]
fn cost(form: &Form, overheard: &Overheard, times: usize, login: Login<'_>) -> Vec<String> {
    let expected = if login.is_right { 302 } else { 401 };
    for _ in 0..times {
        assert_eq!(form.request(0, login).status(), expected);
    }
    overheard.commands(&form.redis)
}

/// The scripts of a decision alone, and of a decision with a settlement.
const DECIDED: usize = 1;
const GIVEN_BACK: usize = 2;

/// Checks that a failed login runs so many scripts, and a successful one two, whatever other limits the route has.
#[track_caller]
fn check(limits: &str, more: &str, failed: usize) {
    let form = Form::start(1, limits, more);
    // Scripts are loaded when they are missing.
    for login in [guess(0), right(0), guess(0)] {
        form.request(0, Login { name: "somebody", ..login }).status();
    }
    let overheard = Overheard::start(&form.redis);
    overheard.commands(&form.redis);
    for round in 0..3 {
        for (login, scripts) in [(guess(0), failed), (right(0), GIVEN_BACK)] {
            let said = cost(&form, &overheard, 10, login);
            assert_eq!(said, vec!["evalsha"; 10 * scripts], "{login:?}, round {round}");
        }
    }
}

#[test]
fn a_failed_login_is_one_round_trip_and_a_successful_one_two() {
    let _alone = alone();
    check("{name: failures, key: param.username, count: failures, rate: 100/hour}", "", DECIDED);
}

const ALL: &str = "
      {name: failures, key: param.username, count: failures, rate: 100/hour; 1000/day, reset_on: success},
      {name: client, key: [client_ip, param.username], count: failures, rate: 200/hour, reset_on: success, unless: [known_client]},
      {name: guessing, key: client_ip, count: failures, distinct: param.username, rate: 20/hour},
      {name: spray, key: param.username, distinct: client_ip, rate: 20/hour, unless: [known_client]},
      {name: slow, key: client_ip, count: failures, rate: 1000/hour, then: {delay: 1s}},
      {name: lockdown, key: [], count: failures, rate: 1000/minute, then: {ban: 5m}, unless: [known_client]}";

const KNOWN: &str = "    known_clients: {of: param.username, remember: 5, for: 90d}\n";

#[test]
fn limits_that_clear_values_that_differ_and_clients_that_are_known_cost_no_more() {
    let _alone = alone();
    check(ALL, KNOWN, DECIDED);
}

#[test]
fn slots_in_flight_come_back_with_the_second_round_trip() {
    let _alone = alone();
    check(&format!("{ALL}, {{name: flight, key: [], concurrent: 20}}"), KNOWN, GIVEN_BACK);
}
