//! A denial or an error as a page, for people.

use std::sync::LazyLock;

use http::StatusCode;

use super::problem::title;
use super::refusal::Refusal;
use crate::gateway::admit::request_id::RequestId;
use crate::pool::Buffer;

/// The built-in page. It loads no other files, so that it works when all other requests are denied.
pub fn page(refusal: &Refusal<'_>, status: StatusCode, request_id: &RequestId) -> Buffer {
    DENIED.fill(|mark, html| match mark {
        "title" => html.extend_from_slice(title(status).as_bytes()),
        "detail" => refusal.explain(html),
        _ => html.extend_from_slice(request_id.as_bytes()),
    })
}

static DENIED: LazyLock<Template> = LazyLock::new(|| Template::new(include_str!("pages/denied.html")));

/// A page with marks such as `{{title}}`. The texts for the marks need no escaping: titles are from the HTTP standard,
/// details are plain, and ids have only safe characters.
#[derive(Debug)]
pub struct Template {
    parts: Vec<TemplatePart>,
    length: usize,
}

#[derive(Debug)]
enum TemplatePart {
    Text(&'static str),
    Mark(&'static str),
}

impl Template {
    pub fn new(text: &'static str) -> Self {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, marked)) = rest.split_once("{{") {
            let Some((mark, after)) = marked.split_once("}}") else { break };
            parts.push(TemplatePart::Text(before));
            parts.push(TemplatePart::Mark(mark));
            rest = after;
        }
        parts.push(TemplatePart::Text(rest));
        Self { parts, length: text.len() }
    }

    /// The page; `write` writes the text for each mark.
    pub fn fill(&self, mut write: impl FnMut(&str, &mut Vec<u8>)) -> Buffer {
        let mut html = Buffer::take();
        html.reserve(self.length + 192);
        for part in &self.parts {
            match part {
                TemplatePart::Text(text) => html.extend_from_slice(text.as_bytes()),
                TemplatePart::Mark(mark) => write(mark, &mut html),
            }
        }
        html
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_page_says_how_long_to_wait_and_which_request_it_was() {
        let refusal = Refusal::Limited { limits: &[], wait: Some(Duration::from_secs(42)) };
        let id = RequestId::random();
        let html = page(&refusal, StatusCode::TOO_MANY_REQUESTS, &id);
        let html = String::from_utf8(html.to_vec()).expect("text");
        assert!(html.contains("<title>Too Many Requests</title>"), "{html}");
        assert!(html.contains("Try again in 42 seconds."));
        assert!(html.contains(id.as_str()));
        assert!(!html.contains("{{"));
    }
}
