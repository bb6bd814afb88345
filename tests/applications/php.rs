//! PHP servers from Debian packages, and the database of their applications.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Nginx, Program, eventually};

/// How many requests PHP works on at a time.
const WORKERS: &str = "4";

/// PHP's own server, with this folder as its root.
#[track_caller]
pub(crate) fn built_in(root: &Path) -> Program {
    Program::start(&[], |_, address| serving(root, address))
}

/// The command of that server.
pub(crate) fn serving(root: &Path, address: SocketAddr) -> Command {
    let mut command = Command::new("php");
    command.args(["-S", &address.to_string(), "-t"]).arg(root).env("PHP_CLI_SERVER_WORKERS", WORKERS);
    command
}

/// A MariaDB of its own with an empty database of this name, in a folder; reached by the socket `database.sock` there.
#[track_caller]
pub(crate) fn database(folder: &Path, name: &str) -> Program {
    let user = said_by(Command::new("id").arg("-un"));
    let (data, socket) = (folder.join("data"), folder.join("database.sock"));
    let temporary = folder.join("temporary");
    fs::create_dir(&temporary).expect("a folder in the folder");
    let common = [
        "--no-defaults".to_owned(),
        format!("--datadir={}", data.display()),
        // Two that share one take each other's tables away.
        format!("--tmpdir={}", temporary.display()),
        format!("--user={}", user.trim()),
    ];
    let normal = ["--auth-root-authentication-method=normal", "--skip-test-db"];
    said_by(Command::new("mariadb-install-db").args(&common).args(normal));
    let database = Program::start(&[], |_, address| {
        let mut command = Command::new("mariadbd");
        command.args(&common).arg(format!("--socket={}", socket.display()));
        command.args(["--bind-address=127.0.0.1", &format!("--port={}", address.port()), "--pid-file=mariadb.pid"]);
        // It lives as long as a test: small, and nothing needs to reach a disk.
        command.args(["--innodb-buffer-pool-size=16M", "--innodb-flush-log-at-trx-commit=0", "--skip-log-bin"]);
        command
    });
    let ask = |statement: &str| {
        let mut client = Command::new("mariadb");
        client.arg("--no-defaults").arg("-S").arg(&socket).args(["-u", "root", "-e", statement]);
        client
    };
    // It listens on its port before it does on its socket.
    eventually("the database answers", || ask("SELECT 1").output().is_ok_and(|output| output.status.success()));
    said_by(&mut ask(&format!("CREATE DATABASE {name}")));
    database
}

/// Copies a package's files to where they may be changed.
#[track_caller]
pub(crate) fn copy(from: &str, to: &Path) {
    assert!(fs::exists(from).is_ok_and(|there| there), "{from} is missing: tests/run installs it");
    said_by(Command::new("cp").args(["-aL", from]).arg(to));
}

/// Runs to its end; what it wrote.
#[track_caller]
pub(crate) fn said_by(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}: tests/run installs it"));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{command:?}: {said}{}", String::from_utf8_lossy(&output.stderr));
    said
}

/// The same folder behind nginx and PHP-FPM; scripts are found as Debian's snippet for them has it.
#[track_caller]
pub(crate) fn behind_nginx(root: &Path) -> (Program, Nginx) {
    let fpm = Program::start(&[], |folder, address| {
        let pool = format!(
            "[global]\nerror_log = {}/error.log\n[site]\nlisten = {address}\npm = static\npm.max_children = {WORKERS}\n{}",
            folder.display(),
            if rustix::process::geteuid().is_root() { "user = root\ngroup = root\n" } else { "" },
        );
        fs::write(folder.join("fpm.conf"), pool).expect("a file in the folder");
        let mut command = Command::new(newest("/usr/sbin", "php-fpm"));
        command.args(["--nodaemonize", "--allow-to-run-as-root", "--fpm-config", "fpm.conf"]);
        command
    });
    let site = format!(
        "include /etc/nginx/mime.types;\nserver {{\nlisten LISTEN;\nroot {};\nindex index.php;\n\
         location / {{ try_files $uri $uri/ /index.php?$args; }}\n\
         location ~ \\.php {{ fastcgi_split_path_info ^(.+?\\.php)(/.*)$; try_files $fastcgi_script_name =404; \
         set $path_info $fastcgi_path_info; fastcgi_param PATH_INFO $path_info; \
         include /etc/nginx/fastcgi.conf; fastcgi_pass {}; }}\n}}",
        root.display(),
        fpm.address()
    );
    let nginx = Nginx::start(&site, &[]);
    (fpm, nginx)
}

/// The program of that name whose version is the last: Debian writes it behind the name.
fn newest(folder: &str, name: &str) -> PathBuf {
    let entries = fs::read_dir(folder).expect("a folder of programs").map_while(Result::ok).map(|entry| entry.path());
    let is_one = |path: &PathBuf| path.file_name().is_some_and(|file| file.to_string_lossy().starts_with(name));
    entries.filter(is_one).max().unwrap_or_else(|| panic!("no {name}: tests/run installs it"))
}
