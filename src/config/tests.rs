use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::listen::{ListenerConfig, ListenerSettings};
use crate::words::files::WatchedFile;

const SMALLEST: &str = "\
listen: 0.0.0.0:8080
upstream: http://127.0.0.1:8000
routes:
  - match: POST /login
    limits:
      - {key: client_ip, rate: 1/second; 20/minute; 200/hour; 800/day}
";

fn check(text: &str) -> Result<Settings, Vec<Diagnostic>> {
    read(Path::new("portcullis.yaml"), text.to_owned(), &|_| None)
}

#[test]
fn the_smallest_useful_file_has_every_default() {
    let settings = check(SMALLEST).expect("a good file");
    let listener = ListenerConfig {
        address: "0.0.0.0:8080".parse().expect("an address"),
        mode: None,
        settings: ListenerSettings::default(),
    };
    assert_eq!(settings.listen, [listener]);
    assert!(settings.admin.is_none());
    assert_eq!(settings.store.memory.max_keys, 1_000_000);
    assert_eq!(settings.upstreams[0].servers[0].name(), "127.0.0.1:8000");
    assert_eq!(settings.requests.max_body, None);
    assert_eq!(settings.requests.inspect_body, 65_536);
    assert_eq!(settings.connections.max_header_bytes, 65_536);
    assert_eq!((settings.connections.body_rate, settings.requests.body_rate), (100, 100));
    assert_eq!(settings.policy.routes.all()[0].name.as_ref(), "POST /login");
    assert_eq!(settings.policy.limits[0].name.as_ref(), "post-login-1");
    assert_eq!(settings.files, [WatchedFile::unseen(Path::new("portcullis.yaml"))]);
}

#[test]
fn every_mistake_of_a_file_is_reported_at_once() {
    let mistakes = check("lisen: 1\nupstream: 127.0.0.1\nstore: {redis: {}}\nlimits:\n- {key: ip, rate: 0/minute}\n");
    let found: Vec<_> =
        mistakes.expect_err("mistakes").iter().map(|mistake| (mistake.line, mistake.message.clone())).collect();
    let expected = [
        (1, "unknown key `lisen`"),
        (2, "`127.0.0.1` is not a URL"),
        (3, "`url` is missing"),
        (5, "unknown selector `ip`"),
        (5, "a rate needs a count above zero"),
    ];
    assert_eq!(found, expected.map(|(line, message)| (line, message.to_owned())));
}

#[test]
fn what_follows_from_a_mistake_is_not_told() {
    let text = "listen: 0.0.0.0:80\nupstream: http://127.0.0.1:8000\nlimits:\n  - &a {key: client_ip, rate: 1/s}\n  \
                - {<<: *a, name: y}\nlists: {cdn: {url: x}}\n";
    let mistakes = read(Path::new("f"), text.to_owned(), &|_| None).expect_err("mistakes");
    let found: Vec<_> = mistakes.iter().map(|mistake| (mistake.line, mistake.column, &*mistake.message)).collect();
    assert_eq!(
        found,
        [(5, 6, "merge keys are not supported"), (6, 15, "`url` is not implemented in this version yet")]
    );
}

#[test]
fn what_a_later_version_reads_is_refused_by_its_name() {
    for (text, word) in [
        ("networks: {asn: a.mmdb}", "networks"),
        ("captchas: {door: {provider: turnstile}}", "captchas"),
        ("x-rates: &slow 1/minute", "x-rates"),
        ("limits: [{key: client_ip, rate: 1/s, when: {path: /a}}]", "when"),
        ("limits: [{key: client_ip, rate: 1/s, zone: Europe/Berlin}]", "zone"),
        ("limits: [{key: client_ip, rate: {of: jwt.plan, otherwise: 1/s}}]", "of"),
        ("limits: [{key: client_ip, rate: 1/s, cost: {answer: bytes, most: 4}}]", "answer"),
        ("limits: [{key: client_ip, rate: 1/s, then: {wait: 2s}}]", "wait"),
        ("limits: [{key: ja4, rate: 1/s}]", "ja4"),
        ("lists: {bots: {rdns: [.example.com]}}", "rdns"),
        ("routes: [{match: /a, headers: {}}]", "headers"),
        ("routes: [{match: /a, outcome: {pad: 400ms}}]", "pad"),
        ("upstreams: {app: {servers: http://127.0.0.1:1, max_requests: 4}}", "max_requests"),
    ] {
        let mistakes = check(&format!("listen: 0.0.0.0:80\nupstream: http://127.0.0.1:8000\n{text}\n"));
        let mistakes = mistakes.expect_err(text);
        assert_eq!(mistakes[0].message, format!("`{word}` is not implemented in this version yet"), "{text}");
        assert_eq!(mistakes.len(), 1, "{text}: {mistakes:?}");
    }
}

#[test]
fn a_file_that_is_not_there_is_one_mistake() {
    let mistakes = load(Path::new("not/there.yaml")).expect_err("no file");
    assert_eq!(mistakes.len(), 1);
    assert_eq!(mistakes[0].message, "cannot read the configuration: no such file");
}

#[test]
fn what_is_not_text_is_reported_with_its_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("portcullis.yaml");
    std::fs::write(&file, b"listen: 0.0.0.0:80\nupstream: \xff\n").expect("written");
    let mistakes = load(&file).expect_err("not UTF-8");
    assert_eq!((mistakes[0].line, mistakes[0].column), (2, 11));
}

#[test]
fn files_are_found_beside_the_configuration_and_all_of_them_are_known() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("portcullis.yaml");
    std::fs::write(
        &file,
        format!("{SMALLEST}lists: {{bad: {{file: bad.txt}}}}\ndeny_response: {{body_file: page.html}}\n"),
    )
    .expect("written");
    std::fs::write(folder.path().join("bad.txt"), "198.51.100.7 # once\n").expect("written");
    std::fs::write(folder.path().join("page.html"), "<p>Slow down").expect("written");
    let settings = load(&file).expect("a good file");
    let expected =
        ["portcullis.yaml", "bad.txt", "page.html"].map(|name| WatchedFile::as_it_is(&folder.path().join(name)));
    assert_eq!(settings.files, expected);
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,100}") {
        let _ = check(&text);
    }

    /// A good file with a stretch replaced: most of it is still understood, so that every step sees odd input.
    #[test]
    fn no_near_configuration_makes_it_panic(
        start in 0..EVERYTHING.len(), length in 0..40usize, put in "[-a-z0-9:{}\\[\\]/*\"'&. \n\\PC]{0,12}",
    ) {
        let at = |byte: usize| (byte..=EVERYTHING.len()).find(|byte| EVERYTHING.is_char_boundary(*byte)).unwrap_or(0);
        let (start, end) = (at(start), at((start + length).min(EVERYTHING.len())));
        let _ = check(&format!("{}{put}{}", &EVERYTHING[..start], &EVERYTHING[end..]));
    }
}

const EVERYTHING: &str = include_str!("../../config/everything.yaml");
