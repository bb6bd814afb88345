//! How the binary that ships is built and built again: `scripts/build-release` and `scripts/compare-builds`, with stand-ins for
//! the tools that take minutes.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::support::{Ended, Folder, succeed};

#[test]
fn without_the_tools_it_says_so_and_builds_plainly() {
    let machine = Machine::with(&[]);
    let built = machine.build();
    assert_eq!(built.stdout.trim(), machine.shipped());
    let told: Vec<&str> = built.stderr.lines().collect();
    assert!(told[0].contains("no llvm-profdata of LLVM 22") && told[1].contains("no llvm-bolt 19"), "{told:?}");
    assert_eq!(machine.commands(), ["cargo build"]);
    assert_eq!(machine.binary(), "built with:");
}

#[test]
fn tools_of_another_version_are_none() {
    let machine = Machine::with(&[("llvm-profdata", 14), ("llvm-bolt", 16), ("llvm-bolt-15", 15)]);
    assert_eq!(machine.build().stderr.lines().count(), 2);
    assert_eq!(machine.commands(), ["cargo build"]);
}

#[test]
fn what_counts_does_the_jobs_and_is_then_built_for_them() {
    let machine = Machine::with(&[("llvm-profdata", 22)]);
    assert_eq!(machine.build().stderr.lines().count(), 1);
    assert_eq!(machine.commands(), ["cargo build", "cargo test", "llvm-profdata merge", "cargo build"]);
    assert_eq!(machine.binary(), "built with: -Cprofile-use=KEPT/compiler.profdata");
}

#[test]
fn a_finished_binary_is_put_in_another_order_and_does_the_jobs_before_it_ships() {
    let machine = Machine::with(&[("llvm-bolt-15", 15), ("llvm-bolt-19", 19), ("merge-fdata-19", 19)]);
    assert_eq!(machine.build().stderr.lines().count(), 1);
    let bolt = "llvm-bolt-19 KEPT/built/TRIPLE/dist/portcullis";
    let tried = "llvm-bolt-19 KEPT/tiny";
    assert_eq!(machine.commands(), [tried, "cargo build", bolt, "cargo test", "merge-fdata-19", bolt, "cargo test"]);
    assert_eq!(machine.binary(), "built with: -Clink-arg=-Wl,--emit-relocs, in another order");
}

#[test]
fn a_bolt_that_lacks_its_library_is_found_out_before_anything_is_built() {
    let machine = Machine::with(&[("llvm-profdata", 22), ("llvm-bolt", 19), ("merge-fdata", 19)]);
    machine.folder.write("no-library", "");
    let told = machine.build().stderr;
    assert!(told.contains("llvm-bolt fails on a tiny program") && told.lines().count() == 1, "{told}");
    assert_eq!(machine.commands(), [TRIED, "cargo build", "cargo test", "llvm-profdata merge", "cargo build"]);
    assert_eq!(machine.binary(), "built with: -Cprofile-use=KEPT/compiler.profdata");
}

#[test]
fn nothing_is_counted_twice_for_the_same_sources() {
    let machine = Machine::with(&[("llvm-profdata-22", 22), ("llvm-bolt", 22), ("merge-fdata", 22)]);
    assert_eq!(machine.build().stderr, "");
    let first = machine.commands();
    assert_eq!(first.iter().filter(|command| *command == "cargo test").count(), 3);
    let binary = machine.binary();
    machine.build();
    assert_eq!(machine.commands()[first.len()..], [TRIED, "cargo build", "cargo build"]);
    assert_eq!(machine.binary(), binary);
    // Its stand-in puts this file into what it builds.
    machine.folder.write("source", "changed");
    machine.build();
    assert_eq!(machine.commands()[first.len() + 3..], first);
}

#[test]
fn a_binary_that_fails_the_jobs_does_not_ship() {
    let machine = Machine::with(&[("llvm-profdata", 22)]);
    machine.folder.write("fails", "");
    let ended = machine.run("build-release", &[]);
    assert!(ended.code != Some(0) && ended.stdout.is_empty(), "{ended:?}");
    assert!(!Path::new(&machine.shipped()).exists());
}

#[test]
fn what_a_binary_was_built_by_is_saved_and_builds_it_again_without_counting() {
    let first = Machine::with(&[("llvm-profdata", 22), ("llvm-bolt", 22), ("merge-fdata", 22)]);
    let saved = first.path("saved");
    assert_eq!(first.run("build-release", &["--save-profile", &saved]).code, Some(0));
    for name in ["compiler.profdata", "layout.fdata"] {
        assert_eq!(fs::read_to_string(format!("{saved}/{name}")).expect("what was saved"), "counts\n", "{name}");
    }

    let second = Machine::with(&[("llvm-bolt", 22)]);
    let ended = second.run("build-release", &["--use-profile", &saved]);
    assert!(ended.code == Some(0) && ended.stderr.is_empty(), "{ended:?}");
    assert_eq!(second.commands(), ["cargo build", "llvm-bolt KEPT-given/built/TRIPLE/dist/portcullis"]);
    let expected =
        "built with: -Cprofile-use=KEPT-given/compiler.profdata -Clink-arg=-Wl,--emit-relocs, in another order";
    assert_eq!(second.binary(), expected);
    assert_eq!(first.binary(), expected.replace("KEPT-given", "KEPT"));

    // Another profile is another binary, although the sources are the same.
    let built = second.path(&format!("target/guided/{TRIPLE}-given/built"));
    fs::write(format!("{built}/of-before"), "").expect("a folder of ours");
    fs::write(format!("{saved}/compiler.profdata"), "other counts").expect("a folder of ours");
    assert_eq!(second.run("build-release", &["--use-profile", &saved]).code, Some(0));
    assert!(!Path::new(&format!("{built}/of-before")).exists(), "cargo would not build again");
}

#[test]
fn what_lacks_a_part_of_its_profile_is_not_built() {
    let machine = Machine::with(&[]);
    let ended = machine.run("build-release", &["--use-profile", &machine.path("bin")]);
    assert!(ended.code == Some(2) && ended.stderr.contains("compiler.profdata is missing"), "{ended:?}");
    for name in ["compiler.profdata", "layout.fdata"] {
        machine.folder.write(name, "counts");
    }
    let ended = machine.run("build-release", &["--use-profile", &machine.path("")]);
    assert!(ended.code == Some(2) && ended.stderr.contains("no llvm-bolt"), "{ended:?}");
    let ended = machine.run("build-release", &["--plain", "--save-profile", &machine.path("saved")]);
    assert!(ended.code == Some(2) && ended.stderr.contains("none to save"), "{ended:?}");
    let ended = machine.run("build-release", &["--unknown"]);
    assert!(ended.code == Some(2) && ended.stderr.contains("no option --unknown"), "{ended:?}");
    assert!(!Path::new(&machine.path("log")).exists(), "nothing has been run");
}

#[test]
fn a_plain_build_uses_no_tools_although_they_are_there() {
    let machine = Machine::with(&[("llvm-profdata", 22), ("llvm-bolt", 22), ("merge-fdata", 22)]);
    let ended = machine.run("build-release", &["--plain"]);
    assert!(ended.code == Some(0) && ended.stderr.is_empty(), "{ended:?}");
    assert_eq!(machine.commands(), ["cargo build"]);
    assert_eq!(machine.binary(), "built with:");
}

#[test]
fn two_builds_in_two_folders_are_the_same_or_it_is_said() {
    let machine = Machine::with(&[]);
    // Its stand-in then puts the folder that it runs in into what it builds, as a compiler does.
    machine.folder.write("says-where", "");
    let ended = machine.run("compare-builds", &["--plain"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let sums: Vec<&str> = ended.stdout.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(sums.len() == 2 && sums[0] == sums[1], "{ended:?}");
    assert_eq!(machine.commands(), ["cargo build", "cargo build"]);

    machine.folder.write("differs", "");
    let ended = machine.run("compare-builds", &["--plain"]);
    assert!(ended.code == Some(1) && ended.stderr.contains("the two differ"), "{ended:?}");
}

#[test]
fn two_builds_are_also_compared_with_a_binary_of_before() {
    let machine = Machine::with(&[]);
    machine.folder.write("released", "built with:\n");
    let mut compare = machine.command("compare-builds", &["--plain"]);
    let same = ended(compare.env("BINARY", machine.path("released")));
    assert_eq!(same.code, Some(0), "{same:?}");
    machine.folder.write("released", "built with something else\n");
    let other = ended(&mut compare);
    assert!(other.code == Some(1) && other.stderr.contains("differ from"), "{other:?}");
}

/// A folder of programs, and what is built with them.
struct Machine {
    folder: Folder,
}

impl Machine {
    /// With these programs, of these versions of LLVM, beside Rust 1.95 and what every machine has.
    fn with(tools: &[(&str, u32)]) -> Self {
        let machine = Self { folder: Folder::empty() };
        fs::create_dir(machine.path("bin")).expect("an empty folder");
        for program in USUAL {
            let there = succeed(Command::new("sh").args(["-c", &format!("command -v {program}")]));
            std::os::unix::fs::symlink(there, machine.path(&format!("bin/{program}"))).expect("a link in the folder");
        }
        machine.program("rustc", RUSTC);
        machine.program("cargo", CARGO);
        machine.program("taskset", "");
        for (name, version) in tools {
            machine.program(name, &format!("version={version}\n{TOOL}"));
        }
        machine
    }

    fn program(&self, name: &str, script: &str) {
        let path = self.path(&format!("bin/{name}"));
        fs::write(&path, format!("#!/usr/bin/env bash\nset -eu\n{script}")).expect("a file in the folder");
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a file of ours");
    }

    fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.folder.path().display())
    }

    fn command(&self, script: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.path("bin/bash"));
        command.arg(format!("scripts/{script}")).args(arguments).env_clear().env("PATH", self.path("bin"));
        command.env("CARGO_TARGET_DIR", self.path("target")).env("MACHINE", self.folder.path());
        command
    }

    fn run(&self, script: &str, arguments: &[&str]) -> Ended {
        ended(&mut self.command(script, arguments))
    }

    #[track_caller]
    fn build(&self) -> Ended {
        let ended = self.run("build-release", &[]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended
    }

    fn shipped(&self) -> String {
        self.path(&format!("target/{TRIPLE}/dist/portcullis"))
    }

    /// What has been run so far, with the first argument of each.
    fn commands(&self) -> Vec<String> {
        let log = fs::read_to_string(self.path("log")).expect("something has been run");
        self.without_paths(&log).lines().map(|line| line.trim().to_owned()).collect()
    }

    fn binary(&self) -> String {
        let text = fs::read_to_string(self.shipped()).expect("a binary");
        self.without_paths(&text).trim().to_owned()
    }

    fn without_paths(&self, text: &str) -> String {
        text.replace(&self.path(&format!("target/guided/{TRIPLE}")), "KEPT").replace(TRIPLE, "TRIPLE")
    }
}

fn ended(command: &mut Command) -> Ended {
    let output = command.output().expect("the script starts");
    Ended {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).expect("text"),
        stderr: String::from_utf8(output.stderr).expect("text"),
    }
}

/// What is done first with llvm-bolt.
const TRIED: &str = "llvm-bolt KEPT/tiny";

const TRIPLE: &str = "x86_64-unknown-linux-gnu";

const USUAL: [&str; 16] = [
    "bash",
    "cat",
    "cmp",
    "cp",
    "dirname",
    "env",
    "grep",
    "install",
    "mkdir",
    "mktemp",
    "realpath",
    "rm",
    "sed",
    "sha256sum",
    "sort",
    "touch",
];

const RUSTC: &str = r#"
case "$*" in
    '--print host-tuple') echo x86_64-unknown-linux-gnu ;;
    '--print sysroot') echo /nowhere ;;
    --target*) echo tiny > "$5" ;;
    *) echo 'LLVM version: 22.1.2' ;;
esac
"#;

/// Builds a text that says with which flags and from what. The jobs write counts to where such a text says.
const CARGO: &str = r#"
echo "cargo $1" >> "$MACHINE/log"
while [ $# -gt 0 ]; do
    case $1 in
        --target) triple=$2 ;;
        --target-dir) folder=$2 ;;
        --train)
            [ ! -e "$MACHINE/fails" ] || exit 101
            counts=$(sed -n 's/.*\(-Cprofile-generate=\|counts at \)\([^ ]*\).*/\2/p' "$2")
            [ -z "$counts" ] || mkdir -p "$counts"
            [ -z "$counts" ] || echo counts > "$counts/1"
            exit ;;
    esac
    shift
done
mkdir -p "$folder/$triple/dist"
source=$(cat "$MACHINE/source" 2> /dev/null || true)
where=
[ ! -e "$MACHINE/says-where" ] || where=$PWD
flags=
for flag in $RUSTFLAGS; do
    case $flag in
        --remap-path-prefix=*)
            map=${flag#*=}
            case $where in "${map%=*}"*) where=${map##*=}${where#"${map%=*}"} ;; esac ;;
        *) flags="$flags $flag" ;;
    esac
done
[ ! -e "$MACHINE/differs" ] || where=$PWD
echo "built with:$flags${source:+ from $source}${where:+ in $where}" > "$folder/$triple/dist/portcullis"
"#;

/// Any tool of LLVM.
const TOOL: &str = r#"
[ "$1" != --version ] || { echo "Debian LLVM version $version.1.0"; exit; }
case ${0##*/} in
    llvm-profdata*)
        echo "${0##*/} $1" >> "$MACHINE/log"
        cp "$4/1" "$3" ;;
    llvm-bolt*)
        echo "${0##*/} $1" >> "$MACHINE/log"
        [ ! -e "$MACHINE/no-library" ] || exit 1
        text=$(cat "$1")
        case $5 in
            -instrument) echo "counts at $(dirname "${6#*=}")" > "$3" ;;
            -data=*) cat "${5#*=}" > /dev/null; echo "$text, in another order" > "$3" ;;
        esac ;;
    merge-fdata*)
        echo "${0##*/}" >> "$MACHINE/log"
        cat "$@" ;;
esac
"#;
