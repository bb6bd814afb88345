use proptest::prelude::*;

use super::{ElementPath, declared_encoding, is_multicall, is_well_formed};
use crate::rules::request::xml::{MAX_VALUES, values};

#[track_caller]
fn check(path: &str, text: &str, expected: &[&str]) {
    assert_eq!(values(text.as_bytes(), &ElementPath::dotted(path)), expected, "{path} of {text}");
}

const CALL: &str = "<?xml version=\"1.0\"?>\n<methodCall><methodName>wp.getUsersBlogs</methodName><params>
        <param><value><string>alice</string></value></param><param><value>secret</value></param></params></methodCall>";

#[test]
fn an_element_is_found_by_the_end_of_its_path() {
    check("methodCall.params.param.value", CALL, &["alice", "secret"]);
    check("param.value", CALL, &["alice", "secret"]);
    check("params.param.0.value", CALL, &["alice"]);
    check("param.1.value", CALL, &["secret"]);
    check("param.2.value", CALL, &[]);
    check("value.string", CALL, &["alice"]);
    check("methodname", CALL, &["wp.getUsersBlogs"]);
    check("methodCall.value", CALL, &[]);
    let soap = "<s:Envelope xmlns:s='u'><s:Body><m:Login m:a='x'><m:username>alice</m:username></m:Login></s:Body></s:Envelope>";
    check("username", soap, &["alice"]);
    check("Envelope.Body.Login.username", soap, &["alice"]);
}

#[test]
fn a_text_counts_however_it_is_written() {
    for inner in ["alice", "al&#105;ce", "al&#x69;ce", "<![CDATA[alice]]>", "<b>alice</b>", "<b><c>alice</c></b>"] {
        check("u", &format!("<a><u>{inner}</u></a>"), &["alice"]);
    }
    check("u", "<u>a&lt;&amp;b</u>", &["a<&b"]);
    check("u", "<u>a&#0;b</u>", &["a\0b"]);
    check("u", "<u>  alice\r\n</u>", &["  alice\n"]);
    check("u", "<u/>", &[""]);
    check("u", "<u></u>", &[""]);
    check("u", "<u>alice", &["alice"]);
    check("u", "<u>alice</x>", &["alice"]);
}

#[test]
fn what_applications_read_differently_has_each_reading() {
    check("u", "<u>ali<!-- x -->ce</u>", &["alice", "ali"]);
    check("u", "<u>ali<![CDATA[ce]]></u>", &["alice", "ali"]);
    check("u", "<u>alice<b/></u>", &["alice"]);
    check("u", "<u>ali<b>ce</b></u>", &["alice", "ali", "ce"]);
    check("u", "<u><b>ali</b><b>ce</b></u>", &["alice", "ali", "ce"]);
    check("u", "<a><u>alice</u><u>bob</u><u>alice</u></a>", &["alice", "bob"]);
}

#[test]
fn xml_is_distinguished_from_other_text() {
    for text in ["<a/>", "<a><b>x</b></a>", "\u{feff}<?xml version='1.0'?><!DOCTYPE a><a>&lt;</a>\n", "<a:b></a:b>"] {
        assert!(is_well_formed(text.as_bytes()), "{text}");
    }
    let deep = "<a>".repeat(200) + &"</a>".repeat(200);
    for text in
        ["", "x", "<a>", "<a></b>", "<a/><a/>", "<a>&x;</a>", "<!DOCTYPE a [<!ENTITY x 'y'>]><a/>", "<a/>x", &deep]
    {
        assert!(!is_well_formed(text.as_bytes()), "{text}");
    }
}

#[test]
fn multicalls_and_declared_encodings_are_recognised() {
    assert!(!is_multicall(CALL.as_bytes()));
    assert!(is_multicall(b"<methodCall><methodName> system.multicall</methodName></methodCall>"));
    assert_eq!(declared_encoding(b"<?xml version='1.0' encoding='latin1'?><a/>"), Some("latin1"));
    assert_eq!(declared_encoding(b"<?xml version='1.0'?><a encoding='x'/>"), None);
}

proptest! {
    #[test]
    fn any_text_is_read(text in "(<|>|/|u|a|!|--|\\[CDATA\\[|\\]\\]|&|;|#|\\?|'|[ -~\u{e9}]){0,40}") {
        let found = values(text.as_bytes(), &ElementPath::dotted("u"));
        prop_assert!(found.len() <= MAX_VALUES);
        is_well_formed(text.as_bytes());
    }
}
