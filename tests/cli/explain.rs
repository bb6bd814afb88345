//! `portcullis explain`.

use serde_json::json;

use crate::support::{Folder, SigningKey};

const CONFIG: &str = "\
listen: 127.0.0.1:8080
upstream: http://127.0.0.1:8000
client_ip: {trusted_proxies: [10.0.0.0/8]}
lists:
  office: {addresses: [198.51.100.0/24]}
routes:
  - name: login
    match: POST /login
    limits:
      - {name: pace, key: [client_ip, param.username], rate: 20/minute, unless: [office]}
  - name: admin
    match: /admin/*
    only: [office]
";

#[test]
fn the_route_the_limits_and_their_keys_are_named() {
    let ended = Folder::with(CONFIG).run(&["explain", "-d", "username=Alice", "http://example.com//LOGIN/"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for expected in ["127.0.0.1", "login", "pace", "20/minute", "alice"] {
        assert!(ended.stdout.contains(expected), "no `{expected}` in\n{}", ended.stdout);
    }
}

#[test]
fn a_body_means_post_and_a_form_as_it_does_for_curl() {
    let ended = Folder::with(CONFIG).run(&["explain", "--format", "json", "-d", "username=alice", "/login"]);
    let story = ended.json();
    assert_eq!(story["route"], "login");
    assert_eq!(story["limits"][0]["key"][1]["values"], serde_json::json!(["alice"]), "{story}");
}

#[test]
fn without_a_body_the_method_is_get() {
    let story = Folder::with(CONFIG).run(&["explain", "--format", "json", "/login"]).json();
    assert_eq!((&story["method"], &story["route"]), (&"GET".into(), &serde_json::Value::Null), "{story}");
}

#[test]
fn a_field_that_is_sent_too_often_is_answered_as_the_gateway_answers_it() {
    let body = (0..9).map(|number| format!("username=u{number}")).collect::<Vec<_>>().join("&");
    let folder = Folder::with(CONFIG);
    let ended = folder.run(&["explain", "-d", &body, "/login"]);
    let decision = "decision  denied: 400, a field was sent too often for the limit pace to count it\n";
    assert!(ended.stdout.ends_with(decision), "{}", ended.stdout);
    let story = folder.run(&["explain", "--format", "json", "-d", &body, "/login"]).json();
    assert_eq!(story["limits"][0]["outcome"], "too_many_values", "{story}");
    assert!(story["denied"].as_str().expect("a reason").starts_with("400"), "{story}");
    // A member of the list that `unless` names is not counted, so it is not refused.
    let freed = folder.run(&["explain", "--from", "198.51.100.7", "-d", &body, "/login"]).stdout;
    assert!(freed.ends_with("decision  passes\n"), "{freed}");
}

#[test]
fn a_body_is_read_where_there_is_one() {
    let folder = Folder::with(CONFIG);
    let reads_body = |arguments: &[&str]| {
        folder.run(&[&["explain", "--format", "json"], arguments].concat()).json()["reads_body"].clone()
    };
    assert_eq!(reads_body(&["-d", "username=alice", "/login"]), true);
    assert_eq!(reads_body(&["-X", "POST", "/login"]), false);
    assert_eq!(reads_body(&["-d", "username=alice", "/elsewhere"]), false);
}

#[test]
fn the_client_is_found_as_the_gateway_finds_it() {
    let folder = Folder::with(CONFIG);
    let header = "X-Forwarded-For: 203.0.113.9";
    let trusted = folder.run(&["explain", "--format", "json", "--from", "10.0.0.5", "-H", header, "/"]).json();
    assert_eq!(trusted["client"], "203.0.113.9");
    let untrusted = folder.run(&["explain", "--format", "json", "--from", "192.0.2.1", "-H", header, "/"]).json();
    assert_eq!(untrusted["client"], "192.0.2.1");
}

#[test]
fn the_rules_read_the_headers_that_the_gateway_lets_them_read() {
    let values = |then: &str, headers: &[&str]| {
        let key = "[header.connection, header.x-foo, cookie.portcullis_pow]";
        let config = format!(
            "listen: 127.0.0.1:8080\nupstream: http://127.0.0.1:8000\n\
             limits: [{{name: a, key: {key}, rate: 1/minute, then: {then}}}]\n"
        );
        let headers = headers.iter().flat_map(|header| ["-H", header]);
        let arguments: Vec<_> = ["explain", "--format", "json"].into_iter().chain(headers).chain(["/"]).collect();
        let story = Folder::with(&config).run(&arguments).json();
        [0, 1, 2].map(|part| story["limits"][0]["key"][part]["values"][0].as_str().expect("a value").to_owned())
    };
    let headers = ["Connection: x-foo", "X-Foo: bar", "Cookie: portcullis_pow=a"];
    // A client cannot remove a header that the rules read by naming it in `Connection`.
    assert_eq!(values("deny", &headers), ["", "bar", "a"]);
    assert_eq!(values("{challenge: pow}", &headers), ["", "bar", ""]);
}

#[test]
fn why_a_request_is_denied_is_said() {
    let story =
        Folder::with(CONFIG).run(&["explain", "--format", "json", "--from", "192.0.2.1", "/admin/users"]).json();
    assert!(story["denied"].is_string(), "{story}");
    let story = Folder::with(CONFIG).run(&["explain", "--format", "json", "--from", "198.51.100.1", "/admin"]).json();
    assert!(story["denied"].is_null(), "{story}");
}

#[test]
fn what_the_gateway_would_refuse_is_refused() {
    let ended = Folder::with(CONFIG).run(&["explain", "-H", "Host: a,b", "/"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("400"), "{ended:?}");
}

#[test]
fn a_target_may_have_what_a_client_may_send_and_no_url_has() {
    let folder = Folder::with(CONFIG);
    for (url, path) in [
        ("/admin/`a`", "/admin/`a`"),
        ("/admin/<b>?q=<i>", "/admin/<b>"),
        ("http://example.com/admin/{a|b}", "/admin/{a|b}"),
        ("http://example.com?q=^", "/"),
        ("example.com", "/"),
    ] {
        let story = folder.run(&["explain", "--format", "json", url]).json();
        assert_eq!(story["path"], path, "{url}: {story}");
        let route = if path == "/" { json!(null) } else { json!("admin") };
        assert_eq!(story["route"], route, "{url}: {story}");
    }
    for url in ["http://", "http://a b/", ""] {
        let ended = folder.run(&["explain", url]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{url}");
        assert!(ended.stderr.contains("is not a URL"), "{url}: {ended:?}");
    }
}

#[test]
fn a_bad_configuration_is_told_to_stderr() {
    let ended = Folder::with("listen: nowhere\n").run(&["explain", "/"]);
    assert_eq!((ended.code, &*ended.stdout), (Some(1), ""));
    assert!(ended.stderr.contains("portcullis.yaml:1:9"), "{ended:?}");
}

const DOMAIN: &str = "\
listen: {address: 127.0.0.1:9191, serves: decisions}
routes:
  - name: shop
    match: {domain: shop}
    deny: [{descriptor: {user: mallory}}]
    limits:
      - {name: user, key: descriptor.user, except: {user: root}, rate: 10/minute}
      - {name: gold, key: descriptor.user, descriptor: {tier: \"gold*\"}, replaces: user, rate: 99/minute}
      - {name: exact, key: descriptor.user, entries: exact, rate: 5/minute}
";

#[test]
fn a_descriptor_is_explained_with_the_limits_that_it_meets_and_why_not_the_others() {
    let folder = Folder::with(DOMAIN);
    let explain = |words: &[&str]| {
        let ended = folder.run(&[&["explain", "--as", "rls"], words].concat());
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended.stdout
    };
    let told = explain(&["shop", "user=alice", "tier=gold-1"]);
    for expected in [
        "domain    \"shop\"\n",
        "entry     \"tier\" = \"gold-1\"\n",
        "route     shop\n",
        "limit     user: 10/minute, sliding-window-log: replaced by gold\n",
        "limit     gold: 99/minute, sliding-window-log\n  key     descriptor.user = \"alice\"\n",
        "there is another entry, \"tier\", and `entries: exact` allows none",
        "decision  as the counters stand",
    ] {
        assert!(told.contains(expected), "no `{expected}` in\n{told}");
    }
    assert!(explain(&["shop", "user=root"]).contains("the entry \"user\" is root, which `except` frees"));
    for empty in ["user", "user="] {
        let told = explain(&["shop", empty]);
        assert!(told.contains("  key     descriptor.user = (empty)\n"), "{told}");
        assert!(told.contains("decision  as the counters stand"), "{told}");
    }
    assert!(explain(&["shop", "path"]).contains("there is no entry \"user\""));
    assert!(explain(&["nowhere", "user=alice"]).contains("route     none, the domain is not limited"));
    let story = folder.run(&["explain", "--as", "rls", "--format", "json", "shop", "user=alice"]).json();
    assert_eq!(story["limits"][0]["outcome"], serde_json::json!({"counted": 1}), "{story}");
    assert_eq!(story["limits"][1]["outcome"]["unmet"], "there is no entry \"tier\"", "{story}");
}

#[test]
fn where_a_descriptor_is_denied_or_refused_no_limit_is_checked() {
    let folder = Folder::with(DOMAIN);
    let explain = |words: &[&str]| folder.run(&[&["explain", "--as", "rls", "shop"], words].concat()).stdout;
    let denied = explain(&["user=mallory"]);
    for expected in [
        "limit     user: 10/minute, sliding-window-log: not checked\n",
        "limit     gold: 99/minute, sliding-window-log: not met, there is no entry \"tier\"\n",
        "limit     exact: 5/minute, sliding-window-log: not checked\n",
        "decision  denied: the route denies such descriptors\n",
    ] {
        assert!(denied.contains(expected), "no `{expected}` in\n{denied}");
    }
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i"].map(|name| format!("user={name}"));
    let words: Vec<&str> = names.iter().map(|name| &**name).chain(["tier=gold"]).collect();
    let refused = explain(&words);
    let reason = "decision  none, the call is refused: an entry of a descriptor comes with more than 8 values\n";
    assert!(refused.contains(reason), "{refused}");
    let crowd: Vec<String> = (0..65).map(|number| format!("k{number}=v")).collect();
    let story = folder
        .run(
            &[
                &["explain", "--as", "rls", "--format", "json", "shop", "user=a"],
                &*crowd.iter().map(|entry| &**entry).collect::<Vec<_>>(),
            ]
            .concat(),
        )
        .json();
    assert_eq!(story["refused"], "a descriptor has 66 entries, at most 64 are read", "{story}");
    assert_eq!(story["limits"][0]["outcome"], "not_asked", "{story}");
}

#[test]
fn a_descriptor_is_no_request_and_a_request_no_descriptor() {
    let folder = Folder::with(DOMAIN);
    for words in [
        &["--as", "rls", "-X", "POST", "shop"][..],
        &["--as", "rls", "-d", "user=alice", "shop"],
        &["/login", "user=alice"],
        &["--as", "forward-auth", "/login", "user=alice"],
        &["--as", "smtp", "/"],
        // Whatever the configuration is.
        &["-c", "missing.yaml", "/login", "user=alice"],
    ] {
        let ended = folder.run(&[&["explain"], words].concat());
        assert_eq!((ended.code, &*ended.stdout), (Some(2), ""), "{ended:?}");
        assert!(ended.stderr.contains("--help"), "{ended:?}");
    }
}

#[test]
fn what_a_proxy_that_asks_does_not_show_is_said() {
    let text = "\
listen: {address: 127.0.0.1:9191, serves: decisions}
routes:
  - name: login
    match: POST /login
    outcome: {failure: {status: 401}}
    known_clients: {of: param.username}
    limits:
      - {name: failures, key: client_ip, rate: 10/minute, count: failures}
      - {name: flight, key: client_ip, concurrent: 2}
";
    let folder = Folder::with(text);
    let arguments =
        ["explain", "--as", "forward-auth", "-X", "POST", "--from", "203.0.113.9", "http://example.com/login"];
    let ended = folder.run(&arguments);
    for expected in [
        "asked by  a proxy (forward auth), which forwards the request itself\n",
        "client    203.0.113.9\n",
        "failures count, its answer is not seen: every request keeps its place\n",
        "flight: 2 in flight: skipped, the end of the request is not seen\n",
        "known     nobody becomes known here: no success is seen\n",
        "body      not sent along by the proxy: fields in it count as empty, beside those of the query\n",
    ] {
        assert!(ended.stdout.contains(expected), "no `{expected}` in\n{}", ended.stdout);
    }
    assert!(!ended.stdout.contains("upstream"), "{}", ended.stdout);
    let story = folder.run(&["explain", "--format", "json", "-X", "POST", "/login"]).json();
    assert_eq!((&story["asker"], &story["limits"][0]["keeps_slot"]), (&"client".into(), &false.into()), "{story}");
}

#[test]
fn what_a_proxy_that_asks_is_answered_with_400_is_said() {
    let folder = Folder::with(CONFIG);
    let asked = |words: &[&str]| folder.run(&[&["explain", "--as", "forward-auth", "-X", "POST"], words].concat());
    for (words, reason) in [
        (&["/login#x"][..], "the request target is malformed"),
        (&["-H", "X-Original-URI: /q", "/login"], "X-Original-URI describes the request a second time"),
    ] {
        let ended = asked(words);
        let expected = format!("portcullis: the gateway answers 400 to this request: {reason}\n");
        assert_eq!((ended.code, &*ended.stdout, &*ended.stderr), (Some(1), "", &*expected), "{words:?}");
    }
    let story = asked(&["--format", "json", "-H", "X-Forwarded-Uri: /other", "http://a.example/login?b=c"]).json();
    assert_eq!(story["route"], "login", "{story}");
    // A client sends no fragment to the gateway itself.
    assert_eq!(folder.run(&["explain", "-X", "POST", "/login#x"]).code, Some(0));
}

#[test]
fn a_body_that_a_proxy_keeps_may_have_any_field() {
    let text = "\
listen: {address: 127.0.0.1:9191, serves: decisions}
routes:
  - name: login
    match: POST /login
    limits: [{name: account, key: param.username, rate: 10/minute}]
";
    let folder = Folder::with(text);
    let explained = |more: &[&str]| {
        let arguments = ["explain", "--format", "json", "-X", "POST", "http://example.com/login?username=bob"];
        folder.run(&[&arguments[..], more].concat()).json()
    };
    let unseen = explained(&["--as", "forward-auth"]);
    assert_eq!(unseen["limits"][0]["key"][0]["values"], json!(["bob", ""]), "{unseen}");
    assert_eq!(unseen["misses_body"], true, "{unseen}");
    for shown in [&["--as", "forward-auth", "-d", "a=b"][..], &[]] {
        let story = explained(shown);
        assert_eq!(story["limits"][0]["key"][0]["values"], json!(["bob"]), "{story}");
        assert_eq!(story["misses_body"], false, "{story}");
    }
}

#[test]
fn a_token_is_verified_and_said_to_be_or_why_not() {
    let (key, other) = (SigningKey::ed25519(), SigningKey::ed25519());
    let config = |keys: &str| {
        format!(
            "listen: 127.0.0.1:8080\nupstream: http://127.0.0.1:8000\njwt: {{{keys}, issuer: me}}\n\
             limits:\n  - {{name: person, key: {{first: [jwt.sub, client_ip]}}, rate: 20/minute}}\n"
        )
    };
    let folder = Folder::with(&config("jwks_file: keys.json"));
    folder.write("keys.json", &json!({ "keys": [key.jwk(json!({}))] }).to_string());
    let explained = |folder: &Folder, key: &SigningKey, claims| {
        let token = key.token(&json!({ "alg": "EdDSA" }), &claims);
        let ended = folder.run(&["explain", "-H", &format!("Authorization: Bearer {token}"), "/"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(!ended.stdout.contains(&token), "a token is shown: {}", ended.stdout);
        ended.stdout
    };
    let told = explained(&folder, &key, json!({ "iss": "me", "sub": "alice" }));
    assert!(told.contains("token     bearer: verified\n") && told.contains("alice"), "{told}");
    for (key, claims, reason) in [
        (&key, json!({ "iss": "you", "sub": "alice" }), "its `iss` is not the `issuer` of the configuration"),
        (&key, json!({ "iss": "me", "sub": "alice", "exp": 1 }), "it has expired"),
        (&other, json!({ "iss": "me", "sub": "alice" }), "its signature is not by a key in the set"),
    ] {
        let told = explained(&folder, key, claims);
        assert!(told.contains(&format!("token     bearer: not verified, {reason}")), "{told}");
        assert!(!told.contains("alice") && told.contains("127.0.0.1"), "{told}");
    }
    // No issuer is asked to explain a request.
    let folder = Folder::with(&config("jwks_url: \"http://127.0.0.1:9/keys\""));
    let told = explained(&folder, &key, json!({ "iss": "me", "sub": "alice" }));
    assert!(told.contains("its keys are not fetched from http://127.0.0.1:9/keys to explain a request"), "{told}");
}

#[test]
fn a_login_below_another_prefix_is_told_with_what_to_write() {
    let printed = |arguments: &[&str]| Folder::empty().run(&[&["recipe", "wordpress"], arguments].concat()).stdout;
    let explain = |config: &str, target: &str| Folder::with(config).run(&["explain", "-X", "POST", target]).stdout;
    let at_root = printed(&[]);
    let said = explain(&at_root, "/blog/wp-login.php");
    for expected in [
        "note      the route wp-login would match this under /: ",
        "write `match: POST /blog/wp-login.php`",
        "`portcullis recipe wordpress --prefix /blog`",
    ] {
        assert!(said.contains(expected), "no `{expected}` in\n{said}");
    }
    let below = printed(&["--prefix", "/blog"]);
    let said = explain(&below, "/wp-login.php");
    for expected in
        ["wp-login would match this under /blog: ", "`match: POST /wp-login.php`", "`portcullis recipe wordpress`"]
    {
        assert!(said.contains(expected), "no `{expected}` in\n{said}");
    }
    // A route of any kind, and the login of a recipe that no route is for.
    let said = explain(CONFIG, "/shop/login");
    assert!(said.contains("the route login would match this under /: ") && !said.contains("recipe"), "{said}");
    let said = explain(CONFIG, "/wp-login.php");
    assert!(said.contains("no route is for it: `portcullis recipe wordpress` prints"), "{said}");
    for (config, target) in [
        (&*at_root, "/wp-login.php"),
        (&below, "/blog/wp-login.php"),
        (CONFIG, "/login"),
        (CONFIG, "/about"),
        (CONFIG, "/"),
    ] {
        let said = explain(config, target);
        assert!(!said.contains("\nnote "), "{target}: {said}");
    }
    let story = Folder::with(&at_root).run(&["explain", "--format", "json", "-X", "POST", "/blog/wp-login.php"]).json();
    assert_eq!((&story["elsewhere"]["route"], &story["elsewhere"]["matches_below"]), (&"wp-login".into(), &"/".into()));
}
