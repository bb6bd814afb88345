//! Every command in the README and the book runs, as it stands, against the real binary.
//!
//! A block of `sh` is commands that succeed. A block of `console` shows what is printed, too: `$ ` begins a command, `> `
//! continues it, and `...` stands for any text of a line, or alone for any lines. Marks: `server` goes on running;
//! `exit=1` ends with that code; `elsewhere` is not run here, and its commands are in the list below.

use crate::page::{Block, Page, pages};
use crate::session::Session;
use crate::shown::is_like;

/// Commands that are not run here, and why not.
const ELSEWHERE: &[(&str, &str)] = &[
    ("cargo ", "builds or measures for minutes; the tests that it names are run by themselves"),
    ("./tests/run", "runs this test"),
    (".ci/run", "runs this test"),
    ("scripts/build-release", "builds twice; tests/cli/build_release.rs runs it with stand-ins for the tools"),
    ("scripts/compare-builds", "builds twice; tests/cli/build_release.rs runs it with stand-ins for the tools"),
    ("mkdir profile", "needs the files of a release"),
    ("tar --extract", "needs the files of a release"),
    ("USE_PROFILE=profile packaging/static", "needs the files of a release"),
    ("sha256sum ", "needs the files of a release"),
    ("gh attestation ", "asks the forge; tests/packages/release.rs holds that it is told"),
    ("packaging/deb", "builds for minutes; tests/packages/debian.rs runs it"),
    ("cscli ", "needs a CrowdSec engine; tests/crowdsec runs one"),
    ("apt-get ", "changes this machine; tests/packages/debian.rs installs the package in a container"),
    ("journalctl ", "needs a service manager"),
    ("docker build ", "takes minutes; tests/packages/image.rs builds the image"),
    ("docker run ", "needs the image; tests/packages/image.rs runs it"),
    ("helm ", "needs a cluster; tests/packages/chart.rs renders the chart"),
    ("docker compose up ", "tests/cli/compose.rs runs what the file says, without fetching images"),
    ("fail2ban-regex ", "needs an installed filter and a log; a test runs the filter on the log of a gateway"),
    ("systemctl ", "needs a service manager; tests/gateway/service_manager.rs stands in for it"),
];

/// What the reader of a page has running, as its text says, beside the sample application at 127.0.0.1:8000. The last
/// one gives way to the first `server` of the page.
const RUNNING: &[(&str, &[&str])] = &[
    ("README.md", &["portcullis demo"]),
    (
        "redis.md",
        &[
            "redis-server --save ''",
            "LISTEN=127.0.0.1:8080 ADMIN=127.0.0.1:9090 APPLICATION=http://127.0.0.1:8000 \
             REDIS_URL=redis://127.0.0.1:6379/0 portcullis run -c config/compose.yaml",
            "LISTEN=127.0.0.1:8081 ADMIN=127.0.0.1:9091 APPLICATION=http://127.0.0.1:8000 \
             REDIS_URL=redis://127.0.0.1:6379/0 portcullis run -c config/compose.yaml",
        ],
    ),
    ("bans-and-lists.md", &["portcullis run -c config/login.yaml"]),
    ("admin-api.md", &["portcullis run -c config/login.yaml"]),
];

/// Languages of blocks, and where else they are tested.
const LANGUAGES: [&str; 7] = ["yaml", "sh", "console", "redis", "http", "json", "text"];

#[test]
fn every_command_does_what_the_page_says() {
    let mut ran = 0;
    let wrong: Vec<String> = pages().iter().flat_map(|page| run(page, &mut ran)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(ran >= 30, "only {ran}");
}

#[test]
fn only_what_cannot_run_here_is_marked_so() {
    let pages = pages();
    let commands = |elsewhere: bool| {
        let blocks = pages.iter().flat_map(|page| page.blocks.iter().map(move |block| (page, block)));
        blocks
            .filter(move |(_, block)| is_run(block) && (block.mark == "elsewhere") == elsewhere)
            .flat_map(|(page, block)| steps(block).into_iter().map(|step| (page.at(block.line), step.command)))
    };
    let listed = |command: &str| ELSEWHERE.iter().any(|(begin, _)| command.starts_with(begin));
    for (place, command) in commands(true) {
        let lines = command.lines().filter(|line| !line.starts_with('#'));
        assert!(lines.clone().all(listed) && lines.count() > 0, "{place}: can `{command}` not be run?");
    }
    for (place, command) in commands(false) {
        assert!(!command.lines().any(listed), "{place}: `{command}` is in the list of what is not run");
    }
    for (begin, _) in ELSEWHERE {
        let lines = commands(true).any(|(_, command)| command.lines().any(|line| line.starts_with(begin)));
        assert!(lines, "no page has `{begin}`: take it off the list");
    }
}

#[test]
fn every_block_names_its_language() {
    for page in pages() {
        for block in &page.blocks {
            assert!(LANGUAGES.contains(&&*block.language), "{}: `{}`", page.at(block.line), block.language);
        }
    }
}

fn is_run(block: &Block) -> bool {
    matches!(&*block.language, "sh" | "console")
}

/// Runs the commands of a page one after the other, and says what went wrong.
fn run(page: &Page, ran: &mut usize) -> Vec<String> {
    let blocks: Vec<&Block> = page.blocks.iter().filter(|block| block.mark != "elsewhere").collect();
    if !blocks.iter().any(|block| is_run(block)) {
        return Vec::new();
    }
    let mut session = Session::start();
    session.background("portcullis demo --application-only 127.0.0.1:8000");
    let running = RUNNING.iter().find(|(name, _)| page.path.ends_with(name)).and_then(|(_, all)| all.split_last());
    if let Some((last, before)) = running {
        for command in before {
            session.background(command);
        }
        session.serve(last);
    }
    let mut wrong = Vec::new();
    for block in blocks {
        if let Some(name) = block.mark.strip_prefix("file=") {
            session.write(name, &block.text);
        }
        for step in if is_run(block) { steps(block) } else { Vec::new() } {
            *ran += 1;
            if let Err(said) = step.take(&block.mark, &mut session) {
                wrong.push(format!("{}: {}\n{said}", page.at(block.line), step.command));
            }
        }
    }
    wrong
}

struct Step {
    command: String,
    /// What is printed, where the page shows it.
    output: Option<String>,
}

impl Step {
    fn take(&self, mark: &str, session: &mut Session) -> Result<(), String> {
        if mark == "server" {
            session.serve(&self.command);
            return Ok(());
        }
        let expected = if mark.is_empty() { "0" } else { mark.strip_prefix("exit=").ok_or("an unknown mark")? };
        let ended = session.run(&self.command);
        if ended.code != expected {
            return Err(format!("exit {}\n{}", ended.code, ended.output));
        }
        match &self.output {
            Some(output) if !is_like(output, &ended.output) => {
                Err(format!("expected:\n{output}\nprinted:\n{}", ended.output))
            }
            _ => Ok(()),
        }
    }
}

/// A block of `sh` is one step: what follows may build on what is before. One of `console` has a step for each prompt.
fn steps(block: &Block) -> Vec<Step> {
    if block.language == "sh" {
        return vec![Step { command: block.text.clone(), output: None }];
    }
    let mut steps: Vec<Step> = Vec::new();
    for line in block.text.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            steps.push(Step { command: command.to_owned(), output: Some(String::new()) });
            continue;
        }
        let last = steps.last_mut().expect("a console begins with a command");
        match line.strip_prefix("> ") {
            Some(more) => last.command.extend(["\n", more]),
            None => last.output.get_or_insert_default().extend([line, "\n"]),
        }
    }
    steps
}
