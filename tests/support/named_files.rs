//! A folder with the files that configurations and pages name.

use std::fs;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use tempfile::TempDir;

/// A folder with all of them, readable by their owner alone.
pub fn named_files() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, content: &[u8]| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder above")).expect("a folder is made");
        fs::write(&path, content).expect("a file is written");
        fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("its mode is set");
    };
    let copied = [
        ("tls/site.pem", "tests/config/tls/site.pem"),
        ("tls/site.key", "tests/config/tls/site.key"),
        ("tls/clients.pem", "tests/config/tls/clients.pem"),
        ("tls/internal-ca.pem", "config/tls/internal-ca.pem"),
        ("keys/issuer.json", "config/keys/issuer.json"),
        ("keys.json", "config/keys/issuer.json"),
        ("lists/abusers.txt", "config/lists/abusers.txt"),
        ("lists/partner-keys.txt", "config/lists/partner-keys.txt"),
        ("pages/slow-down.html", "config/pages/slow-down.html"),
        ("pages/denied.html", "config/pages/denied.html"),
        ("pages/error.html", "config/pages/error.html"),
    ];
    for (name, from) in copied {
        write(name, &fs::read(from).expect("a file of the repository"));
    }
    write("redis.pw", b"correct horse battery staple\n");
    write("crowdsec.key", b"5b1f0e6f86c64a52a1c7a39c9c1a7e44\n");
    write("crowdsec.pw", b"c04f1c3a6f9b4d3e8a70\n");
    write("admin-token", b"a2f5c17ff7d3cb7b2cb6ab1b31c0b7a1\n");
    folder
}
