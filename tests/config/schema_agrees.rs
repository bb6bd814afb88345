//! The schema and `check` take the same values.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use portcullis::config::diagnostic::Mistakes;
use portcullis::config::source::{SourceRange, SourceText};
use portcullis::config::yaml::{Content, Node};
use portcullis::config::{Diagnostic, read, schema, yaml};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::RngSeed;
use serde_json::{Value, json};

use crate::{environment, everything, files, json_schema};

/// What only another key can tell: that a value is valid by itself.
const RELATIONS: [&str; 31] = [
    "cannot be called",
    "is part of the key",
    "entries of descriptors have no `first`",
    "there is no upstream",
    "there is no list",
    "is in `listen` t",
    "is named twice",
    "twice",
    "can be reached from other machines",
    "trusts everyone",
    "lets everyone ask",
    "has no capture",
    "needs a capture",
    "no route has `sessions`",
    "there is no `jwt`",
    "is an entry of a descriptor",
    "is a part of a request",
    "needs a device cookie",
    "names no account",
    "is what sessions tell",
    "is no user name",
    "is not a user name",
    "is never missing",
    "so what stands behind it never counts",
    "are defined differently",
    "is defined differently",
    "decided before",
    "never passes a rate of",
    "too many for sliding-window-log",
    "different values are too many to remember",
    "each further ban must be longer",
];

/// Every single value of a file that has everything, with its schema.
fn values<'s>(node: &Node, described: &'s Value, schema: &'s Value, found: &mut Vec<(SourceRange, &'s Value)>) {
    if let Some(reference) = described["$ref"].as_str() {
        return values(node, &schema["$defs"][reference.trim_start_matches("#/$defs/")], schema, found);
    }
    let choices = described["anyOf"].as_array();
    match &node.content {
        Content::Nothing => {}
        Content::Scalar(_) => {
            let is_typed = described["pattern"].is_string() || described["enum"].is_array();
            let is_typed_choice = |choice: &Value| choice["pattern"].is_string() || choice["enum"].is_array();
            if is_typed || choices.is_some_and(|choices| choices.iter().any(is_typed_choice)) {
                found.push((node.at, described));
            }
        }
        Content::List(items) => {
            let lists = choices.into_iter().flatten().chain([described]);
            for described in lists.map(|list| &list["items"]).filter(|items| items.is_object()) {
                for item in items {
                    values(item, described, schema, found);
                }
            }
        }
        Content::Map(entries) => {
            for (name, value) in entries {
                let below = [&described["properties"][&name.text], &described["additionalProperties"]];
                if let Some(described) = below.into_iter().find(|below| below.is_object()) {
                    values(value, described, schema, found);
                }
            }
            for choice in choices.into_iter().flatten().filter(|choice| choice["items"].is_null()) {
                values(node, choice, schema, found);
            }
        }
    }
}

/// The text with another value in one place.
fn replaced(text: &str, at: SourceRange, value: &str) -> String {
    let (line, column) = (at.line as usize, at.column as usize);
    let written = |number: usize, line: &str| {
        if number != at.line as usize - 1 {
            return line.to_owned();
        }
        let letters: Vec<char> = line.chars().collect();
        let (before, after) = (&letters[..column - 1], &letters[column - 1 + at.length as usize..]);
        format!("{}{}{}", String::from_iter(before), json!(value), String::from_iter(after))
    };
    assert!(line > 0);
    text.lines().enumerate().map(|(number, line)| written(number, line) + "\n").collect()
}

/// What the schema may be asked about: the text, and the number or truth value that it is.
fn as_json(text: &str) -> Vec<Value> {
    let parsed = serde_json::from_str::<Value>(text).ok().filter(|value| value.is_number() || value.is_boolean());
    // A number in another spelling is another text.
    let same = parsed.filter(|value| {
        let written = value.to_string();
        written == text && !text.contains('-')
    });
    same.into_iter().chain([json!(text)]).collect()
}

/// Texts that are keys, matches, addresses and URLs, or near them, one a line.
const TEXTS: &str = "client_ip
header.x-api-key
header.x api
header.
 param.username\u{20}
param.
cookie.a b
path.id
json.a.b
basic.user
basic
route
descriptor.path
jwt.sub
POST /login
GET,POST /search
GET, POST /search
/admin/*
/admin/**
/a/*/b
/users/{id}
/users/{id}/*
/users/x{id}
/users/{i d}
/users/{}
/login?x=1
/login#x
login
location /api/
Location /api/
~ ^/api/
^~ /static/
= /login
GET|POST /login
*.example.com
example.com
 example.com
example.com:80
.example.com
*.
a b
[::1]
[::1]:80
a,b
POST
post
M-SEARCH
GET,POST
a_b
x-forwarded-for
x forwarded
0.0.0.0:80
0.0.0.0:65536
0.0.0.0
00.0.0.0:80
256.0.0.1:80
[::]:80
[::1%3]:80
[1:2:3:4:5:6:7:8]:80
[1:2:3:4:5:6:7::]:80
[1::8:9:a:b:c:d:e]:80
[::ffff:1.2.3.4]:80
[::12345]:80
unix:/run/a.sock
unix:run/a.sock
80;
443 ssl
10.1.2.0/24
10.1.2.0/33
10.1.2.0/+8
10.1.2.0/
2001:db8::/48
2001:db8::/129
2001:db8:::/48
1.2.3
all
http://127.0.0.1:8000
http://127.0.0.1:8000/
http://127.0.0.1:8000/x
http://127.0.0.1:0
http://127.0.0.1:
HTTPS://App.internal
http://[::1]:80
http://unix:/run/a.sock
https://unix:/run/a.sock
http://u:p@app
http://a b
http://
ftp://app
127.0.0.1:8000
http://127.0.0.1:8000 weight=2
bearer
cookie.session";

/// Separated by commas, as everything below.
const NUMBERS: &str = "0,1,2,20,32,33,60,61,64,100,101,128,129,200,204,304,365,366,399,400,401,429,599,600,777,1000,1001,\
    1023,1024,1025,3600,3601,10000,10001,36500,36501,65536,1000000,1000001,1048576,1048577,67108864,67108865,3600000,3600001,\
    1000000000,1000000001,4294967295,4294967296,18446744073709551615,18446744073709551616";

const UNITS: &str = ",,,ms,s,m,h,d,B,KiB,MiB,GiB,TiB,KB,kb,min,S,%,.,.5,e3,/minute,/MINUTES, per 3 minutes,per5s,per0s, period,\
    /s; 5/m,/day|6/month|7/y,/36501d,/ 36500 days,/ms,/";

const SIGNS: &str = ",,,0,0o,-,+, ,.";

const BLANKS: &str = ",, ,\t,\u{a0},\n";

const ENDS: &str = ",,, ,x,\u{a0}";

const WORDS: &str = "true,True,TRUE,tRUE,false,False,FALSE,yes,off,on,auto,none,local,full,deny,,$${x},a$${,0x10,1_000,0.5,1.0,\
    1.1,00.5,rw-rw-rw-,0660,660,066,0680";

fn one_of(texts: &'static str) -> impl Strategy<Value = &'static str> {
    select(texts.split(',').collect::<Vec<_>>())
}

/// Values, and what is near them.
fn near() -> impl Strategy<Value = String> {
    let parts = (one_of(SIGNS), one_of(NUMBERS), one_of(BLANKS), one_of(UNITS), one_of(ENDS));
    prop_oneof![
        4 => parts.prop_map(|(sign, number, blank, unit, end)| format!("{sign}{number}{blank}{unit}{end}")),
        1 => one_of(WORDS).prop_map(str::to_owned),
        4 => select(TEXTS.split('\n').collect::<Vec<_>>()).prop_map(str::to_owned),
    ]
}

/// A place of the file that has everything, as the schema describes it.
type Described<'s> = (SourceRange, &'s Value);

/// What `check` and the schema say of a value in one place, where they differ.
fn disagreements(text: &str, schema: &Value, (at, described): Described<'_>, value: &str) -> Vec<String> {
    let loaded = read(Path::new(everything::FILE), replaced(text, at, value), &|_| None);
    let mistakes = loaded.err().unwrap_or_default();
    let is_here = |mistake: &Diagnostic| (mistake.line, mistake.column) == (at.line as usize, at.column as usize);
    let told: Vec<String> = mistakes.into_iter().filter(is_here).map(|mistake| mistake.message).collect();
    // A text with a dot may be the name of an upstream.
    let may_be_name = described["title"] == "URL, or name of an upstream" && !value.contains([':', '/']);
    let is_name = |told: &str| may_be_name && told.contains("is not a URL");
    let is_related = |told: &String| is_name(told) || RELATIONS.iter().any(|relation| told.contains(relation));
    let only_related = !told.is_empty() && told.iter().all(is_related);
    let differ = as_json(value).into_iter().filter_map(|form| {
        let refused = json_schema::mistakes(schema, described, &form);
        let is_wrong = !told.is_empty() && !only_related;
        let place = format!("{form:?} at {}:{}", at.line, at.column);
        (refused.is_empty() == is_wrong).then(|| format!("{place}: check says {told:?}, the schema {refused:?}"))
    });
    differ.collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, rng_seed: RngSeed::Fixed(34), ..ProptestConfig::default() })]

    #[test]
    fn a_value_is_refused_by_both_or_by_none(place in any::<Index>(), value in near()) {
        let schema = schema();
        let text = fs::read_to_string(everything::FILE).expect("the file");
        let mut found = Vec::new();
        values(&everything::tree(&text), &schema, &schema, &mut found);
        let differ = disagreements(&text, &schema, *place.get(&found), &value);
        prop_assert!(differ.is_empty(), "{differ:?}");
    }
}

#[test]
fn a_key_a_match_an_address_and_a_url_are_refused_by_both_or_by_none() {
    let schema = schema();
    let text = fs::read_to_string(everything::FILE).expect("the file");
    let mut found = Vec::new();
    values(&everything::tree(&text), &schema, &schema, &mut found);
    // One place for each form: its description may differ. Numbers and words are drawn from above.
    let is_text = |place: &&Described<'_>| {
        let (described, choices) = (place.1, &place.1["anyOf"][0]);
        [described, choices].iter().any(|described| {
            described["pattern"].is_string()
                && !["number", "duration", "size", "share", "rate"]
                    .contains(&described["title"].as_str().unwrap_or_default())
        }) && described["title"] != "`true` or `false`"
    };
    let form =
        |described: &Value| [&described["pattern"], &described["anyOf"], &described["not"]].map(Value::to_string);
    let forms: BTreeMap<_, _> = found.iter().filter(is_text).map(|place| (form(place.1), *place)).collect();
    let texts = forms.values().flat_map(|place| TEXTS.split('\n').map(move |value| (*place, value)));
    let differ: Vec<String> = texts.flat_map(|(place, value)| disagreements(&text, &schema, place, value)).collect();
    assert!(differ.is_empty(), "{} differ:\n{}", differ.len(), differ.join("\n"));
}

/// What a schema cannot see, by what `check` says: it needs another key, a file, or the whole list.
const BEYOND_A_SCHEMA: &[&str] = &[
    // Another section, a route or a list that it refers to.
    "is in `listen` too",
    "can be reached from other machines",
    "needs answers that are a",
    "needs the meaning of the application's answers",
    "needs a device cookie",
    "no client can become a `known_client`",
    "cancel each other",
    "is never read, because no proxy is trusted",
    "lets only trusted proxies connect",
    "there is no list",
    "there is no upstream",
    "there is no channel",
    "the route's path has no capture",
    "needs a capture in a route's `match`",
    "no route has `sessions`",
    "there is no `jwt`",
    "there is no `store.redis`",
    "is decided before",
    "this list contains values of",
    "`upstream` is missing",
    // Two values that must not be the same, or must be.
    "twice",
    "is defined differently",
    "there are two routes called",
    "two rates for the same window",
    "than the first one",
    // What two numbers or two texts make together.
    "are the same file",
    "never passes a",
    "are too many for sliding-window-log",
    "a `ban` with 101 lengths",
    "is of the file of a Unix socket",
    "takes one url, and there are several",
    "`hash_slot: client` would not",
    "`hash_slot: client` is for a cluster",
    "a cluster has only database 0",
    "the path of a Redis url must be",
    "the url has a password",
    "these networks together are",
    "lets everyone ask",
    "trusts everyone",
    // Names that have a meaning already, or that look like something else.
    "cannot be called",
    "looks like an address",
    "cannot be set here",
    "comes after a scheme",
    // Files and what is in them.
    "cannot read the",
    "the token file",
    "a key set is one JSON object",
    "is no set of keys",
    "is not a file",
    "holds no page",
    "is in no language",
    "placeholder",
    // What only its own parser can tell.
    "not a regular expression",
    "all regular expressions take more",
    "this is not the address of a Redis server",
    "can be changed on its way",
    "this is not a value for the header",
    "is not an address to redirect to",
    "is not a host",
];

/// The tree as JSON. What a value is, its key decides, so that every one is a text.
fn json_of(node: &Node) -> Value {
    match &node.content {
        Content::Nothing => Value::Null,
        Content::Scalar(text) => json!(text),
        Content::List(items) => items.iter().map(json_of).collect(),
        Content::Map(entries) => {
            Value::Object(entries.iter().map(|(name, value)| (name.text.clone(), json_of(value))).collect())
        }
    }
}

#[test]
fn the_schema_refuses_every_file_that_check_refuses_unless_a_relation_is_wrong() {
    let schema = schema();
    let mut taken = Vec::new();
    for file in files("tests/config/bad", "yaml") {
        let Ok(text) = fs::read_to_string(&file) else { continue };
        let mut mistakes = Mistakes::default();
        let source = mistakes.source(SourceText::new(&file, text.clone()));
        let Some(tree) = yaml::parse(&text, source, &environment, &mut mistakes) else { continue };
        if !mistakes.is_empty() || !json_schema::mistakes(&schema, &schema, &json_of(&tree)).is_empty() {
            continue;
        }
        let told = read(&file, text, &environment).err().unwrap_or_default();
        // Those in other files are about what these hold.
        let here = told.iter().filter(|told| told.file == file);
        let seen = here.filter(|told| !BEYOND_A_SCHEMA.iter().any(|words| told.message.contains(words)));
        taken.extend(seen.map(|told| format!("{}:{}: {}", file.display(), told.line, told.message)));
    }
    assert!(taken.is_empty(), "{} mistakes: {taken:#?}", taken.len());
}

#[test]
fn the_schema_takes_every_recipe() {
    let schema = schema();
    for file in [files("config", "yaml"), files("tests/config/good", "yaml")].concat() {
        let tree = everything::tree(&fs::read_to_string(&file).expect("a file"));
        let found = json_schema::mistakes(&schema, &schema, &json_of(&tree));
        assert!(found.is_empty(), "{}: {found:#?}", file.display());
    }
}

#[test]
fn what_they_once_disagreed_about_is_refused_by_both_or_by_none() {
    let schema = schema();
    for (section, key, value, is_valid) in [
        ("KnownClients", "for", json!("1h "), true),
        ("KnownClients", "for", json!(0), false),
        ("KnownClients", "for", json!("401d"), false),
        ("Server", "max_body", json!("1KB"), false),
        ("Server", "max_body", json!("64kb"), false),
        ("Server", "max_body", json!(-1), false),
        ("Server", "max_body", json!("64"), true),
        ("Redis", "wait", json!(100), true),
        ("Redis", "wait", json!(101), false),
        ("Log", "query", json!("True"), true),
        ("Limit", "rate", json!("10/minute; 1/S"), true),
        ("Limit", "rate", json!("10 period"), false),
        ("Limit", "rate", json!("${RATE}"), true),
        ("Limit", "rate", json!("$${RATE}"), false),
    ] {
        let found = json_schema::mistakes(&schema, &schema["$defs"][section]["properties"][key], &value);
        assert_eq!(found.is_empty(), is_valid, "{section}.{key}: {value}: {found:?}");
    }
}
