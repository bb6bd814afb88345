//! The path of a request in its canonical form and in its other readings.

use super::canonical::CanonicalPath;
use super::canonical::resolve;
use super::classify::PathForm;
use super::classify::classify;
use super::decode::decode;
use super::readings;
use super::readings::PathReadings;

/// The path of a request.
///
/// Applications disagree whether escapes, separators and parameters are handled before dots are resolved, after that,
/// or never: to one of them `/x\y/../login` is `/login`. Others run the script that a path names, whatever follows it.
/// So a path may have other readings beside its canonical form.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RequestPath<'r> {
    canonical: CanonicalPath<'r>,
    readings: PathReadings,
}

impl<'r> RequestPath<'r> {
    pub fn new(path: &'r str) -> Self {
        match classify(path.as_bytes()) {
            PathForm::Canonical { has_capitals, may_name_scripts } => Self {
                canonical: CanonicalPath::as_sent(path, has_capitals),
                readings: if may_name_scripts { readings::of_canonical(path) } else { PathReadings::default() },
            },
            PathForm::Other => {
                let plain = decode(path);
                let canonical = resolve(&plain);
                let readings = readings::of(path, &plain, &canonical);
                Self { canonical: CanonicalPath::resolved(canonical), readings }
            }
        }
    }

    pub fn canonical(&self) -> &CanonicalPath<'r> {
        &self.canonical
    }

    /// The other paths that an application may read it as; hardly any path has one.
    pub fn readings(&self) -> &[CanonicalPath<'static>] {
        &self.readings.found
    }

    /// Whether the search for readings stopped at its bound: the path may then be read as any path.
    pub fn may_be_any(&self) -> bool {
        self.readings.is_cut_short
    }
}
