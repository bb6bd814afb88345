//! Spellings of a path, as attackers, scanners and advisories write them.

mod around;

use std::collections::BTreeSet;

use self::around::{BEFORE, BEHIND, FEW_BEFORE, FEW_BEHIND};

/// Every spelling of an absolute path as the target of a request, the plain one among them.
pub fn spellings(path: &str) -> BTreeSet<String> {
    let name = path.trim_matches('/');
    let slash = if path.len() > 1 && path.ends_with('/') { "/" } else { "" };
    let mut targets = BTreeSet::new();
    let mut add = |before: &str, name: &str, behind: &str| _ = targets.insert(format!("{before}{name}{slash}{behind}"));
    for before in BEFORE {
        for behind in FEW_BEHIND {
            add(before, name, behind);
        }
    }
    for behind in BEHIND {
        for before in FEW_BEFORE {
            add(before, name, behind);
        }
    }
    for name in inside(name) {
        for behind in FEW_BEHIND {
            add("/", &name, behind);
        }
    }
    targets
}

/// The name with some of its letters spelled otherwise.
fn inside(name: &str) -> Vec<String> {
    let escaped =
        |escape: fn(u8) -> String| name.bytes().map(move |byte| if byte == b'/' { "/".into() } else { escape(byte) });
    let first = |escape: fn(u8) -> String| match name.split_at_checked(1) {
        Some((first, rest)) => escape(first.as_bytes()[0]) + rest,
        None => String::new(),
    };
    let mut names = vec![
        name.to_owned(),
        name.to_uppercase(),
        escaped(|byte| format!("%{byte:02x}")).collect(),
        escaped(|byte| format!("%25{byte:02X}")).collect(),
        first(|byte| format!("%{byte:02X}")),
        first(|byte| format!("%25{byte:02x}")),
        first(|byte| format!("%2525{byte:02x}")),
        first(|byte| format!("%u00{byte:02x}")),
        first(|byte| format!("%c1%{:02x}", 0x80 | (byte & 0x3f))),
        first(|byte| format!("%e0%81%{:02x}", 0x80 | (byte & 0x3f))),
        first(|byte| format!("%ef%bc%{:02x}", 0x80 + (byte - 0x20) % 0x40)),
    ];
    for (plain, other) in [
        (".", "%2e"),
        (".", "%252e"),
        (".", "%20."),
        (".", ".%20"),
        (".", ".."),
        (".", "%00."),
        (".", ";x."),
        (".php", ".PHP"),
        (".php", ".php5"),
        (".php", ""),
        ("/", "//"),
        ("/", "/./"),
        ("/", "%2f"),
        ("/", "\\"),
        ("/", ";x/"),
        ("/", "/x/../"),
    ] {
        names.push(name.replacen(plain, other, 1));
    }
    names.extend([".php", ".jsp", ".do", ".html"].map(|extension| format!("{name}{extension}")));
    names
}
