use super::*;
use crate::rules::limit::Missing;
use crate::words::clock::Timestamp;

const NOW: Timestamp = Timestamp::from_micros(1_700_000_000_000_000);

fn limit(decided: u64, lacking: u64) -> ObservedLimit {
    ObservedLimit {
        name: "login".into(),
        key: vec!["client_ip".into(), "param.username".into()],
        login_field: Some("param.username".into()),
        missing: Missing::Count,
        spares_some: false,
        routes: vec!["POST /login".into()],
        domain: None,
        waits_for_rare_requests: false,
        passed: decided,
        others_are_met: false,
        decided,
        lacking,
        pattern: None,
        unmatched: 0,
    }
}

fn busiest(requests: u64, all: u64) -> BusiestClient {
    BusiestClient { client: "198.51.100.7".into(), is_trusted_proxy: false, requests, all }
}

/// The kinds that hold after this.
fn kinds(advisor: &Advisor, observed: &Observed) -> Vec<AdviceKind> {
    advisor.judge(observed, NOW);
    advisor.advice().iter().map(|advice| advice.kind).collect()
}

#[test]
fn nothing_is_said_before_a_thousand_requests() {
    let advisor = Advisor::default();
    let route = ObservedRoute { name: "login".into(), answers: 999, neither: 999 };
    let observed = Observed {
        passed: 999,
        untrusted_forwarding: 999,
        untrusted_peers: Vec::new(),
        busiest_client: Some(busiest(999, 999)),
        limits: vec![limit(999, 999)],
        routes: vec![route],
        unseen: Vec::new(),
        near_paths: Vec::new(),
        turned_away: 0,
        unlimited_logins: Vec::new(),
        unavailable_keys: None,
    };
    assert_eq!(kinds(&advisor, &observed), []);
}

#[test]
fn each_is_said_from_a_thousand_on_and_gone_when_it_is_no_longer_so() {
    let advisor = Advisor::default();
    let observe = |passed: u64, part: u64, requests: u64| Observed {
        passed,
        untrusted_forwarding: part,
        busiest_client: Some(busiest(requests, 1000)),
        limits: vec![limit(passed, part)],
        routes: vec![ObservedRoute { name: "login".into(), answers: passed, neither: part }],
        ..Observed::default()
    };
    assert_eq!(kinds(&advisor, &observe(0, 0, 0)), []);
    let all = [
        AdviceKind::UntrustedForwarding,
        AdviceKind::OneClient,
        AdviceKind::MissingField,
        AdviceKind::OutcomeMatchesNeither,
    ];
    assert_eq!(kinds(&advisor, &observe(1000, 500, 950)), all);
    // It stays while too few requests say anything else.
    assert_eq!(kinds(&advisor, &observe(1999, 500, 950)), all);
    assert_eq!(kinds(&advisor, &observe(2000, 500, 949)), []);
    let advice = Observed { limits: vec![limit(3000, 1000)], ..observe(2000, 500, 0) };
    assert_eq!(kinds(&advisor, &advice), [AdviceKind::MissingField]);
    let advice = &advisor.advice()[0];
    assert_eq!((advice.limit.as_deref(), advice.since), (Some("login"), NOW));
    assert!(advice.message.contains("500 of the last 1000") && advice.help.contains("param.username"), "{advice:?}");
    // A reload removes the limit.
    assert_eq!(kinds(&advisor, &Observed { limits: Vec::new(), ..observe(2000, 500, 0) }), []);
}

#[test]
fn a_limit_that_counts_nothing_is_named_until_it_counts() {
    let advisor = Advisor::default();
    let observe =
        |passed: u64, decided: u64| Observed { passed, limits: vec![limit(decided, 0)], ..Observed::default() };
    assert_eq!(kinds(&advisor, &observe(50, 0)), []);
    assert_eq!(kinds(&advisor, &observe(1049, 0)), []);
    assert_eq!(kinds(&advisor, &observe(1050, 0)), [AdviceKind::LimitNeverCounted]);
    assert_eq!(kinds(&advisor, &observe(1051, 1)), []);
    assert_eq!(kinds(&advisor, &observe(9000, 1)), []);
    assert_eq!(kinds(&advisor, &observe(90_000, 1)), []);
}

#[test]
fn a_limit_that_nobody_asks_for_is_well() {
    let with = |limit: ObservedLimit| {
        let advisor = Advisor::default();
        let observe = |limit| Observed { passed: 5000, limits: vec![limit], ..Observed::default() };
        kinds(&advisor, &Observed { passed: 0, ..observe(limit.clone()) });
        kinds(&advisor, &observe(limit))
    };
    assert_eq!(with(limit(0, 0)), [AdviceKind::LimitNeverCounted]);
    // As in a recipe, where people log in and no program uses the API.
    let met_elsewhere = ObservedLimit { others_are_met: true, ..limit(0, 0) };
    assert_eq!(with(met_elsewhere.clone()), []);
    assert_eq!(with(ObservedLimit { routes: Vec::new(), ..met_elsewhere }), [AdviceKind::LimitNeverCounted]);
}

/// The only advice after this.
#[track_caller]
fn only(advisor: &Advisor, observed: &Observed) -> Advice {
    advisor.judge(observed, NOW);
    let [advice] = &advisor.advice()[..] else { panic!("{:?}", advisor.advice()) };
    advice.clone()
}

#[test]
fn a_route_whose_answers_are_not_seen_is_named_with_what_follows() {
    let unseen = |waiting: &[&str], concurrent: &[&str], knows_clients, learns_sessions| {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let (name, waiting, concurrent) = ("login".to_owned(), names(waiting), names(concurrent));
        let unseen =
            vec![UnseenRoute { name, waiting, concurrent, knows_clients, learns_sessions, is_of_domain: false }];
        only(&Advisor::default(), &Observed { unseen, ..Observed::default() })
    };
    let all = unseen(&["failures", "guesses"], &["few"], true, true);
    assert_eq!((all.kind, all.route.as_deref()), (AdviceKind::AnswersUnseen, Some("login")));
    let therefore = "failures and guesses counts every request as if its answer never came, no client becomes a known one, no session is learned, few is left out";
    assert!(all.message.ends_with(therefore), "{}", all.message);
    assert!(unseen(&[], &["few"], false, false).message.ends_with("not seen here: few is left out"));
    let advisor = Advisor::default();
    let route = UnseenRoute {
        name: "a".into(),
        waiting: Vec::new(),
        concurrent: vec!["few".into()],
        knows_clients: false,
        learns_sessions: false,
        is_of_domain: true,
    };
    assert_eq!(kinds(&advisor, &Observed { unseen: vec![route], ..Observed::default() }), [AdviceKind::AnswersUnseen]);
    assert!(advisor.advice()[0].help.contains("ext_proc"), "{:?}", advisor.advice());
    assert_eq!(kinds(&advisor, &Observed::default()), []);
}

#[test]
fn the_line_to_write_names_the_proxies_and_their_header() {
    let peer = |address: &str, header: &str, samples: u64| UntrustedPeer {
        address: address.parse().unwrap(),
        header: header.into(),
        samples,
    };
    let help = |peers: &[UntrustedPeer]| {
        let untrusted_peers = peers.to_vec();
        let observed = Observed { passed: 1000, untrusted_forwarding: 900, untrusted_peers, ..Observed::default() };
        only(&Advisor::default(), &observed).help
    };
    // An address that tries it now and then is not to be trusted.
    let one = help(&[peer("10.0.0.10", "x-forwarded-for", 100), peer("192.0.2.1", "x-forwarded-for", 5)]);
    assert!(one.ends_with("write `client_ip: {trusted_proxies: [10.0.0.10]}`"), "{one}");
    let two = help(&[peer("10.0.0.10", "x-real-ip", 50), peer("fd00::10", "x-real-ip", 60)]);
    assert!(two.ends_with("`client_ip: {trusted_proxies: [\"fd00::10\", 10.0.0.10], header: x-real-ip}`"), "{two}");
    assert!(help(&[]).ends_with("`client_ip: {trusted_proxies: [ADDRESS]}`"));
}

#[test]
fn a_trusted_proxy_that_names_no_client_is_told_to() {
    let trusted = Some(BusiestClient { is_trusted_proxy: true, ..busiest(990, 1000) });
    let advice = only(&Advisor::default(), &Observed { busiest_client: trusted, ..Observed::default() });
    assert!(advice.message.contains("is in trusted_proxies") && advice.help.contains("header:"), "{advice:?}");
    let network = Some(BusiestClient { client: "2001:db8::/64".into(), ..busiest(990, 1000) });
    let advice = only(&Advisor::default(), &Observed { busiest_client: network, ..Observed::default() });
    assert!(advice.help.ends_with("`client_ip: {trusted_proxies: [ADDRESS]}`"), "{advice:?}");
}

#[test]
fn what_was_said_of_one_client_stays_while_too_few_requests_say_anything_else() {
    let advisor = Advisor::default();
    let observe = |requests, all| Observed { busiest_client: Some(busiest(requests, all)), ..Observed::default() };
    assert_eq!(kinds(&advisor, &observe(999, 1000)), [AdviceKind::OneClient]);
    assert_eq!(kinds(&advisor, &observe(1, 500)), [AdviceKind::OneClient]);
    assert_eq!(kinds(&advisor, &observe(1, 1000)), []);
}

#[test]
fn a_limit_that_waits_for_rare_requests_or_spares_those_that_come_is_well() {
    let with = |limit: ObservedLimit| {
        let advisor = Advisor::default();
        let observe = |passed: u64, on_routes: u64| Observed {
            passed,
            limits: vec![ObservedLimit { passed: on_routes, ..limit.clone() }],
            ..Observed::default()
        };
        kinds(&advisor, &observe(0, 0));
        advisor.judge(&observe(2000, 7), NOW);
        advisor.advice()
    };
    assert_eq!(with(ObservedLimit { waits_for_rare_requests: true, ..limit(0, 0) }), []);
    assert_eq!(with(ObservedLimit { spares_some: true, ..limit(0, 0) }), []);
    let [advice] = &with(ObservedLimit { missing: Missing::Skip, ..limit(0, 0) })[..] else { panic!("no advice") };
    assert!(
        advice.message.contains("the 7 that it is for") && advice.help.contains("`key: [client_ip, param.NAME]`"),
        "{advice:?}"
    );
    let of_domain = ObservedLimit { domain: Some("shop".into()), key: vec!["descriptor.usr".into()], ..limit(0, 0) };
    let [advice] = &with(of_domain)[..] else { panic!("no advice") };
    assert!(
        advice.message.ends_with("no descriptor in the 7 calls of shop has all parts of its key (descriptor.usr)")
            && advice.help.contains("`key: descriptor.NAME`"),
        "{advice:?}"
    );
    let asked = |passed| ObservedLimit { routes: vec!["POST /login".into()], passed, ..limit(0, 0) };
    let [advice] = &with(asked(7))[..] else { panic!("no advice") };
    assert!(advice.message.contains("login (on POST /login)") && advice.help.contains("`match: "), "{advice:?}");
}

#[test]
fn a_pattern_that_none_of_a_thousand_names_matches_is_told() {
    let advisor = Advisor::default();
    let observe = |decided: u64, unmatched: u64| {
        let limit = ObservedLimit { pattern: Some("[A-Z]+".into()), unmatched, ..limit(decided, 500) };
        Observed { limits: vec![limit], ..Observed::default() }
    };
    // Those without a name say nothing of the pattern.
    assert_eq!(kinds(&advisor, &observe(1499, 999)), []);
    assert_eq!(kinds(&advisor, &observe(1500, 1000)), [AdviceKind::PatternMatchesNothing]);
    let advice = advisor.advice().remove(0);
    assert_eq!(advice.limit.as_deref(), Some("login"));
    assert!(advice.message.starts_with("none of the last 1000 names that met login matches its pattern `[A-Z]+`"));
    assert_eq!(kinds(&advisor, &observe(2500, 1999)), []);
}

#[test]
fn a_login_under_another_prefix_is_told_from_ten_requests_on_with_the_line_to_write() {
    let advisor = Advisor::default();
    let observe = |path: &str, requests: u64, route: Option<(&str, &str)>| {
        let configured = route.map(|(route, path)| ConfiguredLogin { route: route.into(), path: path.into() });
        let unlimited_logins = vec![UnlimitedLogin { path: path.into(), requests, configured }];
        Observed { unlimited_logins, ..Observed::default() }
    };
    let route = Some(("wp-login", "/wp-login.php"));
    assert_eq!(kinds(&advisor, &observe("/blog/wp-login.php", 9, route)), []);
    let advice = only(&advisor, &observe("/blog/wp-login.php", 10, route));
    assert_eq!(advice.kind, AdviceKind::UnlimitedLogin);
    assert!(advice.message.contains("wp-login is for /wp-login.php"), "{advice:?}");
    let (rule, recipe) = ("`match: POST /blog/wp-login.php`", "`portcullis recipe wordpress --prefix /blog`");
    assert!(advice.help.contains(rule) && advice.help.contains(recipe), "{advice:?}");
    assert_eq!(kinds(&advisor, &Observed::default()), []);
    let help = |path: &str, route| only(&Advisor::default(), &observe(path, 10, route)).help;
    assert!(help("/wp-login.php", None).contains("`portcullis recipe wordpress`"));
    // No recipe is known by a path that many applications have.
    let help = help("/shop/login", Some(("login", "/login")));
    assert!(help.contains("`match: POST /shop/login`") && !help.contains("recipe"), "{help}");
}

#[test]
fn a_full_store_is_told_until_it_had_room_for_a_minute() {
    let advisor = Advisor::default();
    let told = |turned_away| !kinds(&advisor, &Observed { turned_away, ..Observed::default() }).is_empty();
    assert!(!told(0));
    assert!(told(3));
    assert!((1..60).all(|_| told(3)));
    assert!(!told(3));
    assert!(told(4));
}
