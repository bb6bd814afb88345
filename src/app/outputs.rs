//! What a start would find that cannot be written, found without starting.

use crate::config::Diagnostic;
use crate::config::OutputFile;
use crate::config::Settings;
use crate::config::Severity;
use crate::files;
use crate::record::audit::AuditError;
use crate::record::audit::AuditTrail;
use crate::store::snapshot;

/// Every file that the gateway would write and cannot: an audit trail with which it does not start, and a snapshot without
/// which it does. Nothing is opened or created.
pub fn check_outputs(settings: &Settings) -> Vec<Diagnostic> {
    let audit = AuditTrail::check(&settings.audit);
    let mut found: Vec<_> = audit.iter().map(|error| audit_mistake(&settings.outputs, error)).collect();
    let snapshot = settings.store.redis.is_none().then_some(settings.store.memory.snapshot.as_ref()).flatten();
    if let Some((path, error)) = snapshot.and_then(|path| Some((path, snapshot::check_writable(path).err()?))) {
        let message = format!(
            "cannot write the snapshot to {}: {}: a restart would lose bans, known clients and sessions",
            path.display(),
            files::describe(&error)
        );
        let mistake = OutputFile::unwritable(&settings.outputs, path, &message);
        found.push(Diagnostic { severity: Severity::Warning, ..mistake });
    }
    found.sort();
    found
}

/// The mistake of a place of the audit trail that cannot be opened, at the line that names it.
pub(super) fn audit_mistake(outputs: &[OutputFile], error: &AuditError) -> Diagnostic {
    OutputFile::unwritable(outputs, &error.path, &error.to_string())
}
