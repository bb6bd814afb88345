//! Every spelling of a path meets the limit of that path.

use crate::support::{Gateway, Origin, RawClient};

/// A gateway that lets every client ask once for what a route matches.
fn one_request(origin: &Origin, matching: &str) -> Gateway {
    Gateway::start(format!(
        "upstream: {}\nroutes:\n  - name: guarded\n    match: {matching}\n    limits:\n      - {{name: once, key: client_ip, rate: 1/hour}}",
        origin.url()
    ))
}

/// Sends a head after the budget of the route was spent by an honest request, and says what the answer was.
fn status_after(gateway: &Gateway, honest: &str, sly: &str) -> u16 {
    assert_eq!(RawClient::connect(gateway.address()).send(honest).response().status, 200, "{honest}");
    RawClient::connect(gateway.address()).send(sly).response().status
}

#[test]
fn every_spelling_of_a_limited_path_meets_its_limit() {
    let spellings = [
        "/login",
        "/login/",
        "/login//",
        "//login",
        "/./login",
        "/login/.",
        "/x/../login",
        "/../login",
        "/%6cogin",
        "/%6Cogin",
        "/%256cogin",
        "/%25256cogin",
        "/LOGIN",
        "/Login",
        "/login;jsessionid=1",
        "/;x/login",
        "/login;a/;b",
        "/login%20",
        "/login%00",
        "/login%00%20",
        "/%2flogin",
        "/%2Flogin",
        "/x/%2e%2e/login",
        "/x%2f..%2flogin",
        "/%5clogin",
        "/x\\..\\login",
        "/x\\y/../login",
        "/x%5cy/../login",
        "/x%252fy/../login",
        "/login/;x/..",
        "/login%00.js",
        "/login%00/x",
        "/login%3fx",
        "/login%23x",
        "/login.",
        "/login..%20",
        "/login.%20",
        "/login%",
        "/index.php/login",
        "/INDEX.php//login",
        "/app.cgi/login",
        "/x/../index.php/login/",
        "/index.php%2flogin",
        "/login/index.php",
        "/login/index.html",
        "/login/index.php/x",
        "/login/default.aspx",
        "/login?next=/",
        "/login?",
        "/login/?x",
    ];
    let origin = Origin::start();
    let gateway = one_request(&origin, "POST /login");
    let post = |path: &str| format!("POST {path} HTTP/1.1\r\nHost: app.example\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(RawClient::connect(gateway.address()).send(post("/login")).response().status, 200);
    for spelling in spellings {
        let status = RawClient::connect(gateway.address()).send(post(spelling)).response().status;
        assert_eq!(status, 429, "{spelling}");
    }
}

#[test]
fn a_query_behind_an_escaped_question_mark_meets_its_route() {
    let origin = Origin::start();
    for path in
        ["/index.php%3Fr=admin", "/index.php%3fr=admin", "/index.php%253Fr%253Dadmin", "/index.php%3Fa=b%26r=admin"]
    {
        let gateway = one_request(&origin, "{path: /index.php, query: {r: admin}}");
        let get = |target: &str| format!("GET {target} HTTP/1.1\r\nHost: app.example\r\n\r\n");
        assert_eq!(status_after(&gateway, &get("/index.php?r=admin"), &get(path)), 429, "{path}");
    }
    // A key of the query shares the budget of all that is not understood.
    let gateway = Gateway::start(format!(
        "upstream: {}\nlimits:\n  - {{name: once, key: query.user, rate: 1/hour}}",
        origin.url()
    ));
    let ask = |target: &str| gateway.get(target).status();
    assert_eq!(
        [ask("/?user=alice"), ask("/x%3Fuser=alice"), ask("/x%3Fuser=bob"), ask("/?user=carol")],
        [200, 429, 200, 200]
    );
    assert_eq!(ask("/x%3Fuser=dave"), 429);
}

#[test]
fn a_script_is_met_with_whatever_follows_it() {
    let spellings = [
        "/wp-login.php/",
        "/wp-login.php/x",
        "/wp-login.php/x.php",
        "/wp-login.php/x/y.css",
        "/WP-Login.PHP/x",
        "/wp-login.php%2fx",
        "/wp-login.php/..;/x",
        "/wp-login.php;x/y",
        "/wp-login.php%00/x",
        "/wp-login.php%00.js",
        "/x/../wp-login.php/y",
    ];
    let origin = Origin::start();
    for matching in ["POST /wp-login.php", "{path_regex: '^/wp-login[.]php$'}", "/{page}"] {
        let gateway = one_request(&origin, matching);
        let post = |path: &str| format!("POST {path} HTTP/1.1\r\nHost: app.example\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(RawClient::connect(gateway.address()).send(post("/wp-login.php")).response().status, 200);
        for spelling in spellings {
            let status = RawClient::connect(gateway.address()).send(post(spelling)).response().status;
            assert_eq!(status, 429, "{spelling} under {matching}");
        }
    }
}

/// As Microsoft documents it: names end before dots and blanks, streams are named behind a colon, ASP.NET keeps sessions in
/// the path, and the rest of a path is the script's.
#[test]
fn what_iis_reads_as_the_login_meets_its_limit() {
    let spellings = [
        "/Account/Login.aspx",
        "/account/login.aspx/x",
        "/account/login.aspx.",
        "/account/login.aspx%20",
        "/account/login.aspx.%20.",
        "/account./login.aspx",
        "/account%20/login.aspx/x",
        "/account\\login.aspx",
        "/account%5clogin.aspx",
        "/account/x\\..\\login.aspx",
        "/account/login.aspx::$DATA",
        "/account::$INDEX_ALLOCATION/login.aspx",
        "/(S(lit3py55t21z5v55vlm25s55))/account/login.aspx",
        "/account/(S(1)F(2))/login.aspx",
        "/account/%u006cogin.aspx",
        "/account/%256cogin.aspx",
        "/account/login%2easpx",
    ];
    let origin = Origin::start();
    let gateway = one_request(&origin, "POST /account/login.aspx");
    let post = |path: &str| format!("POST {path} HTTP/1.1\r\nHost: app.example\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(RawClient::connect(gateway.address()).send(post("/account/login.aspx")).response().status, 200);
    for spelling in spellings {
        let status = RawClient::connect(gateway.address()).send(post(spelling)).response().status;
        assert_eq!(status, 429, "{spelling}");
    }
}

#[test]
fn who_may_not_come_to_a_script_may_not_come_behind_it_either() {
    let origin = Origin::start();
    let gateway = Gateway::start(format!(
        "upstream: {}\nlists: {{office: {{addresses: [198.51.100.0/24]}}}}\nroutes:\n  - match: /admin.php\n    only: [office]\n  \
         - match: /setup/*\n    only: [office]",
        origin.url()
    ));
    for path in
        ["/admin.php", "/admin.php/x", "/admin.php%2fx.php", "/setup/x", "/setup./x", "/index.php/setup/x", "/setup%00"]
    {
        assert_eq!(gateway.get(path).status(), 403, "{path}");
    }
    for path in ["/admin.phpx", "/admin", "/setups/x", "/x.php"] {
        assert_eq!(gateway.get(path).status(), 200, "{path}");
    }
}

#[test]
fn a_limit_by_path_has_one_budget_for_all_spellings_of_one() {
    let origin = Origin::start();
    let gateway = Gateway::start(format!(
        "upstream: {}\nlimits:\n  - {{name: once, key: [client_ip, path], rate: 1/hour}}",
        origin.url()
    ));
    assert_eq!(gateway.get("/wp-login.php").status(), 200);
    for path in ["/wp-login.php/1", "/wp-login.php/2.php", "/wp-login.php.", "/wp-login.php%00x"] {
        assert_eq!(gateway.get(path).status(), 429, "{path}");
    }
    assert_eq!(gateway.get("/other.php").status(), 200);
    let any = gateway.get(&"/a.php".repeat(500)).send();
    assert_eq!(any.status, 400, "of more readings than are looked at");
}

#[test]
fn a_path_that_may_be_any_meets_every_limit() {
    let origin = Origin::start();
    let gateway = one_request(&origin, "/login");
    assert_eq!(gateway.get("/login").status(), 200);
    assert_eq!(gateway.get(&format!("{}/login", "/a.php".repeat(1_000))).status(), 429);
}

#[test]
fn another_path_does_not_meet_the_limit() {
    let origin = Origin::start();
    let gateway = one_request(&origin, "/login");
    assert_eq!([gateway.get("/login").status(), gateway.get("/login").status()], [200, 429]);
    for other in
        ["/logins", "/login/x", "/x/login", "/", "/log%20in", "/login.json", "/login.php", "/.login", "/index.php"]
    {
        assert_eq!(gateway.get(other).status(), 200, "{other}");
    }
}

#[test]
fn letters_count_only_where_the_route_says_so() {
    let origin = Origin::start();
    let gateway = Gateway::start(format!(
        "upstream: {}\nroutes:\n  - match: /Login\n    case_sensitive: true\n    limits:\n      - {{name: once, key: client_ip, rate: 1/hour}}",
        origin.url()
    ));
    assert_eq!(gateway.get("/Login").status(), 200);
    assert_eq!(gateway.get("/login").status(), 200);
    assert_eq!(gateway.get("/Login").status(), 429);
}

#[test]
fn what_no_uri_may_have_is_the_same_to_the_rules_as_it_is_and_escaped() {
    let origin = Origin::start();
    let raw_and_escaped = [("/a<b", "/a%3Cb"), ("/a>b", "/a%3eb"), ("/a\"b", "/a%22b"), ("/a`b", "/a%60b")];
    for (raw, escaped) in raw_and_escaped {
        let get = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: app.example\r\n\r\n");
        for (first, second) in [(raw, escaped), (escaped, raw)] {
            let gateway = one_request(&origin, "{path_regex: '^/a[<>\"`]b$'}");
            assert_eq!(status_after(&gateway, &get(first), &get(second)), 429, "{first}, {second}");
        }
        let gateway = Gateway::start(format!(
            "upstream: {}\nlimits:\n  - {{name: once, key: query.q, rate: 1/hour, missing: skip}}",
            origin.url()
        ));
        let query = |path: &str| get(&path.replace("/a", "/?q="));
        assert_eq!(status_after(&gateway, &query(raw), &query(escaped)), 429, "{raw}");
    }
}
