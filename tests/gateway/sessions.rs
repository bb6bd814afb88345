//! The dashboard's files and its sessions.

use crate::support::{ApiDescription, Gateway, Origin, Request, Response, eventually};

fn with_token(origin: &Origin) -> Gateway {
    let config = format!("admin: {{address: 127.0.0.1:0, token_file: token}}\nupstream: {}\n", origin.url());
    Gateway::with_token(config)
}

fn ask(gateway: &Gateway, method: &str, path: &str) -> Request {
    Request::new(gateway.admin(), method, path).host(&gateway.admin().to_string())
}

fn offer(gateway: &Gateway, token: &str) -> Response {
    ask(gateway, "POST", "/session").json(&format!(r#"{{"token": "{token}"}}"#)).send()
}

/// The cookie and the token against cross-site requests of a session that was just opened.
#[track_caller]
fn opened(gateway: &Gateway) -> (String, String) {
    let response = offer(gateway, "s3cret");
    assert_eq!(response.status, 201, "{}", response.text());
    let cookie = response.header("set-cookie").expect("a cookie").to_owned();
    let csrf_token = response.json()["csrf_token"].as_str().expect("a token").to_owned();
    (cookie.split(';').next().expect("a pair").to_owned(), csrf_token)
}

const BAN: &str = r#"{"address": "198.51.100.7", "for": "1h"}"#;

#[test]
fn the_files_of_the_page_are_fresh_typed_and_confined() {
    let origin = Origin::start();
    let gateway = with_token(&origin);
    for (path, content_type) in [
        ("/", "text/html; charset=utf-8"),
        ("/page/main.js", "text/javascript; charset=utf-8"),
        ("/page/style.css", "text/css; charset=utf-8"),
        ("/page/icon.svg", "image/svg+xml"),
    ] {
        let response = ask(&gateway, "GET", path).send();
        let header = |name: &str| response.header(name).unwrap_or_default().to_owned();
        assert_eq!((response.status, header("content-type")), (200, content_type.to_owned()), "{path}");
        assert_eq!(header("x-content-type-options"), "nosniff");
        assert_eq!(header("referrer-policy"), "no-referrer");
        assert_eq!(header("cache-control"), "no-cache");
        let policy = header("content-security-policy");
        for part in ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"] {
            assert!(policy.contains(part), "{path}: {policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        let again = ask(&gateway, "GET", path).header("If-None-Match", &header("etag")).send();
        assert_eq!((again.status, again.body.len()), (304, 0), "{path}");
        // A link on another site may lead to the form for the token.
        assert_eq!(ask(&gateway, "GET", path).header("Sec-Fetch-Site", "cross-site").status(), 200);
    }
}

#[test]
fn a_session_stands_for_the_token_and_its_changes_carry_their_own() {
    let origin = Origin::start();
    let gateway = with_token(&origin);
    let set = offer(&gateway, "s3cret").header("set-cookie").expect("a cookie").to_owned();
    assert!(set.ends_with("; Path=/; HttpOnly; SameSite=Strict"), "{set}");
    let over_tls = ask(&gateway, "POST", "/session").header("Origin", &format!("https://{}", gateway.admin()));
    let set = over_tls.json(r#"{"token": "s3cret"}"#).send().header("set-cookie").expect("a cookie").to_owned();
    assert!(set.starts_with("__Host-portcullis_session_") && set.ends_with("; Secure"), "{set}");

    let (cookie, csrf_token) = opened(&gateway);
    let with = |method: &str, path: &str| ask(&gateway, method, path).header("Cookie", &cookie);
    assert_eq!(with("GET", "/api/v1/bans").status(), 200);
    let session = with("GET", "/session").send().json();
    assert_eq!((&session["open"], &session["csrf_token"]), (&true.into(), &csrf_token.as_str().into()));

    let other = opened(&gateway).1;
    for wrong in [None, Some(""), Some("x"), Some(&*other)] {
        let request = with("POST", "/api/v1/bans");
        let request = wrong.map_or_else(|| with("POST", "/api/v1/bans"), |wrong| request.header("X-CSRF-Token", wrong));
        assert_eq!(request.json(BAN).status(), 403, "{wrong:?}");
        assert_eq!(with("DELETE", "/session").header("X-CSRF-Token", wrong.unwrap_or_default()).status(), 403);
    }
    for (name, value) in [("Origin", "https://evil.example"), ("Origin", "null"), ("Sec-Fetch-Site", "same-site")] {
        for method in ["GET", "POST"] {
            let request = with(method, "/api/v1/bans").header("X-CSRF-Token", &csrf_token).header(name, value);
            assert_eq!(request.json(BAN).status(), 403, "{method} {name} {value}");
        }
        assert_eq!(with("GET", "/session").header(name, value).status(), 403);
    }
    let request = with("POST", "/api/v1/bans").header("X-CSRF-Token", &csrf_token);
    assert_eq!(request.json(BAN).status(), 201);
    // A token in the request decides alone.
    assert_eq!(with("GET", "/api/v1/bans").header("Authorization", "Bearer wrong").status(), 401);

    let ended = with("DELETE", "/session").header("X-CSRF-Token", &csrf_token).send();
    assert_eq!(ended.status, 204);
    assert!(ended.header("set-cookie").expect("a cookie").contains("Max-Age=0"));
    assert_eq!(with("GET", "/api/v1/bans").status(), 401);
}

#[test]
fn a_session_opens_the_api_and_nothing_else_does() {
    let origin = Origin::start();
    let gateway = with_token(&origin);
    let description = {
        let open = Gateway::start(format!("admin: {{address: 127.0.0.1:0}}\nupstream: {}\n", origin.url()));
        ApiDescription::of(&open)
    };
    let (cookie, _) = opened(&gateway);
    for (method, path, is_public) in description.operations() {
        let ask = || ask(&gateway, &method, &path.replace("{name}", "none").replace("{id}", "none"));
        if is_public {
            continue;
        }
        assert_eq!(ask().header("Cookie", "portcullis_session=x").status(), 401, "{method} {path}");
        let foreign = ask().header("Cookie", &cookie).header("Sec-Fetch-Site", "cross-site").send();
        assert_eq!(foreign.status, 403, "{method} {path}");
        description.check(&method, &path, &foreign);
        if method != "GET" {
            assert_eq!(ask().header("Cookie", &cookie).status(), 403, "{method} {path} without its token");
        }
    }
}

#[test]
fn another_token_ends_all_sessions() {
    let origin = Origin::start();
    let gateway = with_token(&origin);
    let (cookie, _) = opened(&gateway);
    let is_open = || ask(&gateway, "GET", "/api/v1/bans").header("Cookie", &cookie).status() == 200;
    assert!(is_open());
    gateway.write("token", "another\n");
    eventually("the session has ended", || !is_open());
}

#[test]
fn an_address_may_try_few_tokens_and_none_is_repeated() {
    let origin = Origin::start();
    let gateway = with_token(&origin);
    assert_eq!(ask(&gateway, "POST", "/session").json("{").status(), 400);
    assert_eq!(ask(&gateway, "POST", "/session").json(r#"{"token": "s3cret", "more": 1}"#).status(), 400);
    // The same one again is no further guess.
    for guess in (0..9).map(|number| format!("hunter{}", number / 2)) {
        let refused = offer(&gateway, &guess);
        assert_eq!(refused.status, 401);
        assert!(!refused.text().contains("hunter") && refused.header("set-cookie").is_none());
    }
    let refused = offer(&gateway, "s3cret");
    assert_eq!(refused.status, 429);
    let wait: u64 = refused.header("retry-after").expect("a wait").parse().expect("seconds");
    assert!((1..=60).contains(&wait), "{wait}");
    let other = ask(&gateway, "POST", "/session").from("127.0.0.9").json(r#"{"token": "s3cret"}"#);
    assert_eq!(other.status(), 201);
    let bearer = ask(&gateway, "GET", "/api/v1/bans").header("Authorization", "Bearer s3cret");
    assert_eq!(bearer.status(), 200);
    assert!(!gateway.stderr().join("\n").contains("hunter"));
}

#[test]
fn no_application_sees_the_cookie_of_a_session_or_can_use_it() {
    let origin = Origin::start();
    let gateway = with_token(&origin);
    let (cookie, _) = opened(&gateway);
    let (_, value) = cookie.split_once('=').expect("a pair");
    let sent = format!("a=1; {cookie}; __Host-portcullis_session={value}; PORTCULLIS_SESSION=x; b=2");
    assert_eq!(gateway.get("/").header("Cookie", &sent).header("Cookie", &cookie).status(), 200);
    let seen = origin.last();
    assert_eq!(seen.header("cookie"), Some("a=1; b=2"));
    assert!(!format!("{seen:?}").contains(value), "{seen:?}");

    // Who has read it elsewhere has nothing: neither from another address nor for another host.
    let bans = || ask(&gateway, "GET", "/api/v1/bans").header("Cookie", &cookie);
    assert_eq!(bans().status(), 200);
    assert_eq!(bans().from("127.0.0.9").status(), 401);
    let elsewhere = Request::new(gateway.admin(), "GET", "/api/v1/bans").host("admin.example");
    assert_eq!(elsewhere.header("Cookie", &cookie).status(), 401);
    assert_eq!(
        ask(&gateway, "GET", "/session").from("127.0.0.9").header("Cookie", &cookie).send().json()["open"],
        false
    );
}

#[test]
fn a_bearer_may_be_guessed_as_rarely_as_the_form() {
    let origin = Origin::start();
    let gateway = with_token(&origin);
    let bearer = |token: &str| ask(&gateway, "GET", "/api/v1/bans").header("Authorization", &format!("Bearer {token}"));
    assert_eq!(ask(&gateway, "GET", "/api/v1/bans").header("Authorization", "Basic eDp5").status(), 401);
    for guess in 0..5 {
        assert_eq!(bearer(&format!("hunter{guess}")).status(), 401);
    }
    for token in ["hunter6", "s3cret"] {
        let refused = bearer(token).send();
        assert_eq!(refused.status, 429, "{token}");
        let wait: u64 = refused.header("retry-after").expect("a wait").parse().expect("seconds");
        assert!((1..=60).contains(&wait), "{wait}");
    }
    assert_eq!(bearer("s3cret").from("127.0.0.9").status(), 200);
    // The form and the files are for everyone else.
    assert_eq!(offer(&gateway, "s3cret").status, 201);
    assert!(!gateway.stderr().join("\n").contains("hunter"));
}
