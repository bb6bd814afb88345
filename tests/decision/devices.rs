//! Clients known by a device cookie: which limits they pass, and which key counts their device.

use std::sync::Arc;
use std::time::Duration;

use portcullis::rules::client::device::{DeviceOwner, issue};
use portcullis::rules::client::{DeviceId, Prefix};
use portcullis::rules::key::{KeyPart, KeySpec, Spelling};
use portcullis::rules::limit::Limit;
use portcullis::rules::outcome::OutcomeRule;
use portcullis::rules::route::{KnownBy, KnownClients};

use crate::support::{Ask, World, ask, form, limit, world};

const MONTH: Duration = Duration::from_secs(30 * 24 * 3600);

/// A route where people log in with these limits, and where browsers become known.
fn login(limits: Vec<Limit>) -> World {
    let mut world = world();
    let route = world.route("POST /login", limits);
    route.outcome = Some(Arc::new(OutcomeRule::new(None, None, None)));
    route.known_clients = Some(KnownClients {
        notify: Vec::new(),
        of: KeySpec {
            parts: vec![KeyPart { selector: "param.username".parse().unwrap(), spelling: Spelling::Usual }],
            ..KeySpec::default()
        },
        remember: 5.try_into().unwrap(),
        keep: MONTH,
        by: KnownBy::Cookie,
        prefix: Prefix::default(),
    });
    world
}

fn for_all_but_known(limit: Limit) -> Limit {
    Limit { unless_known: true, ..limit }
}

fn device(number: u8) -> DeviceId {
    DeviceId::new([number; 16])
}

fn cookie(world: &World, name: &str, device: DeviceId) -> String {
    let subject = DeviceOwner { route: "POST /login", name };
    let issued = issue(&world.key_ring(), world.clock.now(), subject, device, MONTH);
    format!("{}={}", issued.name, issued.value)
}

fn attempt(cookies: &str, body: &str) -> Ask {
    ask(&format!("POST /login\nContent-Type: application/x-www-form-urlencoded\nCookie: {cookies}")).body(body)
}

#[test]
fn a_limit_that_spares_known_clients_is_not_asked_about_one() {
    let world = login(vec![for_all_but_known(limit("guesses", "param.username", "1/hour"))]);
    assert_eq!(world.passing(&form("/login", "username=alice"), 3), 1);
    let known = cookie(&world, "alice", device(1));
    let told = world.decide(&attempt(&known, "username=+ALICE+"));
    assert!(told.passes && told.charges == 0, "{told:?}");
    // For anyone else, and where it is not certain who is meant, the cookie is nothing.
    assert_eq!(world.passing(&attempt(&known, "username=bob"), 3), 1);
    assert!(!world.passes(&attempt(&known, "username=alice&username=bob")));
    assert!(!world.passes(&attempt(&known, "username=alice").cut_short()));
    assert_eq!(world.passing(&attempt(&known, "password=x"), 3), 1);
    world.clock.advance(MONTH);
    assert_eq!(world.passing(&attempt(&known, "username=alice"), 3), 1);
}

#[test]
fn who_names_several_is_known_when_known_to_each() {
    let world = login(vec![for_all_but_known(limit("guesses", "param.username", "1/hour"))]);
    let both = ["alice", "bob"].map(|name| cookie(&world, name, device(1))).join("; ");
    assert_eq!(world.passing(&attempt(&both, "username=alice&username=bob"), 5), 5);
    let told = world.decide(&attempt(&both, "username=alice&username=bob"));
    assert!(told.pending.unwrap().enrollment.is_none(), "it is unknown which of them succeeds");
}

#[test]
fn a_known_device_has_a_budget_of_its_own_and_all_others_share_one() {
    let world = login(vec![limit("devices", "param.username device", "2/hour")]);
    let [mine, other] = [device(1), device(2)].map(|device| cookie(&world, "alice", device));
    assert_eq!(world.passing(&form("/login", "username=alice"), 3), 2);
    assert_eq!(world.passing(&attempt("portcullis_device_0123456789abcdef=forged", "username=alice"), 3), 0);
    assert_eq!(world.passing(&attempt(&cookie(&world, "bob", device(3)), "username=alice"), 3), 0);
    assert_eq!(world.passing(&attempt(&mine, "username=alice"), 3), 2);
    assert_eq!(world.passing(&attempt(&other, "username=alice"), 3), 2);
    // One that fails too often is as good as none.
    assert!(!world.passes(&attempt(&mine, "username=alice")));
}

#[test]
fn an_unknown_device_is_not_missing() {
    let world =
        login(vec![Limit { missing: portcullis::rules::limit::Missing::Deny, ..limit("devices", "device", "2/hour") }]);
    assert_eq!(world.passing(&form("/login", "username=alice"), 3), 2);
    let known = cookie(&world, "alice", device(1));
    assert_eq!(world.passing(&attempt(&known, "username=alice&username=bob"), 3), 0);
    let told = world.explain(&form("/login", "username=alice"));
    assert_eq!(told.limits[0].key[0].values, ["untrusted"]);
}

#[test]
fn who_succeeds_is_to_be_given_a_cookie_for_the_device_it_has() {
    let world = login(vec![limit("all", "", "100/hour")]);
    let enrollment = |ask: &Ask| world.decide(ask).pending.unwrap().enrollment;
    let new = enrollment(&form("/login", "username=Alice")).unwrap();
    assert_eq!((&*new.name, new.device), ("alice", None));
    let device = device(1);
    let known = enrollment(&attempt(&cookie(&world, "alice", device), "username=alice")).unwrap();
    assert_eq!(known.device, Some(device));
    assert!(enrollment(&form("/login", "username=&x=1")).is_none());
    assert!(enrollment(&form("/login", "username=alice").cut_short()).is_none());
    assert!(!format!("{new:?}").contains("alice"));
}
