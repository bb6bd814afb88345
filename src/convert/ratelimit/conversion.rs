//! Converts files together.

use std::path::PathBuf;

use super::documents::documents;
use super::read::read;
use super::rules::Names;
use super::rules::rules;
use super::tree::Domain;
use super::write::write;
use crate::config::Diagnostic;
use crate::config::Severity;
use crate::config::mistakes::Mistakes;
use crate::config::source::SourceRange;

/// A configuration, and what it does differently from the one that it was made of.
#[derive(Debug)]
pub struct Converted {
    pub yaml: String,
    pub differences: Vec<Diagnostic>,
}

/// Converts files together, each of which has one domain or several. `files` are names and texts.
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
