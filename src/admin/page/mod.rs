//! The dashboard: one page, its style and its scripts, as files in the binary.

use std::hash::Hasher;
use std::sync::{Arc, LazyLock};

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::response::{IntoResponse, Response};
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, StatusCode};
use siphasher::sip::SipHasher13;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::admin::AdminState;
use crate::admin::problem::Problem;

// Serves the files of the dashboard.

/// Everything comes from this listener, nothing is inline, no other page frames this one, and no script makes markup from
/// text.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
                      trusted-types 'none'";

pub(in crate::admin) fn routes() -> OpenApiRouter<Arc<AdminState>> {
    OpenApiRouter::new().routes(routes!(index)).routes(routes!(file))
}

/// The dashboard
///
/// For a browser.
#[utoipa::path(
    get,
    path = "/",
    responses(
        (status = 200, description = "The page.", body = String, content_type = "text/html"),
        (status = 304, description = "The browser has this version of it."),
    )
)]
async fn index(headers: HeaderMap) -> Response {
    answer(PageFile::index(), &headers)
}

/// A file of the dashboard
///
/// A style sheet, a script or a picture that the page names.
#[utoipa::path(
    get,
    path = "/page/{name}",
    params(("name" = String, Path)),
    responses(
        (status = 200, description = "The file.", content(
            (String = "text/css"),
            (String = "text/javascript"),
            (String = "image/svg+xml"),
        )),
        (status = 304, description = "The browser has this version of it."),
        (status = 404, description = "There is no such file."),
    )
)]
async fn file(name: Result<Path<String>, PathRejection>, headers: HeaderMap) -> Result<Response, Problem> {
    let file = name.ok().and_then(|Path(name)| PageFile::named(&name));
    let file = file.ok_or_else(|| Problem::new(StatusCode::NOT_FOUND, "the dashboard has no such file"))?;
    Ok(answer(file, &headers))
}

fn answer(file: &'static PageFile, headers: &HeaderMap) -> Response {
    let etag = file.etag();
    // A new version of the gateway has new files: browsers ask each time whether theirs is current.
    let head = [
        (CACHE_CONTROL, "no-cache"),
        (ETAG, &*etag),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
    ];
    let is_current = headers.get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == etag.as_bytes());
    if is_current {
        return (StatusCode::NOT_MODIFIED, head).into_response();
    }
    (head, [(CONTENT_TYPE, file.content_type)], &*file.text).into_response()
}

// The files of the dashboard.

const HTML: &str = "text/html; charset=utf-8";

const CSS: &str = "text/css; charset=utf-8";

const SCRIPT: &str = "text/javascript; charset=utf-8";

const SVG: &str = "image/svg+xml";

static INDEX: LazyLock<PageFile> = LazyLock::new(|| PageFile::new("index.html", HTML, include_str!("index.html")));

macro_rules! file {
    ($name:literal, $content_type:expr) => {
        PageFile::new($name, $content_type, include_str!($name))
    };
}

static FILES: LazyLock<Vec<PageFile>> = LazyLock::new(|| {
    vec![
        file!("style.css", CSS),
        file!("icon.svg", SVG),
        file!("api.js", SCRIPT),
        file!("ask.js", SCRIPT),
        file!("attacks.js", SCRIPT),
        file!("bans.js", SCRIPT),
        file!("chart.js", SCRIPT),
        file!("config.js", SCRIPT),
        file!("contact.js", SCRIPT),
        file!("dom.js", SCRIPT),
        file!("events.js", SCRIPT),
        file!("filter.js", SCRIPT),
        file!("fold.js", SCRIPT),
        file!("format.js", SCRIPT),
        file!("history.js", SCRIPT),
        file!("keyparts.js", SCRIPT),
        file!("keys.js", SCRIPT),
        file!("lately.js", SCRIPT),
        file!("main.js", SCRIPT),
        file!("mark.js", SCRIPT),
        file!("net.js", SCRIPT),
        file!("requests.js", SCRIPT),
        file!("session.js", SCRIPT),
        file!("status.js", SCRIPT),
        file!("table.js", SCRIPT),
        file!("tools.js", SCRIPT),
        file!("top.js", SCRIPT),
        file!("traffic.js", SCRIPT),
        file!("verdict.js", SCRIPT),
        file!("where.js", SCRIPT),
    ]
});

/// One file, as it is sent.
#[derive(Debug)]
struct PageFile {
    name: &'static str,
    content_type: &'static str,
    text: String,
}

impl PageFile {
    fn new(name: &'static str, content_type: &'static str, source: &str) -> Self {
        let text = condensed(source);
        let text = match content_type {
            CSS => without(&text, SPACES_OF_RULES),
            SCRIPT => without(&text, SPACES_OF_SCRIPTS),
            _ => text,
        };
        Self { name, content_type, text }
    }

    fn index() -> &'static Self {
        &INDEX
    }

    fn named(name: &str) -> Option<&'static Self> {
        FILES.iter().find(|file| file.name == name)
    }

    /// Differs where the text differs.
    fn etag(&self) -> String {
        let mut hasher = SipHasher13::new();
        hasher.write(self.text.as_bytes());
        format!("\"{:016x}\"", hasher.finish())
    }
}

/// Without what only those who write the page need: indentation, and comments on lines of their own.
fn condensed(source: &str) -> String {
    let is_comment = |line: &&str| line.starts_with("//") || (line.starts_with("/*") && line.ends_with("*/"));
    let lines = source.lines().map(str::trim).filter(|line| !line.is_empty() && !is_comment(line));
    lines.collect::<Vec<_>>().join("\n")
}

/// The spaces that mean nothing: as they are written, and as they are sent. No sentence has one of these.
type Spaces = &'static [(&'static str, &'static str)];

const SPACES_OF_RULES: Spaces =
    &[(": ", ":"), (", ", ","), ("; ", ";"), (" {", "{"), ("{ ", "{"), (" }", "}"), ("\n", "")];

const SPACES_OF_SCRIPTS: Spaces =
    &[(" => ", "=>"), (" === ", "==="), (" !== ", "!=="), (" && ", "&&"), (" || ", "||"), (" ?? ", "??")];

fn without(text: &str, spaces: Spaces) -> String {
    spaces.iter().fold(text.to_owned(), |text, (written, sent)| text.replace(written, sent))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::rules::key::NamePattern;

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
    fn all_files_together_are_at_most_100_kilobytes() {
        let bytes: usize = FILES.iter().chain([&*INDEX]).map(|file| file.text.len()).sum();
        assert!(bytes <= 100_000, "{bytes} bytes");
    }

    #[test]
    fn what_is_sent_has_no_comments_and_no_indentation() {
        assert_eq!(condensed("// Why.\nlet a = 1; // b\n\n    a += 1;\n"), "let a = 1; // b\na += 1;");
        let rules = condensed("/* Why. */\na, b { c: d; e: f g; }\n");
        assert_eq!(without(&rules, SPACES_OF_RULES), "a,b{c:d;e:f g;}");
        assert_eq!(without("(one) => one !== two && one", SPACES_OF_SCRIPTS), "(one)=>one!==two&&one");
    }

    #[test]
    fn nothing_is_inline_and_no_other_host_is_named() {
        for file in FILES.iter().chain([&*INDEX]) {
            for forbidden in
                ["style=", "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "<style"]
            {
                assert!(!file.text.contains(forbidden), "{}: {forbidden}", file.name);
            }
            let hosts = file.text.matches("://").count() - file.text.matches("http://www.w3.org/2000/svg").count();
            assert_eq!(hosts, 0, "{} names another host", file.name);
        }
        let handlers = NamePattern::new(r"(?s).*\son[a-z]+\s*=.*").unwrap();
        assert!(!handlers.matches(&INDEX.text), "a handler in the markup");
        assert_eq!(INDEX.text.matches("<script").count(), INDEX.text.matches("<script type=\"module\" src=").count());
    }
}
