//! `portcullis replay` and `suggest`: the formats of other programs' logs, and what stands around their lines.

use serde_json::{Value, json};

use crate::replay::{CONFIG, guesses, login, report};
use crate::support::Folder;

/// A failed login of one client at noon and another one a minute later, as each program logs it.
fn logs() -> [(&'static str, &'static str, String); 8] {
    let twice = |line: &str| format!("{line}\n{}\n", line.replace("12:00:00", "12:01:00"));
    [
        (
            "json",
            "json",
            twice(
                r#"{"time_iso8601":"2026-11-21T12:00:00+00:00","remote_addr":"198.51.100.7","request":"POST /login HTTP/1.1","status":401}"#,
            ),
        ),
        (
            "haproxy-clf",
            "haproxy",
            twice(
                r#"198.51.100.7 - - [21/Nov/2026:12:00:00 +0000] "POST /login HTTP/1.1" 401 612 "" "" 33317 123 "fe" "be" "s1" 0 0 1 4 5 "----" 1 1 0 0 0 0 0 "" "" "" "agent""#,
            ),
        ),
        (
            "envoy",
            "envoy",
            twice(
                r#"[2026-11-21T12:00:00.000Z] "POST /login HTTP/2" 401 - 10 154 12 11 "198.51.100.7" "agent" "4f" "example.com" "10.0.0.5:80""#,
            ),
        ),
        (
            "alb",
            "alb",
            twice(
                r#"https 2026-11-21T12:00:00.000000Z app/web/50dc 198.51.100.7:2817 10.0.0.1:80 0.000 0.000 0.000 401 401 34 366 "POST https://example.com:443/login HTTP/2.0" "agent" ECDHE TLSv1.2 arn:x "Root=1-2" "example.com" "arn:y" 0 2026-11-21T12:00:00.000000Z "forward" "-" "-" "10.0.0.1:80" "401" "-" "-""#,
            ),
        ),
        (
            "iis",
            "iis",
            format!(
                "#Fields: date time cs-method cs-uri-stem cs-uri-query c-ip sc-status\n{}",
                twice("2026-11-21 12:00:00 POST /login - 198.51.100.7 401")
            ),
        ),
        (
            "nginx-proxy-manager",
            "nginx-proxy-manager",
            twice(
                r#"[21/Nov/2026:12:00:00 +0000] - 401 401 - POST https example.com "/login" [Client 198.51.100.7] [Length 612] [Gzip -] [Sent-to 10.0.0.5] "agent" "-""#,
            ),
        ),
        (
            "caddy",
            "caddy",
            twice(
                r#"{"level":"error","ts":"2026-11-21T12:00:00Z","logger":"http.log.error","msg":"refused","request":{"remote_ip":"198.51.100.7","method":"POST","host":"a","uri":"/login"},"status":401}
{"level":"info","ts":"2026-11-21T12:00:00Z","logger":"http.log.access","msg":"handled request","request":{"remote_ip":"198.51.100.7","method":"POST","host":"a","uri":"/login"},"status":401}"#,
            ),
        ),
        (
            "traefik",
            "traefik",
            twice(
                r#"198.51.100.7 - - [21/Nov/2026:12:00:00 +0000] "POST /login HTTP/1.1" 401 612 "-" "agent "quoted"" 17 - - 3ms"#,
            ),
        ),
    ]
}

#[track_caller]
fn check_two_logins(name: &str, report: &Value) {
    assert_eq!((&report["requests"], &report["lines"]["unreadable"]), (&json!(2), &json!(0)), "{name}: {report}");
    let login = &report["routes"][0];
    assert_eq!((&login["name"], &login["requests"]), (&json!("login"), &json!(2)), "{name}: {report}");
    assert_eq!(report["from"].as_str().map(|from| &from[..16]), Some("2026-11-21T12:00"), "{name}: {report}");
}

#[test]
fn the_logs_of_other_programs_are_told_apart_or_named() {
    let folder = Folder::with(CONFIG);
    for (name, format, log) in logs() {
        folder.write("access.log", &log);
        for arguments in [&["access.log"][..], &["--log-format", format, "access.log"]] {
            let report = report(&folder, arguments);
            check_two_logins(name, &report);
            assert_eq!(report["formats"], json!([format]), "{name}");
        }
        let suggested = folder.run(&["suggest", "--log-format", format, "access.log"]);
        assert!(suggested.code == Some(0) && suggested.stdout.contains("/login"), "{name}: {suggested:?}");
    }
}

#[test]
fn each_of_them_is_read_within_what_syslog_and_containers_write_around_it() {
    let folder = Folder::with(CONFIG);
    let docker = |line: &str| json!({"log": format!("{line}\n"), "stream": "stdout", "time": "2026-11-21T12:00:00Z"});
    for (name, _, log) in logs() {
        let wrapped = |wrap: &dyn Fn(&str) -> String| log.lines().map(|line| wrap(line) + "\n").collect::<String>();
        for log in [
            wrapped(&|line| format!("<190>Nov 21 12:00:00 web proxy[12]: {line}")),
            wrapped(&|line| format!("<190>1 2026-11-21T12:00:00Z web proxy 12 - - {line}")),
            wrapped(&|line| docker(line).to_string()),
            wrapped(&|line| format!("2026-11-21T12:00:00.5Z stdout F {line}")),
        ] {
            folder.write("access.log", &log);
            check_two_logins(name, &report(&folder, &["access.log"]));
        }
    }
}

#[test]
fn the_pieces_of_a_long_line_are_joined() {
    let folder = Folder::with(CONFIG);
    let long = login("12:00:00", "198.51.100.7", 401).replace("/login", &format!("/login?next={}", "a".repeat(40_000)));
    let long = long.trim_end();
    let pieces: Vec<&str> = [&long[..16_384], &long[16_384..32_768], &long[32_768..]].into();
    let docker = |text: &str, stream: &str| {
        json!({"log": text, "stream": stream, "time": "2026-11-21T12:00:00Z"}).to_string() + "\n"
    };
    let short = login("12:01:00", "198.51.100.7", 401);
    let of_docker = [
        docker(pieces[0], "stdout"),
        docker("an error\n", "stderr"),
        docker(pieces[1], "stdout"),
        docker(&format!("{}\n", pieces[2]), "stdout"),
        docker(&short, "stdout"),
    ];
    let of_cri = [
        format!("2026-11-21T12:00:00.5Z stdout P {}\n", pieces[0]),
        "2026-11-21T12:00:00.5Z stderr F an error\n".to_owned(),
        format!("2026-11-21T12:00:00.5Z stdout P {}\n", pieces[1]),
        format!("2026-11-21T12:00:00.5Z stdout F {}\n", pieces[2]),
        format!("2026-11-21T12:00:00.5Z stdout F {short}"),
    ];
    for lines in [of_docker, of_cri] {
        folder.write("access.log", &lines.concat());
        let report = report(&folder, &["access.log"]);
        assert_eq!(report["routes"][0]["requests"], 2, "{report}");
        // A line in pieces is one.
        assert_eq!((&report["lines"]["lines"], &report["lines"]["unreadable"]), (&json!(3), &json!(1)), "{report}");
        assert_eq!(report["lines"]["first_unreadable"][0]["text"], "an error", "{report}");
    }
    // A query that begins in one piece and ends in another is masked as one.
    let secret = format!("nonsense?token={}", "s3cret".repeat(3000));
    folder.write(
        "secret.log",
        &(docker(&secret[..16_384], "stdout") + &docker(&format!("{}\n", &secret[16_384..]), "stdout")),
    );
    let ended = folder.run(&["replay", "secret.log"]);
    assert!(ended.code == Some(1) && ended.stderr.contains("nonsense?***"), "{ended:?}");
    assert!(!ended.stderr.contains("s3cret"), "{ended:?}");
}

#[test]
fn fields_of_json_have_the_names_that_the_command_line_says() {
    let folder = Folder::with(CONFIG);
    let line = r#"{"ts":"2026-11-21T12:00:00Z","from":{"ip":"198.51.100.7"},"verb":"POST","url":"/login","code":"401","took":"0"}"#;
    folder.write("access.log", &format!("{line}\n{}\n", line.replace("12:00:00", "12:01:00")));
    let fields = "time=ts,client=from.ip,method=verb,path=url,status=code,duration=took";
    for arguments in
        [&["--fields", fields, "access.log"][..], &["--log-format", "json", "--fields", fields, "access.log"]]
    {
        check_two_logins("fields", &report(&folder, arguments));
    }
    let unnamed = folder.run(&["replay", "access.log"]);
    assert!(unnamed.code == Some(1) && unnamed.stderr.contains("or the fields of JSON with --fields"), "{unnamed:?}");
    let misspelt = folder.run(&["replay", "--fields", "tiem=ts", "access.log"]);
    assert!(misspelt.code == Some(2) && misspelt.stderr.contains("did you mean `time`?"), "{misspelt:?}");
}

#[test]
fn fields_are_refused_where_nothing_reads_them() {
    let folder = Folder::with(CONFIG);
    folder.write("access.log", &guesses());
    for command in ["replay", "suggest"] {
        let formats =
            ["portcullis", "combined", "caddy", "traefik", "haproxy", "envoy", "alb", "iis", "nginx-proxy-manager"];
        for format in formats {
            let ended = folder.run(&[command, "--log-format", format, "--fields", "time=ts", "access.log"]);
            assert_eq!((ended.code, &*ended.stdout), (Some(2), ""), "{ended:?}");
            assert!(ended.stderr.contains(&format!("`--log-format {format}` reads none by such names")), "{ended:?}");
            assert!(ended.stderr.contains(&format!("Usage: portcullis {command} ")), "{ended:?}");
        }
        let ended = folder.run(&[command, "--fields", "time=ts", "access.log"]);
        assert_eq!((ended.code, &*ended.stdout), (Some(1), ""), "{ended:?}");
        assert!(ended.stderr.contains("access.log:1: --fields names the fields of JSON lines"), "{ended:?}");
    }
}

#[test]
fn each_file_says_how_many_of_its_lines_cannot_be_read() {
    let folder = Folder::with(CONFIG);
    folder.write("one.log", &(guesses() + "nonsense 1\n" + &guesses() + "nonsense 2\n"));
    folder.write("two.log", &format!("rubbish\n{}", guesses()));
    folder.write("good.log", &guesses());
    let names = ["one.log", "two.log", "good.log"];
    let report = report(&folder, &names);
    let by_file = |at: usize| {
        let file = &report["lines"]["by_file"][at];
        (&file["lines"], &file["unreadable"], &file["first"]["file"], &file["first"]["line"], &file["first"]["text"])
    };
    let one = (&json!(20), &json!(2), &json!("one.log"), &json!(10), &json!("nonsense 1"));
    let two = (&json!(10), &json!(1), &json!("two.log"), &json!(1), &json!("rubbish"));
    assert_eq!((by_file(0), by_file(1)), (one, two), "{report}");
    assert_eq!(report["lines"]["by_file"].as_array().map(Vec::len), Some(2), "{report}");
    let said = folder.run(&[&["replay"], &names[..]].concat());
    let suggested = folder.run(&[&["suggest"], &names[..]].concat());
    assert_eq!((said.code, suggested.code), (Some(0), Some(0)), "{said:?} {suggested:?}");
    for (file, count, first) in
        [("one.log", "2 of 20 lines", "10: nonsense 1"), ("two.log", "1 of 10 lines", "1: rubbish")]
    {
        let expected = format!("{file}: {count} cannot be read, first line {first}");
        assert!(said.stdout.contains(&expected), "no `{expected}` in {}", said.stdout);
        let expected = format!("# {file}: {count}, first line {first}");
        assert!(suggested.stdout.contains(&expected), "no `{expected}` in {}", suggested.stdout);
    }
    // Of one file, the remark about all lines says it.
    let said = folder.run(&["replay", "one.log"]);
    assert_eq!(said.stdout.matches("2 of 20 lines").count(), 1, "{}", said.stdout);
}
