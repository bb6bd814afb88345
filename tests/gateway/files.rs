//! Paths in the configuration that are no regular files: the gateway reads none of them and does not hang.

use std::fs;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use crate::support::{Gateway, Origin, Stopwatch, binary, eventually, repeat_until};

fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().expect("mkfifo is installed").success());
}

/// The end of a run that is not to last, whatever it is given to read.
#[track_caller]
fn run(folder: &Path, arguments: &[&str], input: Option<&str>) -> Output {
    let mut child = Command::new(binary())
        .args(arguments)
        .current_dir(folder)
        .env("XDG_RUNTIME_DIR", folder)
        .stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
        stdin.write_all(input.as_bytes()).expect("it reads");
    }
    let waited = Stopwatch::start();
    let mut has_ended = || child.try_wait().expect("a child of ours").is_some();
    repeat_until(|| has_ended() || waited.elapsed() > LONGEST, Duration::from_millis(20), || ());
    let has_ended = has_ended();
    if !has_ended {
        child.kill().expect("a child of ours");
    }
    let output = child.wait_with_output().expect("a child of ours");
    assert!(has_ended, "`portcullis {arguments:?}` hangs: {}", String::from_utf8_lossy(&output.stderr));
    output
}

/// Longer than any command takes that does not hang.
const LONGEST: Duration = Duration::from_secs(20);

/// Every place of a configuration where a file is read, with `PATH` for its name.
const READ: [&str; 7] = [
    "lists: {abusers: {file: PATH}}",
    "lists: {abusers: {of: header.x-api-key, file: PATH}}",
    "deny_response: {body_file: PATH}",
    "admin: {address: 127.0.0.1:0, token_file: PATH}",
    "upstreams: {app: {servers: [\"https://127.0.0.1:9\"], tls: {ca: PATH}}}",
    "#\nlisten: [{address: 127.0.0.1:0, tls: {certificates: [{cert: PATH, key: PATH}]}}]",
    "#\nlisten: [{address: 127.0.0.1:0, tls: {client_ca: PATH, certificates: [{cert: cert, key: key}]}}]",
];

#[test]
fn what_is_no_regular_file_is_refused_by_name_wherever_one_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    fifo(&folder.path().join("fifo"));
    std::os::unix::fs::symlink("fifo", folder.path().join("link")).expect("a link");
    let _socket = UnixListener::bind(folder.path().join("socket")).expect("a socket");
    let irregular = [
        ("fifo", "it is a FIFO, and not a regular file"),
        ("link", "it is a FIFO, and not a regular file"),
        ("socket", "it is a socket, and not a regular file"),
        ("/dev/zero", "it is a device, and not a regular file"),
        ("/dev/full", "it is a device, and not a regular file"),
        (".", "it is a directory"),
    ];
    for (number, (name, what)) in irregular.into_iter().enumerate() {
        // The first kind wherever a file is read, the others in one place.
        let places = if number == 0 { &READ[..] } else { &READ[..1] };
        for section in places {
            let listen = if section.contains("listen") { "#" } else { "listen: 127.0.0.1:0" };
            let upstream = if section.contains("upstreams") { "upstream: app" } else { "upstream: http://127.0.0.1:9" };
            let text = format!("#\n{listen}\n{upstream}\n{}\n", section.replace("PATH", name));
            fs::write(folder.path().join("portcullis.yaml"), &text).expect("a file");
            let before = &section[..section.find("PATH").expect("a name")];
            let (line, column) =
                (4 + before.matches('\n').count(), before.lines().last().unwrap_or_default().len() + 1);
            for command in ["check", "run"] {
                let ended = run(folder.path(), &[command], None);
                let told = String::from_utf8_lossy(if command == "check" { &ended.stdout } else { &ended.stderr });
                assert_eq!(ended.status.code(), Some(1), "{command}: {text}\n{told}");
                assert!(told.contains(what) && told.contains(name), "{command}: {text}\n{told}");
                assert!(told.contains(&format!("portcullis.yaml:{line}:{column}\n")), "{command}: {text}\n{told}");
            }
        }
    }
    let (name, what) = irregular[0];
    for command in ["check", "run"] {
        let ended = run(folder.path(), &[command, "-c", name], None);
        let told = String::from_utf8_lossy(if command == "check" { &ended.stdout } else { &ended.stderr });
        assert_eq!(ended.status.code(), Some(1), "{told}");
        assert!(told.contains(&format!("cannot read the configuration: {what}")), "{told}");
    }
    let ended = run(folder.path(), &["limits", "list", "--token-file", name], None);
    assert_eq!(ended.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&ended.stderr).contains(what), "{ended:?}");
}

#[test]
fn what_is_no_regular_file_is_refused_where_one_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    fifo(&folder.path().join("fifo"));
    let _socket = UnixListener::bind(folder.path().join("socket")).expect("a socket");
    for (section, name) in [
        ("audit: {sqlite: PATH}", "fifo"),
        ("audit: {sqlite: PATH}", "/dev/null"),
        ("audit: {file: PATH}", "socket"),
        ("store: {memory: {snapshot: PATH}}", "fifo"),
        ("store: {memory: {snapshot: PATH}}", "/dev/null"),
    ] {
        let text = format!("listen: 127.0.0.1:0\nupstream: http://127.0.0.1:9\n{}\n", section.replace("PATH", name));
        fs::write(folder.path().join("portcullis.yaml"), &text).expect("a file");
        let ended = run(folder.path(), &["run"], None);
        let told = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(1), "{told}");
        assert!(told.contains(&format!("cannot write to `{name}`")) && told.contains("portcullis.yaml:3:"), "{told}");
    }
}

const GOOD: &str = "listen: 127.0.0.1:0\nupstream: http://127.0.0.1:9\n";

#[test]
fn standard_input_is_a_configuration_to_check_and_to_explain() {
    let folder = tempfile::tempdir().expect("a folder");
    let limited = format!("{GOOD}limits: [{{name: pace, key: client_ip, rate: 1/second}}]\n");
    let checked = run(folder.path(), &["check", "-c", "-"], Some(&limited));
    assert_eq!(String::from_utf8_lossy(&checked.stdout), "-: ok (1 limit, 1 upstream)\n");
    let explained = run(folder.path(), &["explain", "-c", "-", "/"], Some(&limited));
    assert!(String::from_utf8_lossy(&explained.stdout).contains("pace"), "{explained:?}");
    let wrong = run(folder.path(), &["check", "-c", "-"], Some(&limited.replace("rate", "rat")));
    assert_eq!(wrong.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&wrong.stdout).contains("--> -:3:"), "{wrong:?}");
    assert_eq!(run(folder.path(), &["run", "-c", "-"], Some("")).status.code(), Some(1));
}

#[test]
fn a_gateway_from_standard_input_says_that_it_cannot_read_it_again() {
    let origin = Origin::start();
    let gateway = Gateway::from_standard_input(
        format!("upstream: {}\nlists: {{office: {{file: list.txt}}}}", origin.url()),
        &[("list.txt", "192.0.2.1\n")],
    );
    assert_eq!(gateway.get("/").status(), 200);
    gateway.signal("HUP");
    eventually("it says so", || gateway.log_messages().iter().any(|line| line.starts_with("nothing to reload")));
    gateway.signal("USR2");
    eventually("that too", || {
        gateway.log_messages().iter().any(|line| line.contains("which cannot be read again: start"))
    });
    assert_eq!((gateway.get("/").status(), gateway.reloads()), (200, 0));
}

const DENYING: &str = "limits: [{name: pace, key: client_ip, rate: 1/hour}]\n";

#[test]
fn an_audit_fifo_that_nobody_reads_is_refused_at_the_start_and_at_a_reload() {
    let folder = tempfile::tempdir().expect("a folder");
    fifo(&folder.path().join("trail"));
    fs::write(folder.path().join("portcullis.yaml"), format!("{GOOD}audit: {{file: trail}}\n")).expect("a file");
    let ended = run(folder.path(), &["run"], None);
    let told = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{told}");
    assert!(told.contains("portcullis.yaml:3:15") && told.contains("a FIFO without a reader"), "{told}");

    let origin = Origin::start();
    let config = format!("upstream: {}\n{DENYING}", origin.url());
    let mut gateway = Gateway::start(&config);
    fifo(&gateway.path("trail"));
    gateway.reload(format!("{config}audit: {{file: trail}}"));
    assert_eq!(gateway.failed_reloads(), 1);
    let told = gateway.log_messages().join("\n");
    assert!(told.contains("portcullis.yaml:5:15: ") && told.contains("a FIFO without a reader"), "{told}");
    gateway.reload(format!("{config}audit: {{file: trail.jsonl}}"));
    assert_eq!((gateway.get("/").status(), gateway.failed_reloads()), (200, 1));
    gateway.signal("TERM");
    assert_eq!(gateway.ended().code(), Some(0));
}

fn reader(path: &Path) -> File {
    const WITHOUT_BLOCKING: i32 = 0o4000;
    fs::OpenOptions::new().read(true).custom_flags(WITHOUT_BLOCKING).open(path).expect("a FIFO")
}

#[test]
fn an_audit_fifo_is_written_to_while_it_is_read_and_holds_up_nobody_while_it_is_not() {
    let origin = Origin::start();
    let config = format!("upstream: {}\nadmin: {{address: 127.0.0.1:0}}\n{DENYING}", origin.url());
    let mut gateway = Gateway::start(&config);
    fifo(&gateway.path("trail"));
    let mut trail = reader(&gateway.path("trail"));
    gateway.reload(format!("{config}audit: {{file: trail}}"));
    assert_eq!(gateway.failed_reloads(), 0);
    for expected in [200, 429] {
        assert_eq!(gateway.get("/").status(), expected);
    }
    let mut read = Vec::new();
    eventually("a line comes", || {
        // Nothing to read is an error here.
        let _ = trail.read_to_end(&mut read);
        BufReader::new(&read[..]).lines().map_while(Result::ok).any(|line| line.contains(r#""event":"denial""#))
    });

    let dropped = || {
        let metrics = crate::support::Request::new(gateway.admin(), "GET", "/metrics").send().text();
        let line =
            metrics.lines().find(|line| line.starts_with("portcullis_audit_dropped_entries_total{")).map(str::to_owned);
        line.and_then(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).unwrap_or_default()
    };
    let mut client = gateway.connect();
    eventually("a pipe that is full costs entries and nothing else", || {
        for _ in 0..200 {
            assert_eq!(gateway.get("/").send_on(&mut client).status, 429);
        }
        dropped() > 0
    });
    drop(trail);
    assert_eq!(gateway.get("/").status(), 429);
    gateway.signal("TERM");
    assert_eq!(gateway.ended().code(), Some(0));
}

#[test]
fn a_fifo_in_the_place_of_what_was_a_file_is_refused_and_signals_are_heard() {
    let origin = Origin::start();
    let config = format!(
        "upstream: {}\nlists: {{abusers: {{file: list.txt}}}}\naccess: {{deny: [abusers]}}\n\
         deny_response: {{body_file: page.html}}",
        origin.url()
    );
    for name in ["list.txt", "page.html", "portcullis.yaml"] {
        let mut gateway = Gateway::with_files(&config, &[("list.txt", "127.0.0.1\n"), ("page.html", "<p>no")]);
        fifo(&gateway.path("next"));
        fs::rename(gateway.path("next"), gateway.path(name)).expect("both are in the folder");
        eventually("it is refused", || gateway.failed_reloads() == 1);
        assert!(
            gateway.log_messages().join("\n").contains("it is a FIFO, and not a regular file"),
            "{:?}",
            gateway.log_messages()
        );
        gateway.signal("HUP");
        eventually("it is refused again", || gateway.failed_reloads() == 2);
        assert_eq!(gateway.get("/").status(), 403);
        gateway.signal("TERM");
        assert_eq!(gateway.ended().code(), Some(0));
    }
}
