//! `portcullis config` and `portcullis reload` against a running gateway.

use crate::support::{Folder, Gateway, unused_address};

const CONFIG: &str = "\
admin: {address: 127.0.0.1:0, token_file: token}
upstream: http://127.0.0.1:1
store: {redis: {url: 'redis://:hunter2@127.0.0.1:1'}}
limits: [{name: pace, key: client_ip, rate: 2/hour}]
";

#[test]
fn the_configuration_in_force_is_printed_as_yaml_or_json() {
    let gateway = Gateway::with_token(CONFIG);
    let yaml = gateway.run(&["config"]);
    assert_eq!(yaml.code, Some(0), "{yaml:?}");
    assert!(yaml.stdout.contains("rate: 2/hour\n") && !yaml.stdout.contains("hunter2"), "{yaml:?}");
    let json = gateway.run(&["config", "--format", "json"]).json();
    assert_eq!(json["limits"][0]["name"], "pace");
}

#[test]
fn a_reload_says_what_happened() {
    let gateway = Gateway::with_token(CONFIG);
    let done = gateway.run(&["reload"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.stdout.starts_with("reloaded: the configuration on disk is in force since 20"), "{done:?}");
    assert!(gateway.run(&["reload", "--format", "json"]).json()["loaded"].is_string());

    gateway.write_config(format!("{CONFIG}rutes: []\n"));
    let refused = gateway.run(&["reload"]);
    assert_eq!((refused.code, &*refused.stdout), (Some(1), ""), "{refused:?}");
    for said in
        ["error: unknown key `rutes`", "portcullis.yaml:", "did you mean `routes`?", "not reloaded: 1 mistake: "]
    {
        assert!(refused.stderr.contains(said), "{said}: {refused:?}");
    }
    let refused = gateway.run(&["reload", "--format", "json"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert_eq!(refused.json()["mistakes"][0]["message"], "unknown key `rutes`");
}

#[test]
fn a_gateway_that_is_not_there_is_exit_3() {
    let admin = format!("http://{}", unused_address());
    for command in ["config", "reload"] {
        let ended = Folder::empty().run(&[command, "--admin", &admin]);
        assert_eq!(ended.code, Some(3), "{ended:?}");
    }
}
