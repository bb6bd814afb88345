//! Every configuration of `config/`, in front of an application that it is for, under ordinary traffic: nothing looks
//! misconfigured.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use std::{fs, thread};

use serde_json::Value;

use crate::support::{Answer, Gateway, Origin, Received, RedisServer, Request, Stopwatch, binary, eventually};

/// What ordinary clients send to an application.
struct Traffic {
    /// A login of a user, with this password.
    login: fn(Request, user: &str, password: &str) -> Request,
    login_target: &'static str,
    /// What is read between logins, and how.
    page: &'static str,
    page_as: fn(Request, user: &str) -> Request,
    /// What some client does now and then.
    seldom: &'static [(&'static str, &'static str)],
}

/// A new file needs its own ordinary traffic here.
fn traffic(file: &str) -> Traffic {
    let form = |login_target, login: fn(Request, &str, &str) -> Request| Traffic {
        login,
        login_target,
        page: "/about",
        page_as: |request, _| request,
        seldom: &[],
    };
    match file {
        "api.yaml" => {
            let page_as = |request: Request, user: &str| request.header("Authorization", &format!("Bearer {user}"));
            let login =
                |request: Request, user: &str, _: &str| request.header("Authorization", &format!("Bearer {user}"));
            Traffic { login, login_target: "/v1/items", page: "/v1/items", page_as, seldom: &[("GET", "/reports/7")] }
        }
        "login-basic.yaml" => form("/private/page", basic),
        "login-django.yaml" => form("/admin/login/", username),
        "login-dokuwiki.yaml" => Traffic {
            // Some clients have a password for HTTP Basic, too.
            login: |request, user, password| {
                let basic = portcullis::words::base64::encode(format!("{user}:{password}").as_bytes());
                request.header("Authorization", &format!("Basic {basic}")).form(&format!("u={user}&p={password}"))
            },
            seldom: &[("POST", "/doku.php?id=start&do=save"), ("POST", "/lib/exe/xmlrpc.php")],
            ..form("/doku.php", username)
        },
        "login-json.yaml" => form("/api/login", |request, user, password| {
            request.json(&format!(r#"{{"user": "{user}", "password": "{password}"}}"#))
        }),
        "login-wordpress.yaml" => Traffic {
            login: |request, user, password| request.form(&format!("log={user}&pwd={password}")),
            seldom: &[
                ("POST", "/xmlrpc.php"),
                ("POST", "/wp-comments-post.php"),
                ("POST", "/wp-login.php?action=lostpassword"),
            ],
            ..form("/wp-login.php", username)
        },
        "login-keycloak.yaml" => Traffic {
            seldom: &[("POST", "/realms/main/protocol/openid-connect/token")],
            ..form("/realms/main/login-actions/authenticate", username)
        },
        "login-mediawiki.yaml" => Traffic {
            seldom: &[("POST", "/index.php?title=Special:PasswordReset"), ("POST", "/api.php")],
            ..form("/index.php", |request, user, password| {
                request.form(&format!("wpName={user}&wpPassword={password}"))
            })
        },
        "login-phpmyadmin.yaml" => form("/phpmyadmin/index.php", |request, user, password| {
            request.form(&format!("pma_username={user}&pma_password={password}"))
        }),
        "login-roundcube.yaml" => {
            form("/", |request, user, password| request.form(&format!("_user={user}&_pass={password}")))
        }
        "second-factor.yaml" => {
            Traffic { seldom: &[("POST", "/login/code"), ("POST", "/account/password")], ..form("/login", username) }
        }
        "login.yaml" => Traffic { seldom: &[("POST", "/password-reset"), ("GET", "/")], ..form("/login", username) },
        "everything.yaml" => Traffic { seldom: &[("POST", "/second-factor")], ..form("/login", username) },
        "cluster.yaml"
        | "compose.yaml"
        | "login-express.yaml"
        | "login-page.yaml"
        | "portcullis.yaml"
        | "login-calibre-web.yaml" => form("/login", username),
        other => panic!("what is the ordinary traffic of {other}?"),
    }
}

fn username(request: Request, user: &str, password: &str) -> Request {
    request.form(&format!("username={user}&password={password}"))
}

fn basic(request: Request, _: &str, password: &str) -> Request {
    request.header("Authorization", if password == "right" { ALICE } else { BOB })
}

/// `alice:right` and `bob:wrong`.
const ALICE: &str = "Basic YWxpY2U6cmlnaHQ=";
const BOB: &str = "Basic Ym9iOndyb25n";

/// An application that knows one password. Its success is one for every file, and so is its failure.
fn application(file: &str) -> impl Fn(&Received) -> Answer + Send + Sync + 'static {
    let (is_page, is_json, is_basic) =
        (file == "login-page.yaml", file == "login-json.yaml", file == "login-basic.yaml");
    let next = if file == "second-factor.yaml" { "/login/code" } else { "/account" };
    move |request| {
        let text = request.text();
        if is_basic && request.target.starts_with("/private") {
            let is_right = request.header("authorization") == Some(ALICE);
            return Answer::new(if is_right { 200 } else { 401 }, &[], "");
        }
        if text.contains("wrong") {
            return Answer::ok(if is_json { r#"{"ok": false}"# } else { "invalid password" });
        }
        if !text.contains("right") {
            return Answer::ok("a page");
        }
        if is_json {
            return Answer::new(200, &[("Content-Type", "application/json")], r#"{"ok": true}"#);
        }
        let cookies = [
            "session",
            "sessionid",
            "connect.sid",
            "wordpress_logged_in_7",
            "DW7",
            "wikiUserID",
            "wiki_session",
            "roundcube_sessauth",
            "pmaAuth-1",
            "KEYCLOAK_IDENTITY",
        ];
        let cookies = cookies.map(|name| format!("{name}=1"));
        let mut headers: Vec<_> = cookies.iter().map(|cookie| ("Set-Cookie", &**cookie)).collect();
        headers.push(("Location", next));
        Answer::new(if is_page { 200 } else { 302 }, &headers, "")
    }
}

/// The file with the addresses, paths and servers of this machine.
fn adapted(file: &str, origin: &Origin, redis: &RedisServer) -> String {
    let text = fs::read_to_string(format!("config/{file}")).expect("the file");
    let (here, redis) = (origin.url(), redis.url());
    let socket = format!("/tmp/portcullis-{}.sock", origin.address().port());
    let mut text = [
        ("0.0.0.0:8080", "127.0.0.1:0"),
        ("[::1]:8081", "127.0.0.1:0"),
        ("127.0.0.1:9090", "127.0.0.1:0"),
        ("/tmp/portcullis.sock", &socket),
        ("http://127.0.0.1:8000", &here),
        (", http://127.0.0.1:8001", ""),
        ("http://application:8000", &here),
        ("http://10.0.1.5:8000", &here),
        (", http://10.0.1.6:8000", ""),
        ("http://10.0.1.7:8000", &here),
        ("redis://127.0.0.1:6379/0", &redis),
        ("redis://redis:6379/0", &redis),
        ("10.0.0.10", PROXY),
        ("jwks_url: https://id.example.com/.well-known/jwks.json", "jwks_file: keys/issuer.json"),
        ("/var/lib/portcullis/", ""),
        ("/var/log/portcullis/", ""),
        ("\npages: pages ", concat!("\npages: ", env!("CARGO_MANIFEST_DIR"), "/config/pages ")),
    ]
    .iter()
    .fold(text, |text, (written, here)| text.replace(written, here));
    for name in FILES {
        text = text.replace(name, &beside(name));
    }
    if !text.contains("\nadmin:") {
        text.push_str("\nadmin: {address: 127.0.0.1:0}\n");
    }
    text
}

/// The name of a file of `config/` where all files are in one folder.
fn beside(name: &str) -> String {
    name.replace('/', "-")
}

/// Ordinary traffic: from many clients, who read pages and log in, where one in twelve mistypes the password. A gateway that
/// trusts a proxy gets all of it from there.
fn browse(gateway: &Gateway, traffic: &Traffic, is_behind_proxy: bool) {
    let ask = |method: &str, target: &str, client: usize| {
        let request = gateway.request(method, target);
        if is_behind_proxy {
            request.from(PROXY).header("X-Forwarded-For", &format!("198.51.100.{client}"))
        } else {
            request.from(&format!("127.0.1.{client}"))
        }
    };
    let send = |number: usize| {
        let client = 1 + number % CLIENTS;
        match number % 10 {
            3 => {
                let password = if number % 12 == 5 { "wrong" } else { "right" };
                // A user of each client, who logs in there and nowhere else.
                (traffic.login)(ask("POST", traffic.login_target, client), &format!("user{client}"), password).send()
            }
            7 if number / 10 < 3 * traffic.seldom.len() => {
                let (method, target) = traffic.seldom[number / 10 % traffic.seldom.len()];
                // What asks for a new password in one application or the other, and what an API logs in with.
                let fields = ["email", "user_login", "login", "wpUsername", "wpEmail", "lgname", "username"];
                let named = fields.map(|field| format!("{field}=user{client}")).join("&");
                ask(method, target, client).form(&format!("{named}&text=7")).send()
            }
            _ => (traffic.page_as)(ask("GET", traffic.page, client), &format!("user{client}")).send(),
        }
    };
    thread::scope(|scope| {
        for worker in 0..4 {
            scope.spawn(move || (worker..REQUESTS).step_by(4).for_each(|number| drop(send(number))));
        }
    });
}

/// What `check` says of a configuration of ours, with the folders that the package makes.
fn checked(file: &str) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    let made = folder.path().display().to_string();
    let text = fs::read_to_string(format!("config/{file}")).expect("a file");
    let text = text.replace("/var/log/portcullis", &made).replace("/var/lib/portcullis", &made);
    let mut check = Command::new(binary())
        .args(["check", "--deny-warnings", "--format", "json", "-c", "-"])
        .current_dir("config")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    check.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("it reads");
    check.wait_with_output().expect("it ends")
}

#[test]
fn no_configuration_of_ours_is_advised_against_under_ordinary_traffic() {
    let redis = RedisServer::start();
    let names = fs::read_dir("config").expect("the folder").map(|entry| entry.expect("a file").file_name());
    let mut files: Vec<_> = names.map(|name| name.into_string().expect("a name")).collect();
    files.retain(|name| Path::new(name).extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    assert!(files.len() >= 13, "{files:?}");
    for file in &files {
        let checked = checked(file);
        assert!(checked.status.success(), "{file}: {}", String::from_utf8_lossy(&checked.stdout));

        let origin = Origin::answering(application(file));
        let config = adapted(file, &origin, &redis);
        let texts = FILES.map(|name| (beside(name), fs::read_to_string(format!("config/{name}")).expect("a file")));
        let texts: Vec<_> = texts.iter().map(|(name, text)| (&**name, &**text)).collect();
        let gateway = Gateway::with_files(&config, &texts);
        let passed = || gateway.admin_request("GET", "/api/v1/status").send().json()["last_minute"]["passed"].as_u64();
        let advice = || gateway.admin_request("GET", "/api/v1/advice").send().json();
        let is_behind_proxy = config.lines().any(|line| line.trim_start().starts_with("trusted_proxies:"));
        browse(&gateway, &traffic(file), is_behind_proxy);
        let enough = u64::try_from(REQUESTS).expect("a small number") * 8 / 10;
        eventually("most of it passed, and is counted", || passed().is_some_and(|passed| passed >= enough));
        let begun = Stopwatch::start();
        while begun.elapsed() < JUDGED_WITHIN {
            assert_eq!(advice(), Value::Array(Vec::new()), "{file}");
        }
        let logged = gateway.stderr().into_iter().find(|line| line.contains("\"advice\":"));
        assert_eq!(logged, None, "{file}");
    }
}

const FILES: [&str; 5] =
    ["keys/issuer.json", "lists/abusers.txt", "lists/partner-keys.txt", "pages/slow-down.html", "tls/internal-ca.pem"];

const REQUESTS: usize = 1600;
const CLIENTS: usize = 41;

/// Advice is judged every second.
const JUDGED_WITHIN: Duration = Duration::from_millis(1500);

/// In the place of a trusted proxy.
const PROXY: &str = "127.0.2.10";
