//! Whose a success is, and what becomes of the sessions of a request, without a network.

use std::borrow::Cow;
use std::collections::HashMap;

use portcullis::rules::decision::operator::LimitQuery;
use portcullis::rules::decision::{SessionChange, SuccessOwner};
use portcullis::rules::key::{Hashers, KeyHash, KeyHasher, KeyPart, KeySpec, Selector, Spelling, UserMark};
use portcullis::rules::outcome::{Matchers, OutcomeRule};
use portcullis::rules::route::{CookieNames, SessionRule};
use portcullis::wire::head::{Fields, KnownName};
use portcullis::words::clock::Timestamp;
use proptest::prelude::*;

use crate::support::{Ask, World, ask, form, limit, world};

const HASHER: [u8; 16] = [3; 16];

/// Whose which session is, as a store would know it.
type Known = HashMap<KeyHash, KeyHash>;

fn rule(of: &str, cookies: &[&str]) -> SessionRule {
    let part = |text: &str| KeyPart { selector: text.parse().unwrap(), spelling: Spelling::Usual };
    SessionRule {
        notify: Vec::new(),
        of: KeySpec { parts: of.split_whitespace().map(part).collect(), ..KeySpec::default() },
        cookies: cookies.iter().map(|name| CookieNames::new(name)).collect(),
        tokens: ["access".into()].into(),
        keep: std::time::Duration::from_secs(60),
        is_fresh: true,
    }
}

/// A sign-in at `/login`, with this rule.
fn signing_in(rule: SessionRule) -> World {
    let mut world = world();
    let route = world.route("POST /login", Vec::new());
    route.sessions = Some(rule);
    let success = Matchers { status: "302".parse().ok(), ..Matchers::default() };
    route.outcome = Some(OutcomeRule::new(Some(success), None, None).into());
    world.policy.session_carriers = world.policy.routes.session_carriers();
    world
}

fn hasher() -> KeyHasher {
    KeyHasher::new(HASHER)
}

fn answer(cookies: &[&str]) -> Fields {
    cookies.iter().map(|line| (KnownName::SET_COOKIE, line)).collect()
}

fn login(cookies: &str) -> Ask {
    login_as("alice", cookies)
}

fn login_as(name: &str, cookies: &str) -> Ask {
    let cookies = if cookies.is_empty() { String::new() } else { format!("\nCookie: {cookies}") };
    let head = format!("POST /login\nContent-Type: application/x-www-form-urlencoded{cookies}");
    ask(&head).body(&format!("username={name}"))
}

/// Whose a success is that gives these cookies and tokens.
fn owner(world: &World, ask: &Ask, known: &Known, cookies: &[&str], tokens: &[&str]) -> SuccessOwner {
    let sign_in = world.sign_in(ask, known, &hasher()).expect("a sign-in");
    let mut gained = sign_in.gained(&world.policy, &answer(cookies), Timestamp::EPOCH, &hasher());
    let tokens: Vec<Box<str>> = tokens.iter().map(|token| (*token).into()).collect();
    sign_in.add_tokens(&mut gained, &world.policy, &tokens, &hasher());
    sign_in.owner(&world.policy, gained, &hasher())
}

/// What a store knows after this sign-in.
#[track_caller]
fn learn(world: &World, ask: &Ask, known: &mut Known, cookies: &[&str], tokens: &[&str]) -> KeyHash {
    match owner(world, ask, known, cookies, tokens) {
        SuccessOwner::Learning(sign_in) => {
            known.extend(sign_in.learned.iter().map(|session| (*session, sign_in.account)));
            sign_in.account
        }
        owner => panic!("{owner:?}"),
    }
}

fn users(world: &World, ask: &Ask, known: &Known) -> Vec<UserMark> {
    world.sessions(ask, known, &hasher()).users().to_vec()
}

#[test]
fn a_request_is_the_user_whose_session_it_carries_in_any_spelling() {
    let world = signing_in(rule("param.username", &["sid", "wp_*"]));
    let mut known = Known::new();
    let lines = ["sid=\"a%20b\"; Path=/", "wp_in_7=x|y; HttpOnly", "other=1", "wp_old=; Max-Age=0"];
    let alice = learn(&world, &login(""), &mut known, &lines, &["jwt.of.alice"]);
    for cookies in [
        "sid=a%20b",
        "sid=\"a%20b\"",
        "sid=%61%20b",
        "SID=a%20b",
        "a=b;sid = a%20b ;c",
        "wp_in_7=x%7Cy",
        "wp.in[7]=x|y",
    ] {
        let seen = users(&world, &ask(&format!("GET /\nCookie: {cookies}")), &known);
        assert_eq!(seen, [UserMark::of(alice)], "{cookies}");
    }
    assert_eq!(users(&world, &ask("GET /\nAuthorization: bearer jwt.of.alice"), &known), [UserMark::of(alice)]);
    // As servers of Java read one that stands in the path.
    for (target, is_found) in [("/x;SID=a%20b/y", true), ("/x;a=1;sid=a%20b?z", true), ("/x?;sid=a%20b", false)] {
        let seen = users(&world, &ask(&format!("GET {target}")), &known);
        assert_eq!(seen.len(), usize::from(is_found), "{target}");
    }
    for cookies in ["sid=", "sid=other", "other=1", "wp_old=", "sid2=a%20b"] {
        assert!(users(&world, &ask(&format!("GET /\nCookie: {cookies}")), &known).is_empty(), "{cookies}");
    }
}

/// As Flask signs a session, and as PHP decodes one.
#[test]
fn a_session_is_one_however_its_base64_is_spelled() {
    let world = signing_in(rule("param.username", &["sid"]));
    let (flask, php) =
        ("eyJpZCI6MX0.Z1x_Ag.sX-9c2lnbmF0dXJlIG9mIDIwIGI", "bm9uY2UgYW5kIHdoYXQgaXMgZW5jcnlwdGVkIGhlcmU=");
    for (value, spellings) in [
        (
            flask,
            ["!.sX-9c2lnbmF0dXJlIG9mIDIwIGJ", ".sX+9c2lnbmF0dXJlIG9mIDIwIGI=", ".sX-9c2l~nbmF0dXJlIG9mIDIwIGI=AAAA"],
        ),
        (
            php,
            [
                "!bm9uY2UgYW5kIHdoYXQgaXMgZW5jcnlwdGVkIGhlcmV",
                "bm9u=Y2UgYW5kIHdoYXQgaX.MgZW5jcnlwdGVkIGhlcmU",
                "bm9uY2Ug-YW5kIHdoYXQgaXMgZW5jcnlwdGVkIGhlcmU=_",
            ],
        ),
    ] {
        let mut known = Known::new();
        let alice = learn(&world, &login(""), &mut known, &[&format!("sid={value}")], &[]);
        for spelling in spellings {
            let before = if spelling.contains(".sX") { "eyJpZCI6MX0.Z1x_Ag" } else { "" };
            let spelled = format!("sid={before}{spelling}");
            assert_eq!(seen(&world, &spelled, &known), [UserMark::of(alice)], "{spelled}");
        }
        for other in [value.replace("c2", "c3"), value.replace('0', "1"), value.replace('X', "Y")] {
            assert!(other == value || seen(&world, &format!("sid={other}"), &known).is_empty(), "{other}");
        }
    }
    let mut known = Known::new();
    learn(&world, &login(""), &mut known, &["sid=session-1"], &[]);
    assert!(seen(&world, "sid=session-2", &known).is_empty(), "a short one is as it is");
}

#[test]
fn what_is_not_looked_up_is_nobodys_too() {
    let world = signing_in(rule("param.username", &["sid"]));
    let mut known = Known::new();
    let alice = learn(&world, &login(""), &mut known, &["sid=s"], &[]);
    let many = |count: usize| (0..count).map(|number| format!("sid={number}; ")).collect::<Vec<_>>().concat();
    let seen = |cookies: &str| users(&world, &ask(&format!("GET /\nCookie: {cookies}")), &known);
    assert_eq!(seen(&format!("{}sid=s", many(15))), [UserMark::of(alice)]);
    let unread = |cookies: &str| {
        world.sessions(&ask(&format!("GET /\nCookie: {cookies}")), &known, &hasher()).unread().is_some()
    };
    let (behind, before) = (format!("{}sid=s", many(16)), format!("sid=s; {}x=1", many(16)));
    assert_eq!((seen(&behind), unread(&behind)), (vec![], true));
    assert_eq!((seen(&before), unread(&before)), (vec![UserMark::of(alice)], true));
    for odd in ["a=1,sid=s", "sid", "sid=a b", "a=\"x; sid=s\"", "$Version=1; sid=s"] {
        assert!(unread(odd), "{odd}");
    }
    for plain in ["sid=s", "a=1; sid=\"s\"; b=%20", "other=[1]"] {
        assert!(!unread(plain), "{plain}");
    }
    let long = "x".repeat(4097);
    assert!(seen(&format!("sid={long}")).is_empty(), "it is no session");
    assert!(unread(&format!("sid={long}")), "of those that are known");
}

#[test]
fn a_success_needs_a_session_that_the_request_did_not_carry() {
    let world = signing_in(rule("param.username", &["sid", "remember"]));
    let check = |cookies: &str, set: &[&str], tokens: &[&str], is_own: bool| {
        let owner = owner(&world, &login(cookies), &Known::new(), set, tokens);
        assert_eq!(owner != SuccessOwner::Other, is_own, "{cookies}: {set:?} {tokens:?}");
    };
    check("", &["sid=1"], &[], true);
    check("sid=1", &["sid=2"], &[], true);
    check("sid=1", &["sid=1", "remember=2"], &[], true);
    check("", &[], &["token"], true);
    check("", &[], &[], false);
    check("", &["csrf=1", "sid=; Max-Age=0"], &[], false);
    check("sid=1", &["sid=1"], &[], false);
    check("sid=\"1\"", &["sid=1"], &[], false);
    check("sid=%31", &["sid=1"], &[], false);
    check("sid=2", &["sid=2; Path=/x"], &[], false);
    check(&(0..20).map(|number| format!("sid={number}; ")).collect::<Vec<_>>().concat(), &["sid=new"], &[], false);
    check("", &["sid=1", "sid=; Max-Age=0"], &[], false);
    check("a=1,sid=2", &["sid=1"], &[], false);
}

#[test]
fn an_application_that_keeps_its_session_needs_no_new_one_but_no_other_account_either() {
    let world = signing_in(SessionRule { is_fresh: false, ..rule("param.username", &["sid"]) });
    let mut known = Known::new();
    let alice = learn(&world, &login("sid=1"), &mut known, &[], &[]);
    assert_eq!(users(&world, &ask("GET /\nCookie: sid=1"), &known), [UserMark::of(alice)]);
    assert_eq!(owner(&world, &login(""), &known, &[], &[]), SuccessOwner::Own, "there is nothing to learn");
    let bob = ask("POST /login\nContent-Type: application/x-www-form-urlencoded\nCookie: sid=1").body("username=bob");
    assert_eq!(owner(&world, &bob, &known, &[], &[]), SuccessOwner::Other);
    assert!(matches!(owner(&world, &login("sid=1"), &known, &[], &[]), SuccessOwner::Learning(_)));
}

#[test]
fn a_success_beside_a_session_of_another_account_is_not_the_own_one() {
    let world = signing_in(rule("param.username", &["sid"]));
    let mut known = Known::new();
    let alice = learn(&world, &login(""), &mut known, &["sid=a"], &[]);
    let bob = |cookies: &str| login_as("bob", cookies);
    let bobs = learn(&world, &bob(""), &mut known, &["sid=b"], &[]);
    assert_ne!(alice, bobs);
    assert_eq!(owner(&world, &bob("sid=a"), &known, &["sid=c"], &[]), SuccessOwner::Other);
    assert_eq!(owner(&world, &bob("sid=b; sid=a"), &known, &["sid=c"], &[]), SuccessOwner::Other);
    assert!(matches!(owner(&world, &bob("sid=b"), &known, &["sid=c"], &[]), SuccessOwner::Learning(_)));
    // The name is in doubt, and so is whose the session is that the request carries.
    let doubt = bob("sid=b").body("username=bob&username=alice");
    assert_eq!(owner(&world, &doubt, &known, &["sid=c"], &[]), SuccessOwner::Other);
    for doubt in [form("/login", "username=bob&username=alice"), form("/login?username=bob", "username=alice")] {
        let mut known = known.clone();
        learn(&world, &doubt, &mut known, &["sid=c"], &[]);
        assert_eq!(seen(&world, "sid=c", &known), [], "it is a session of nobody");
        assert!(!["alice", "bob"].iter().any(|name| is_own(&world, name, "sid=c", &known)), "and makes no success");
    }
    // As it is without a name.
    assert_eq!(owner(&world, &form("/login", "user=bob"), &known, &["sid=c"], &[]), SuccessOwner::Own);
}

#[test]
fn a_name_is_in_doubt_where_another_field_of_a_list_is_sent_too() {
    let mut of_list = rule("", &["sid"]);
    let choice = |text: &str| KeyPart { selector: text.parse().unwrap(), spelling: Spelling::Usual };
    let choices: Vec<_> = ["param.username", "param.lgname", "client_ip"].map(choice).into();
    of_list.of.parts.push(KeyPart { selector: Selector::First(choices.into()), spelling: Spelling::Usual });
    let world = signing_in(of_list);
    for (fields, is_certain) in
        [("username=bob", true), ("lgname=bob", true), ("username=bob&lgname=mallory", false), ("x=y", true)]
    {
        let mut known = Known::new();
        learn(&world, &form("/login", fields), &mut known, &["sid=a"], &[]);
        assert_eq!(seen(&world, "sid=a", &known).len(), usize::from(is_certain), "{fields}");
    }
}

/// What a store knows after an answer with these cookies to a request with these.
fn after(world: &World, known: &Known, cookies: &str, set: &[&str]) -> Known {
    let mut after = known.clone();
    let carried = world.sessions(&ask(&format!("GET /\nCookie: {cookies}")), known, &hasher());
    for change in carried.changes(&world.policy, &answer(set), Timestamp::EPOCH, &hasher()) {
        match change {
            SessionChange::Renew { old, new } => {
                if let Some(account) = after.get(&old).copied() {
                    after.insert(new, account);
                }
            }
            SessionChange::Learn { session, account, .. } => _ = after.entry(session).or_insert(account),
            SessionChange::Forget(session) => _ = after.remove(&session),
        }
    }
    after
}

/// Whose a request with these cookies is.
fn seen(world: &World, cookies: &str, known: &Known) -> Vec<UserMark> {
    users(world, &ask(&format!("GET /\nCookie: {cookies}")), known)
}

/// Whether a store takes a success of this name, beside these cookies, for its own.
fn is_own(world: &World, name: &str, cookies: &str, known: &Known) -> bool {
    match owner(world, &login_as(name, cookies), known, &["sid=fresh"], &[]) {
        SuccessOwner::Own => true,
        SuccessOwner::Other => false,
        SuccessOwner::Learning(sign_in) => {
            sign_in.carried.iter().all(|session| known.get(session).is_none_or(|account| *account == sign_in.account))
        }
    }
}

#[test]
fn an_answer_renews_and_ends_the_sessions_of_its_request() {
    let world = signing_in(rule("param.username", &["sid", "wp_*"]));
    let mut known = Known::new();
    let alice = learn(&world, &login(""), &mut known, &["sid=a", "wp_x=1", "wp_y=2"], &[]);
    learn(&world, &login_as("bob", ""), &mut known, &["sid=b"], &[]);
    let renewed = after(&world, &known, "sid=a", &["sid=new; Path=/", "csrf=1"]);
    assert_eq!(seen(&world, "sid=new", &renewed), [UserMark::of(alice)]);
    assert_eq!(seen(&world, "sid=a", &renewed), [UserMark::of(alice)]);
    assert_eq!(after(&world, &known, "other=1", &["sid=new"]), known);
    assert_eq!(after(&world, &known, "sid=unknown", &["sid=new"]), known);
    assert_eq!(after(&world, &known, "sid=a", &["sid=a"]), known, "nothing is new");
    let ended = after(
        &world,
        &known,
        "sid=a; wp_x=1; wp_y=2",
        &["sid=; Max-Age=0", "wp_x=deleted; Expires=Thu, 01 Jan 1970 00:00:00 GMT"],
    );
    assert!(seen(&world, "sid=a; wp_x=1", &ended).is_empty());
    assert_eq!(seen(&world, "wp_y=2", &ended), [UserMark::of(alice)], "another cookie of the same glob");
    assert!(!seen(&world, "sid=b", &ended).is_empty());
}

#[test]
fn a_session_that_the_same_answer_ends_has_an_heir() {
    let world = signing_in(rule("param.username", &["sid", "remember"]));
    let mut known = Known::new();
    let alice = learn(&world, &login(""), &mut known, &["sid=a"], &[]);
    for set in [
        ["sid=; Path=/old; Max-Age=0", "sid=new; Path=/"],
        ["sid=new; Path=/", "sid=; Path=/old; Max-Age=0"],
        ["sid=; Max-Age=0", "sid=new; Path=/"],
        ["sid=; Domain=example.com; Max-Age=0", "sid=new"],
        ["sid=; Max-Age=0", "remember=new"],
        ["remember=new", "sid=; Max-Age=0"],
    ] {
        let after = after(&world, &known, "sid=a", &set);
        let new = if set.concat().contains("remember") { "remember=new" } else { "sid=new" };
        assert_eq!(seen(&world, new, &after), [UserMark::of(alice)], "{set:?}");
        assert!(seen(&world, "sid=a", &after).is_empty(), "{set:?}");
        assert!(!is_own(&world, "bob", "sid=a", &after), "{set:?}");
    }
    let kept = after(&world, &known, "sid=a", &["sid=; Path=/old; Max-Age=0", "sid=a; Path=/"]);
    assert_eq!(seen(&world, "sid=a", &kept), [UserMark::of(alice)], "it is set anew");
}

#[test]
fn what_is_set_beside_sessions_of_several_accounts_is_of_each() {
    let world = signing_in(rule("param.username", &["sid"]));
    let mut known = Known::new();
    let [mallory, eve, trent] = ["mallory", "eve", "trent"]
        .map(|name| learn(&world, &login_as(name, ""), &mut known, &[&format!("sid={name}")], &[]));
    let marks = |accounts: &[KeyHash]| accounts.iter().map(|account| UserMark::of(*account)).collect::<Vec<_>>();
    let of_two = after(&world, &known, "sid=mallory; sid=eve", &["sid=new"]);
    assert_eq!(seen(&world, "sid=new", &of_two), marks(&[mallory, eve]));
    let of_three = after(&world, &of_two, "sid=new; sid=trent", &["sid=newer"]);
    assert_eq!(seen(&world, "sid=newer", &of_three), marks(&[mallory, eve, trent]));
    for (known, value) in [(&of_two, "new"), (&of_three, "newer")] {
        for name in ["alice", "mallory", "eve"] {
            assert!(!is_own(&world, name, &format!("sid={value}"), known), "{name}");
        }
    }
    let ended = after(&world, &of_two, "sid=new", &["sid=; Max-Age=0"]);
    assert!(seen(&world, "sid=new", &ended).is_empty());
    assert!(!is_own(&world, "alice", "sid=new", &ended));
    let kept = after(&world, &of_two, "sid=new", &["sid=; Path=/old; Max-Age=0", "sid=new"]);
    assert_eq!(kept, of_two);
}

#[test]
fn what_an_ended_session_is_renewed_to_is_nobodys_and_no_success_of_another() {
    let world = signing_in(rule("param.username", &["sid", "remember"]));
    let mut known = Known::new();
    let mallory = learn(&world, &login_as("mallory", ""), &mut known, &["sid=s", "remember=r"], &[]);
    let ended = after(&world, &known, "sid=s", &["sid=; Max-Age=0"]);
    let renewed = after(&world, &ended, "sid=s", &["sid=t"]);
    let again = after(&world, &renewed, "sid=t", &["sid=u", "remember=v"]);
    for cookies in ["sid=s", "sid=t", "sid=u", "remember=v"] {
        assert!(seen(&world, cookies, &again).is_empty(), "{cookies}");
        assert!(!is_own(&world, "alice", cookies, &again), "{cookies}");
        assert!(is_own(&world, "mallory", cookies, &again), "{cookies}");
    }
    assert_eq!(after(&world, &ended, "sid=s", &["sid=; Max-Age=0"]), ended, "it has ended already");
    // A session that lasts is the heir before one that has ended.
    let beside = after(&world, &ended, "sid=s; remember=r", &["sid=t"]);
    assert_eq!(seen(&world, "sid=t", &beside), [UserMark::of(mallory)]);
}

#[test]
fn what_is_set_beside_values_that_were_not_looked_up_makes_no_success() {
    let world = signing_in(rule("param.username", &["sid"]));
    let mut known = Known::new();
    let mallory = learn(&world, &login_as("mallory", ""), &mut known, &["sid=s"], &[]);
    let others = (0..17).map(|number| format!("sid={number}; ")).collect::<Vec<_>>().concat();
    for cookies in [format!("{others}sid=s"), "a=1 sid=s".to_owned(), "a=1,sid=s".to_owned()] {
        let renewed = after(&world, &known, &cookies, &["sid=new"]);
        for name in ["alice", "mallory"] {
            assert!(!is_own(&world, name, "sid=new", &renewed), "{cookies}");
        }
        let again = after(&world, &renewed, "sid=new", &["sid=newer"]);
        assert!(!is_own(&world, "alice", "sid=newer", &again), "{cookies}");
    }
    let behind = after(&world, &known, &format!("sid=s; {others}x=1"), &["sid=new"]);
    assert_eq!(seen(&world, "sid=new", &behind), [UserMark::of(mallory)]);
    assert_eq!(after(&world, &known, "a=1; b=2", &["sid=new"]), known, "there is no doubt");
}

#[test]
fn an_account_of_one_host_is_known_at_every_host() {
    let world = signing_in(rule("host param.username", &["sid"]));
    let mut known = Known::new();
    let (one, two) = (login("").at("one.example"), login("").at("two.example"));
    let alice = learn(&world, &one, &mut known, &["sid=a"], &[]);
    assert_ne!(alice, learn(&world, &two, &mut known, &["sid=b"], &[]));
    let seen = |host: &str, cookies: &str| users(&world, &ask(&format!("GET /\nCookie: {cookies}")).at(host), &known);
    assert_eq!(seen("ONE.example:80", "sid=a"), [UserMark::of(alice)]);
    assert_eq!(seen("two.example", "sid=a"), [UserMark::of(alice)], "a client names any host");
}

#[test]
fn two_sign_ins_of_one_application_agree_on_the_account() {
    let mut world = signing_in(rule("param.username", &["sid"]));
    world.route("POST /api/login", Vec::new()).sessions = Some(rule("json.user", &["sid"]));
    let of = world.policy.routes.all()[0].outcome.clone();
    world.outcome_of_last(of);
    world.policy.session_carriers = world.policy.routes.session_carriers();
    let mut known = Known::new();
    let form = learn(&world, &login(""), &mut known, &["sid=a"], &[]);
    let json = ask("POST /api/login\nContent-Type: application/json").body(r#"{"user": " ALICE "}"#);
    assert_eq!(learn(&world, &json, &mut known, &["sid=b"], &[]), form);
}

/// Ten thousand sessions of a hundred accounts in any order: none is taken for another's.
#[test]
fn no_session_of_many_is_attributed_to_another_account() {
    let world = signing_in(rule("param.username", &["sid"]));
    let mut known = Known::new();
    let accounts: Vec<_> = (0..10_000)
        .map(|number| {
            let ask = form("/login", &format!("username=user{}", number * 7 % 100));
            learn(&world, &ask, &mut known, &[&format!("sid=session{number}")], &[])
        })
        .collect();
    for number in (0..10_000).map(|number| number * 7919 % 10_000) {
        let seen = users(&world, &ask(&format!("GET /\nCookie: sid=session{number}")), &known);
        assert_eq!(seen, [UserMark::of(accounts[number])]);
    }
    assert_eq!(accounts.iter().collect::<std::collections::HashSet<_>>().len(), 100);
}

proptest! {
    /// What an answer sets is what the browser's next request carries.
    #[test]
    fn any_cookie_that_is_set_is_found_when_it_is_sent_back(value in "[!-:<-~]{1,40}") {
        let world = signing_in(rule("param.username", &["sid"]));
        prop_assume!(value != "\"\"");
        let mut known = Known::new();
        let line = format!("sid={value}; Path=/; HttpOnly");
        if let SuccessOwner::Learning(sign_in) = owner(&world, &login(""), &known, &[&line], &[]) {
            known.extend(sign_in.learned.iter().map(|session| (*session, sign_in.account)));
            let seen = users(&world, &ask(&format!("GET /\nCookie: a=1; sid={value}")), &known);
            prop_assert_eq!(&seen[..], &[UserMark::of(sign_in.account)]);
        } else {
            prop_assert!(value.contains('\0'), "{}", value);
        }
    }
}

#[test]
fn an_operator_names_an_account_as_people_sign_in_or_by_its_mark() {
    let key = |world: &World, value: &str| {
        let hashers = Hashers { counted: hasher(), shown: hasher() };
        let values = [(Cow::Borrowed("user"), Cow::Borrowed(value))];
        LimitQuery::new(&world.policy, "codes", &values, None, &hashers).map(|query| query.keys[0].key)
    };
    let mut world = signing_in(rule("param.username", &["sid"]));
    world.everywhere(limit("codes", "user", "5/minute"));
    let mut known = Known::new();
    let alice = learn(&world, &login(""), &mut known, &["sid=a"], &[]);
    let counted = key(&world, UserMark::of(alice).as_str()).expect("a key");
    assert_eq!(key(&world, " ALICE "), Ok(counted));
    assert_eq!(key(&world, &UserMark::of(alice).as_str().to_uppercase()), Ok(counted));
    assert_ne!(key(&world, "bob"), Ok(counted));
    assert_ne!(key(&world, ""), Ok(counted));

    let mut world = signing_in(rule("host param.username", &["sid"]));
    world.everywhere(limit("codes", "user", "5/minute"));
    let alice = learn(&world, &login("").at("one.example"), &mut known, &["sid=a"], &[]);
    assert_eq!(key(&world, "One.Example alice"), key(&world, UserMark::of(alice).as_str()));
    let error = key(&world, "alice").expect_err("a value is missing").to_string();
    assert!(error.ends_with("with a blank between: `host` and `param.username`"), "{error}");
}

#[test]
fn an_explanation_says_what_is_looked_up_and_what_a_success_gives() {
    let mut world = signing_in(rule("param.username", &["sid", "wp_*"]));
    world.everywhere(limit("codes", "user", "5/minute"));
    let text = world.explain(&login("sid=a")).to_string();
    for line in [
        "sessions  looked up by cookie sid, cookie wp_*, bearer: whose they are is in the store, so that `user` is missing here",
        "signs in  by cookie sid, cookie wp_*, json.access of an own success, for 1m, as param.username = ",
    ] {
        assert!(text.contains(line), "no {line} in\n{text}");
    }
    assert!(!text.contains("sid=a"), "{text}");
}
