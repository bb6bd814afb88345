//! Logins over XML-RPC and SOAP.

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

/// After alice has spent her budget by a plain call, these requests, hers too, are denied.
#[track_caller]
fn are_hers(sly: impl Fn(&Gateway) -> Vec<Request>) {
    let origin = Origin::start();
    let gateway = gateway(&origin, USER);
    assert_eq!(gateway.post("/xmlrpc.php").body("text/xml", call("alice", "one")).status(), 200);
    for request in sly(&gateway) {
        assert_eq!(request.status(), 429, "{}", String::from_utf8_lossy(&request.bytes()));
    }
    assert_eq!(origin.count(), 1);
}

#[test]
fn a_call_is_counted_by_the_name_in_it() {
    are_hers(|gateway| {
        [" ALICE ", "alice&#0;x"].map(|name| gateway.post("/").body("text/xml", call(name, "two"))).into()
    });
}

#[test]
fn relabelling_and_recoding_xml_hides_nothing() {
    are_hers(|gateway| {
        let kinds = [
            "application/xml",
            "application/soap+xml",
            "text/plain",
            "application/x-www-form-urlencoded",
            "application/json",
            "",
        ];
        let mut requests = Vec::from(kinds.map(|kind| gateway.post("/").body(kind, call("alice", "two"))));
        let packed = gateway.post("/").header("Content-Encoding", "gzip");
        requests.push(packed.body("text/xml", gzip(&call("alice", "two"))));
        let wide: Vec<u8> = call("alice", "two").encode_utf16().flat_map(u16::to_le_bytes).collect();
        requests.push(gateway.post("/").body("text/xml", wide));
        requests
    });
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
fn a_call_that_libraries_read_otherwise_pays_the_shared_budget() {
    let origin = Origin::start();
    let gateway = gateway(&origin, &format!("{USER}, missing: skip"));
    let ask = |params: &str| {
        let text = format!("<methodCall><methodName>login</methodName><params>{params}</params></methodCall>");
        gateway.post("/xmlrpc.php").body("text/xml", text).status()
    };
    let param = |value: &str| format!("<param><value>{value}</value></param>");
    assert_eq!(ask(&format!("<value>alice</value>{}", param("pw1"))), 200);
    for sly in [
        format!("<value>alice</value>{}", param("pw2")),
        format!("<Param><value>x</value></Param>{}", param("alice")),
        format!("{}{}", param(""), param("alice")),
        param("<base64>!!YWxpY2U=</base64>"),
        "<param><name>alice</name><value><string>pw3</string></value></param>".to_owned(),
    ] {
        assert_eq!(ask(&sly), 429, "{sly}");
    }
    assert_eq!((ask(&param("bob")), ask(&param("<string>bob</string>"))), (200, 429));
}
