//! The files of the dashboard.

use std::hash::Hasher;

use siphasher::sip::SipHasher13;

/// One file, as it was compiled in.
#[derive(Debug)]
pub(super) struct PageFile {
    name: &'static str,
    pub(super) content_type: &'static str,
    pub(super) text: &'static str,
}

impl PageFile {
    pub(super) fn index() -> &'static Self {
        &INDEX
    }

    pub(super) fn named(name: &str) -> Option<&'static Self> {
        FILES.iter().find(|file| file.name == name)
    }

    /// Differs where the text differs.
    pub(super) fn etag(&self) -> String {
        let mut hasher = SipHasher13::new();
        hasher.write(self.text.as_bytes());
        format!("\"{:016x}\"", hasher.finish())
    }
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

static INDEX: PageFile = PageFile { name: "index.html", content_type: HTML, text: include_str!("index.html") };

macro_rules! file {
    ($name:literal, $content_type:expr) => {
        PageFile { name: $name, content_type: $content_type, text: include_str!($name) }
    };
}

static FILES: &[PageFile] = &[
    file!("style.css", CSS),
    file!("icon.svg", SVG),
    file!("advice.js", SCRIPT),
    file!("api.js", SCRIPT),
    file!("ask.js", SCRIPT),
    file!("bans.js", SCRIPT),
    file!("chart.js", SCRIPT),
    file!("config.js", SCRIPT),
    file!("contact.js", SCRIPT),
    file!("dom.js", SCRIPT),
    file!("events.js", SCRIPT),
    file!("format.js", SCRIPT),
    file!("history.js", SCRIPT),
    file!("keyparts.js", SCRIPT),
    file!("keys.js", SCRIPT),
    file!("main.js", SCRIPT),
    file!("requests.js", SCRIPT),
    file!("session.js", SCRIPT),
    file!("status.js", SCRIPT),
    file!("table.js", SCRIPT),
    file!("top.js", SCRIPT),
    file!("traffic.js", SCRIPT),
    file!("verdict.js", SCRIPT),
];

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn every_file_of_the_folder_is_served() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/admin/page");
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.extension().is_some_and(|extension| extension != "rs") && name != "index.html" {
                assert!(PageFile::named(name).is_some(), "{name} is not served");
            }
        }
    }

    #[test]
    fn nothing_is_inline_and_no_other_host_is_named() {
        for file in FILES.iter().chain([&INDEX]) {
            for forbidden in
                ["style=", "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "<style"]
            {
                assert!(!file.text.contains(forbidden), "{}: {forbidden}", file.name);
            }
            let hosts = file.text.matches("://").count() - file.text.matches("http://www.w3.org/2000/svg").count();
            assert_eq!(hosts, 0, "{} names another host", file.name);
        }
        let handlers = regex::Regex::new(r"\son[a-z]+\s*=").unwrap();
        assert!(!handlers.is_match(INDEX.text), "a handler in the markup");
        assert_eq!(INDEX.text.matches("<script").count(), INDEX.text.matches("<script type=\"module\" src=").count());
    }
}
