//! The dashboard: one page, its style and its scripts, as files in the binary.

use std::hash::Hasher;
use std::sync::Arc;

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

fn answer(file: &PageFile, headers: &HeaderMap) -> Response {
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
    (head, [(CONTENT_TYPE, file.content_type)], file.text).into_response()
}

// The files of the dashboard.

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
    file!("attacks.js", SCRIPT),
    file!("bans.js", SCRIPT),
    file!("chart.js", SCRIPT),
    file!("config.js", SCRIPT),
    file!("contact.js", SCRIPT),
    file!("dom.js", SCRIPT),
    file!("done.js", SCRIPT),
    file!("entered.js", SCRIPT),
    file!("events.js", SCRIPT),
    file!("filter.js", SCRIPT),
    file!("fold.js", SCRIPT),
    file!("format.js", SCRIPT),
    file!("history.js", SCRIPT),
    file!("keyparts.js", SCRIPT),
    file!("keys.js", SCRIPT),
    file!("main.js", SCRIPT),
    file!("mark.js", SCRIPT),
    file!("net.js", SCRIPT),
    file!("requests.js", SCRIPT),
    file!("session.js", SCRIPT),
    file!("status.js", SCRIPT),
    file!("table.js", SCRIPT),
    file!("top.js", SCRIPT),
    file!("traffic.js", SCRIPT),
    file!("verdict.js", SCRIPT),
    file!("where.js", SCRIPT),
];

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
        let handlers = NamePattern::new(r"(?s).*\son[a-z]+\s*=.*").unwrap();
        assert!(!handlers.matches(INDEX.text), "a handler in the markup");
        assert_eq!(INDEX.text.matches("<script").count(), INDEX.text.matches("<script type=\"module\" src=").count());
    }
}
