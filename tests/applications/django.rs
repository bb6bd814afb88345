//! The application: made by `django-admin startproject`, with a database and two accounts.

use std::fs;
use std::net::SocketAddr;

use crate::served::Served;
use crate::support::{Gateway, python};

/// The password of every account.
pub(crate) const PASSWORD: &str = "correct horse";

/// A running Django project, until it is dropped.
#[derive(Debug)]
pub(crate) struct Django(Served);

impl Django {
    /// A new project with the accounts `alice`, `bob` and `mallory`.
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder for the project");
        let run = |arguments: &[&str]| {
            let output = python(folder.path())
                .env("DJANGO_SUPERUSER_PASSWORD", PASSWORD)
                .args(arguments)
                .output()
                .expect("python runs");
            assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        };
        run(&["-m", "django", "startproject", "shop", "."]);
        fs::write(folder.path().join("beside.py"), include_str!("beside.py")).expect("a file in the folder");
        // One that takes no time: it is not Django that is to be slow.
        let settings = folder.path().join("shop/settings.py");
        let text = fs::read_to_string(&settings).expect("the settings of the project");
        let settings_of_ours = "PASSWORD_HASHERS = ['django.contrib.auth.hashers.MD5PasswordHasher']\n\
                                SESSION_SAVE_EVERY_REQUEST = True\n";
        fs::write(settings, text + settings_of_ours).expect("a file in the folder");
        let urls = folder.path().join("shop/urls.py");
        let text = fs::read_to_string(&urls).expect("the addresses of the project");
        fs::write(urls, text + include_str!("django_urls.py")).expect("a file in the folder");
        run(&["manage.py", "migrate", "--verbosity", "0"]);
        for name in ["alice", "bob", "mallory"] {
            run(&["manage.py", "createsuperuser", "--noinput", "--username", name, "--email", "a@example.com"]);
        }
        Self(Served::start(folder, "beside"))
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.0.address()
    }

    /// The gateway with the login recipe in front of it.
    pub(crate) fn guarded(&self) -> Gateway {
        Gateway::start(format!(
            "
upstream: app
upstreams:
  app: {{servers: ['http://{}'], timeouts: {{response: 60s}}}}
routes:
  - name: login
    match: POST /admin/login
    limits:
      - {{name: login-pace, key: client_ip, rate: 5/hour}}
      - {{name: login-account, key: param.username, rate: 3/hour}}
",
            self.address()
        ))
    }

    /// The lines of the application's own log with these words.
    pub(crate) fn logged(&self, words: &str) -> Vec<String> {
        self.0.logged(words)
    }
}
