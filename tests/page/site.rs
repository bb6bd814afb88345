//! A gateway with a login behind it, and those who attack it.

use serde_json::Value;

use crate::browser::Browser;
use crate::support::{Answer, Gateway, Origin, unused_address};

/// A gateway with a dashboard.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) gateway: Gateway,
    pub(crate) config: String,
    _origin: Origin,
}

const ROUTES: &str = r"
routes:
  - name: login
    match: {path: /login, methods: [POST]}
    outcome: {failure: {status: 401}, success: {status: 204}}
    limits:
      - {name: login-pace, key: client_ip, rate: 3/hour}
      - {name: login-name, key: param.username, rate: 100/hour, count: failures}
limits:
  - {name: everyone, key: client_ip, rate: 10000/hour}
";

impl Site {
    pub(crate) fn start() -> Self {
        Self::with_admin("admin: {address: 127.0.0.1:0}", &[])
    }

    /// On another address.
    pub(crate) fn on(address: &str) -> Self {
        Self::with_admin(&format!("listen: \"{address}\"\nadmin: {{address: 127.0.0.1:0}}"), &[])
    }

    /// With the token `s3cret`.
    pub(crate) fn with_token() -> Self {
        Self::with_admin("admin: {address: 127.0.0.1:0, token_file: token}", &[("token", "s3cret\n")])
    }

    /// On a port that it has again after a restart.
    pub(crate) fn that_restarts(token: &str) -> Self {
        let port = unused_address().port();
        Self::with_admin(&format!("admin: {{address: 127.0.0.1:{port}{token}}}"), &[("token", "s3cret\n")])
    }

    /// Any redirect counts as a success, of which `check` warns.
    pub(crate) fn with_doubtful_outcome() -> Self {
        let routes = ROUTES.replace("success: {status: 204}", "success: {status: 302}");
        Self::with("admin: {address: 127.0.0.1:0}", &[], &routes)
    }

    /// A search that counts programs by what they call themselves.
    pub(crate) fn that_counts_programs() -> Self {
        let search = "  - {name: search, match: /search/*, limits: [{name: by-program, key: header.user-agent, rate: 1/hour}]}\n";
        let routes = ROUTES.replace("limits:\n  - {name: everyone", &format!("{search}limits:\n  - {{name: everyone"));
        Self::with("admin: {address: 127.0.0.1:0}", &[], &routes)
    }

    /// Where everything passes.
    pub(crate) fn without_limits() -> Self {
        Self::with("admin: {address: 127.0.0.1:0}", &[], "")
    }

    fn with_admin(admin: &str, files: &[(&str, &str)]) -> Self {
        Self::with(admin, files, ROUTES)
    }

    fn with(admin: &str, files: &[(&str, &str)], routes: &str) -> Self {
        let origin = Origin::answering(|request| {
            Answer::new(if request.target.starts_with("/login") { 401 } else { 200 }, &[], "")
        });
        let config = format!("{admin}\nupstream: {}\n{routes}", origin.url());
        Self { gateway: Gateway::with_files(&config, files), config, _origin: origin }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.gateway.admin())
    }

    /// The dashboard in a browser, once it shows something.
    #[track_caller]
    pub(crate) fn page(&self) -> Browser {
        let browser = Browser::start();
        browser.open(&self.url());
        browser.says("#updated", "as of");
        browser
    }

    /// Tries to log in, from an address, and returns the status.
    pub(crate) fn log_in(&self, source: &str, name: &str) -> u16 {
        self.gateway.post("/login").from(source).form(&format!("username={name}&password=x")).status()
    }

    pub(crate) fn browse(&self, source: &str, path: &str) -> u16 {
        self.gateway.get(path).from(source).status()
    }

    /// What the API answers. The listener has no token.
    #[track_caller]
    pub(crate) fn api(&self, path: &str) -> Value {
        let response = self.gateway.admin_request("GET", path).send();
        assert_eq!(response.status, 200, "{path}: {}", response.text());
        response.json()
    }
}
