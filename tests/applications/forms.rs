//! Logins that report success and failure in other ways.

use std::fs;

use crate::served::Served;

/// The password of every name.
pub(crate) const PASSWORD: &str = "correct horse";

/// Starts the application of `forms.py`.
pub(crate) fn forms() -> Served {
    let folder = tempfile::tempdir().expect("a folder for the application");
    fs::write(folder.path().join("forms.py"), include_str!("forms.py")).expect("a file in the folder");
    Served::start(folder, "forms")
}
