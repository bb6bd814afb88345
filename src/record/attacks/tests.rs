use super::*;
use crate::record::kept_requests::samples;
use crate::rules::key::OperatorPart;

const START: Timestamp = Timestamp::from_micros(1_700_000_000_000_000);

fn at(seconds: u64) -> Timestamp {
    START + Duration::from_secs(seconds)
}

fn note(attacks: &Attacks, client: [u8; 4], account: &str, is_success: bool, is_known_client: bool, seconds: u64) {
    let part = OperatorPart { selector: "param.u".into(), value: account.into(), masked: Some("x***".into()) };
    let key = Arc::new(OperatorKey { parts: vec![part] });
    let keys = [(LimitId(0), KeyHash(1), key)].into_iter().collect();
    let attempt = SignInAttempt { client: None, keys, is_known_client, was_known: ToldLater::default() };
    let outcome = if is_success { Outcome::Success } else { Outcome::Failure };
    let record = RequestRecord {
        identity: samples::identity(client),
        sign_in: Some(&attempt),
        outcome: Some(ObservedOutcome::Known(outcome)),
        ..samples::record()
    };
    attacks.note(&record, &"login".into(), &[], at(seconds));
}

fn gather(attacks: &Attacks, seconds: u64) {
    attacks.gather(&KeptRequests::default(), || HistoryReport::of_last(1, at(seconds)), at(seconds));
}

#[test]
fn failures_of_many_accounts_are_an_attack_that_users_have_no_part_in() {
    let attacks = Attacks::default();
    for number in 0..60_u8 {
        note(&attacks, [203, 0, 113, number % 4], &format!("account-{number}"), false, false, u64::from(number) / 4);
        note(
            &attacks,
            [198, 51, 100, number % 5],
            &format!("user-{}", number % 5),
            number % 3 > 0,
            false,
            u64::from(number) / 4,
        );
    }
    gather(&attacks, 15);
    let reports = attacks.report(&[], 60, at(15));
    let [report] = &reports[..] else { panic!("{reports:?}") };
    assert_eq!(
        (report.kind, &*report.route, report.clients, report.accounts),
        (report::AttackKind::Stuffing, "login", 4, 60)
    );
    assert_eq!((report.failed, report.signed_in, report.would_hit, report.is_over), (60, 0, 0, false));
    assert_eq!(report.ban.iter().map(plain_text).collect::<Vec<_>>(), ["203.0.113.0/30"]);
    assert!(report.sentence().starts_with("4 clients try passwords for many accounts on route login: 60 requests"));
    // It is told for as long as it is asked for, and it is over when nothing of it comes.
    gather(&attacks, 400);
    assert!(attacks.report(&[], 60, at(400))[0].is_over);
    assert_eq!(attacks.report(&[], 5, at(400)), []);
    assert_eq!(attacks.report(&[], 60, at(15 + 3601)), []);
}

fn plain_text(network: &ipnet::IpNet) -> String {
    report::plain(network)
}

#[test]
fn the_sign_in_of_the_user_is_no_success_of_the_attack() {
    let attacks = Attacks::default();
    note(&attacks, [198, 51, 100, 1], "alice", true, false, 0);
    for number in 0..30_u8 {
        note(&attacks, [203, 0, 113, number % 3], "alice", false, false, 2);
    }
    let told = || {
        gather(&attacks, 3);
        let report = attacks.report(&[], 60, at(3)).remove(0);
        let [alice] = &report.names[..] else { panic!("{report:?}") };
        (report.failed, report.signed_in, alice.counts.failed, alice.counts.signed_in)
    };
    assert_eq!(told(), (30, 0, 30, 0));
    // A client of the attack that got in is another matter.
    note(&attacks, [203, 0, 113, 1], "alice", true, false, 3);
    assert_eq!(told(), (30, 1, 30, 1));
}

#[test]
fn users_who_mistype_are_no_attack() {
    let attacks = Attacks::default();
    for number in 0..200_u8 {
        note(
            &attacks,
            [198, 51, 100, number % 50],
            &format!("user-{}", number % 50),
            number >= 100,
            false,
            u64::from(number) / 5,
        );
        if number % 5 == 0 {
            gather(&attacks, u64::from(number) / 5);
        }
    }
    assert_eq!(attacks.report(&[], 60, at(40)), []);
}

#[test]
fn two_gateways_report_one_attack_under_one_id() {
    let (one, other) = (Attacks::default(), Attacks::default());
    for number in 0..20_u8 {
        note(&one, [203, 0, 113, 1], "alice", false, false, u64::from(number));
        note(&other, [203, 0, 113, 2], "alice", false, false, 1 + u64::from(number));
    }
    gather(&one, 21);
    gather(&other, 21);
    let record = |of: &Attacks| AttackRecord::from_bytes(&of.record().to_bytes()).unwrap();
    let (mine, theirs) = (one.report(&[record(&other)], 60, at(21)), other.report(&[record(&one)], 60, at(21)));
    assert_eq!((mine[0].failed, mine[0].clients, mine[0].kind), (40, 2, report::AttackKind::Guessing));
    assert_eq!((&mine[0].id, mine[0].failed), (&theirs[0].id, theirs[0].failed));
    assert_eq!(mine[0].names[0].account, "alice");
    assert_eq!(AttackRecord::from_bytes(b"\xff"), None);
}

#[test]
fn only_successes_of_other_clients_than_known_ones_may_follow_failures() {
    let attacks = Attacks::default();
    for number in 0..5_u8 {
        note(&attacks, [203, 0, 113, number], "alice", false, false, 0);
    }
    note(&attacks, [198, 51, 100, 1], "alice", true, true, 1);
    note(&attacks, [203, 0, 113, 9], "alice", true, false, 2);
    // It is no matter of the success before it.
    note(&attacks, [203, 0, 113, 7], "alice", false, false, 3);
    gather(&attacks, 3);
    let successes = attacks.take_successes();
    let [success] = &successes[..] else { panic!("{successes:?}") };
    let failures = &success.failures;
    assert_eq!((success.client, failures.count, failures.clients()), ([203, 0, 113, 9].into(), 5, 5));
    assert!(attacks.is_told_now(success, at(3)));
    assert!(!attacks.is_told_now(success, at(4)), "it is told once");
    assert!(attacks.take_successes().is_empty());
}

#[test]
fn a_flood_of_notes_is_bounded_and_leaves_room_for_a_success() {
    let attacks = Attacks::default();
    for number in 0..2 * MOST_NOTES {
        note(&attacks, [203, 0, 113, 1], &format!("account-{number}"), false, false, 0);
    }
    note(&attacks, [203, 0, 113, 2], "alice", true, false, 0);
    assert_eq!(attacks.notes.lock().failures.len(), MOST_NOTES);
    gather(&attacks, 1);
    assert_eq!(attacks.take_successes().len(), 1);
    assert!(attacks.gathered.lock().recent.len() <= MOST_RECENT);
}
