//! What operators are told of the configuration and of reloads.

use crate::admin::LoadedConfig;
use crate::admin::Mistake;
use crate::admin::ReloadRefusal;
use crate::admin::ReloadReply;
use crate::app::changes::Changes;
use crate::app::reload::ReloadError;
use crate::clock;
use crate::clock::Timestamp;
use crate::config::Diagnostic;
use crate::config::Severity;
use crate::config::ShownConfig;
use crate::config::Warnings;
use crate::files::WatchedFile;
use crate::record::advice::Advice;
use crate::record::advice::AdviceKind;

/// A configuration that comes into force now. The first of its files is the configuration itself.
pub(in crate::app) fn loaded_config(shown: ShownConfig, files: &[WatchedFile], warnings: &Warnings) -> LoadedConfig {
    let loaded = clock::wall();
    let source = files.first().map_or_else(|| "the command line".to_owned(), |file| file.path.display().to_string());
    let warnings = warnings.found.iter().map(|warning| advice(warning, loaded)).collect();
    LoadedConfig { yaml: shown.yaml, json: shown.json, source, loaded, warnings }
}

/// A warning of `check`.
fn advice(Diagnostic { file, line, column, message, help, .. }: &Diagnostic, since: Timestamp) -> Advice {
    Advice {
        kind: AdviceKind::Check,
        message: format!("{}:{line}:{column}: {message}", file.display()),
        since,
        limit: None,
        route: None,
        help: help.clone().unwrap_or_default(),
    }
}

/// The reply to an operator.
pub(super) fn reply(result: &Result<Changes, ReloadError>) -> ReloadReply {
    match result {
        Ok(_) => Ok(clock::wall()),
        Err(ReloadError::Mistakes(mistakes)) => Err(ReloadRefusal::Mistakes(mistakes.iter().map(mistake).collect())),
        Err(ReloadError::Start(error)) => Err(ReloadRefusal::Unusable(error.to_string())),
        Err(ReloadError::Panic) => Err(ReloadRefusal::Panic),
    }
}

fn mistake(found: &Diagnostic) -> Mistake {
    Mistake {
        file: found.file.to_string_lossy().into_owned(),
        line: found.line,
        column: found.column,
        severity: match found.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        },
        message: found.message.clone(),
        help: found.help.clone(),
    }
}
