//! `portcullis health`.

use serde_json::json;

use crate::support::{Answer, Folder, Gateway, Origin, unused_address};

const CONFIG: &str = "admin: {address: 127.0.0.1:0}\nupstream: http://127.0.0.1:1\n";

#[test]
fn a_gateway_that_runs_is_well() {
    let gateway = Gateway::start(CONFIG);
    let ended = Folder::empty().run(&["health", "--admin", &format!("http://{}", gateway.admin())]);
    assert_eq!((ended.code, &*ended.stdout), (Some(0), "ok\n"), "{ended:?}");
}

#[test]
fn a_program_reads_json_and_a_token_does_no_harm() {
    let gateway = Gateway::with_token(CONFIG);
    let ended = gateway.run(&["health", "--format", "json"]);
    assert_eq!((ended.code, ended.json()), (Some(0), json!({"status": "ok", "readiness": "ready"})));
    let ended = Folder::empty().run(&["health", "--token-file", "none"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("cannot read the token file `none`"), "{ended:?}");
}

#[test]
fn a_gateway_that_refuses_requests_is_alive_and_not_ready() {
    let gateway = Gateway::start(format!(
        "{CONFIG}store: {{redis: {{url: \"redis://127.0.0.1:1/0\"}}, on_failure: deny}}\nlimits: [{{name: pace, key: client_ip, rate: 1/hour}}]\n"
    ));
    assert_eq!(gateway.admin_request("GET", "/readyz").send().status, 503);
    let ended = gateway.run(&["health"]);
    let words = "alive, but not ready for requests: Redis does not answer, and limits deny meanwhile\n";
    assert_eq!((ended.code, &*ended.stdout), (Some(0), words), "{ended:?}");
    assert_eq!(gateway.run(&["health", "--format", "json"]).json()["readiness"], "store away");
}

#[test]
fn the_address_may_come_from_a_configuration() {
    let gateway = Gateway::start(CONFIG);
    let config =
        format!("listen: 127.0.0.1:0\nupstream: http://127.0.0.1:1\nadmin: {{address: {}}}\n", gateway.admin());
    let ended = Folder::with(&config).run(&["health", "-c", "portcullis.yaml"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn where_nobody_answers_the_gateway_is_unreachable() {
    let ended = Folder::empty().run(&["health", "--admin", &format!("http://{}", unused_address())]);
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert!(ended.stderr.contains("could not be reached"), "{ended:?}");
}

#[test]
fn what_answers_anything_else_is_not_well() {
    let check = |answer: Answer, words: &str| {
        let server = Origin::answering(move |_| answer.clone());
        let ended = Folder::empty().run(&["health", "--admin", &server.url()]);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.stderr.contains(words), "{ended:?}");
    };
    check(Answer::new(503, &[], ""), "is not healthy: it answered 503");
    for another in ["", "ok", "<!doctype html>", r#"{"status":"UP"}"#] {
        check(Answer::ok(another), "is not a gateway");
    }
}

#[test]
fn an_address_that_is_none_is_wrong_input() {
    assert_eq!(Folder::empty().run(&["health", "--admin", "https://127.0.0.1:1"]).code, Some(1));
    let ended =
        Folder::with("listen: 127.0.0.1:0\nupstream: http://127.0.0.1:1\n").run(&["health", "-c", "portcullis.yaml"]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("no `admin` section"), "{ended:?}");
}
