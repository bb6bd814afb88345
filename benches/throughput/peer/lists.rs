//! Lists of networks, which no client of the bench is in.

use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Writes the list of 1,000 abusers and that of 10 networks of an office, each as a plain list and as nginx reads it.
pub(super) fn write(folder: &Path) {
    let abusers = (0..1000).map(|number| format!("203.{}.{}.0/24", number / 250, number % 250));
    let office = (0..10).map(|number| format!("10.{number}.0.0/16"));
    write_list(folder, "abusers", abusers);
    write_list(folder, "office", office);
}

fn write_list(folder: &Path, name: &str, networks: impl Iterator<Item = String>) {
    let (mut plain, mut geo) = (String::new(), String::new());
    for network in networks {
        writeln!(plain, "{network}").expect("a text grows");
        writeln!(geo, "{network} 1;").expect("a text grows");
    }
    fs::write(folder.join(name), plain).expect("a file in the folder");
    fs::write(folder.join(format!("{name}.geo")), geo).expect("a file in the folder");
}
