//! The Debian package: installed, upgraded under load, removed, purged, on a machine with systemd.

use std::process::Command;

use tempfile::NamedTempFile;

use crate::machine::Machine;
use crate::profile;
use crate::support::{eventually, succeed};

#[test]
#[ignore = "takes minutes: packaging/test"]
fn the_debian_package_installs_upgrades_under_load_and_leaves() {
    let machine = Machine::boot();
    for revision in 1..=3 {
        let package = package(revision);
        machine.copy(package.path(), &format!("/srv/portcullis-{revision}.deb"));
    }
    installs(&machine);
    reloads_and_limits(&machine);
    is_taken_over_by_an_upgrade(&machine);
    goes_on_where_the_new_version_refuses_the_configuration(&machine);
    leaves(&machine);
}

/// Builds a package of this version.
fn package(revision: u32) -> NamedTempFile {
    let package = NamedTempFile::with_suffix(".deb").expect("a file");
    let mut build = Command::new("packaging/deb");
    // Compressed quickly: how small the package is does not matter here.
    build.args([&*profile(), "--fast", "--deb-revision", &revision.to_string(), "--output"]).arg(package.path());
    succeed(&mut build);
    package
}

fn installs(machine: &Machine) {
    install(machine, 1);
    assert_eq!(machine.succeed("systemctl is-active portcullis; systemctl is-enabled portcullis"), "active\nenabled");
    assert_eq!(machine.run("systemctl is-enabled portcullis.socket").stdout, b"disabled\n");
    machine.succeed("systemd-analyze verify portcullis.service portcullis.socket");
    assert_eq!(machine.succeed("portcullis health"), "ok");
    let process = main_process(machine);
    assert_eq!(machine.succeed(&format!("stat -c %U /proc/{process}")), "portcullis");
    assert_eq!(machine.succeed("stat -c '%a %U %G' /etc/portcullis"), "750 root portcullis");
    assert_eq!(machine.succeed("stat -c '%U %G' /var/lib/portcullis"), "portcullis portcullis");
    // A shell has manual pages and completions.
    machine.succeed("man -w portcullis portcullis-run portcullis-bans-add");
    let offered =
        "source /usr/share/bash-completion/bash_completion; _completion_loader portcullis; complete -p portcullis";
    assert!(machine.succeed(&format!("bash -c '{offered}'")).contains("_portcullis"));
    // Every example is whole where it is; `everything.yaml` also names certificates, which no package brings.
    let examples = "cd /usr/share/doc/portcullis/examples; for file in *.yaml; do [ $file = everything.yaml ] || \
                    PASSWORD=x portcullis check -c $file; done";
    machine.succeed(&format!("set -e; {examples}"));
    assert!(machine.succeed("dpkg --verify portcullis; echo whole").ends_with("whole"));
}

/// The configuration of the package stands in front of what listens on port 8000.
fn reloads_and_limits(machine: &Machine) {
    machine.spawn("portcullis demo --application-only 127.0.0.1:8000");
    eventually("the application is reached", || status(machine, "/login") == "200");
    let guess =
        "curl -s -o /dev/null -w '%{http_code} ' -d 'username=alice&password=wrong' http://127.0.0.1:8080/login";
    assert_eq!(machine.succeed(&format!("{guess}; {guess}")), "401 429");
    machine
        .succeed("sed -i 's|1/second; .*}|5/second}|' /etc/portcullis/portcullis.yaml && systemctl reload portcullis");
    assert_eq!(machine.succeed(&format!("sleep 1; {guess}; {guess}; {guess}")), "401 401 401");
}

fn is_taken_over_by_an_upgrade(machine: &Machine) {
    let (before, since) = (main_process(machine), started(machine));
    // New connections, one after the other, and an upload that begins before the upgrade and ends after it.
    machine.spawn(
        "while [ ! -e /tmp/enough ]; do \
           curl -s -o /dev/null -w '%{http_code}\n' http://127.0.0.1:8080/login || echo refused; \
         done > /tmp/statuses; touch /tmp/stopped",
    );
    machine.spawn(
        "(printf 'username=bob&pass'; touch /tmp/begun; while [ ! -e /tmp/upgraded ]; do sleep 0.1; done; printf 'word=no') \
         | curl -s -T - -X POST -H 'Content-Type: application/x-www-form-urlencoded' -w '%{http_code}' -o /dev/null \
           http://127.0.0.1:8080/login > /tmp/upload; touch /tmp/uploaded",
    );
    eventually("requests are under way", || machine.run("[ -s /tmp/statuses ] && [ -e /tmp/begun ]").status.success());

    let said = install(machine, 2);

    assert!(said.contains("portcullis: the new version has taken over"), "{said}");
    let asked = || machine.succeed("wc -l < /tmp/statuses").parse::<u32>().expect("a number");
    let by_then = asked();
    eventually("the new process is asked, too", || asked() > by_then + 20);
    machine.succeed("touch /tmp/upgraded /tmp/enough");
    eventually("what was under way has ended", || {
        machine.run("[ -e /tmp/stopped ] && [ -e /tmp/uploaded ]").status.success()
    });
    assert_eq!(machine.succeed("sort -u /tmp/statuses"), "200", "none refused, reset or failed");
    assert_eq!(machine.succeed("cat /tmp/upload"), "401", "the old process finishes what it has");
    let after = main_process(machine);
    assert_ne!(after, before);
    assert_eq!(machine.succeed(&format!("readlink /proc/{after}/exe")), "/usr/bin/portcullis");
    eventually("the old process has ended", || !machine.run(&format!("[ -e /proc/{before} ]")).status.success());
    assert_eq!(started(machine), since, "systemd has started nothing anew");
    assert_eq!(machine.succeed("systemctl is-active portcullis"), "active");
    assert!(machine.succeed("cat /etc/portcullis/portcullis.yaml").contains("5/second"), "the change of it is kept");
}

fn goes_on_where_the_new_version_refuses_the_configuration(machine: &Machine) {
    let before = main_process(machine);
    machine.succeed(
        "cp -p /etc/portcullis/portcullis.yaml /srv && echo 'nonsense: true' >> /etc/portcullis/portcullis.yaml",
    );

    let said = install(machine, 3);

    assert!(said.contains("the new version has not taken over, the old one still runs"), "{said}");
    assert_eq!((main_process(machine), &*status(machine, "/login")), (before.clone(), "200"));
    assert_eq!(machine.succeed("dpkg-query -Wf '${Status}' portcullis"), "install ok installed");
    machine.succeed(
        "cp -p /srv/portcullis.yaml /etc/portcullis && systemctl kill --signal=USR2 --kill-who=main portcullis",
    );
    eventually("a second try takes over", || main_process(machine) != before);
}

fn leaves(machine: &Machine) {
    let process = main_process(machine);
    machine.succeed("apt-get remove -y -qq portcullis");
    eventually("the service has ended", || !machine.run(&format!("[ -e /proc/{process} ]")).status.success());
    assert!(!machine.run("command -v portcullis || systemctl cat portcullis").status.success());
    machine.succeed("[ -e /etc/portcullis/portcullis.yaml ] && [ -d /var/lib/portcullis ]");
    // Installed once more after it was removed, it runs again, with the configuration that stayed.
    install(machine, 3);
    assert_eq!(machine.succeed("portcullis health && grep -c 5/second /etc/portcullis/portcullis.yaml"), "ok\n1");
    machine.succeed("apt-get purge -y -qq portcullis");
    let left = "ls -d /etc/portcullis/portcullis.yaml /var/lib/portcullis /var/log/portcullis /usr/share/doc/portcullis \
                /etc/systemd/system/*/portcullis.service 2> /dev/null";
    assert_eq!(machine.run(left).stdout, b"");
    assert_eq!(machine.succeed("systemctl is-system-running"), "running", "nothing has failed");
}

/// Installs a package as its users do, and returns what that said.
#[track_caller]
fn install(machine: &Machine, number: u32) -> String {
    machine.succeed(&format!("DEBIAN_FRONTEND=noninteractive apt-get install -y /srv/portcullis-{number}.deb"))
}

/// The number of the process that systemd takes for the service.
fn main_process(machine: &Machine) -> String {
    machine.succeed("systemctl show --property=MainPID --value portcullis")
}

/// When systemd last started the service.
fn started(machine: &Machine) -> String {
    machine.succeed("systemctl show --property=ActiveEnterTimestampMonotonic,NRestarts portcullis")
}

fn status(machine: &Machine, path: &str) -> String {
    let asked = machine.run(&format!("curl -s -o /dev/null -w '%{{http_code}}' http://127.0.0.1:8080{path}"));
    String::from_utf8_lossy(&asked.stdout).into_owned()
}
