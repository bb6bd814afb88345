//! Deny responses.

use bytes::Bytes;
use http::HeaderValue;

use super::compiler::Compiler;
use super::files::NamedFile;
use crate::config::raw;
use crate::config::raw::Field;
use crate::config::raw::Spanned;
use crate::config::raw::Text;
use crate::config::raw::then::Status;
use crate::head::FieldName;
use crate::head::KnownName;
use crate::limit::DenyResponse;
use crate::limit::action::DenyBody;

impl Compiler {
    pub(super) fn response(&mut self, response: &Field<raw::then::DenyResponse>) -> Option<DenyResponse> {
        response.get().map(|response| self.deny_response(response))
    }

    pub(super) fn deny_response(&mut self, response: &raw::then::DenyResponse) -> DenyResponse {
        if let (Some(at), Some(_)) = (response.body_file.key(), response.body.key()) {
            self.mistakes.report(
                at,
                "`body` and `body_file` exclude each other",
                "`body` is sent to every client as it is, `body_file` is a page for browsers: keep one of the two",
            );
        }
        let headers = self.response_headers(response);
        let redirect = response.redirect.get().and_then(|target| self.redirect(target));
        let status = response.status.get();
        if let (Some(_), Some(Spanned { value: Status(status), at })) = (&redirect, status)
            && !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
        {
            self.mistakes.report(
                *at,
                format!("a response with status {} does not redirect", status.as_u16()),
                "write 303 or another redirect, or remove `status`: with `redirect` it is 303",
            );
        }
        let body = self.body(response, &headers);
        // The content type is kept with the body.
        let headers = headers.into_iter().filter(|(name, _)| body.is_none() || !is_content_type(name)).collect();
        DenyResponse { status: status.map(|status| status.value.0), body, headers, redirect }
    }

    fn body(&mut self, response: &raw::then::DenyResponse, headers: &[(FieldName, HeaderValue)]) -> Option<DenyBody> {
        if let Some(file) = response.body_file.get() {
            let NamedFile { content, .. } = self.file(file, "page")?;
            return Some(DenyBody::Page(Bytes::from(content)));
        }
        let body = response.body.get()?;
        let given = headers.iter().find(|(name, _)| is_content_type(name)).map(|(_, value)| value.clone());
        let content_type = given.unwrap_or_else(|| HeaderValue::from_static(guessed_type(&body.value)));
        Some(DenyBody::Verbatim { content_type, content: Bytes::from(body.value.clone()) })
    }

    fn response_headers(&mut self, response: &raw::then::DenyResponse) -> Vec<(FieldName, HeaderValue)> {
        let Some(named) = response.headers.get() else { return Vec::new() };
        let mut headers: Vec<(FieldName, HeaderValue)> = Vec::new();
        for (name, value) in &named.entries {
            if self.refuse_glob(name, "the name of a header", "write the whole name, such as `x-denied-by`") {
                continue;
            }
            let Ok(header) = name.value.parse::<FieldName>() else {
                let help = "header names are letters, digits and dashes: `x-denied-by`";
                self.mistakes.report(name.at, format!("`{}` is not a header name", name.value), help);
                continue;
            };
            if SET_BY_GATEWAY.iter().any(|known| header == (*known).into()) {
                let help = "remove it: portcullis writes this header itself";
                self.mistakes.report(name.at, format!("`{}` cannot be set here", name.value), help);
                continue;
            }
            if headers.iter().any(|(other, _)| *other == header) {
                let help = "names of headers are compared without case: keep one of the two";
                self.mistakes.report(name.at, format!("the header `{}` is given twice", name.value), help);
                continue;
            }
            let Ok(content) = HeaderValue::from_str(&value.value) else {
                let help = "header values are one line of visible ASCII characters";
                self.mistakes.report(value.at, format!("this is not a value for the header `{header}`"), help);
                continue;
            };
            headers.push((header, content));
        }
        headers
    }

    fn redirect(&mut self, target: &Text) -> Option<HeaderValue> {
        let text = target.value.as_str();
        let is_place = text.starts_with('/') || text.starts_with("https://") || text.starts_with("http://");
        let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        match HeaderValue::from_str(text) {
            Ok(value) if is_place && is_plain => Some(value),
            _ => {
                let help = "write a path such as `/slow-down`, or a URL such as `https://status.example.com/`";
                self.mistakes.report(target.at, format!("`{text}` is not an address to redirect to"), help);
                None
            }
        }
    }
}

fn is_content_type(name: &FieldName) -> bool {
    *name == KnownName::CONTENT_TYPE.into()
}

/// The content type of an inline body without a `content-type` header.
fn guessed_type(body: &str) -> &'static str {
    let is_json = || serde_json::from_str::<serde::de::IgnoredAny>(body).is_ok();
    match body.trim_start().chars().next() {
        Some('<') => "text/html; charset=utf-8",
        Some('{' | '[') if is_json() => "application/json",
        _ => "text/plain; charset=utf-8",
    }
}

/// Headers for framing, caching and `Retry-After`, which the gateway sets itself.
const SET_BY_GATEWAY: &[KnownName] = &[
    KnownName::CONNECTION,
    KnownName::CONTENT_LENGTH,
    KnownName::TRANSFER_ENCODING,
    KnownName::UPGRADE,
    KnownName::TRAILER,
    KnownName::TE,
    KnownName::RETRY_AFTER,
    KnownName::CACHE_CONTROL,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_of_an_inline_body_is_guessed() {
        assert_eq!(guessed_type("\n<!doctype html><p>Slow down"), "text/html; charset=utf-8");
        assert_eq!(guessed_type(r#"{"error": "slow down"}"#), "application/json");
        assert_eq!(guessed_type("{slow down}"), "text/plain; charset=utf-8");
        assert_eq!(guessed_type("slow down"), "text/plain; charset=utf-8");
        assert_eq!(guessed_type(""), "text/plain; charset=utf-8");
    }
}
