//! Requests as a browser sends them, and as a program does.

use serde::{Deserialize, Serialize};

use super::connect::SITE;

/// What a client asks for.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) enum Sends {
    /// Someone follows a link.
    Navigation,
    /// A script of the page asks for JSON.
    Fetch,
    /// Someone sends a login form of 1 KiB.
    Form,
    /// A script of the page sends so many bytes.
    Upload(usize),
    /// A program asks, with as few fields as curl.
    Few,
}

impl Sends {
    pub(super) fn method(self) -> &'static str {
        if self.body().is_empty() { "GET" } else { "POST" }
    }

    /// The fields of the head but for Host, Content-Length and Cookie, in a browser's order.
    pub(super) fn fields(self) -> Vec<(&'static str, &'static str)> {
        let is_page = matches!(self, Self::Navigation | Self::Form);
        let content_type = match self {
            Self::Few => return vec![("User-Agent", "curl/8.14.1"), ("Accept", "*/*")],
            Self::Navigation | Self::Fetch => None,
            Self::Form => Some("application/x-www-form-urlencoded"),
            Self::Upload(_) => Some("application/octet-stream"),
        };
        let page = |name, value| is_page.then_some((name, value));
        [
            Some(("Sec-Ch-Ua", "\"Chromium\";v=\"128\", \"Not;A=Brand\";v=\"24\"")),
            Some(("Sec-Ch-Ua-Mobile", "?0")),
            Some(("Sec-Ch-Ua-Platform", "\"Linux\"")),
            content_type.map(|_| ("Origin", "https://app.example.com")),
            content_type.map(|content_type| ("Content-Type", content_type)),
            page("Upgrade-Insecure-Requests", "1"),
            Some(("User-Agent", USER_AGENT)),
            Some(("Accept", if is_page { PAGE } else { "application/json" })),
            Some(("Sec-Fetch-Site", "same-origin")),
            Some(("Sec-Fetch-Mode", if is_page { "navigate" } else { "cors" })),
            page("Sec-Fetch-User", "?1"),
            Some(("Sec-Fetch-Dest", if is_page { "document" } else { "empty" })),
            Some(("Referer", "https://app.example.com/account/orders?page=2")),
            Some(("Accept-Encoding", "gzip, deflate, br, zstd")),
            Some(("Accept-Language", "en-GB,en-US;q=0.9,en;q=0.8,de;q=0.7")),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// 300 bytes of them. Over HTTP/1.1 they are one field, over HTTP/2 each is a field of its own.
    pub(super) fn cookies(self) -> &'static [&'static str] {
        if self == Self::Few { &[] } else { &COOKIES }
    }

    pub(super) fn body(self) -> Vec<u8> {
        match self {
            Self::Navigation | Self::Fetch | Self::Few => Vec::new(),
            Self::Form => {
                let mut form = b"username=alice&password=correct+horse+battery+staple&remember=on&token=".to_vec();
                form.resize(1024, b'x');
                form
            }
            Self::Upload(length) => vec![b'x'; length],
        }
    }
}

/// A whole request over HTTP/1.1. `more` are further fields, each with its end of line.
pub(super) fn request(sends: Sends, path: &str, more: &str) -> Vec<u8> {
    let (method, body) = (sends.method(), sends.body());
    let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    let cookies = Some(sends.cookies().join("; ")).filter(|cookies| !cookies.is_empty());
    let fields = sends.fields().into_iter().map(|(name, value)| format!("{name}: {value}\r\n"));
    let fields: String = fields.chain(cookies.map(|cookies| format!("Cookie: {cookies}\r\n"))).collect();
    let head = format!("{method} {path} HTTP/1.1\r\nHost: {SITE}\r\n{length}{fields}");
    [head.as_bytes(), more.as_bytes(), b"\r\n", &body].concat()
}

/// What a proxy asks by forward auth about a request without a body.
pub(super) fn question(sends: Sends, path: &str) -> Vec<u8> {
    let method = sends.method();
    let description = format!(
        "X-Forwarded-Method: {method}\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: {SITE}\r\n\
         X-Forwarded-Uri: {path}\r\nX-Forwarded-For: 203.0.113.9\r\n"
    );
    request(sends, "/auth", &description)
}

const USER_AGENT: &str =
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/128.0.0.0 Safari/537.36";

const PAGE: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8,\
                    application/signed-exchange;v=b3;q=0.7";

const COOKIES: [&str; 5] = [
    "session=0123456789abcdef0123456789abcdef0123456789abcdef",
    "csrftoken=6kQ1mZ0sT4vB8yN2cX7wR5pL9dF3gH1j",
    "_ga=GA1.2.1234567890.1700000000",
    "_ga_0123456789=GS1.1.1700000000.12.1.1700000123.0.0.0",
    "preferences=theme%3Ddark%26language%3Den%26timezone%3DEurope%2FParis%26consent%3Dall%26sidebar%3Dcollapsed%26s",
];
