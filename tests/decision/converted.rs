//! Configurations of envoyproxy/ratelimit, converted: they decide what that service's documentation says of them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use portcullis::config;
use portcullis::convert::convert;
use portcullis::rules::decision::Decision;
use portcullis::rules::decision::descriptors::{DescriptorCall, DescriptorStatus, PricedDescriptor};
use portcullis::rules::key::{Descriptor, DescriptorEntry};

use crate::entries::descriptor;
use crate::support::{World, world_of};

const SECOND: Duration = Duration::from_secs(1);

/// The rules of a converted file, and what is different about them.
#[track_caller]
fn converted(text: &str) -> (World, Vec<String>) {
    let converted = convert(vec![(PathBuf::from("ratelimit.yaml"), text.to_owned())]).expect("a good file");
    let loaded = config::read(Path::new("converted.yaml"), converted.yaml.clone(), &|_| None);
    let settings = loaded.unwrap_or_else(|mistakes| panic!("{}\n{}", config::render(&mistakes, false), converted.yaml));
    assert!(settings.warnings.is_empty(), "{}", config::render(&settings.warnings, false));
    for difference in &converted.differences {
        assert!(converted.yaml.contains(&difference.message), "a difference is also a comment");
    }
    (world_of(settings.policy), converted.differences.into_iter().map(|difference| difference.message).collect())
}

/// The same without any difference.
#[track_caller]
fn same(text: &str) -> World {
    let (world, differences) = converted(text);
    assert!(differences.is_empty(), "{differences:?}");
    world
}

#[track_caller]
fn call(world: &World, domain: &str, descriptors: &[&str]) -> (bool, Vec<DescriptorStatus>) {
    let descriptors = descriptors.iter().map(|entries| descriptor(entries)).collect();
    let (decision, statuses) = world.call(&DescriptorCall { domain: domain.into(), descriptors, hits: 0 }).unwrap();
    (matches!(decision, Decision::Pass(_)), statuses)
}

/// How many of `tries` such calls pass.
#[track_caller]
fn passing(world: &World, domain: &str, tries: usize, descriptors: &[&str]) -> usize {
    (0..tries).filter(|_| call(world, domain, descriptors).0).count()
}

#[test]
fn each_value_with_a_limit_has_its_own() {
    let world = same(
        "\
domain: mongo_cps
descriptors:
  - {key: database, value: users, rate_limit: {unit: second, requests_per_unit: 500}}
  - {key: database, value: default, rate_limit: {unit: second, requests_per_unit: 500}}
",
    );
    assert_eq!(passing(&world, "mongo_cps", 502, &["database=users"]), 500);
    assert_eq!(passing(&world, "mongo_cps", 502, &["database=default"]), 500);
    assert_eq!(passing(&world, "mongo_cps", 502, &["database=other"]), 502, "no limit is for it");
    assert_eq!(passing(&world, "postgres_cps", 502, &["database=users"]), 502, "nor for another domain");
    world.clock.advance(SECOND);
    assert_eq!(passing(&world, "mongo_cps", 502, &["database=users"]), 500);
}

#[test]
fn a_value_is_limited_below_another_and_all_descriptors_of_a_call_count() {
    let world = same(
        "\
domain: messaging
descriptors:
  - key: message_type
    value: marketing
    descriptors:
      - {key: to_number, rate_limit: {unit: day, requests_per_unit: 5}}
  - key: to_number
    rate_limit: {unit: day, requests_per_unit: 100}
",
    );
    let marketing = |number: &str| format!("message_type=marketing to_number={number}");
    assert_eq!(passing(&world, "messaging", 9, &[&marketing("1")]), 5);
    assert_eq!(passing(&world, "messaging", 9, &[&marketing("2")]), 5);
    assert_eq!(passing(&world, "messaging", 102, &["to_number=1"]), 100, "the other descriptor is no part of it");
    assert_eq!(passing(&world, "messaging", 9, &["message_type=marketing"]), 9, "an inner level has no limit");
    assert_eq!(passing(&world, "messaging", 9, &["message_type=news to_number=1"]), 9);
    assert_eq!(
        passing(&world, "messaging", 9, &[&marketing("3"), "to_number=3"]),
        5,
        "one of them is over: the call is"
    );
    assert_eq!(passing(&world, "messaging", 102, &["to_number=3"]), 91, "the other one counted all nine");
}

#[test]
fn the_most_specific_branch_is_taken_and_nothing_passes_a_limit_of_zero() {
    let world = same(
        "\
domain: edge_proxy_per_ip
descriptors:
  - key: remote_address
    rate_limit: {unit: second, requests_per_unit: 10}
  - key: remote_address
    value: 50.0.0.5
    rate_limit: {unit: second, requests_per_unit: 0}
  - key: remote_address
    value: 50.0.0.9
    rate_limit: {unit: second, requests_per_unit: 30}
",
    );
    assert_eq!(passing(&world, "edge_proxy_per_ip", 40, &["remote_address=50.0.0.1"]), 10);
    assert_eq!(passing(&world, "edge_proxy_per_ip", 40, &["remote_address=50.0.0.2"]), 10);
    assert_eq!(passing(&world, "edge_proxy_per_ip", 40, &["remote_address=50.0.0.9"]), 30);
    let (passes, statuses) = call(&world, "edge_proxy_per_ip", &["remote_address=50.0.0.5", "remote_address=50.0.0.3"]);
    assert!(!passes && statuses[0].is_over && !statuses[1].is_over);
}

#[test]
fn a_descriptor_must_be_as_long_as_its_path() {
    let short = same(
        "\
domain: example
descriptors:
  - {key: key, value: value, rate_limit: {requests_per_unit: 3, unit: second}}
",
    );
    assert_eq!(passing(&short, "example", 9, &["key=value subkey=subvalue"]), 9);
    assert_eq!(passing(&short, "example", 9, &["key=value"]), 3);
    let long = same(
        "\
domain: example
descriptors:
  - key: key
    value: value
    descriptors: [{key: subkey, rate_limit: {requests_per_unit: 3, unit: second}}]
",
    );
    assert_eq!(passing(&long, "example", 9, &["key=value subkey=subvalue"]), 3);
    assert_eq!(passing(&long, "example", 9, &["key=value"]), 9);
}

#[test]
fn an_unlimited_branch_limits_nothing() {
    let world = same(
        "\
domain: internal
descriptors:
  - {key: service, rate_limit: {unit: minute, requests_per_unit: 10}}
  - {key: service, value: ldap, rate_limit: {unlimited: true}}
",
    );
    assert_eq!(passing(&world, "internal", 50, &["service=ldap"]), 50);
    assert_eq!(passing(&world, "internal", 50, &["service=azure"]), 10);
}

#[test]
fn a_limit_in_shadow_mode_denies_nothing() {
    let world = same(
        "\
domain: example
descriptors:
  - key: service
    descriptors:
      - {key: user, value: user-a, rate_limit: {requests_per_unit: 10, unit: second}, shadow_mode: true}
      - {key: user, value: user-b, rate_limit: {requests_per_unit: 20, unit: second}}
",
    );
    assert_eq!(passing(&world, "example", 50, &["service=auth user=user-a"]), 50);
    assert_eq!(passing(&world, "example", 50, &["service=auth user=user-b"]), 20);
    assert_eq!(passing(&world, "example", 50, &["service=other user=user-b"]), 20, "each service has its own count");
}

#[test]
fn a_limit_replaces_others_and_leaves_their_counts_alone() {
    let world = same(
        "\
domain: example
descriptors:
  - key: key_1
    value: value_1
    descriptors:
      - {key: user, value: bk, rate_limit: {name: specific_limit, requests_per_unit: 5, unit: second}}
  - key: key_2
    value: value_2
    descriptors:
      - key: user
        value: bk
        rate_limit: {replaces: [{name: specific_limit}], requests_per_unit: 10, unit: second}
",
    );
    let (one, two) = ("key_1=value_1 user=bk", "key_2=value_2 user=bk");
    assert_eq!(passing(&world, "example", 20, &[one, two]), 10);
    assert_eq!(passing(&world, "example", 20, &[one]), 5, "what was replaced was not counted");
    world.clock.advance(SECOND);
    assert_eq!(passing(&world, "example", 20, &[two]), 10);
}

#[test]
fn settings_of_metrics_change_no_decision_and_are_said() {
    let (world, differences) = converted(
        "\
domain: example
descriptors:
  - {key: key1, detailed_metric: true, rate_limit: {unit: minute, requests_per_unit: 10}}
  - {key: key1, value: value1, value_to_metric: true, rate_limit: {unit: minute, requests_per_unit: 20}}
",
    );
    assert_eq!(differences.len(), 2, "{differences:?}");
    assert_eq!(passing(&world, "example", 30, &["key1=unspecified"]), 10);
    assert_eq!(passing(&world, "example", 30, &["key1=unspecified2"]), 10);
    assert_eq!(passing(&world, "example", 30, &["key1=value1"]), 20);
}

#[test]
fn a_wildcard_gives_each_value_its_own_count_unless_it_is_shared() {
    let world = same(
        "\
domain: example
descriptors:
  - {key: key1, value: value*, rate_limit: {unit: minute, requests_per_unit: 20}}
  - {key: key1, value: value_9, rate_limit: {unit: minute, requests_per_unit: 1}}
  - {key: files, value: files/*, share_threshold: true, rate_limit: {unit: hour, requests_per_unit: 4}}
  - {key: files, value: files/big/*, rate_limit: {unit: hour, requests_per_unit: 2}}
",
    );
    assert_eq!(passing(&world, "example", 30, &["key1=value_1"]), 20);
    assert_eq!(passing(&world, "example", 30, &["key1=value_2"]), 20);
    assert_eq!(passing(&world, "example", 30, &["key1=value_9"]), 1, "an exact value is taken first");
    assert_eq!(passing(&world, "example", 30, &["key1=other"]), 30);
    assert_eq!(passing(&world, "example", 3, &["files=files/a"]), 3);
    assert_eq!(passing(&world, "example", 3, &["files=files/big/b"]), 1, "the first wildcard is taken, and shares");
}

#[test]
fn units_are_as_long_as_the_service_makes_them() {
    for (unit, seconds) in [
        ("second", 1),
        ("MINUTE", 60),
        ("hour", 3600),
        ("day", 86_400),
        ("week", 604_800),
        ("month", 2_592_000),
        ("year", 31_536_000),
    ] {
        let limit = format!("{{unit: {unit}, requests_per_unit: 2}}");
        let world = same(&format!("domain: d\ndescriptors: [{{key: k, rate_limit: {limit}}}]"));
        assert_eq!(passing(&world, "d", 5, &["k=v"]), 2);
        world.clock.advance(Duration::from_micros(seconds * 1_000_000 - 1));
        assert_eq!(passing(&world, "d", 5, &["k=v"]), 0, "{unit}");
        world.clock.advance(Duration::from_micros(1));
        assert_eq!(passing(&world, "d", 5, &["k=v"]), 2, "{unit}");
    }
}

#[test]
fn no_way_leads_back_from_a_specific_branch() {
    let world = same(
        "\
domain: d
descriptors:
  - {key: a, rate_limit: {unit: minute, requests_per_unit: 1}, descriptors: [{key: b, rate_limit: {unit: minute, requests_per_unit: 2}}]}
  - {key: a, value: x, descriptors: [{key: c, rate_limit: {unit: minute, requests_per_unit: 3}}]}
",
    );
    assert_eq!(passing(&world, "d", 9, &["a=y"]), 1);
    assert_eq!(passing(&world, "d", 9, &["a=y b=1"]), 2);
    assert_eq!(passing(&world, "d", 9, &["a=x c=1"]), 3);
    assert_eq!(passing(&world, "d", 9, &["a=x"]), 9);
    assert_eq!(passing(&world, "d", 9, &["a=x b=1"]), 9);
}

#[test]
fn strange_texts_stay_what_they_are() {
    let world = same(
        "\
domain: 'my domain: \"${HOME}\" #1'
descriptors:
  - {key: ':path', value: '/a b?x=${y}\"\\#', rate_limit: {unit: minute, requests_per_unit: 1}}
"
        .replace("?x", "-x")
        .as_str(),
    );
    let descriptors = vec![PricedDescriptor {
        descriptor: Descriptor {
            entries: vec![DescriptorEntry { name: ":path".into(), value: "/a b-x=${y}\"\\#".into() }],
        },
        hits: None,
    }];
    let call = DescriptorCall { domain: "my domain: \"${HOME}\" #1".into(), descriptors, hits: 0 };
    let passes = || matches!(world.call(&call).unwrap().0, Decision::Pass(_));
    assert!(passes() && !passes());
}

#[test]
fn what_cannot_be_carried_over_is_said() {
    let (_, differences) = converted(
        "\
domain: d
descriptors:
  - {key: a, descriptors: [{key: a, rate_limit: {unit: minute, requests_per_unit: 1}}]}
  - {key: 'b*', rate_limit: {unit: minute, requests_per_unit: 1}}
  - {key: d, shadow_mode: true, rate_limit: {unit: minute, requests_per_unit: 0}}
  - {key: e, rate_limit: {unit: minute, requests_per_unit: 0, name: none}}
  - {key: f, rate_limit: {unit: minute, requests_per_unit: 1, replaces: [{name: nowhere}]}}
  - {key: g, quota_mode: true, rate_limit: {unit: minute, requests_per_unit: 1}}
  - {key: h, descriptors: [{key: i, rate_limit: {unit: minute, requests_per_unit: 1}}]}
  - {key: i, descriptors: [{key: h, rate_limit: {unit: minute, requests_per_unit: 1}}]}
",
    );
    assert_eq!(differences.len(), 7, "{differences:#?}");
}

#[test]
fn a_star_is_a_wildcard_at_the_end_of_a_value_alone() {
    let world = same(
        "\
domain: d
descriptors:
  - {key: c, rate_limit: {unit: minute, requests_per_unit: 3}}
  - {key: c, value: 'what?x', rate_limit: {unlimited: true}}
  - {key: c, value: 'a*b', rate_limit: {unit: minute, requests_per_unit: 9}}
  - {key: c, value: 'f?*', rate_limit: {unit: minute, requests_per_unit: 7}}
  - {key: c, value: '[*]', rate_limit: {unit: minute, requests_per_unit: 5}}
  - {key: c, value: 'g*h*', share_threshold: true, rate_limit: {unit: minute, requests_per_unit: 4}}
",
    );
    for (value, expected) in [
        ("what?x", 12),
        ("whatAx", 3),
        ("a*b", 9),
        ("axb", 3),
        ("f?oo", 7),
        ("fxoo", 3),
        ("[*]", 5),
        ("[x]", 3),
        ("gxh1", 3),
        ("other", 3),
    ] {
        assert_eq!(passing(&world, "d", 12, &[&format!("c={value}")]), expected, "{value}");
    }
    assert_eq!(passing(&world, "d", 3, &["c=g*h1"]), 3);
    assert_eq!(passing(&world, "d", 3, &["c=g*h2"]), 1, "they share one count");
}

#[test]
fn a_value_with_a_star_inside_replaces_for_itself_alone() {
    let world = same(
        "\
domain: d
descriptors:
  - {key: user, rate_limit: {name: small, requests_per_unit: 2, unit: minute}}
  - {key: k, value: 'a?b', rate_limit: {replaces: [{name: small}], requests_per_unit: 4, unit: minute}}
",
    );
    assert_eq!(passing(&world, "d", 5, &["user=u", "k=axb"]), 2);
    assert_eq!(passing(&world, "d", 6, &["user=v", "k=a?b"]), 4);
}

#[test]
fn values_share_a_count_on_every_level_that_says_so() {
    let world = same(
        "\
domain: d
descriptors:
  - key: files
    value: files/*
    share_threshold: true
    descriptors:
      - {key: user, rate_limit: {unit: hour, requests_per_unit: 3}}
      - key: team
        value: red*
        share_threshold: true
        rate_limit: {unit: hour, requests_per_unit: 2}
      - {key: team, value: blue*, rate_limit: {unit: hour, requests_per_unit: 2}}
",
    );
    assert_eq!(passing(&world, "d", 2, &["files=files/a user=u"]), 2);
    assert_eq!(passing(&world, "d", 2, &["files=files/b user=u"]), 1, "the file does not matter");
    assert_eq!(passing(&world, "d", 2, &["files=files/b user=v"]), 2, "the user does");
    assert_eq!(passing(&world, "d", 2, &["files=files/a team=red1"]), 2);
    assert_eq!(passing(&world, "d", 2, &["files=files/b team=red2"]), 0);
    assert_eq!(passing(&world, "d", 2, &["files=files/a team=blue1"]), 2);
    assert_eq!(passing(&world, "d", 2, &["files=files/b team=blue2"]), 2);
    assert_eq!(passing(&world, "d", 9, &["files=other user=u"]), 9);
}

#[test]
fn merge_keys_bring_what_the_map_does_not_write_itself() {
    let world = same(
        "\
domain: d
descriptors:
  - key: a
    rate_limit: &small {unit: minute, requests_per_unit: 2}
  - key: b
    rate_limit: {<<: *small, requests_per_unit: 5}
  - &shared
    key: c
    rate_limit: *small
    descriptors: [{key: x, rate_limit: {unit: minute, requests_per_unit: 1}}]
  - <<: [{key: d}, *shared]
    rate_limit: {<<: [{unit: hour}, *small]}
",
    );
    assert_eq!(passing(&world, "d", 9, &["a=1"]), 2);
    assert_eq!(passing(&world, "d", 9, &["b=1"]), 5);
    assert_eq!(passing(&world, "d", 9, &["d=1"]), 2, "the first map of a list counts most");
    assert_eq!(passing(&world, "d", 9, &["d=1 x=1"]), 1);
    world.clock.advance(SECOND * 61);
    assert_eq!(passing(&world, "d", 9, &["a=1"]), 2);
    assert_eq!(passing(&world, "d", 9, &["d=1"]), 0, "its unit is the hour");
}

const RL: &str = "\
domain: rl
descriptors:
  - {key: foo, rate_limit: {unit: minute, requests_per_unit: 2}}
";

#[test]
fn a_file_holds_several_documents_and_says_that_the_service_reads_the_first() {
    let second = RL.replace("rl", "second").replace("2}", "4}");
    let (world, differences) = converted(&format!("---\n{RL}---\n# nothing\n---\n{second}...\n"));
    assert_eq!((passing(&world, "rl", 9, &["foo=1"]), passing(&world, "second", 9, &["foo=1"])), (2, 4));
    assert_eq!(differences.len(), 1, "{differences:?}");
    assert!(differences[0].contains("the service reads the first document of a file alone"), "{differences:?}");
    assert_eq!(passing(&same(&format!("---\n{RL}")), "rl", 9, &["foo=1"]), 2, "as its own example begins");
}

/// A text behind a key, indented.
fn block(indent: usize, text: &str) -> String {
    let indent = " ".repeat(indent);
    text.lines().flat_map(|line| [&indent, line, "\n"]).collect()
}

#[test]
fn a_config_map_holds_a_file_in_each_value() {
    let second = serde_json::Value::from(RL.replace("rl", "second")).to_string();
    let map = format!(
        "\
apiVersion: v1
kind: ConfigMap
metadata: {{name: ratelimit, labels: {{app: ratelimit}}}}
data:
  config.yaml: |
{}  second.yml: {second}
",
        block(4, &format!("---\n{RL}"))
    );
    let world = same(&map);
    assert_eq!((passing(&world, "rl", 9, &["foo=1"]), passing(&world, "second", 9, &["foo=1"])), (2, 2));
    let list = format!("apiVersion: v1\nkind: List\nitems:\n  -\n{}", block(4, &map));
    assert_eq!(passing(&same(&list), "second", 9, &["foo=1"]), 2);
    let deployment = "---\napiVersion: apps/v1\nkind: Deployment\nspec: {replicas: 1}\n";
    let with_more = map.replace("data:\n", "data:\n  LOG_LEVEL: debug\n");
    let (world, differences) = converted(&format!("{with_more}{deployment}"));
    assert_eq!(passing(&world, "rl", 9, &["foo=1"]), 2);
    let expected = [
        "`LOG_LEVEL` of the `ConfigMap` is left out: it is no map",
        "`Deployment` is left out: it holds no configuration of the service",
    ];
    assert_eq!(differences, expected);
}

#[test]
fn a_key_of_the_service_in_a_wrong_place_does_nothing_there_and_is_said() {
    let (world, differences) = converted(
        "\
domain: d
descriptors:
  - {key: a, unit: minute, rate_limit: {unit: minute, requests_per_unit: 2, shadow_mode: true}}
",
    );
    assert_eq!(passing(&world, "d", 9, &["a=1"]), 2);
    assert_eq!(
        differences,
        ["`unit` is left out: the service ignores it here", "`shadow_mode` is left out: the service ignores it here"]
    );
}

/// The mistakes of a file, as `2:3 message (help)`.
#[track_caller]
fn check_mistakes(text: &str, expected: &[&str]) {
    let mistakes = convert(vec![(PathBuf::from("f.yaml"), text.to_owned())]).expect_err("a mistake");
    let told = mistakes.into_iter().map(|mistake| {
        let help = mistake.help.unwrap_or_default();
        format!("{}:{}:{} {} ({help})", mistake.file.display(), mistake.line, mistake.column, mistake.message)
    });
    assert_eq!(told.collect::<Vec<_>>(), expected);
}

#[test]
fn a_misspelt_key_is_named_by_itself_and_alone() {
    check_mistakes(
        "domian: d\ndescriptors: [{key: a, rate_limit: {unit: minute, requests_per_unit: 1}}]\n",
        &["f.yaml:1:1 unknown key `domian` (did you mean `domain`?)"],
    );
    check_mistakes(
        "\
domain: d
descriptors:
  - {kye: a, rate_limit: {uint: minute, requestsPerUnit: 1}}
  - {key: b, vlaue: 'x*', share_threshold: true, rate_limt: {unit: minute, requests_per_unit: 1}}
  - {key: c, request_per_unit: 1}
  - {key: d, colour: red}
",
        &[
            "f.yaml:3:6 unknown key `kye` (did you mean `key`?)",
            "f.yaml:3:27 unknown key `uint` (did you mean `unit`?)",
            "f.yaml:3:41 unknown key `requestsPerUnit` (did you mean `requests_per_unit`?)",
            "f.yaml:4:14 unknown key `vlaue` (did you mean `value`?)",
            "f.yaml:4:50 unknown key `rate_limt` (did you mean `rate_limit`?)",
            "f.yaml:5:14 unknown key `request_per_unit` (did you mean `requests_per_unit`? It stands in `rate_limit`)",
            "f.yaml:6:14 unknown key `colour` (the keys here are `key`, `value`, `rate_limit`, `descriptors`, \
             `shadow_mode`, `detailed_metric`, `value_to_metric`, `share_threshold`, `quota_mode` and `metadata`)",
        ],
    );
}

#[test]
fn mistakes_in_documents_and_config_maps_have_their_place() {
    let in_map = format!(
        "apiVersion: v1\nkind: ConfigMap\ndata:\n  a.yaml: |\n{}  b.yaml: [1]\n  c.yaml: text\n",
        block(4, &RL.replace("unit: minute", "unit: fortnight"))
    );
    check_mistakes(
        &in_map,
        &[
            "f.yaml:8:11 `b.yaml` is a list, and not the text of a file (write its text behind `b.yaml: |`, indented)",
            "f.yaml[a.yaml]:3:35 no valid `unit` (write second, minute, hour, day, week, month or year)",
            "f.yaml[c.yaml]:1:1 expected a map, found a single value (its keys are `domain`, `descriptors` and `name`)",
        ],
    );
    check_mistakes(
        &format!("{RL}---\ndescriptors: []\n"),
        &["f.yaml:5:1 the file has no `domain` (write the domain that Envoy asks with: `domain: edge`)"],
    );
    check_mistakes(
        "apiVersion: v1\nkind: ConfigMap\ndata: {}\n",
        &["f.yaml:1:1 there is no configuration of the service (name a file with `domain:` and `descriptors:`, or a \
           `ConfigMap` with such files)"],
    );
    check_mistakes(
        "domain: d\ndescriptors: [{key: a, rate_limit: {unit: hour, <<: {unit: day}}}, {<<: 1}]\n",
        &[
            "f.yaml:2:37 `unit` stands before a `<<` that brings it too: programs differ about which one holds (write \
             `<<` as the first key of its map)",
            "f.yaml:2:68 a descriptor without a `key` (name the entry that Envoy sends: `key: remote_address`)",
            "f.yaml:2:73 `<<` takes a map or a list of maps, found a single value (write the alias of a map: \
             `<<: *name`)",
        ],
    );
    check_mistakes(
        "domain: d\ndescriptors: [{key: a, value: 'x*y', share_threshold: true}]\n",
        &["f.yaml:2:55 `share_threshold` needs a value that ends in `*` (remove it, or end the value in `*`: \
           elsewhere in a value a `*` is only itself)"],
    );
}
