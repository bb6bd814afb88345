//! The status of one gateway, over the admin API.

use serde_json::{Value, json};

use crate::support::{ApiDescription, Gateway, Origin, eventually};

fn status(gateway: &Gateway) -> Value {
    let response = gateway.admin_request("GET", "/api/v1/status").send();
    assert_eq!(response.status, 200, "{}", response.text());
    ApiDescription::of(gateway).check("GET", "/api/v1/status", &response);
    response.json()
}

#[test]
fn the_status_says_what_runs_and_what_happened_in_the_last_minute() {
    let origin = Origin::start();
    let config = format!(
        "admin: {{address: 127.0.0.1:0}}\nupstreams: {{app: {{servers: ['{}', 'http://127.0.0.1:1'], balance: round_robin}}}}\nupstream: app\n\
         limits: [{{name: pace, key: client_ip, rate: 5/hour}}]\n",
        origin.url()
    );
    let gateway = Gateway::start(&config);
    let before = status(&gateway);
    assert_eq!(before["last_minute"], json!({"passed": 0, "denied": 0, "errors": 0, "signed_in": 0, "failed": 0}));
    assert_eq!(before["configuration"]["source"], "portcullis.yaml");
    assert_eq!(before["configuration"]["last_reload"], Value::Null);
    assert_eq!(before["listeners"], json!([gateway.address().to_string()]));
    assert_eq!(before["store"], json!({"kind": "memory", "up": true}));
    assert!(before["version"].as_str().is_some_and(|version| version.starts_with(env!("CARGO_PKG_VERSION"))));
    let gateways = before["gateways"].as_array().expect("a list");
    assert_eq!((gateways.len(), &gateways[0]["name"], &gateways[0]["state"]), (1, &before["gateway"], &json!("up")));

    for _ in 0..8 {
        gateway.get("/").send();
    }
    let after = status(&gateway);
    // One of the servers refuses connections: what is retried at the other one passes too.
    assert_eq!(
        after["last_minute"],
        json!({"passed": 5, "denied": 3, "errors": 0, "signed_in": 0, "failed": 0}),
        "{after}"
    );
    assert_eq!(after["upstreams"][0]["name"], "app");
    assert_eq!(after["upstreams"][0]["servers"].as_array().map(Vec::len), Some(2));
    eventually("the server that refuses connections is named", || {
        gateway.get("/").send();
        status(&gateway)["upstreams"][0]["servers"][1] == json!({"server": "127.0.0.1:1", "healthy": false})
    });
}

#[test]
fn the_last_reload_is_told_with_its_result() {
    let config = "admin: {address: 127.0.0.1:0}\nupstream: http://127.0.0.1:1\n";
    let gateway = Gateway::start(config);
    let first = status(&gateway)["configuration"].clone();
    gateway.reload(format!("{config}headers: off\n"));
    let second = status(&gateway)["configuration"].clone();
    assert_eq!(second["last_reload"]["result"], "success");
    assert_ne!(first["loaded"], second["loaded"]);
    gateway.reload(format!("{config}headers: wrong\n"));
    let third = status(&gateway)["configuration"].clone();
    assert_eq!((&third["last_reload"]["result"], &third["loaded"]), (&json!("failure"), &second["loaded"]));
    assert!(
        third["last_reload"]["reason"].as_str().is_some_and(|reason| reason.contains("portcullis.yaml:")),
        "{third}"
    );
}
