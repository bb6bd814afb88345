//! JSON, and what lenient libraries take for it.

use fastrand::Rng;

use super::{mutate, once_in, pick, recorded, typed};
use crate::case::Case;

pub(super) fn body(rng: &mut Rng) -> Case {
    if once_in(rng, 4) {
        return recorded::case(rng, "json", TOKENS);
    }
    let mut tricks = Vec::new();
    let mut text = document(rng, &mut tricks);
    if once_in(rng, 4) {
        tricks.push("mutated");
        mutate::bytes(rng, &mut text, TOKENS);
    }
    let plain = if once_in(rng, 5) {
        tricks.push("declared");
        pick(
            rng,
            &[
                "text/plain",
                "application/x-www-form-urlencoded",
                "application/octet-stream",
                "text/plain;charset=UTF-8",
                "application/csp-report",
                "multipart/form-data; boundary=b",
                "text/html",
                "application/xml",
                "application/vnd.api+json",
            ],
        )
    } else {
        "application/json"
    };
    typed::body(rng, plain, text, tricks)
}

fn document(rng: &mut Rng, tricks: &mut Vec<&'static str>) -> Vec<u8> {
    let mut members = vec![target(rng, tricks)];
    for _ in 0..rng.usize(..3) {
        let member = match rng.u32(..3) {
            0 => "\"password\":\"x\"".to_owned(),
            1 => pick(rng, OTHERS).to_owned(),
            _ => "\"username\":\"bob\"".to_owned(),
        };
        members.insert(rng.usize(..=members.len()), member);
    }
    if once_in(rng, 30) {
        tricks.push("many");
        let count = pick(rng, &[7, 8, 9, 63, 64, 65, 128, 1000, 2000]);
        let decoy = pick(
            rng,
            &[
                "\"username\":\"bob\"",
                "\"a\":1",
                "\"USERNAME\":\"bob\"",
                "\"username\":{}",
                "\"x\":{\"username\":\"bob\"}",
            ],
        );
        let many = vec![decoy.to_owned(); count];
        if rng.bool() {
            members.splice(0..0, many)
        } else {
            members.splice(members.len().., many)
        };
    }
    let comma = if once_in(rng, 12) {
        pick(rng, &[";", ",,", " ", "\n", ", ", ",\n", ",/**/", ",\u{feff}", ",\u{b}", ",\u{a0}"])
    } else {
        ","
    };
    let (open, close) = if once_in(rng, 10) { pick(rng, BRACKETS) } else { ("{", "}") };
    let mut text = format!("{open}{}{close}", members.join(comma));
    if once_in(rng, 6) {
        tricks.push("around");
        text = format!("{}{text}{}", pick(rng, BEFORE), pick(rng, AFTER));
    }
    if once_in(rng, 40) {
        tricks.push("deep");
        let depth = pick(rng, &[60, 99, 100, 127, 128, 129, 200, 512, 1000]);
        let deep = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        text = text.replacen('{', &format!("{{\"x\":{deep},"), 1);
    }
    if once_in(rng, 40) {
        tricks.push("long");
        let long = "x".repeat(pick(rng, &[256, 1024, 5000, 66_000]));
        text = text.replacen('{', &format!("{{\"{long}\":1,"), 1);
    }
    let mut text = text.into_bytes();
    if once_in(rng, 20) {
        tricks.push("bytes");
        let at = rng.usize(..=text.len());
        let odd: &[u8] =
            pick(rng, &[b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\x80", b"\xc1\xa1", b"\xe9", b"\0", b"\x01", b"\x7f"]);
        text.splice(at..at, odd.iter().copied());
    }
    text
}

const BRACKETS: &[(&str, &str)] = &[
    ("{{", "}}"),
    ("[{", "}]"),
    ("{", ""),
    ("{", "}}"),
    ("", ""),
    ("{,", "}"),
    ("{", ",}"),
    ("{", ";}"),
    ("({", "})"),
    ("{\"x\":{", "}}"),
    ("{\"user\":{", "}}"),
    ("{\"username\":{", "}}"),
    ("{\"\":{", "}}"),
    ("\"{", "}\""),
];

const BEFORE: &[&str] = &[
    "",
    "",
    "\u{feff}",
    " ",
    "\n",
    "//\n",
    "//username\n",
    "/**/",
    "/* { */",
    "#\n",
    "# x\n",
    ")]}'\n",
    ")]}',\n",
    ")]}'",
    "while(1);",
    "for(;;);",
    "{}&&",
    "x=",
    "a=1&b=",
    "\u{b}",
    "\u{c}",
    "\u{a0}",
    "\u{2028}",
    "\0",
    "{\"username\":\"bob\"}",
    "{\"username\":\"bob\"}\n",
    "[] ",
    "null ",
    "1 ",
    "\u{1e}",
    "/*",
    "--b\r\n",
    "<x/>",
    "callback(",
    "'",
    "%",
    "username=bob&x=",
    "\"\" ",
    "//\r",
    "//\u{2028}",
    "#\r",
    "/*/ */",
    ";",
    ",",
];

const AFTER: &[&str] = &[
    "",
    "",
    "",
    "=",
    "\n",
    " ",
    "x",
    "//",
    "/**/",
    "#",
    "\0",
    "{\"username\":\"alice\"}",
    "\n{\"username\":\"alice\"}",
    ";",
    ")",
    "&username=alice",
    "&x=1",
    "\u{1a}",
    "]",
    "}",
    ",",
    " \u{a0}",
    "\u{feff}",
    "\n--b--",
    "//\nx",
];

/// The member with the name.
fn target(rng: &mut Rng, tricks: &mut Vec<&'static str>) -> String {
    if once_in(rng, 3) {
        return "\"username\":\"alice\"".to_owned();
    }
    tricks.push("member");
    let name = match rng.u32(..4) {
        0 => pick(rng, NAMES).to_owned(),
        1 => escaped(rng, "username"),
        _ => "username".to_owned(),
    };
    let value = match rng.u32(..4) {
        0 => pick(rng, VALUES).to_owned(),
        1 => escaped(rng, "alice"),
        _ => "alice".to_owned(),
    };
    let quoted = |rng: &mut Rng, text: String| {
        if text.starts_with(['[', '{', '(']) || text.ends_with('\'') {
            return text;
        }
        let (open, close) = if once_in(rng, 6) { pick(rng, QUOTES) } else { ("\"", "\"") };
        format!("{open}{text}{close}")
    };
    let (name, value) = (quoted(rng, name), quoted(rng, value));
    let colon = if once_in(rng, 8) {
        pick(
            rng,
            &[
                "=",
                "=>",
                " : ",
                "::",
                ":/**/",
                "/**/:",
                "//\n:",
                ":#\n",
                "\n:\n",
                ":\u{a0}",
                "\u{b}:",
                "",
                " ",
                ":\u{feff}",
                "\0:",
            ],
        )
    } else {
        ":"
    };
    format!("{name}{colon}{value}")
}

const NAMES: &[&str] = &[
    "USERNAME",
    "Username",
    "userName",
    "u\u{17f}ername",
    "username ",
    " username",
    "username\\u0000",
    "username\\u0000x",
    "\\u0000username",
    "username\0",
    "user\\name",
    "user\\u006eame",
    "\\u0075sername",
    "user\\u{6e}ame",
    "user\\x6eame",
    "user\\156ame",
    "username\\",
    "user\\/name",
    "username[]",
    "user_name",
    "user.name",
    "user[name]",
    "username\\ud800",
    "\\ud835\\udcca",
    "$username",
    "username\\n",
    "\u{feff}username",
    "user\u{ad}name",
    "user\\\nname",
    "@username",
    "username\\u200b",
    "username\\u0020",
    "/username",
    "username.0",
    "$.username",
];

const VALUES: &[&str] = &[
    "Alice",
    " alice",
    "alice\\u0000",
    "alice\\u0000x",
    "\\u0000alice",
    "al\\u0000ice",
    "\\u0061lice",
    "\\u00e9",
    "al\\/ice",
    "\\alice",
    "al\\ice",
    "al\\\nice",
    "al\nice",
    "alice\\n",
    "\\x61lice",
    "\\141lice",
    "alice\\ud800",
    "\\uff41lice",
    "alice\u{200b}",
    "[\"alice\"]",
    "[\"bob\",\"alice\"]",
    "{\"x\":\"alice\"}",
    "[[\"alice\"]]",
    "{\"$ne\":\"alice\"}",
    "(\"alice\")",
    "alice\0",
    "alice\u{1}",
    "\\u{61}lice",
    "\\U00000061lice",
    "al\\u200bice",
    "ali\" \"ce",
    "ali\"+\"ce",
    "[\"alice\",",
    "{\"username\":\"alice\"}",
];

const QUOTES: &[(&str, &str)] = &[
    ("'", "'"),
    ("", ""),
    ("`", "`"),
    ("\"\"\"", "\"\"\""),
    ("'''", "'''"),
    ("\"", "'"),
    ("'", "\""),
    ("\u{201c}", "\u{201d}"),
    ("r\"", "\""),
    ("u\"", "\""),
    ("b'", "'"),
    ("\"", ""),
    ("", "\""),
    ("\\\"", "\\\""),
    ("$", ""),
    ("@\"", "\""),
    ("%", ""),
    ("x\"", "\""),
    ("new String(\"", "\")"),
    ("''\"", "\""),
    ("\"\" \"", "\""),
];

const OTHERS: &[&str] = &[
    "\"username\":null",
    "\"username\":1",
    "\"username\":{}",
    "\"username\":[]",
    "\"username\":[\"bob\"]",
    "\"Username\":\"bob\"",
    "\"a\":NaN",
    "\"a\":Infinity",
    "\"a\":-Infinity",
    "\"a\":01",
    "\"a\":+1",
    "\"a\":1.",
    "\"a\":.5",
    "\"a\":0x10",
    "\"a\":1e999",
    "\"a\":undefined",
    "\"a\":True",
    "\"a\":TRUE",
    "\"a\":\"\\q\"",
    "\"a\":\"\\u12\"",
    "\"a\":\"\t\"",
    "\"a\":\"\n\"",
    "a:1",
    "'a':1",
    "\"a\"",
    "\"a\":",
    ":1",
    "1:1",
    "null:1",
    "\"a\":1 /* , */",
    "\"a\":1 // ,\n",
    "\"a\":1 # ,\n",
    "\"user\":{\"name\":\"bob\"}",
    "\"user\":\"bob\"",
    "\"__proto__\":{\"username\":\"bob\"}",
    "\"a\":\"&username=bob&\"",
    "\"&username\":\"bob\"",
    "\"a\":\"username=bob\"",
    "\"a\":{\"b\":[{}]}",
    "\"a\":\"\\\"\"",
    "\"a\":\"\\\\\"",
    "\"a\":\"\\\\\\\"\"",
    "\"a\":'\"'",
    "\"a\":'\\''",
    "\"a\":\"'\"",
    "\"a\":/\"/",
    "\"a\":`\"`",
    "\"a\":\"/*\"",
    "\"a\":\"*/\"",
    "/*\"*/\"a\":1",
    "//\"\n\"a\":1",
    "#\"\n\"a\":1",
    "\"json_class\":\"String\"",
    "\"a\":12345678901234567890123",
    "\"a\":-",
    "\"a\":1_000",
    "\"a\":[1,]",
    "\"a\":[,1]",
    "\"a\":[1;2]",
    "\"a\":{b=1}",
    "\"username\":\"bob\" \"x\":1",
];

fn escaped(rng: &mut Rng, text: &str) -> String {
    let way = rng.u32(..6);
    let escape = |byte: u8| match way {
        0 => format!("\\u{byte:04X}"),
        1 => format!("\\x{byte:02x}"),
        2 => format!("\\{byte:o}"),
        3 => format!("\\{}", char::from(byte)),
        4 => format!("\\U{byte:04x}"),
        _ => format!("\\u{byte:04x}"),
    };
    text.bytes().map(|byte| if rng.bool() { escape(byte) } else { char::from(byte).to_string() }).collect()
}

const TOKENS: &[&str] = &[
    "\"",
    "'",
    "\\",
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "/*",
    "*/",
    "//",
    "#",
    "\n",
    "\r",
    "\0",
    "\u{feff}",
    "\u{2028}",
    "\u{a0}",
    "\u{b}",
    "null",
    "true",
    "1",
    "-",
    "\\u0000",
    "\\u0022",
    "\\\"",
    "\"username\":\"alice\"",
    "\"username\":\"bob\"",
    ",\"username\":\"alice\"",
    "{\"username\":\"alice\"}",
    "&username=alice&",
    "username",
    "alice",
    "=",
    ";",
    "=>",
    "--b\r\n",
    "\"\"",
    "\u{ff}",
    "<",
    "'alice'",
    "NaN",
];
