//! What real clients send is understood: one name, the right one, and no part of the shared budget of the empty value.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use rustix::process::{Pid, Signal};

use crate::charged;
use crate::reader::{go_program, python};
use crate::recorder::Recorder;
use crate::support::eventually;

/// The name with letters and signs that clients encode, as it is compared.
const AWKWARD: &str = "zoë o'neil";

#[test]
fn what_real_clients_were_recorded_to_send_is_understood() {
    let recorded = recorded();
    let mut clients: Vec<_> = recorded.keys().filter_map(|name| name.split('/').next()).collect();
    clients.dedup();
    assert!(clients.len() >= 20, "{clients:?}");
    check(&recorded);
}

#[test]
fn what_the_clients_of_this_machine_send_is_understood() {
    let recorder = Recorder::start(include_str!("clients/browser.html"));
    let to = format!("http://{}", recorder.address());
    for command in commands() {
        run(command, &to);
    }
    browse(&recorder, &to);
    let mut sent = recorder.requests();
    sent.retain(|path, _| path.contains('/'));
    if env::var_os("UPDATE_EXPECT").is_some() {
        for (name, bytes) in &sent {
            let file = file(name);
            fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
            fs::write(file, bytes).expect("a file");
        }
    }
    check(&sent);
    let missing: Vec<_> = recorded().into_keys().filter(|name| !sent.contains_key(name) && !is_built(name)).collect();
    assert!(missing.is_empty(), "these were not sent: {missing:?}");
}

/// Whether a client was built to record it, and is in no package.
fn is_built(name: &str) -> bool {
    name.starts_with("reqwest/")
}

/// Requires that each is one request for one name.
#[track_caller]
fn check(requests: &BTreeMap<String, Vec<u8>>) {
    let mut failures = Vec::new();
    for (name, bytes) in requests {
        let (_, what) = name.split_once('/').expect("a client and what it sends");
        let is_alice = memchr::memmem::find(bytes, b"alice").is_some() || what == "basic";
        let expected = if is_alice { charged::NAME } else { AWKWARD };
        let selectors = match what {
            "basic" => vec!["basic.user".to_owned()],
            "cookie" => vec!["cookie.sid".to_owned()],
            "query" => vec!["param.username".to_owned()],
            _ if what.contains("json") => charged::selectors("json", "username"),
            _ => charged::selectors("form", "username"),
        };
        let end = memchr::memmem::find(bytes, b"\r\n\r\n").expect("a head") + 4;
        for (selector, values) in selectors.iter().zip(charged::values_of(&bytes[..end], &bytes[end..], &selectors)) {
            if values.as_deref() != Some(&[expected.to_owned()][..]) {
                let sent = bytes.escape_ascii();
                failures.push(format!("{name}: {selector} is {values:?}, not {expected:?}\n    {sent}\n"));
            }
        }
    }
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), requests.len(), failures.concat());
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/readers/clients")
}

/// The file of `client/what`.
fn file(name: &str) -> PathBuf {
    folder().join("recorded").join(format!("{name}.http"))
}

/// What was recorded: `client/what`, and the request.
pub(crate) fn recorded() -> BTreeMap<String, Vec<u8>> {
    let mut recorded = BTreeMap::new();
    for client in fs::read_dir(folder().join("recorded")).expect("a folder") {
        let client = client.expect("a folder").path();
        for what in fs::read_dir(&client).expect("a folder") {
            let what = what.expect("a file").path();
            let names = [client.file_name(), what.file_stem()].map(|name| name.expect("a name").to_string_lossy());
            recorded.insert(names.join("/"), fs::read(&what).expect("a file"));
        }
    }
    recorded
}

/// Programs that send requests with the clients of their language to the address in their argument.
fn commands() -> Vec<Command> {
    let script = |program: &str, file: &str| {
        let mut command = Command::new(program);
        command.arg(folder().join(file));
        command
    };
    let mut with_packages = python();
    with_packages.arg(folder().join("clients.py"));
    let mut node = script("node", "clients.js");
    node.env("NODE_PATH", "/usr/share/nodejs");
    vec![
        script("sh", "curl.sh"),
        script("sh", "wget.sh"),
        script("sh", "httpie.sh"),
        with_packages,
        node,
        java(),
        script("ruby", "clients.rb"),
        script("perl", "clients.pl"),
        script("php", "clients.php"),
        go_program("clients", &folder().join("clients.go")),
    ]
}

/// Compiled by Tomcat's own compiler: there may be no other.
fn java() -> Command {
    let compiled = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/readers/java");
    let jars =
        ["httpclient", "httpcore", "commons-logging", "commons-codec"].map(|jar| format!("/usr/share/java/{jar}.jar"));
    let mut tool = Command::new("java");
    tool.args(["-cp", "/usr/share/java/eclipse-jdt-core.jar", "org.eclipse.jdt.internal.compiler.batch.Main"]);
    tool.args(["-proc:none", "-nowarn", "-encoding", "UTF-8", "-17", "-cp", &jars.join(":"), "-d"]);
    let ended = tool.arg(&compiled).arg(folder().join("Clients.java")).status();
    assert!(ended.expect("it is installed: tests/run does that").success(), "Clients.java compiles");
    let mut java = Command::new("java");
    java.arg("-cp").arg(format!("{}:{}", compiled.display(), jars.join(":"))).arg("Clients");
    java
}

#[track_caller]
fn run(mut command: Command, to: &str) {
    for proxy in ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
        command.env_remove(proxy);
    }
    let ended = command.arg(to).stdin(Stdio::null()).output().expect("it is installed: tests/run does that");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{command:?} ended with {}: {said}", ended.status);
}

/// Has a browser show the page, which sends forms and requests, the last of them to `/done`.
fn browse(recorder: &Recorder, to: &str) {
    let profile = tempfile::tempdir().expect("a folder");
    let mut command = Command::new("chromium");
    command.args(["--headless=new", "--no-sandbox", "--disable-gpu", "--no-proxy-server", "--no-first-run"]);
    command.arg(format!("--user-data-dir={}", profile.path().display())).arg("--remote-debugging-port=0");
    command.arg(format!("{to}/browser.html")).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut browser = command.process_group(0).spawn().expect("it is installed: tests/run does that");
    eventually("the browser has sent everything", || recorder.requests().contains_key("done"));
    let group = i32::try_from(browser.id()).ok().and_then(Pid::from_raw).expect("a process");
    let _ = rustix::process::kill_process_group(group, Signal::KILL);
    let _ = browser.wait();
}
