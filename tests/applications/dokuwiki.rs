//! DokuWiki behind `config/login-dokuwiki.yaml`.

use std::fs;
use std::net::SocketAddr;
use std::process::Command;

use tempfile::TempDir;

use crate::alphabet::guesses;
use crate::attack::{
    Asked, Login, a_thousand_words_find_nothing, all_guesses_count, buys_nothing, form, readings_are_throttled,
};
use crate::php;
use crate::support::{Gateway, Program, Request, Response, recipe};

const PASSWORD: &str = "correct horse";

const NAMES: [&str; 8] = ["alice", "mallory", "bob", "carol", "dave", "erin", "frank", "grace"];

/// A running wiki of Debian's package, until it is dropped.
#[derive(Debug)]
struct DokuWiki {
    server: Program,
    folder: TempDir,
}

impl DokuWiki {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder for the wiki");
        let at = |name: &str| folder.path().join(name);
        php::copy("/usr/share/dokuwiki", &at("wiki"));
        php::copy("/etc/dokuwiki", &at("conf"));
        php::copy("/var/lib/dokuwiki/data", &at("data"));
        let hash = format!("echo password_hash('{PASSWORD}', PASSWORD_BCRYPT, ['cost' => 5]);");
        let hash = php::said_by(Command::new("php").args(["-r", &hash]));
        let users = NAMES.map(|name| format!("{name}:{hash}:{name}:{name}@example.com:user\n")).concat();
        fs::create_dir(at("wiki/lib/plugins/told")).expect("a folder for a plugin");
        for (name, text) in [
            ("wiki/inc/preload.php", include_str!("dokuwiki/preload.php")),
            ("wiki/lib/plugins/told/action.php", include_str!("dokuwiki/action.php")),
            ("wiki/lib/plugins/told/plugin.info.txt", "base told\ndate 2026-01-01\nname told\n"),
            ("conf/local.php", include_str!("dokuwiki/local.php")),
            ("conf/acl.auth.php", "* @ALL 1\n* @user 8\n"),
            ("conf/users.auth.php", &users),
        ] {
            fs::write(at(name), text).expect("a file in the folder");
        }
        Self { server: php::built_in(&at("wiki")), folder }
    }

    fn guarded(&self) -> Gateway {
        recipe("login-dokuwiki.yaml", self.server.address(), &[])
    }
}

impl Login for DokuWiki {
    fn address(&self) -> SocketAddr {
        self.server.address()
    }

    fn form(&self) -> String {
        "/doku.php?do=login:u=^USER^&p=^PASS^:S=Location".to_owned()
    }

    fn password(&self) -> &'static str {
        PASSWORD
    }

    fn log_in(&self, gateway: &Gateway, from: &str, name: &str, password: &str) -> Response {
        gateway.post("/doku.php?do=login").from(from).form(&form(&[("u", name), ("p", password)])).send()
    }

    fn is_success(&self, answer: &Response) -> bool {
        session(answer).is_some()
    }

    fn judged(&self, name: &str) -> usize {
        let told = fs::read(self.folder.path().join("told")).unwrap_or_default();
        let told = String::from_utf8_lossy(&told);
        told.lines().filter(|line| line.strip_prefix("judged ") == Some(name)).count()
    }
}

/// The cookie of a login that this answer begins, as it is sent back.
fn session(answer: &Response) -> Option<String> {
    let cookies = answer.headers.all("set-cookie");
    let mut pairs = cookies.iter().filter_map(|line| line.split(';').next());
    pairs.find(|pair| pair.starts_with("DW") && !pair.ends_with("=deleted")).map(str::to_owned)
}

#[test]
fn a_thousand_words_do_not_find_a_password_of_dokuwiki() {
    let wiki = DokuWiki::start();
    a_thousand_words_find_nothing(&wiki, &wiki.guarded());
}

#[test]
fn however_a_guess_is_written_down_dokuwiki_judges_no_more_than_the_limit_says() {
    let wiki = DokuWiki::start();
    let gateway = wiki.guarded();
    let guesses = guesses("u", &[("p", "guess"), ("do", "login")], "alice", 600);
    all_guesses_count(&wiki, &gateway, "alice", &guesses, |to, from, guess| {
        Request::new(to, "POST", "/doku.php").from(from).body(&guess.content_type, &guess.body).send()
    });
    // Whoever does something else is not kept from it.
    for client in 1..=3 {
        let post = |fields: &[(&str, &str)]| {
            gateway.post("/doku.php").from(&format!("127.200.0.{client}")).form(&form(fields)).status()
        };
        assert_eq!(post(&[("do", "search"), ("q", "x")]), 200);
        assert_eq!(post(&[("do", "resendpwd"), ("login", "bob"), ("save", "1")]), 200);
        assert_eq!(post(&[("do", "register"), ("login", "new"), ("fullname", "New"), ("save", "1")]), 200);
    }
    assert!(wiki.gets_in(&gateway, "127.200.0.9", "bob"), "another user");
}

#[test]
fn what_looks_like_a_success_of_dokuwiki_buys_nothing() {
    let wiki = DokuWiki::start();
    // Without its session this cookie is a login again each time: the answer sets it anew.
    let own = Request::new(wiki.address(), "POST", "/doku.php?do=login");
    let own = session(&own.form(&form(&[("u", "mallory"), ("p", PASSWORD), ("r", "1")])).send()).expect("a session");
    let urlencoded = "application/x-www-form-urlencoded";
    let as_mallory = |name: &str| format!("u={name}&u=mallory&p=correct+horse");
    let shapes: [(&str, &str, &str, String); 6] = [
        ("bob", "/doku.php?do=logout", urlencoded, "u=bob&p=guess".to_owned()),
        ("carol", "/lib/exe/fetch.php?media=wiki:dokuwiki-128.png", urlencoded, "u=carol&p=guess".to_owned()),
        ("dave", "/doku.php", "text/plain", "u=dave".to_owned()),
        ("erin", "/doku.php", "application/json", "{\"u\": \"erin\"}".to_owned()),
        ("frank", "/doku.php", urlencoded, "U=frank".to_owned()),
        ("grace", "/doku.php", urlencoded, as_mallory("grace")),
    ];
    for (name, target, content_type, body) in shapes {
        let gateway = wiki.guarded();
        buys_nothing(&wiki, &gateway, name, |from| {
            let answer = gateway.post(target).from(from).header("Cookie", &own).body(content_type, &body).send();
            assert!(answer.status < 500, "{target} {body}: {}", answer.status);
        });
    }
}

#[test]
fn wherever_dokuwiki_reads_a_name_and_a_password_it_is_throttled() {
    let wiki = DokuWiki::start();
    let gateway = wiki.guarded();
    let ask = |to: Asked, target: &str| {
        let address = if to == Asked::Application { wiki.address() } else { gateway.address() };
        Request::new(address, "POST", target).from("127.0.3.1").form(&form(&[("u", "bob"), ("p", "guess")])).send()
    };
    let read = readings_are_throttled(&wiki, &gateway, "bob", &TARGETS, ask);
    assert!(read >= 11, "{read} readings");
    // In the address, where the names of fields have several spellings, too; and as HTTP Basic.
    let basic = "Basic Y2Fyb2w6Z3Vlc3M=";
    let ask = |target: &str| gateway.get(target).from("127.0.3.2").header("Authorization", basic).status();
    let statuses: Vec<u16> = (0..8).map(|_| ask("/doku.php")).collect();
    assert_eq!((wiki.judged("carol"), statuses.last()), (5, Some(&429)), "{statuses:?}");
    for name in ["u", "%75", "+u", "u%00x", "%20u"] {
        for round in 1..=5 {
            gateway.get(&format!("/doku.php?{name}=dave&p=guess")).from(&format!("127.0.4.{round}")).send();
        }
    }
    assert_eq!(wiki.judged("dave"), 3);
}

/// Programs: one that calls `dokuwiki.login`, and one that shows a name and a password with every call.
#[test]
fn programs_guess_at_dokuwiki_as_often_as_the_limit_says_from_wherever_they_come() {
    let wiki = DokuWiki::start();
    let gateway = wiki.guarded();
    let call = |method: &str, parameters: &[&str]| {
        let parameters = parameters.iter().map(|text| format!("<param><value><string>{text}</string></value></param>"));
        let parameters: String = parameters.collect();
        format!("<methodCall><methodName>{method}</methodName><params>{parameters}</params></methodCall>")
    };
    let ask = |client: usize, basic: Option<&str>, body: &str| {
        let request = gateway.post("/lib/exe/xmlrpc.php").from(&format!("127.0.5.{client}")).body("text/xml", body);
        match basic {
            Some(pair) => request.header("Authorization", &format!("Basic {pair}")).send(),
            None => request.send(),
        }
    };
    let names = ["bob", "Bob", "b.ob", "b&#111;b", "<![CDATA[bob]]>"];
    for client in 1..=30 {
        // mallory:correct horse, whose own success is none of the call's.
        let own = (client % 3 == 0).then_some("bWFsbG9yeTpjb3JyZWN0IGhvcnNl");
        ask(client, own, &call("dokuwiki.login", &[names[client % names.len()], "guess"]));
    }
    let judged: usize = ["bob", "Bob", "b.ob"].map(|name| wiki.judged(name)).iter().sum();
    assert!((5..=10).contains(&judged), "{judged}");
    // carol:guess, at pages too.
    let version = call("dokuwiki.getVersion", &[]);
    for client in 31..=50 {
        ask(client, Some("Y2Fyb2w6Z3Vlc3M="), &version);
        let page = gateway.get("/doku.php").from(&format!("127.0.5.{client}"));
        page.header("Authorization", "Basic Y2Fyb2w6Z3Vlc3M=").send();
    }
    assert_eq!(wiki.judged("carol"), 5);
    // alice:correct horse
    let works = || ask(51, Some("YWxpY2U6Y29ycmVjdCBob3JzZQ=="), &version).status;
    assert_eq!((0..12).map(|_| works()).collect::<Vec<_>>(), [200; 12], "whoever knows the password");
    assert_eq!(
        (0..8).map(|_| ask(52, None, &version).status).collect::<Vec<_>>(),
        [200; 8],
        "and whoever guesses at none"
    );
}

/// What takes a name and a password in a form.
const TARGETS: [&str; 20] = [
    "/",
    "/doku.php",
    "/doku.php?do=login",
    "/doku.php/start",
    "/doku.php/x.css",
    "/index.php",
    "/feed.php",
    "/lib/exe/ajax.php",
    "/lib/exe/fetch.php?media=wiki:dokuwiki-128.png",
    "/lib/exe/detail.php?media=wiki:dokuwiki-128.png",
    "/lib/exe/mediamanager.php",
    "/lib/exe/xmlrpc.php",
    "/lib/exe/css.php",
    "//doku.php",
    "/x/../doku.php",
    "/%64oku.php",
    "/doku%2ephp/x",
    "/DOKU.PHP",
    "/doku.php;x",
    "/doku.php%00",
];
