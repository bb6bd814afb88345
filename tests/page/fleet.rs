//! Two gateways on one Redis, in front of an application with a login.

use serde_json::Value;

use crate::browser::Browser;
use crate::support::{Answer, Gateway, Origin, RedisServer, Response, eventually};

/// Both gateways have the same configuration.
#[derive(Debug)]
pub(crate) struct Fleet {
    pub(crate) gateways: [Gateway; 2],
    application: Origin,
    _redis: RedisServer,
}

const RULES: &str = r#"
routes:
  - name: login
    match: POST /login
    outcome: {success: {status: 302, header: {location: "/account*"}}, otherwise: failure}
    limits:
      - {name: login-pace, key: client_ip, rate: 8/hour}
      - {name: login-account, key: param.username, rate: 8 per 10 seconds, count: failures}
      - {name: login-spray, key: param.username, distinct: client_ip, rate: 5/hour}
"#;

impl Fleet {
    #[track_caller]
    pub(crate) fn start() -> Self {
        let redis = RedisServer::start();
        let application = Origin::answering(|request| match (&*request.method, request.text().contains("=right")) {
            ("POST", true) => Answer::new(302, &[("Location", "/account")], ""),
            ("POST", false) => Answer::new(401, &[], "wrong"),
            _ => Answer::ok("welcome"),
        });
        let (upstream, store) = (application.url(), redis.url());
        let config = format!(
            "admin: {{address: 127.0.0.1:0}}\nupstream: {upstream}\nstore: {{redis: {{url: \"{store}\", timeout: 10s}}}}\n{RULES}"
        );
        let fleet = Self { gateways: [Gateway::start(&config), Gateway::start(&config)], application, _redis: redis };
        eventually("both know of each other", || {
            [0, 1].iter().all(|gateway| {
                let status = fleet.api(*gateway, "status");
                status["store"]["up"] == true && status["gateways"].as_array().is_some_and(|known| known.len() == 2)
            })
        });
        fleet
    }

    pub(crate) fn url(&self, gateway: usize) -> String {
        format!("http://{}/", self.gateways[gateway].admin())
    }

    /// What the API of a gateway answers. Null: it does not know such a thing.
    #[track_caller]
    pub(crate) fn api(&self, gateway: usize, path: &str) -> Value {
        let answer = self.gateways[gateway].admin_request("GET", &format!("/api/v1/{path}")).send();
        assert!(matches!(answer.status, 200 | 404), "{path}: {}", answer.text());
        if answer.status == 200 { answer.json() } else { Value::Null }
    }

    /// The dashboard of a gateway, once it shows something.
    #[track_caller]
    pub(crate) fn show(&self, gateway: usize, page: &Browser) {
        page.open(&self.url(gateway));
        page.says("#updated", "as of");
    }

    /// Tries to log in.
    pub(crate) fn log_in(&self, gateway: usize, source: &str, name: &str, password: &str) -> Response {
        let fields = format!("username={name}&password={password}");
        self.gateways[gateway].post("/login").from(source).form(&fields).send()
    }

    pub(crate) fn browse(&self, gateway: usize, source: &str) -> u16 {
        self.gateways[gateway].get("/").from(source).status()
    }

    /// How many passwords the application has judged for names that begin so.
    pub(crate) fn judged(&self, name: &str) -> usize {
        let begin = format!("username={name}");
        let requests = self.application.requests();
        requests.iter().filter(|request| request.method == "POST" && request.text().starts_with(&begin)).count()
    }

    /// The requests of a client in the logs of both gateways.
    pub(crate) fn logged(&self, client: &str) -> Vec<Value> {
        let lines = self.gateways.iter().flat_map(Gateway::stdout);
        let lines = lines.filter_map(|line| serde_json::from_str::<Value>(&line).ok());
        lines.filter(|line| line["client"] == client).collect()
    }

    /// The sum of a series in the history of a gateway.
    pub(crate) fn counted(&self, gateway: usize, kind: &str, name: &str, decision: &str) -> usize {
        let history = self.api(gateway, "history");
        let steps = history[kind][name][decision].as_array().cloned().unwrap_or_default();
        steps.iter().map(|count| usize::try_from(count.as_u64().expect("a count")).expect("it fits")).sum()
    }
}
