//! Logins over XML-RPC and SOAP, and user names that are mail addresses.

use crate::bodies::gzip;
use crate::support::{Gateway, Origin, Request};

fn gateway(origin: &Origin, key: &str) -> Gateway {
    Gateway::start(format!("upstream: {}\nlimits:\n  - {{name: once, key: {key}, rate: 1/hour}}", origin.url()))
}

/// A call as blogs know it.
fn call(user: &str, password: &str) -> String {
    format!(
        "<?xml version=\"1.0\"?>\n<methodCall><methodName>wp.getUsersBlogs</methodName><params>\n<param><value><string>{user}</string></value></param>\n<param><value><string>{password}</string></value></param>\n</params></methodCall>"
    )
}

fn calls(users: &[&str]) -> String {
    let call = |user: &&str| {
        format!(
            "<value><struct><member><name>methodName</name><value>wp.getUsersBlogs</value></member><member><name>params</name><value><array><data><value>{user}</value><value>x</value></data></array></value></member></struct></value>"
        )
    };
    let calls: String = users.iter().map(call).collect();
    format!(
        "<methodCall><methodName>system.multicall</methodName><params><param><value><array><data>{calls}</data></array></value></param></params></methodCall>"
    )
}

const USER: &str = "xml.methodCall.params.param.0.value";

/// After alice has spent her budget by a plain call, this request, hers too, is denied.
#[track_caller]
fn is_hers(sly: impl Fn(&Gateway) -> Request) {
    let origin = Origin::start();
    let gateway = gateway(&origin, USER);
    assert_eq!(gateway.post("/xmlrpc.php").body("text/xml", call("alice", "one")).status(), 200);
    assert_eq!(sly(&gateway).status(), 429);
    assert_eq!(origin.count(), 1);
}

#[test]
fn a_call_is_counted_by_the_name_in_it() {
    is_hers(|gateway| gateway.post("/").body("text/xml", call("alice", "two")));
    is_hers(|gateway| gateway.post("/").body("text/xml", call(" ALICE ", "two")));
    is_hers(|gateway| gateway.post("/").body("text/xml", call("<![CDATA[alice]]>", "two")));
    is_hers(|gateway| gateway.post("/").body("text/xml", call("al&#105;ce", "two")));
    is_hers(|gateway| gateway.post("/").body("text/xml", call("alice&#0;x", "two")));
    is_hers(|gateway| gateway.post("/").body("text/xml", call("ali<!-- -->ce", "two")));
    is_hers(|gateway| gateway.post("/").body("text/xml", call("alice", "two").replace("string>", "x:string>")));
    is_hers(|gateway| {
        gateway.post("/").body("text/xml", call("alice", "two").replace("<string>", "").replace("</string>", ""))
    });
}

#[test]
fn relabelling_and_recoding_xml_hides_nothing() {
    for kind in [
        "application/xml",
        "application/soap+xml",
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/json",
        "",
    ] {
        is_hers(|gateway| gateway.post("/").body(kind, call("alice", "two")));
    }
    is_hers(|gateway| {
        gateway.post("/").header("Content-Encoding", "gzip").body("text/xml", gzip(&call("alice", "two")))
    });
    let wide: Vec<u8> = call("alice", "two").encode_utf16().flat_map(u16::to_le_bytes).collect();
    is_hers(move |gateway| gateway.post("/").body("text/xml", &wide));
}

#[test]
fn letters_in_one_byte_are_the_letters_they_are() {
    let origin = Origin::start();
    let gateway = gateway(&origin, USER);
    let narrow: Vec<u8> = call("jos\u{e9}", "x").chars().map(|char| u8::try_from(char).expect("one byte")).collect();
    assert_eq!(gateway.post("/").body("text/xml", call("jos\u{e9}", "x")).status(), 200);
    assert_eq!(gateway.post("/").body("text/xml", narrow).status(), 429);
}

#[test]
fn an_element_is_found_by_its_name_wherever_it_stands() {
    let soap = |user: &str| {
        format!(
            "<s:Envelope xmlns:s=\"u\"><s:Body><m:Login><m:username>{user}</m:username></m:Login></s:Body></s:Envelope>"
        )
    };
    for key in ["xml.username", "xml.Envelope.Body.Login.username", "param.username"] {
        let origin = Origin::start();
        let gateway = gateway(&origin, key);
        assert_eq!(gateway.post("/").body("application/soap+xml", soap("alice")).status(), 200);
        assert_eq!(gateway.post("/").body("application/soap+xml", soap("bob")).status(), 200);
        assert_eq!(gateway.post("/").body("application/soap+xml", soap("alice")).status(), 429, "{key}");
        let nobody = ["<s:Envelope/>", "<a>&unknown;</a>", "<a><b>"]
            .map(|text| gateway.post("/").body("text/xml", text).status());
        assert_eq!(nobody, [200, 429, 429], "{key}");
    }
}

#[test]
fn a_call_that_holds_others_gives_no_more_guesses() {
    let origin = Origin::start();
    let gateway = gateway(&origin, "xml.param.value");
    let ask = |users: &[&str]| gateway.post("/").body("text/xml", calls(users)).status();
    assert_eq!(ask(&["alice", "alice"]), 400);
    assert_eq!(ask(&["1", "2", "3", "4", "5", "6", "7", "8", "9"]), 400);
    assert_eq!(origin.count(), 0);
    assert_eq!(ask(&["alice"]), 200);
    assert_eq!(ask(&["alice"]), 429);
}

#[test]
fn a_name_and_its_address_are_one_where_that_is_asked_for() {
    let origin = Origin::start();
    let gateway = gateway(&origin, "{param.user: {normalise: local_part}}");
    assert_eq!(gateway.post("/").form("user=bob").status(), 200);
    for same in ["bob@example.com", "BOB%40example.com", "bob%EF%BC%A0example.com", "%22bob%22@example.com", "bob@a@b"]
    {
        assert_eq!(gateway.post("/").form(&format!("user={same}")).status(), 429, "{same}");
    }
    assert_eq!(gateway.post("/").form("user=alice@example.com").status(), 200);
}
