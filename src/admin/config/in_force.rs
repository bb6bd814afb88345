//! What the admin listener knows of the configuration.

use crate::clock::Timestamp;
use crate::record::advice::Advice;
use crate::record::advice::AdviceKind;

/// The configuration in force, without its secrets.
#[derive(Clone, Debug)]
pub struct LoadedConfig {
    pub yaml: String,
    pub json: String,
    /// The file, `-` for standard input, or `the command line`.
    pub source: String,
    /// By the wall clock.
    pub loaded: Timestamp,
    /// What `check` warns of.
    pub warnings: Vec<Advice>,
}

/// How the last reload ended.
#[derive(Clone, Debug)]
pub struct ReloadReport {
    /// By the wall clock.
    pub at: Timestamp,
    /// Why the configuration of before stayed in force; `None`: the reload succeeded.
    pub refused: Option<String>,
}

impl ReloadReport {
    /// What is to be done about a reload that was refused.
    pub(in crate::admin) fn advice(&self) -> Option<Advice> {
        let refused = self.refused.as_ref()?;
        Some(Advice {
            kind: AdviceKind::ReloadRefused,
            message: format!("the configuration of before stays in force: {refused}"),
            since: self.at,
            limit: None,
            route: None,
            help: "`portcullis check` names each mistake; files are read again when they change".to_owned(),
        })
    }
}
