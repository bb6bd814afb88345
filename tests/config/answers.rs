//! The configuration of outcomes, penalties and notifications.

use std::path::{Path, PathBuf};
use std::time::Duration;

use http::StatusCode;
use portcullis::config::Settings;
use portcullis::rules::client::Prefix;
use portcullis::rules::limit::{Action, ChannelId, Count, Detail, Limit, ResetOutcome, Rule, Then};
use portcullis::rules::outcome::Outcome;
use portcullis::rules::route::{KnownBy, Route};
use portcullis::wire::head::Name;
use portcullis::words::clock::Timestamp;

fn load() -> Settings {
    super::good::load("login.yaml")
}

fn limit<'s>(settings: &'s Settings, name: &str) -> &'s Limit {
    super::good::limit(settings, name)
}

fn route<'s>(settings: &'s Settings, name: &str) -> &'s Route {
    settings.policy.routes.all().iter().find(|route| &*route.name == name).expect("a route of that name")
}

#[test]
fn an_outcome_says_what_answers_mean() {
    let settings = load();
    let of = |name: &str, status, lines: &[(&str, &str)]| {
        let fields = lines.iter().map(|(name, value)| (Name::of(name), *value)).collect();
        route(&settings, name).outcome.as_ref().expect("an outcome").of_head(status, &fields, Timestamp::EPOCH)
    };
    assert_eq!(of("device", StatusCode::FORBIDDEN, &[]), Some(Outcome::Failure));
    assert_eq!(of("device", StatusCode::OK, &[]), Some(Outcome::Success));
    assert_eq!(of("both", StatusCode::OK, &[]), Some(Outcome::Success));
    assert_eq!(of("both", StatusCode::FOUND, &[]), Some(Outcome::Neither));
    // Whether it failed may stand in the body.
    let marks = [("location", "/account/7"), ("set-cookie", "sid=abc")];
    assert_eq!(of("login", StatusCode::FOUND, &marks), None);
    let rule = route(&settings, "login").outcome.as_ref().expect("an outcome");
    assert_eq!(rule.otherwise, Outcome::Neither);
    let failure = rule.failure.as_ref().expect("a failure");
    assert_eq!(failure.json, [("ok".into(), "false".into()), ("user".into(), "null".into())]);
}

#[test]
fn known_clients_have_defaults() {
    let settings = load();
    let known = route(&settings, "login").known_clients.as_ref().expect("known clients");
    assert_eq!(known.of.parts[0].selector.to_string(), "param.username");
    assert_eq!((known.remember.get(), known.keep), (5, Duration::from_secs(90 * 86_400)));
    assert_eq!((known.by, known.prefix), (KnownBy::Address, Prefix { v4: 28, v6: 64 }));
    let known = route(&settings, "device").known_clients.as_ref().expect("known clients");
    assert_eq!((known.remember.get(), known.keep), (3, Duration::from_secs(30 * 86_400)));
    assert_eq!(known.by, KnownBy::Cookie);
}

#[test]
fn sessions_have_defaults() {
    let settings = load();
    let sessions = |name: &str| route(&settings, name).sessions.as_ref().expect("sessions");
    let names = |name: &str| sessions(name).cookies.iter().map(ToString::to_string).collect::<Vec<_>>();
    let rule = sessions("login");
    assert_eq!((rule.keep, rule.is_fresh), (Duration::from_secs(12 * 3600), true));
    assert_eq!((names("login"), rule.tokens.len()), (vec!["sid".to_owned()], 0));
    let rule = sessions("device");
    assert_eq!((rule.keep, rule.is_fresh), (Duration::from_secs(30 * 86_400), false));
    assert_eq!((names("device"), &*rule.tokens), (vec!["a".to_owned(), "b_*".to_owned()], &["a.b".into()][..]));
    assert_eq!(settings.policy.session_carriers.iter().count(), 4, "a bearer too");
}

#[test]
fn every_action_is_read_with_who_is_told() {
    let settings = load();
    let then = |name: &str| limit(&settings, name).then.clone();
    assert_eq!(then("plain"), Then::default());
    assert_eq!(then("failures").action, Action::Delay(Duration::from_secs(20)));
    assert_eq!(then("reset").action, Action::Tarpit(Duration::from_secs(3_600)));
    let lengths = |name: &str| match then(name).action {
        Action::Ban(ladder) => ladder.lengths().iter().map(Duration::as_secs).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    assert_eq!(lengths("known"), [900]);
    assert_eq!(lengths("guessing"), [900, 3_600, 86_400]);
    assert_eq!(then("guessing").notify, [ChannelId(1), ChannelId(0)]);
    assert_eq!(then("machines").action, Action::Challenge);
    assert_eq!(then("told"), Then { action: Action::Deny(None), notify: vec![ChannelId(1)] });
}

#[test]
fn what_is_counted_and_what_forgets_it_are_read() {
    let settings = load();
    let failures = limit(&settings, "failures");
    assert_eq!((failures.count, failures.reset_on), (Count::Failures, Some(ResetOutcome::Success)));
    assert_eq!(limit(&settings, "everywhere").count, Count::Successes);
    assert_eq!(limit(&settings, "reset").reset_on, Some(ResetOutcome::Failure));
    let known = limit(&settings, "known");
    assert_eq!((known.unless_known, known.unless.len()), (true, 1));
    assert!(limit(&settings, "everywhere").unless_known);
    let guessing = limit(&settings, "guessing");
    assert!(matches!(&guessing.rule, Rule::Distinct(rates) if rates.to_string() == "20/hour"));
    assert_eq!(guessing.distinct.as_ref().map(|part| part.selector.to_string()).as_deref(), Some("param.username"));
    assert_eq!(limit(&settings, "devices").key.parts[0].selector.to_string(), "device");
}

#[test]
fn headers_tell_nothing_of_others_unless_told_to() {
    let settings = load();
    for (name, expected) in [
        ("plain", Detail::Full),
        ("machines", Detail::Full),
        ("failures", Detail::RetryAfter),
        ("reset", Detail::RetryAfter),
        ("known", Detail::RetryAfter),
        ("guessing", Detail::RetryAfter),
        ("everywhere", Detail::RetryAfter),
        ("told", Detail::Full),
    ] {
        assert_eq!(limit(&settings, name).headers, expected, "{name}");
    }
}

#[test]
fn places_to_write_to_stand_beside_the_file() {
    let settings = load();
    let beside = |name: &str| Some(Path::new("tests/config/good").join(name));
    assert_eq!(settings.store.memory.snapshot, beside("state"));
    assert_eq!(settings.audit.file, beside("audit.jsonl"));
    assert_eq!(settings.audit.sqlite, Some(PathBuf::from("/var/lib/audit.db")));
    let stream = settings.audit.redis_stream.as_ref().expect("a stream");
    assert_eq!((&*stream.key, stream.max_entries), ("trail", 100_000));
    assert_eq!(settings.requests.max_held, 0);
}

#[test]
fn channels_stand_in_order_and_their_paths_are_shown_nowhere() {
    let settings = load();
    let channels: Vec<_> = settings.notify.channels.iter().map(|channel| (&*channel.name, channel.every)).collect();
    assert_eq!(channels, [("mail", Duration::from_secs(60)), ("ops", Duration::from_secs(300))]);
    assert!(!format!("{settings:?}").contains("hunter2"));
}
