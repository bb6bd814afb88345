//! What operators are told of the configuration and of reloads.

use crate::admin::LoadedConfig;
use crate::admin::Mistake;
use crate::admin::ReloadRefusal;
use crate::admin::ReloadReply;
use crate::app::changes::Changes;
use crate::app::known_warnings::KnownWarnings;
use crate::app::reload::ReloadError;
use crate::clock;
use crate::config::Diagnostic;
use crate::config::Severity;
use crate::config::ShownConfig;
use crate::files::WatchedFile;

/// A configuration that comes into force now. The first of its files is the configuration itself.
pub(in crate::app) fn loaded_config(
    shown: ShownConfig,
    files: &[WatchedFile],
    warnings: &KnownWarnings,
) -> LoadedConfig {
    let loaded = clock::wall();
    let source = files.first().map_or_else(|| "the command line".to_owned(), |file| file.path.display().to_string());
    LoadedConfig { yaml: shown.yaml, json: shown.json, source, loaded, warnings: warnings.advice() }
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
