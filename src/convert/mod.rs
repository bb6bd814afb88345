//! Converts the configurations of other programs.

mod read;
mod rules;

use std::fmt::Write;
use std::path::PathBuf;

use crate::config::diagnostic::Mistakes;
use crate::config::source::SourceRange;
use crate::config::{Diagnostic, Severity};
use crate::convert::read::{documents, read};
use crate::convert::rules::{Domain, DomainRules, EntryValue, Names, Rule, Step, rules};
use crate::words::glob::LITERALS;

// Converts configurations of Envoy's reference rate limit service (envoyproxy/ratelimit).
//
// Writes rules as a configuration.

const HEAD: &str = "\
# Made by `portcullis convert ratelimit`. Each limit meets the descriptors that reached it in the tree: those with exactly its
# entries (`entries: exact`) whose values no more specific branch takes (`except`). As in that service, windows are fixed and
# calls that are denied count too (`count: attempts`), so that each descriptor of a call is counted whatever the others do.
#
# What is different for all of them: a window begins with its first call and not with the minute, hour or day of the clock. The
# order of entries does not matter. A denied call is denied as a whole, and says so for each descriptor; where one is denied
# without a count (`requests_per_unit: 0`), the others are not counted either.
";

const LISTENER: &str = "
listen:
  - {address: 127.0.0.1:9191, serves: decisions}    # Envoy asks here; `from` names other machines that may
";

/// The configuration, after comments that say what it does differently.
fn write(domains: &[DomainRules], differences: &[Diagnostic]) -> String {
    let mut text = HEAD.to_owned();
    if !differences.is_empty() {
        text.push_str("#\n# In these places it decides differently:\n");
    }
    for Diagnostic { file, line, message, help, .. } in differences {
        let (place, help) = (format!("{}:{line}", file.display()), help.as_deref().unwrap_or_default());
        let _ = writeln!(text, "# - {}: {}; {}", commented(&place), commented(message), commented(help));
    }
    text.push_str(LISTENER);
    text.push_str("\nroutes:\n");
    for (position, DomainRules { domain, rules }) in domains.iter().enumerate() {
        if position > 0 {
            text.push('\n');
        }
        let _ = writeln!(text, "  - match: {{domain: {}}}", quoted(domain));
        let (denials, limits): (Vec<&Rule>, Vec<&Rule>) = rules.iter().partition(|rule| rule.is_denial());
        if !denials.is_empty() {
            text.push_str("    deny:\n");
        }
        for rule in denials {
            let _ = writeln!(text, "      - descriptor: {}{}", values(&rule.path, |_| true), exceptions(&rule.path));
            text.push_str("        entries: exact\n");
        }
        if !limits.is_empty() {
            text.push_str("    limits:\n");
        }
        for rule in limits {
            limit(&mut text, rule);
        }
    }
    text
}

fn limit(text: &mut String, rule: &Rule) {
    let Some(rate) = rule.rate else { return };
    let _ = writeln!(text, "      - name: {}    # line {}", quoted(&rule.name), rule.line);
    let apart = rule.path.iter().filter(|step| step.counts_apart);
    let key: Vec<_> = apart.map(|step| quoted(&format!("descriptor.{}", step.key))).collect();
    let _ = writeln!(text, "        key: [{}]", key.join(", "));
    let is_chosen = |step: &Step| step.value != EntryValue::Any;
    if rule.path.iter().any(is_chosen) {
        let _ = writeln!(text, "        descriptor: {}", values(&rule.path, is_chosen));
    }
    let except = exceptions(&rule.path);
    if !except.is_empty() {
        let _ = writeln!(text, "{}", except.trim_start_matches('\n'));
    }
    text.push_str("        entries: exact\n");
    let _ = writeln!(text, "        rate: {rate}");
    text.push_str("        algorithm: fixed-window\n        count: attempts\n");
    if !rule.replaces.is_empty() {
        let names: Vec<_> = rule.replaces.iter().map(|name| quoted(name)).collect();
        let _ = writeln!(text, "        replaces: [{}]", names.join(", "));
    }
    if rule.shadow {
        text.push_str("        shadow: true\n");
    }
}

/// `{"to_number": "*"}`
fn values(path: &[Step], is_named: impl Fn(&Step) -> bool) -> String {
    let named = path.iter().filter(|step| is_named(step));
    let pairs: Vec<_> = named.map(|step| format!("{}: {}", quoted(&step.key), glob(&step.value))).collect();
    format!("{{{}}}", pairs.join(", "))
}

/// A line of its own, after its line break. Empty without exceptions.
fn exceptions(path: &[Step]) -> String {
    let pair = |step: &Step| {
        let globs: Vec<_> = step.except.iter().map(glob).collect();
        format!("{}: [{}]", quoted(&step.key), globs.join(", "))
    };
    let pairs: Vec<_> = path.iter().filter(|step| !step.except.is_empty()).map(pair).collect();
    if pairs.is_empty() { String::new() } else { format!("\n        except: {{{}}}", pairs.join(", ")) }
}

fn glob(value: &EntryValue) -> String {
    match value {
        EntryValue::Any => quoted("*"),
        EntryValue::Exactly(value) => quoted(&literally(value)),
        EntryValue::Beginning(beginning) => quoted(&format!("{}*", literally(beginning))),
    }
}

/// A glob in which no character stands for others.
fn literally(text: &str) -> String {
    let written = |letter| LITERALS.iter().find(|(literal, _)| *literal == letter).map(|(_, written)| *written);
    text.chars().fold(String::new(), |mut glob, letter| {
        match written(letter) {
            Some(written) => glob.push_str(written),
            None => glob.push(letter),
        }
        glob
    })
}

/// A text, in double quotes where YAML needs them: it reads the escapes of JSON. `$${` is a literal `${`.
fn quoted(text: &str) -> String {
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.' | '/');
    let begins_plainly = text.starts_with(|letter: char| letter.is_ascii_alphanumeric());
    if begins_plainly && text.chars().all(is_word) && !text.eq_ignore_ascii_case("null") {
        return text.to_owned();
    }
    serde_json::Value::from(text.replace("${", "$${")).to_string()
}

/// On one line, so that it cannot end its comment.
fn commented(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

// Converts files together.

/// A configuration, and what it does differently from the one that it was made of.
#[derive(Debug)]
pub struct Converted {
    pub yaml: String,
    pub differences: Vec<Diagnostic>,
}

/// Converts several files together. Each has one domain or several. `files` are names and texts.
pub fn convert(files: Vec<(PathBuf, String)>) -> Result<Converted, Vec<Diagnostic>> {
    let mut mistakes = Mistakes::default();
    let mut domains: Vec<Domain> = Vec::new();
    for (name, text) in files {
        for document in documents(&name, &text, &mut mistakes) {
            let Some(domain) = read(&document, &mut mistakes) else { continue };
            match domains.iter_mut().find(|known| known.name == domain.name) {
                Some(known) => known.merge(domain, &mut mistakes),
                None => domains.push(domain),
            }
        }
    }
    if domains.is_empty() && mistakes.is_empty() {
        let help = "name a file with `domain:` and `descriptors:`, or a `ConfigMap` with such files";
        let at = SourceRange { source: 0, line: 1, column: 1, length: 1 };
        mistakes.report(at, "there is no configuration of the service", help);
    }
    if !mistakes.is_empty() {
        return Err(mistakes.into_sorted());
    }
    let mut names = Names::default();
    let rules: Vec<_> = domains.iter().map(|domain| rules(domain, &mut names, &mut mistakes)).collect();
    let differences = mistakes.take_warnings();
    debug_assert!(differences.iter().all(|difference| difference.severity == Severity::Warning));
    Ok(Converted { yaml: write(&rules, &differences), differences })
}
