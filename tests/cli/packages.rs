//! Files installed beside the binary: the systemd unit, its user, and the part of `config/` that the image has.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::{Folder, binary};

fn run(program: &str, arguments: &[&str], folder: &Path) -> Output {
    Command::new(program).args(arguments).current_dir(folder).output().expect("systemd is installed")
}

/// The unit and its socket, with this binary in the place of the installed one.
fn units() -> Folder {
    let folder = Folder::empty();
    let unit = fs::read_to_string("config/portcullis.service").expect("the file");
    assert!(unit.contains("ExecStart=/usr/bin/portcullis run"), "{unit}");
    folder.write("portcullis.service", &unit.replace("/usr/bin/portcullis", binary()));
    folder.write("portcullis.socket", &fs::read_to_string("config/portcullis.socket").expect("the file"));
    folder
}

#[test]
fn systemd_finds_nothing_wrong_with_the_unit_and_its_socket() {
    // The manual page is not installed here.
    let arguments = ["verify", "--man=no", "./portcullis.service", "./portcullis.socket"];
    let verified = run("systemd-analyze", &arguments, units().path());
    let told = String::from_utf8_lossy(&verified.stderr).into_owned();
    let told: Vec<&str> = told.lines().filter(|line| line.contains("portcullis")).collect();
    assert!(verified.status.success() && told.is_empty(), "{told:?}");
    // Known from systemd 253 on; Debian 12 has 252, and would not start it.
    let unit = fs::read_to_string("config/portcullis.service").expect("the file");
    let settings: Vec<&str> = unit.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(settings.contains(&"Type=notify") && settings.contains(&"ExecReload=/bin/sh -c 'kill -HUP ${MAINPID}'"));
    assert!(settings.contains(&"UMask=0077") && settings.contains(&"SystemCallFilter=@system-service"));
}

#[test]
fn the_unit_is_exposed_to_little() {
    let judged = run(
        "systemd-analyze",
        &["security", "--offline=yes", "--threshold=29", "./portcullis.service"],
        units().path(),
    );
    let told = String::from_utf8_lossy(&judged.stdout);
    assert!(judged.status.success(), "{told}");
    let overall = told.lines().find_map(|line| line.split("exposure level for portcullis.service: ").nth(1));
    let overall = overall.and_then(|rest| rest.split(' ').next()?.parse::<f64>().ok()).expect("a number");
    assert!(overall < 3.0, "{told}");
}

#[test]
fn the_user_of_the_unit_is_made() {
    let unit = fs::read_to_string("config/portcullis.service").expect("the file");
    let value = |key: &str| unit.lines().find_map(|line| line.strip_prefix(key)).expect("a setting").to_owned();
    let folder = Folder::empty();
    fs::create_dir(folder.path().join("etc")).expect("a folder");
    folder.write("portcullis.conf", &fs::read_to_string("config/portcullis.sysusers").expect("the file"));
    let root = format!("--root={}", folder.path().display());
    let conf = folder.path().join("portcullis.conf");
    let made = run("systemd-sysusers", &[&root, conf.to_str().expect("text")], folder.path());
    assert!(made.status.success(), "{made:?}");
    for (file, name) in [("passwd", value("User=")), ("group", value("Group="))] {
        let made = fs::read_to_string(folder.path().join("etc").join(file)).expect("a file that was made");
        assert!(made.lines().any(|line| line.starts_with(&format!("{name}:"))), "{file}: {made}");
    }
}

/// The files of a folder of this repository that are sent to be built from, as `.dockerignore` says.
fn sent(folder: &str) -> Vec<PathBuf> {
    let ignored = fs::read_to_string(".dockerignore").expect("the file");
    let left_out: Vec<&str> = ignored.lines().filter(|line| line.starts_with(folder)).collect();
    assert!(left_out.iter().all(|line| !line.contains(['*', '?'])), "this test knows paths alone: {left_out:?}");
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::from(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder of the repository") {
            let path = entry.expect("an entry").path();
            match path.to_str() {
                Some(name) if left_out.contains(&name) => {}
                _ if path.is_dir() => folders.push(path),
                _ => found.push(path),
            }
        }
    }
    found
}

#[test]
fn the_image_has_no_sample_secret_and_every_configuration_in_it_is_whole() {
    let folder = Folder::empty();
    let sent = sent("config");
    for file in &sent {
        let text = fs::read_to_string(file).expect("text");
        assert!(!text.contains("PRIVATE KEY"), "{}", file.display());
        let within = folder.path().join(file.strip_prefix("config").expect("of that folder"));
        fs::create_dir_all(within.parent().expect("a folder")).expect("a folder");
        fs::copy(file, within).expect("a copy");
    }
    // What a configuration names and is not there is a mistake.
    let configurations = sent.iter().filter(|file| file.extension().is_some_and(|ending| ending == "yaml"));
    let names: Vec<&str> = configurations.filter_map(|file| file.file_name()?.to_str()).collect();
    assert!(names.contains(&"portcullis.yaml") && names.contains(&"compose.yaml"), "{names:?}");
    for name in names {
        let text = fs::read_to_string(folder.path().join(name)).expect("just copied");
        assert!(!text.lines().any(|line| !line.trim_start().starts_with('#') && line.contains("token_file")), "{name}");
        let checked = folder.run(&["check", "-c", name]);
        assert_eq!(checked.code, Some(0), "{name}: {checked:?}");
    }
    assert!(!folder.path().join("admin-token").exists() && !folder.path().join("tls").exists());
}
