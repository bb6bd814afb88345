//! `portcullis replay`: the logs that it reads, and those that it cannot read.

use std::io::Write;
use std::process::{Command, Stdio};

use flate2::Compression;
use flate2::write::GzEncoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use serde_json::{Value, json};

use crate::replay::{CONFIG, guesses, line, report};
use crate::support::{Ended, Folder, binary};

#[test]
fn several_files_are_read_in_the_order_of_time_compressed_or_not() {
    let folder = Folder::with(CONFIG);
    let log = guesses();
    let lines: Vec<&str> = log.split_inclusive('\n').collect();
    folder.write("access.log", &lines[4..].concat());
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(lines[2..4].concat().as_bytes()).expect("writing to a vector does not fail");
    std::fs::write(folder.path().join("access.log.1.gz"), gzip.finish().expect("gzip")).expect("a file");
    let zstd = |text: &str| compress_to_vec(text.as_bytes(), CompressionLevel::Fastest);
    // Two frames, as `cat` makes them, under a name that says nothing.
    let frames = [zstd(lines[0]), zstd(lines[1])].concat();
    std::fs::write(folder.path().join("access.log.2"), frames).expect("a file");
    folder.write("empty.log", "");
    let names = ["access.log", "empty.log", "access.log.1.gz", "access.log.2"];
    let apart = report(&folder, &names);
    folder.write("whole.log", &log);
    let whole = report(&folder, &["whole.log"]);
    assert_eq!(apart["limits"], whole["limits"]);
    assert_eq!((&apart["files"], &apart["requests"]), (&json!(4), &json!(9)));
}

#[test]
fn standard_input_is_a_log_too() {
    let folder = Folder::with(CONFIG);
    let mut child = Command::new(binary())
        .args(["replay", "--format", "json", "-"])
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    child.stdin.take().expect("a pipe").write_all(guesses().as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["requests"], 9);
}

#[test]
fn lines_that_cannot_be_read_are_counted_and_shown_harmlessly() {
    let folder = Folder::with(CONFIG);
    let mut log = guesses().into_bytes();
    log.extend_from_slice(b"\x1b[2J\x07<script>alert(1)</script>\xff\xfe\n\n");
    for number in 0..9 {
        log.extend_from_slice(format!("nonsense {number}\n").as_bytes());
    }
    log.extend_from_slice(&vec![b'x'; 1_000_000]);
    log.extend_from_slice(b"\n198.51.100.7 - - [21/Nov/2026:12:40:00 +0000] \"\\x16\\x03\" 400 0 \"-\" \"-\"\n");
    log.extend_from_slice(line("12:41:00", "198.51.100.7", "CONNECT a:443", 400).as_bytes());
    std::fs::write(folder.path().join("access.log"), log).expect("a file");
    let said = folder.run(&["replay", "access.log"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stdout.contains("11 of 22 lines cannot be read"), "{}", said.stdout);
    assert!(said.stdout.contains(r"access.log:10: \u{1b}[2J\u{7}<script>"), "{}", said.stdout);
    assert!(said.stdout.contains("access.log:15: nonsense 3"), "{}", said.stdout);
    assert!(!said.stdout.contains("nonsense 4"), "{}", said.stdout);
    assert!(said.stdout.contains("1 line without a request"), "{}", said.stdout);
    assert!(said.stdout.contains("1 request malformed"), "{}", said.stdout);
    assert!(!said.stdout.bytes().any(|byte| byte.is_ascii_control() && byte != b'\n'), "{said:?}");
    assert!(said.stdout.len() < 4000, "{}", said.stdout.len());
}

#[test]
fn a_format_is_known_by_the_first_line_that_can_be_read_however_late_it_stands() {
    let folder = Folder::with(CONFIG);
    let noise = "this is no log\n".repeat(2000);
    folder.write("access.log", &(noise.clone() + &guesses()));
    let read = report(&folder, &["access.log"]);
    assert_eq!((&read["requests"], &read["lines"]["unreadable"]), (&json!(9), &json!(2000)), "{read}");
    // The first line that can be read holds no request, and the next that can stands far behind it.
    let message = "{\"level\":\"info\",\"ts\":1646861401.5,\"logger\":\"tls\",\"msg\":\"cleaning\"}\n";
    let handled = r#"{"ts":"2026/11/21 07:58:52.500","logger":"http.log.access","request":{"remote_ip":"198.51.100.7","method":"POST","host":"a","uri":"/login"},"status":401}"#;
    folder.write("caddy.log", &format!("{message}{noise}{}{handled}\n", message.repeat(2000)));
    let read = report(&folder, &["caddy.log"]);
    assert_eq!((&read["requests"], &read["from"]), (&json!(1), &json!("2026-11-21T07:58:52.500Z")), "{read}");
    folder.write("noise.log", &noise);
    check_failure(&folder.run(&["replay", "noise.log"]), "noise.log:1: this is no line of an access log");
}

#[test]
fn where_no_line_is_understood_the_first_five_are_shown() {
    let folder = Folder::with(CONFIG);
    folder.write("one.log", "\nnonsense 1\nnonsense 2\x1b[2J\n");
    folder.write("two.log", &(1..9).map(|number| format!("rubbish {number}\n")).collect::<Vec<_>>().concat());
    for command in [&["replay"][..], &["suggest"], &["replay", "--log-format", "caddy"]] {
        let ended = folder.run(&[command, &["one.log", "two.log"]].concat());
        check_failure(&ended, "one.log:2: this is no line of ");
        check_failure(&ended, ": nonsense 1\none.log:3: nor is this: nonsense 2\\u{1b}[2J\n");
        check_failure(&ended, "\ntwo.log:3: nor is this: rubbish 3\n");
        assert!(!ended.stderr.contains("rubbish 4"), "{ended:?}");
    }
}

/// The line of a call about the descriptors of `domain`.
fn call(decision: &str, domain: &str) -> String {
    format!(
        "{{\"time\":\"2026-11-21T12:30:00.000Z\",\"client\":\"10.0.0.5\",\"protocol\":\"http/2\",\"method\":\"POST\",\
         \"host\":\"{domain}\",\"path\":\"\",\"decision\":\"{decision}\",\"status\":200,\"upstream\":null}}\n"
    )
}

#[test]
fn calls_about_descriptors_are_left_out_and_counted_alone_or_among_requests() {
    let folder = Folder::with(CONFIG);
    let calls = call("allowed", "d") + &call("denied", "d") + &call("error", "d");
    let malformed = call("error", "").replace("\"http/2\"", "null");
    let request = call("allowed", "a.test").replace("\"path\":\"\"", "\"path\":\"/\"");
    folder.write("calls.log", &calls);
    folder.write("mixed.log", &(request.clone() + &calls + &malformed + &request));
    for (log, requests, without_request, left_out) in [
        ("calls.log", 0, 0, "3 calls about descriptors left out"),
        ("mixed.log", 2, 1, "3 calls about descriptors left out"),
    ] {
        let read = report(&folder, &[log]);
        let told = [&read["requests"], &read["lines"]["without_request"], &read["lines"]["descriptor_calls"]];
        assert_eq!(told, [&json!(requests), &json!(without_request), &json!(3)], "{read}");
        let said = folder.run(&["replay", log]);
        assert!(said.code == Some(0) && said.stdout.contains(left_out), "{said:?}");
    }
    check_failure(&folder.run(&["suggest", "calls.log"]), "calls.log:3: no line up to here holds a request");
    folder.write("malformed.log", &malformed);
    let said = folder.run(&["replay", "malformed.log"]);
    assert!(said.code == Some(0) && said.stdout.contains("1 line without a request"), "{said:?}");
}

#[track_caller]
fn check_failure(ended: &Ended, expected: &str) {
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{ended:?}");
    assert!(ended.stderr.contains(expected), "no `{expected}` in {ended:?}");
}

#[test]
fn a_log_that_cannot_be_read_is_named_with_its_line() {
    let folder = Folder::with(CONFIG);
    folder.write("good.log", &guesses());
    folder.write("nonsense.log", "\nthis is no log\nnor is this\n");
    folder.write("empty.log", "");
    check_failure(&folder.run(&["replay", "missing.log"]), "missing.log: cannot open it: ");
    check_failure(&folder.run(&["replay", "."]), ".: cannot open it: ");
    check_failure(
        &folder.run(&["replay", "empty.log", "nonsense.log"]),
        "nonsense.log:2: this is no line of an access log",
    );
    check_failure(&folder.run(&["replay", "empty.log"]), "empty.log:1: there is no line");
    check_failure(&folder.run(&["replay", "-", "good.log", "-"]), "-: standard input is one log");
    check_failure(&folder.run(&["replay", "--log-format", "caddy", "good.log"]), "good.log:1: ");
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(guesses().repeat(500).as_bytes()).expect("writing to a vector does not fail");
    let whole = gzip.finish().expect("gzip");
    std::fs::write(folder.path().join("cut.gz"), &whole[..whole.len() / 2]).expect("a file");
    let ended = folder.run(&["replay", "cut.gz"]);
    check_failure(&ended, "cannot read on: its gzip data is broken or cut off\n");
    assert!(ended.stderr.contains("cut.gz:"), "{ended:?}");
    let mut broken = compress_to_vec(guesses().as_bytes(), CompressionLevel::Fastest);
    std::fs::write(folder.path().join("cut.zst"), &broken[..broken.len() / 2]).expect("a file");
    broken[4..].fill(0xff);
    std::fs::write(folder.path().join("broken.zst"), &broken).expect("a file");
    for name in ["cut.zst", "broken.zst"] {
        let said = format!("{name}:1: cannot read on: its zstd data is broken or cut off\n");
        check_failure(&folder.run(&["replay", name]), &said);
    }
    let ended = Folder::empty().run(&["replay", "good.log"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("cannot read the configuration"), "{ended:?}");
    assert_eq!(Folder::with(CONFIG).run(&["replay"]).code, Some(2));
}

#[test]
fn a_list_of_addresses_names_no_client() {
    let folder = Folder::with(CONFIG);
    let list = |addresses: &str| guesses().replace("198.51.100.7 -", addresses).replace("203.0.113.9 -", addresses);
    let hint = "a line that begins with several addresses does not say which of them is the client";
    for addresses in ["198.51.100.7, 10.0.0.1 -", "198.51.100.7,10.0.0.1 -", "2001:db8::7, 198.51.100.7, 10.0.0.1 -"] {
        folder.write("list.log", &list(addresses));
        for command in
            [&["replay", "list.log"][..], &["replay", "--log-format", "combined", "list.log"], &["suggest", "list.log"]]
        {
            let ended = folder.run(command);
            check_failure(&ended, "list.log:1: this is no line of ");
            check_failure(&ended, hint);
        }
    }
    folder.write("some.log", &(guesses() + &list("198.51.100.7, 10.0.0.1 -")));
    let said = folder.run(&["replay", "some.log"]).stdout;
    assert!(said.starts_with("9 requests in one file") && said.contains(hint), "{said}");
    // A virtual host is told by its name.
    for host in ["example.com", "example.com:443", "[2001:db8::1]:80", "_", "-"] {
        folder.write("hosts.log", &list(&format!("{host} 198.51.100.7 -")));
        assert_eq!(report(&folder, &["hosts.log"])["denied"]["top"][0]["client"], "198.51.100.7", "{host}");
    }
}

#[test]
fn a_file_without_a_readable_line_is_named_and_hides_no_other() {
    let folder = Folder::with(CONFIG);
    folder.write("good.log", &guesses());
    folder.write("nonsense.log", "\nthis is no log\nnor is this\n");
    let alone = report(&folder, &["good.log"]);
    for names in [["nonsense.log", "good.log"], ["good.log", "nonsense.log"]] {
        let read = report(&folder, &names);
        assert_eq!((&read["limits"], &read["files"]), (&alone["limits"], &json!(2)));
        assert_eq!(read["lines"]["unreadable_files"], json!(["nonsense.log"]));
        assert_eq!((&read["lines"]["lines"], &read["lines"]["unreadable"]), (&json!(11), &json!(2)));
        let said = folder.run(&[&["replay"], &names[..]].concat()).stdout;
        for expected in ["nonsense.log: no line can be read", "2 of 11 lines", "nonsense.log:2: this is no log"] {
            assert!(said.contains(expected), "no `{expected}` in {said}");
        }
        let suggested = folder.run(&[&["suggest"], &names[..]].concat());
        assert_eq!(suggested.code, Some(0), "{suggested:?}");
        assert!(suggested.stdout.contains("# 2 of 11 lines cannot be read"), "{suggested:?}");
        assert!(suggested.stdout.contains("# nonsense.log: no line can be read."), "{suggested:?}");
    }
    // As with `auto`, where the format is named.
    folder.write("caddy.log", "{\"level\":\"info\",\"ts\":1646861401.5,\"logger\":\"tls\",\"msg\":\"cleaning\"}\n");
    let read = report(&folder, &["--log-format", "caddy", "good.log", "caddy.log"]);
    assert_eq!(read["lines"]["unreadable_files"], json!(["good.log"]));
    check_failure(&folder.run(&["replay", "good.log", "missing.log"]), "missing.log: cannot open it: ");
}
