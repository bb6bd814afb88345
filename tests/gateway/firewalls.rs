//! Exports of bans, loaded for real: by firewalls in their own network namespace, and by servers with their own
//! configuration check.

use std::fs;
use std::process::Command;

use serde_json::json;
use tempfile::TempDir;

use crate::support::{Gateway, python};

/// Banned networks, some of them within others, and for longer.
const BANNED: [(&str, &str); 7] = [
    ("127.0.0.5", "1h"),
    ("127.1.0.0/16", "1h"),
    ("127.1.2.0/24", "2h"),
    ("127.1.2.3", "30m"),
    ("198.51.100.0/24", "36500d"),
    ("2001:db8::/32", "1h"),
    ("2001:db8:0:1::/64", "2h"),
];

/// Tries one connection for each pair `SOURCE,DESTINATION`, and prints whether it succeeds.
const PROBE: &str = "
import socket, sys
for pair in sys.argv[1:]:
    source, to = pair.split(',')
    family = socket.AF_INET6 if ':' in to else socket.AF_INET
    with socket.socket(family) as listener, socket.socket(family) as caller:
        listener.bind((to, 0))
        listener.listen()
        caller.settimeout(0.5)
        caller.bind((source, 0))
        try:
            caller.connect(listener.getsockname()[:2])
            print(source, 'passes')
        except TimeoutError:
            print(source, 'is dropped')
";

const PAIRS: &str = "127.0.0.5,127.0.0.1 127.0.0.6,127.0.0.1 127.1.2.3,127.0.0.1 127.1.2.4,127.0.0.1 127.1.9.9,127.0.0.1 \
                     127.2.0.1,127.0.0.1 2001:db8::1,::1 2001:db8:0:1::1,::1 2001:db9::1,::1";

const JUDGED: &str = "\
127.0.0.5 is dropped
127.0.0.6 passes
127.1.2.3 is dropped
127.1.2.4 is dropped
127.1.9.9 is dropped
127.2.0.1 passes
2001:db8::1 is dropped
2001:db8:0:1::1 is dropped
2001:db9::1 passes
";

/// A folder with the export of these bans in a file `bans`, and an export without bans in `nobody`.
fn exported(format: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let gateway = Gateway::start("admin: {address: 127.0.0.1:0}\nupstream: http://127.0.0.1:1\n");
    let api = |method: &str, path: &str| gateway.admin_request(method, &format!("/api/v1/bans{path}"));
    let export = || api("GET", &format!("/export?format={format}")).send().text();
    fs::write(folder.path().join("nobody"), export()).expect("a file in the folder");
    for (address, span) in BANNED {
        let wanted = json!({"address": address, "for": span});
        assert_eq!(api("POST", "").json(&wanted.to_string()).status(), 201);
    }
    fs::write(folder.path().join("bans"), export()).expect("a file in the folder");
    folder
}

/// Runs a script in a network namespace that has nothing but a loopback, and says what it printed.
#[track_caller]
fn in_a_namespace(folder: &TempDir, script: &str) -> String {
    fs::write(folder.path().join("probe.py"), PROBE).expect("a file in the folder");
    let interpreter = python(folder.path());
    let interpreter = interpreter.get_program().to_str().expect("a path of ASCII");
    let prepare = "set -e; PATH=$PATH:/usr/sbin; ip link set lo up; for address in 2001:db8::1 2001:db8:0:1::1 2001:db9::1; \
                   do ip -6 address add $address/128 dev lo; done";
    let probe = format!("{interpreter} probe.py {PAIRS}");
    let ended = Command::new("unshare")
        .args(["--net", "--map-root-user", "sh", "-c", &format!("{prepare}\n{}", script.replace("PROBE", &probe))])
        .current_dir(folder.path())
        .output()
        .expect("unshare is a part of util-linux");
    let [out, err] = [&ended.stdout, &ended.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    assert!(
        ended.status.success(),
        "{out}\n{err}\n{}",
        fs::read_to_string(folder.path().join("bans")).unwrap_or_default()
    );
    out
}

#[test]
fn nft_loads_the_whole_export_again_and_again_and_drops_who_is_banned() {
    let folder = exported("nft");
    assert_eq!(in_a_namespace(&folder, "nft -f nobody; nft -f bans; nft -f bans; PROBE"), JUDGED);
    let listed = in_a_namespace(&folder, "nft -f bans; nft -f bans; nft list ruleset");
    assert_eq!((listed.matches("table ").count(), listed.matches(" drop\n").count()), (1, 2), "{listed}");
    for element in ["127.0.0.5 timeout 1h", "127.1.2.0/24 timeout 2h", "127.1.0.0/23 timeout 1h"] {
        assert!(
            listed.contains(element) || listed.contains(&element.replace("1h", "59m").replace("2h", "1h59m")),
            "{element} in {listed}"
        );
    }
    // A lifted ban lets its client in again, and other tables stay as they are.
    let freed = in_a_namespace(&folder, "nft add table inet other; nft -f bans; nft -f nobody; nft list tables; PROBE");
    assert_eq!((freed.matches("passes").count(), freed.matches("table inet ").count()), (9, 2), "{freed}");
}

#[test]
fn nft_lets_an_address_in_again_when_its_ban_is_over() {
    let folder = exported("nft");
    let text = fs::read_to_string(folder.path().join("bans")).expect("just written");
    let begins = text.find("127.0.0.5 timeout ").expect("an element");
    let ends = begins + text[begins..].find("s,").expect("its end");
    fs::write(folder.path().join("bans"), format!("{}127.0.0.5 timeout 1{}", &text[..begins], &text[ends..]))
        .expect("a file");
    let waits = "nft -f bans; while nft list ruleset | grep -q '127.0.0.5 '; do sleep 0.1; done; PROBE";
    assert_eq!(in_a_namespace(&folder, waits), JUDGED.replace("127.0.0.5 is dropped", "127.0.0.5 passes"));
}

#[test]
fn iptables_and_ip6tables_load_one_text_again_and_again_beside_what_is_there() {
    let folder = exported("iptables");
    let before = "iptables -A INPUT -s 203.0.113.9 -j DROP; iptables-restore --noflush < nobody";
    let load = "iptables-restore --noflush < bans; ip6tables-restore --noflush < bans";
    let once = "iptables -I INPUT -j PORTCULLIS; ip6tables -I INPUT -j PORTCULLIS";
    assert_eq!(in_a_namespace(&folder, &format!("{before}; {load}; {once}; {load}; PROBE")), JUDGED);
    let listed = in_a_namespace(&folder, &format!("{before}; {load}; {load}; iptables -S; ip6tables -S"));
    for (rule, times) in
        [("-s 203.0.113.9/32 -j DROP", 1), ("-N PORTCULLIS", 2), ("-A PORTCULLIS -s 127.0.0.5/32 -j DROP", 1)]
    {
        assert_eq!(listed.matches(rule).count(), times, "{rule} in {listed}");
    }
    let freed = "iptables-restore --noflush < nobody; ip6tables-restore --noflush < nobody; PROBE";
    assert_eq!(in_a_namespace(&folder, &format!("{load}; {once}; {freed}")).matches("passes").count(), 9);
}

#[test]
fn ipset_restores_the_export_again_and_again() {
    let folder = exported("ipset");
    let drops = "iptables -I INPUT -m set --match-set portcullis4 src -j DROP; \
                 ip6tables -I INPUT -m set --match-set portcullis6 src -j DROP";
    let script = format!("ipset restore < nobody; ipset restore < bans; {drops}; ipset restore < bans; PROBE");
    assert_eq!(in_a_namespace(&folder, &script), JUDGED);
}

#[test]
fn servers_accept_the_export_in_their_configuration() {
    let nginx = exported("nginx");
    let text = "pid nginx.pid; events {} http { access_log off; server { listen 127.0.0.1:1; include bans; include nobody; } }";
    fs::write(nginx.path().join("nginx.conf"), text).expect("a file in the folder");
    let ended = Command::new("nginx").args(["-t", "-e", "stderr", "-c", "nginx.conf", "-p"]).arg(nginx.path()).output();
    let ended = ended.expect("tests/run installs it");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));

    let haproxy = exported("haproxy");
    let text = "defaults\n mode http\n timeout client 1s\n timeout connect 1s\n timeout server 1s\nfrontend f\n \
                bind 127.0.0.1:1\n http-request deny if { src -f bans } || { src -f nobody }\n";
    fs::write(haproxy.path().join("haproxy.cfg"), text).expect("a file in the folder");
    let ended = Command::new("haproxy").args(["-c", "-f", "haproxy.cfg"]).current_dir(haproxy.path()).output();
    let ended = ended.expect("tests/run installs it");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
}
