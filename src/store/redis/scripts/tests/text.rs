//! The texts of the scripts, checked by a real Redis and `luacheck`.

use std::fs;
use std::path::Path;
use std::process::Command;

use redis::Value;

use super::server::Keys;
use crate::store::redis::scripts::constants::CounterKind;
use crate::store::redis::scripts::text::{Deciding, Script};
use crate::store::redis::scripts::{constants, text};

/// The scripts for these sets of kinds, and the other scripts.
fn scripts(sets: impl Iterator<Item = usize>) -> Vec<&'static Script> {
    let mut scripts = vec![text::is_known(), text::renewing(), text::banning(), text::sessions(), text::keyring()];
    for kinds in sets {
        for (depends_on_known, has_leases) in [(false, false), (true, false), (false, true), (true, true)] {
            scripts.push(text::deciding(Deciding { kinds, depends_on_known, has_leases }));
        }
        scripts.extend([text::settling(kinds), text::returning_lease(kinds)]);
    }
    scripts
}

#[test]
fn every_script_compiles() {
    let mut keys = Keys::new();
    // Each kind of counter alone, each pair, and all.
    let is_short = |kinds: &usize| kinds.count_ones() <= 2 || kinds.count_ones() as usize == CounterKind::ALL.len();
    for script in scripts((0..text::ALL_KINDS).step_by(2).filter(is_short)) {
        let mut load = redis::cmd("SCRIPT");
        load.arg("LOAD").arg(&script.text);
        assert_eq!(keys.send(&load), Value::BulkString(script.sha.clone().into_bytes()), "{}", script.text);
    }
}

#[test]
fn a_script_defines_what_it_uses_and_nothing_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let all = CounterKind::ALL.iter().fold(0, |kinds, kind| kinds | 1 << *kind as usize);
    for script in scripts(CounterKind::ALL.iter().map(|kind| 1 << *kind as usize).chain([all])) {
        fs::write(folder.path().join(format!("{}.lua", script.sha)), &script.text).expect("the folder can be written");
    }
    // Every script defines all short names.
    let checked = Command::new("luacheck")
        .args(["--no-config", "--no-color", "--quiet", "--std", "lua51", "--no-max-line-length"])
        .args(["--read-globals", "KEYS", "ARGV", "redis", "struct", "--ignore", "211/^u?n?pack$", "211/^pcall$", "--"])
        .arg(folder.path())
        .output()
        .expect("luacheck is installed");
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
}

#[test]
fn luacheck_knows_the_constants() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(".luacheckrc");
    let text = fs::read_to_string(path).expect("the configuration of luacheck is in the repository");
    let (_, list) = text.split_once("local constants = {").expect("they are listed");
    let (list, _) = list.split_once('}').expect("the list ends");
    let mut listed: Vec<&str> = list.split('"').skip(1).step_by(2).collect();
    let mut named: Vec<&str> = constants::CONSTANTS.iter().map(|(name, _)| name.as_str()).collect();
    listed.sort_unstable();
    named.sort_unstable();
    assert_eq!(listed, named);
}

#[test]
fn a_constant_is_a_whole_word() {
    assert_eq!(constants::with_values("TAG_RING + TAG_RINGS - (TAG_WIDE_RING)"), "3 + TAG_RINGS - (4)");
}
