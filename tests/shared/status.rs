//! What each gateway on one Redis knows of the others.

use serde_json::{Value, json};

use crate::site::{Site, alone, ask_admin, at_rest};
use crate::support::{Gateway, eventually};

fn status(gateway: &Gateway) -> Value {
    ask_admin(gateway, "GET", "/api/v1/status").json()
}

/// The states of all gateways by their ids, as this one tells them.
fn states(gateway: &Gateway) -> Vec<(Value, Value)> {
    let status = status(gateway);
    let gateways = status["gateways"].as_array().expect("a list");
    gateways.iter().map(|gateway| (gateway["id"].clone(), gateway["state"].clone())).collect()
}

#[test]
fn any_gateway_names_all_and_says_which_has_gone() {
    let _at_rest = at_rest();
    let mut site = Site::start(3, "timeout: 1s", "", "limits: [{name: pace, key: header.x-key, rate: 3/hour}]");
    for gateway in &site.gateways {
        eventually("each knows all", || states(gateway).iter().filter(|(_, state)| state == "up").count() == 3);
    }
    // Five requests on three gateways are added up.
    let answers: Vec<u16> = [0, 1, 2, 0, 1].iter().map(|&gateway| site.status(gateway, "/", "raw-value")).collect();
    assert_eq!(answers, [200, 200, 200, 429, 429]);
    for gateway in &site.gateways {
        eventually("the last minute is that of all", || {
            status(gateway)["last_minute"]
                == json!({"passed": 3, "denied": 2, "errors": 0, "signed_in": 0, "failed": 0})
        });
        assert_eq!(status(gateway)["complete"], true);
    }
    // One dies.
    let id = status(&site.gateways[2])["gateways"][0]["id"].clone();
    site.gateways[2].kill();
    eventually("the others say that it has gone", || states(&site.gateways[0]).contains(&(id.clone(), json!("gone"))));
    let known = status(&site.gateways[1]);
    let gone = known["gateways"].as_array().expect("a list").iter().find(|gateway| gateway["id"] == id).expect("named");
    assert_eq!(gone["last_minute"], json!({"passed": 1, "denied": 0, "errors": 0, "signed_in": 0, "failed": 0}));
    assert!(gone["last_seen"].is_string());
    // Another one ends in order.
    let id = status(&site.gateways[1])["gateways"][0]["id"].clone();
    site.gateways[1].signal("TERM");
    site.gateways[1].ended();
    eventually("it has ended", || states(&site.gateways[0]).contains(&(id.clone(), json!("ended"))));
}

#[test]
fn gateways_are_called_by_their_names_and_two_of_one_name_stay_two() {
    let _at_rest = at_rest();
    let mut site = Site::start(0, "timeout: 1s", "", "gateway: {name: \"${GATEWAY}\"}");
    for name in ["eu-1", "eu-2", "eu-2"] {
        site.add(&[("GATEWAY", name)]);
    }
    let named = || {
        let status = status(&site.gateways[0]);
        let gateways = status["gateways"].as_array().expect("a list");
        let text = |gateway: &Value, field: &str| gateway[field].as_str().expect("a text").to_owned();
        gateways.iter().map(|gateway| (text(gateway, "name"), text(gateway, "id"))).collect::<Vec<_>>()
    };
    eventually("all are known", || named().len() == 3);
    let mut named = named();
    assert_eq!(named[0].0, "eu-1");
    assert!(named.iter().all(|(name, id)| id.starts_with(&format!("{name}-"))), "{named:?}");
    named.sort();
    assert_eq!(named.iter().map(|(name, _)| &**name).collect::<Vec<_>>(), ["eu-1", "eu-2", "eu-2"]);
    assert_ne!(named[1].1, named[2].1);
}

#[test]
fn while_redis_is_away_a_gateway_answers_for_itself_and_says_so() {
    let _alone = alone();
    let mut site = Site::start(2, "timeout: 1s", "", "");
    eventually("both are known", || states(&site.gateways[0]).len() == 2);
    site.redis.kill();
    eventually("it answers for itself", || {
        let status = status(&site.gateways[0]);
        status["complete"] == false
            && status["store"]["up"] == false
            && status["gateways"].as_array().map(Vec::len) == Some(1)
    });
    site.redis.restart();
    eventually("both are known again", || {
        states(&site.gateways[0]).iter().filter(|(_, state)| state == "up").count() == 2
    });
}
