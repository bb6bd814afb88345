//! Real applications, frameworks and a database, asked which names are one account.

use std::collections::BTreeMap;
use std::fs;
use std::fs::File;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::php;
use crate::support::{Program, python};

/// The accounts that somebody takes names for: for each, the places of the names.
pub(super) type Accounts = BTreeMap<String, Vec<usize>>;

/// The columns of `applications.php`, and of `frameworks.py`.
const APPLICATIONS: [&str; 6] = ["wordpress", "wordpress_de", "wordpress_da", "dokuwiki", "roundcube", "mediawiki"];
const FRAMEWORKS: [&str; 5] = ["django", "lower", "upper", "nfkc_casefold", "calibre"];

/// Collations of `MariaDB` in which names are looked up.
const COLLATIONS: [&str; 4] =
    ["utf8mb4_general_ci", "utf8mb4_unicode_ci", "utf8mb4_unicode_520_ci", "utf8mb4_uca1400_ai_ci"];

/// The collation of the table of users of `WordPress`, where cleaned names are looked up.
const OF_WORDPRESS: &str = "utf8mb4_unicode_520_ci";

/// Everybody who is asked.
pub(super) struct Judges {
    folder: TempDir,
    _database: Program,
}

impl Judges {
    pub(super) fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder for the judges");
        let database = php::database(folder.path(), "names");
        let mut wiki = Command::new("php");
        wiki.arg("/usr/share/mediawiki/maintenance/install.php").arg("--confpath").arg(folder.path());
        wiki.args(["--dbtype", "sqlite", "--dbpath"]).arg(folder.path()).args(["--server", "http://app.example"]);
        php::said_by(wiki.args(["--scriptpath", "", "--pass", "correct horse", "wiki", "Owner"]));
        Self { folder, _database: database }
    }

    /// What each takes these names for. The first `known` names are those of accounts.
    pub(super) fn accounts(&self, names: &[String], known: usize) -> BTreeMap<String, Accounts> {
        let lines: String = names.iter().map(|name| encoded(name.as_bytes()) + "\n").collect();
        self.write("names", &lines);
        let php = self.columns(
            Command::new("php")
                .args(["-d", "memory_limit=-1"])
                .arg(here("applications.php"))
                .arg(self.folder.path().join("LocalSettings.php"))
                .arg(self.folder.path().join("canonical")),
        );
        let python = self.columns(python(self.folder.path()).arg(here("frameworks.py")));
        let mut accounts = BTreeMap::new();
        for (columns, read) in [(&APPLICATIONS[..], &php), (&FRAMEWORKS[..], &python)] {
            for (column, judge) in columns.iter().enumerate() {
                let canonical: Vec<&str> = read.iter().map(|row| row[column].as_str()).collect();
                accounts.insert((*judge).to_owned(), equal(&canonical, known));
            }
        }
        let raw: Vec<&str> = lines.lines().collect();
        for collation in COLLATIONS {
            accounts.insert(collation.to_owned(), self.looked_up(&raw, known, collation));
        }
        for (column, judge) in APPLICATIONS.iter().enumerate().filter(|(_, judge)| judge.starts_with("wordpress")) {
            let cleaned: Vec<&str> = php.iter().map(|row| row[column].as_str()).collect();
            accounts.insert((*judge).to_owned(), self.looked_up(&cleaned, known, OF_WORDPRESS));
        }
        accounts
    }

    /// Which of the names, in base64, the database takes for which account.
    fn looked_up(&self, names: &[&str], known: usize, collation: &str) -> Accounts {
        let rows = |names: &[&str]| {
            names.iter().enumerate().map(|(place, name)| format!("{place}\t{name}\n")).collect::<Vec<_>>().concat()
        };
        self.write("sent.tsv", &rows(names));
        self.write("known.tsv", &rows(&names[..known]));
        let load = |table: &str| {
            format!(
                "CREATE OR REPLACE TABLE {table} (place INT PRIMARY KEY, name TEXT COLLATE {collation});\n\
                 LOAD DATA LOCAL INFILE '{table}.tsv' INTO TABLE {table} (place, @name) \
                 SET name = CONVERT(FROM_BASE64(@name) USING utf8mb4);\n"
            )
        };
        let find = "SELECT known.place, sent.place FROM sent JOIN known ON known.name = sent.name WHERE sent.name <> '' ORDER BY 2";
        let statements = format!("SET NAMES utf8mb4;\n{}{}{find};", load("sent"), load("known"));
        let mut client = Command::new("mariadb");
        client.current_dir(self.folder.path()).args([
            "--no-defaults",
            "--local-infile=1",
            "--batch",
            "--skip-column-names",
        ]);
        let found = php::said_by(client.args(["-S", "database.sock", "-u", "root", "names", "-e", &statements]));
        let mut accounts = Accounts::new();
        for line in found.lines() {
            let (account, place) = line.split_once('\t').expect("two columns");
            accounts.entry(account.to_owned()).or_default().push(place.parse().expect("a place"));
        }
        accounts
    }

    /// What a program makes of the file of names: columns of base64.
    fn columns(&self, program: &mut Command) -> Vec<Vec<String>> {
        let names = File::open(self.folder.path().join("names")).expect("the names");
        let said = php::said_by(program.current_dir(self.folder.path()).stdin(names));
        said.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.path().join(name), text).expect("a file in the folder");
    }
}

/// Names that are one account by what is left of them.
fn equal(canonical: &[&str], known: usize) -> Accounts {
    let mut accounts = Accounts::new();
    for (place, name) in canonical.iter().enumerate() {
        if let Some(account) = canonical[..known].iter().position(|known| known == name && !name.is_empty()) {
            accounts.entry(account.to_string()).or_default().push(place);
        }
    }
    accounts
}

fn here(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/applications/names").join(name)
}

fn encoded(bytes: &[u8]) -> String {
    portcullis::words::base64::encode(bytes)
}
