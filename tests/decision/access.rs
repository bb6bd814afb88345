//! Lists: `allow`, `deny`, `only`, `unless`, and which of them wins.

use portcullis::rules::decision::DenialCause;
use portcullis::rules::limit::Limit;
use portcullis::rules::route::Condition;

use crate::support::{ask, form, limit, listed, world};

#[test]
fn a_client_on_a_deny_list_is_denied_before_any_limit_counts() {
    let mut world = world();
    let abusers = world.list("abusers", &["203.0.113.0/24"]);
    world.policy.access.deny = vec![abusers];
    world.everywhere(limit("all", "", "1/minute"));
    let told = world.decide(&ask("GET /").from("203.0.113.9"));
    assert_eq!(told.cause, Some(listed("abusers")));
    assert_eq!((told.charges, told.decided_by), (0, None));
    assert!(world.passes(&ask("GET /").from("192.0.2.1")));
}

#[test]
fn an_allowed_client_passes_every_limit_and_wins_over_deny() {
    let mut world = world();
    let office = world.list("office", &["198.51.100.0/24"]);
    let everyone = world.list("everyone", &["0.0.0.0/0"]);
    world.policy.access.allow = vec![office];
    world.policy.access.deny = vec![everyone];
    world.route("/login", vec![limit("pace", "client_ip", "1/hour")]);
    let told = world.decide(&ask("GET /login").from("198.51.100.7"));
    assert_eq!((told.passes, told.charges, told.route.as_deref()), (true, 0, Some("/login")));
    assert_eq!(world.passing(&ask("GET /login").from("198.51.100.7"), 5), 5);
    assert_eq!(world.decide(&ask("GET /login")).cause, Some(listed("everyone")));
}

#[test]
fn a_route_for_members_only_refuses_anyone_else_even_the_allowed() {
    let mut world = world();
    let office = world.list("office", &["198.51.100.0/24"]);
    let monitor = world.list("monitor", &["192.0.2.1"]);
    world.policy.access.allow = vec![monitor];
    world.route("/admin/*", vec![]).only = Some(vec![office]);
    assert!(world.passes(&ask("GET /admin").from("198.51.100.7")));
    for outsider in ["203.0.113.1", "192.0.2.1"] {
        let told = world.decide(&ask("GET /admin/users").from(outsider));
        assert_eq!((told.cause, told.route.as_deref()), (Some(DenialCause::NotOnList), Some("/admin/*")));
    }
    assert!(world.passes(&ask("GET /else").from("203.0.113.1")));
}

#[test]
fn a_route_for_members_of_an_empty_list_is_for_nobody() {
    let mut world = world();
    world.route("/admin/*", vec![]).only = Some(vec![]);
    assert!(!world.passes(&ask("GET /admin")));
}

#[test]
fn no_spelling_of_the_path_gets_around_only() {
    let mut world = world();
    world.route("/admin/*", vec![]).only = Some(vec![]);
    for path in ["/ADMIN", "//admin", "/x/../admin/", "/%61dmin/users", "/admin;a=b", "/admin/%2e/", "/adm%2569n"] {
        assert!(!world.passes(&ask(&format!("GET {path}"))), "{path}");
    }
}

#[test]
fn only_may_look_at_what_the_path_captures() {
    let mut world = world();
    let open = world.list_of("path.tenant", "open", &["acme"]);
    world.route("/{tenant}/files/*", vec![]).only = Some(vec![open]);
    assert!(world.passes(&ask("GET /Acme/files/1")));
    assert!(!world.passes(&ask("GET /other/files/1")));
}

#[test]
fn what_frees_needs_every_value_and_what_binds_needs_one() {
    let mut world = world();
    let partners = world.list_of("header.x-api-key", "partners", &["one", "two"]);
    world.policy.access.allow = vec![partners];
    world.everywhere(limit("all", "", "1/hour"));
    assert_eq!(world.passing(&ask("GET /\nX-Api-Key: one"), 3), 3);
    assert_eq!(world.passing(&ask("GET /\nX-Api-Key: one\nX-Api-Key: two"), 3), 3);
    assert_eq!(world.passing(&ask("GET /\nX-Api-Key: one\nX-Api-Key: stolen"), 3), 1);
    assert_eq!(world.passing(&ask("GET /"), 3), 0);

    let mut world = crate::support::world();
    let banned = world.list_of("header.x-api-key", "banned", &["evil"]);
    world.policy.access.deny = vec![banned];
    assert_eq!(world.decide(&ask("GET /\nX-Api-Key: good\nX-Api-Key: evil")).cause, Some(listed("banned")));
    assert!(world.passes(&ask("GET /\nX-Api-Key: good")));

    let mut world = crate::support::world();
    let partners = world.list_of("query.key", "partners", &["alpha"]);
    world.route("/partner/*", vec![]).only = Some(vec![partners]);
    assert!(world.passes(&ask("GET /partner/x?key=alpha")));
    assert!(!world.passes(&ask("GET /partner/x?key=alpha&key=stolen")));
}

#[test]
fn a_limit_does_not_hold_for_members_of_its_unless_lists() {
    let mut world = world();
    let office = world.list("office", &["198.51.100.0/24"]);
    world.everywhere(Limit { unless: vec![office], ..limit("pace", "", "1/hour") });
    world.everywhere(limit("still", "client_ip", "3/hour"));
    assert_eq!(world.passing(&ask("GET /").from("198.51.100.7"), 5), 3);
    assert_eq!(world.passing(&ask("GET /").from("192.0.2.1"), 5), 1);
}

#[test]
fn unless_may_look_into_the_body() {
    let mut world = world();
    let staff = world.list_of("param.username", "staff", &["Alice"]);
    world.route("POST /login", vec![Limit { unless: vec![staff], ..limit("pace", "", "1/hour") }]);
    assert!(world.needs_body(&form("/login", "username=alice")));
    assert_eq!(world.passing(&form("/login", "username=ALICE"), 3), 3);
    assert_eq!(world.passing(&form("/login", "username=alice&username=bob"), 3), 1);
    // Another name may stand in the part that was not read.
    assert_eq!(world.passing(&form("/login", "username=alice&pad=x").cut_short(), 3), 0);
}

#[test]
fn a_route_for_clients_on_a_list_is_taken_by_them() {
    let mut world = world();
    let crawlers = world.list("crawlers", &["203.0.113.0/24"]);
    let condition = Condition { client: vec![crawlers], ..Condition::default() };
    world.route_where("crawlers", condition, vec![limit("crawl", "", "1/hour")]);
    assert_eq!(world.passing(&ask("GET /").from("203.0.113.4"), 3), 1);
    assert_eq!(world.passing(&ask("GET /").from("192.0.2.1"), 3), 3);
}
