//! A denial or an error as a page, for people.

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::LazyLock;

use aws_lc_rs::digest::{SHA256, digest};
use http::{Method, StatusCode};

use super::refusal::Refusal;
use crate::gateway::exchange::Exchange;
use crate::gateway::languages::{Language, Message, Pattern, Texts, preferred_language};
use crate::gateway::pages::{OperatorPages, PageKind, Placeholder, Template, escape_html};
use crate::gateway::stages::RequestId;
use crate::rules::challenge::{ChallengeToken, NONCE};
use crate::rules::key::KeyHash;
use crate::wire::head::{Fields, KnownName};
use crate::words::base64;
use crate::words::pool::Buffer;

/// A page, and what its headers say of it.
#[derive(Debug)]
pub struct Page {
    pub html: Buffer,
    /// `None`: an operator's page in a language that the gateway does not know.
    language: Option<Language>,
    /// `None`: an operator's page, which may load and run what it likes.
    content_security_policy: Option<Cow<'static, str>>,
}

impl Page {
    /// Appends the headers of the page, besides those that every answer of the gateway has.
    pub fn write_headers(&self, fields: &mut Fields) {
        if let Some(language) = self.language {
            fields.append(KnownName::CONTENT_LANGUAGE, language.tag().as_bytes());
        }
        fields.append(KnownName::VARY, b"Accept, Accept-Language");
        if let Some(policy) = &self.content_security_policy {
            fields.append(KnownName::CONTENT_SECURITY_POLICY, policy.as_bytes());
        }
    }
}

/// What a page is about.
#[derive(Clone, Copy, Debug)]
pub struct PageSubject<'a> {
    pub refusal: &'a Refusal<'a>,
    pub status: StatusCode,
    pub request_id: &'a RequestId,
    /// The fields of the request. They choose the language.
    pub fields: &'a Fields,
    /// `None`: it could not be read.
    pub method: Option<&'a Method>,
    /// The seconds of `Retry-After`.
    pub retry_after: Option<u64>,
}

/// The operator's page for this reader, else the built-in one.
pub fn page(pages: &OperatorPages, subject: &PageSubject<'_>) -> Page {
    let language = preferred_language(subject.fields);
    if !pages.is_empty()
        && let Some((template, known)) = pages.find(subject.kind(), language)
    {
        let html = operator_page(template, subject, language);
        return Page { html, language: known, content_security_policy: None };
    }
    let policy = Cow::Borrowed(BUILT_IN.content_security_policy.as_str());
    Page { html: built_in(subject, language), language: Some(language), content_security_policy: Some(policy) }
}

impl PageSubject<'_> {
    fn kind(&self) -> PageKind {
        match self.refusal {
            Refusal::Limited { .. } | Refusal::Forbidden | Refusal::Challenged => PageKind::Denied,
            Refusal::TooManyValues | Refusal::Unavailable | Refusal::Failed { .. } => PageKind::Error,
        }
    }

    fn message(&self) -> Message {
        self.refusal.message(self.status)
    }

    /// A request that changes nothing is repeated by loading the page again.
    fn is_repeatable(&self) -> bool {
        matches!(self.method, Some(&Method::GET | &Method::HEAD))
    }
}

fn operator_page(template: &Template<Placeholder>, subject: &PageSubject<'_>, language: Language) -> Buffer {
    let mut html = Buffer::take();
    template.fill(&mut html, |placeholder, html| match placeholder {
        Placeholder::Sentence => {
            let (texts, message) = (language.texts(), subject.message());
            escape_html(html, texts.title(message).as_bytes());
            html.extend_from_slice(texts.stop().as_bytes());
            let mut advice = Vec::new();
            match subject.retry_after {
                Some(seconds) => language.write_wait(seconds, &mut advice),
                None => advice.extend_from_slice(texts.advice(message).as_bytes()),
            }
            escape_html(html, &advice);
        }
        Placeholder::Seconds => {
            if let Some(seconds) = subject.retry_after {
                write_number(html, seconds);
            }
        }
        Placeholder::Status => html.extend_from_slice(subject.status.as_str().as_bytes()),
        Placeholder::RequestId => escape_html(html, subject.request_id.as_bytes()),
    });
    html
}

// The built-in page. It loads no other files, so that it works when all other requests are denied.

struct BuiltIn {
    template: Template<&'static str>,
    content_security_policy: String,
    /// By `Language`: how the countdown begins.
    countdowns: Vec<String>,
}

static BUILT_IN: LazyLock<BuiltIn> = LazyLock::new(|| {
    let text = include_str!("pages/answer.html");
    // The style and the script never change. So their hashes allow them, and nothing else.
    let hash = |element: &str| {
        let (_, content) = text.split_once(&format!("<{element}>")).expect("the page has this element");
        let (content, _) = content.split_once(&format!("</{element}>")).expect("the element has an end");
        base64::encode(digest(&SHA256, content.as_bytes()).as_ref())
    };
    let content_security_policy = format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
        hash("script"),
        hash("style"),
    );
    let countdowns = Language::ALL.iter().map(|language| begin_countdown(language.texts())).collect();
    BuiltIn { template: template(text), content_security_policy, countdowns }
});

/// The countdown up to its seconds, with what the script needs to go on from there.
fn begin_countdown(texts: &Texts) -> String {
    let forms = |unit: &[Pattern]| unit.iter().map(|form| form.text).collect::<Vec<_>>().join("|");
    let units = texts.units().map(forms).join(";");
    let Texts { wait, now, .. } = texts;
    format!("<p id=\"wait\" data-wait=\"{}\" data-now=\"{now}\" data-units=\"{units}\" data-seconds=\"", wait.text)
}

/// A built-in page, whose marks are all known. The texts for them need no escaping.
fn template(text: &'static str) -> Template<&'static str> {
    Template::parse(text, Some).expect("every mark has an end")
}

fn built_in(subject: &PageSubject<'_>, language: Language) -> Buffer {
    let (texts, message) = (language.texts(), subject.message());
    let mut html = Buffer::take();
    BUILT_IN.template.fill(&mut html, |mark, html| match *mark {
        "lang" => html.extend_from_slice(language.tag().as_bytes()),
        "title" => html.extend_from_slice(texts.title(message).as_bytes()),
        "advice" => match subject.retry_after {
            Some(seconds) => write_countdown(html, language, seconds),
            None => write_all(html, &["<p>", texts.advice(message), "</p>"]),
        },
        "actions" => write_actions(html, texts, subject),
        "request" => html.extend_from_slice(texts.request.as_bytes()),
        "request_id" => html.extend_from_slice(subject.request_id.as_bytes()),
        _ => write_detail(html, subject),
    });
    html
}

/// How long to wait.
fn write_countdown(html: &mut Vec<u8>, language: Language, seconds: u64) {
    html.extend_from_slice(BUILT_IN.countdowns[language as usize].as_bytes());
    write_number(html, seconds);
    html.extend_from_slice(b"\">");
    language.write_wait(seconds, html);
    html.extend_from_slice(b"</p>\n<progress id=\"bar\" aria-hidden=\"true\" max=\"");
    write_number(html, seconds);
    html.extend_from_slice(b"\" value=\"");
    write_number(html, seconds);
    html.extend_from_slice(b"\" hidden></progress>");
}

/// The ways on: to try again, or back to the form that was sent, and to the home page.
fn write_actions(html: &mut Vec<u8>, texts: &Texts, subject: &PageSubject<'_>) {
    let message = subject.message();
    if subject.is_repeatable() && message.is_passing() {
        // An empty reference is the page itself. It works without a script.
        write_all(html, &["<a id=\"again\" class=\"main\" href=\"\">", texts.try_again, "</a>"]);
    } else {
        // Without a script, or where there is no page before, the browser's own button remains.
        write_all(html, &["<button id=\"back\" class=\"main\" type=\"button\" hidden>", texts.go_back, "</button>"]);
    }
    write_all(html, &["<a href=\"/\">", texts.home, "</a>"]);
}

/// For those who look into it: the status, and of a malformed request what is wrong with it.
fn write_detail(html: &mut Vec<u8>, subject: &PageSubject<'_>) {
    let name = subject.status.canonical_reason().unwrap_or_default();
    write_all(html, &[subject.status.as_str(), " ", name]);
    if let Refusal::Failed { .. } | Refusal::TooManyValues = subject.refusal {
        let mut detail = Vec::with_capacity(96);
        subject.refusal.explain(&mut detail);
        html.extend_from_slice(b". ");
        escape_html(html, &detail);
    }
}

fn write_all(html: &mut Vec<u8>, texts: &[&str]) {
    for text in texts {
        html.extend_from_slice(text.as_bytes());
    }
}

fn write_number(html: &mut Vec<u8>, number: u64) {
    html.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

// The page that computes the proof of work for a challenge.

static CHALLENGE: LazyLock<Template<&'static str>> = LazyLock::new(|| template(include_str!("pages/challenge.html")));

/// The challenge page for a key of the limit or list of that name.
pub fn challenge(exchange: &Exchange, name: &str, key: KeyHash, refusal: &Refusal<'_>) -> Page {
    let now = exchange.worker.clock.now();
    let (for_token, for_scripts) = (random(), random());
    let ring = exchange.worker.store.key_ring().load_for_signing(now);
    let token = ChallengeToken::issue(&ring, name, key, now, for_token);
    let mut scripts = String::with_capacity(2 * NONCE);
    for byte in for_scripts {
        let _ = write!(scripts, "{byte:02x}");
    }
    // A form is not sent again automatically, because the gateway must not keep its content.
    let repeat = if matches!(exchange.facts.head.method, Method::GET | Method::HEAD) { "reload" } else { "back" };
    let language = preferred_language(&exchange.facts.head.fields);
    let (texts, wait) = (&language.texts().challenge, ChallengeWait::of(exchange, refusal));
    let mut html = Buffer::take();
    CHALLENGE.fill(&mut html, |mark, html| match *mark {
        "lang" => html.extend_from_slice(language.tag().as_bytes()),
        "nonce" => html.extend_from_slice(scripts.as_bytes()),
        "token" => html.extend_from_slice(token.to_text().as_bytes()),
        "difficulty" => write_number(html, token.difficulty().into()),
        "lifetime" => write_number(html, token.left(now).as_secs()),
        "repeat" => html.extend_from_slice(repeat.as_bytes()),
        "wait" => wait.write(html, language),
        "without" => wait.write_without(html, language),
        "request" => html.extend_from_slice(language.texts().request.as_bytes()),
        "request_id" => html.extend_from_slice(exchange.facts.request_id.as_bytes()),
        text => html.extend_from_slice(texts.text(text).as_bytes()),
    });
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{scripts}'; style-src 'nonce-{scripts}'; worker-src blob:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
    );
    Page { html, language: Some(language), content_security_policy: Some(Cow::Owned(policy)) }
}

/// Whether waiting helps those who do not meet a challenge.
#[derive(Clone, Copy, Debug)]
enum ChallengeWait {
    /// A list asks for it: waiting does not help.
    Never,
    /// `None`: it is not known for how long.
    For(Option<u64>),
}

impl ChallengeWait {
    fn of(exchange: &Exchange, refusal: &Refusal<'_>) -> Self {
        match refusal {
            Refusal::Limited { .. } => Self::For(exchange.decided().retry_after),
            _ => Self::Never,
        }
    }

    fn write(self, html: &mut Vec<u8>, language: Language) {
        match self {
            Self::Never => {}
            Self::For(None) => html.extend_from_slice(language.texts().later.as_bytes()),
            Self::For(Some(seconds)) => language.write_wait(seconds, html),
        }
    }

    /// For those without a script.
    fn write_without(self, html: &mut Vec<u8>, language: Language) {
        if let Self::For(_) = self {
            write_all(html, &[language.texts().challenge.without, " "]);
            self.write(html, language);
        }
    }
}

fn random() -> [u8; NONCE] {
    let mut bytes = [0; NONCE];
    getrandom::fill(&mut bytes).expect("the system has random bytes");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::respond::refusal::Attempts;

    const LIMITED: Refusal<'static> = Refusal::Limited { limits: &[], wait: None, attempts: Attempts::Any };

    fn shown(
        pages: &OperatorPages,
        refusal: &Refusal<'_>,
        retry_after: Option<u64>,
        language: &str,
    ) -> (String, Fields) {
        let (request_id, fields) =
            (RequestId::random(), [(KnownName::ACCEPT_LANGUAGE, language)].into_iter().collect());
        let subject = PageSubject {
            refusal,
            status: StatusCode::TOO_MANY_REQUESTS,
            request_id: &request_id,
            fields: &fields,
            method: Some(&Method::GET),
            retry_after,
        };
        let page = page(pages, &subject);
        let html = String::from_utf8(page.html.to_vec()).expect("text");
        assert!(!html.contains("{{"), "{html}");
        let mut headers = Fields::default();
        page.write_headers(&mut headers);
        (html.replace(request_id.as_str(), "ID"), headers)
    }

    fn header(headers: &Fields, name: KnownName) -> Option<&str> {
        headers.get(name).map(|value| str::from_utf8(value).expect("text"))
    }

    #[test]
    fn a_page_says_how_long_to_wait_and_which_request_it_was() {
        let (html, headers) = shown(&OperatorPages::default(), &LIMITED, Some(42), "fr");
        for part in [
            "<html lang=\"fr\">",
            "<title>Trop de tentatives</title>",
            ">Réessayez dans 42 secondes.</p>",
            "<code>ID</code>",
        ] {
            assert!(html.contains(part), "{part}: {html}");
        }
        assert_eq!(header(&headers, KnownName::CONTENT_LANGUAGE), Some("fr"));
        assert_eq!(header(&headers, KnownName::VARY), Some("Accept, Accept-Language"));
    }

    #[test]
    fn a_page_without_a_known_wait_counts_nothing_down() {
        let (html, _) = shown(&OperatorPages::default(), &LIMITED, None, "en");
        assert!(html.contains("<p>Try again later.</p>") && !html.contains("<progress"), "{html}");
    }

    #[test]
    fn the_policy_allows_the_style_and_the_script_of_the_page_alone() {
        let (html, headers) = shown(&OperatorPages::default(), &LIMITED, Some(1), "cs");
        let policy = header(&headers, KnownName::CONTENT_SECURITY_POLICY).expect("a policy");
        for element in ["style", "script"] {
            let (_, content) = html.split_once(&format!("<{element}>")).expect("the element");
            let (content, _) = content.split_once("</").expect("its end");
            let hash = base64::encode(digest(&SHA256, content.as_bytes()).as_ref());
            assert!(policy.contains(&format!("{element}-src 'sha256-{hash}'")), "{policy}");
            assert_eq!(html.matches(&format!("<{element}")).count(), 1);
        }
        assert!(policy.starts_with("default-src 'none'; ") && !html.contains(" style=\""), "{policy}");
        assert!(!html.contains("http:") && !html.contains("https:") && !html.contains("src="), "{html}");
    }

    #[test]
    fn an_operators_page_in_the_language_of_the_reader_comes_first() {
        let mut pages = OperatorPages::default();
        let template = |text| Template::parse(text, Placeholder::from_name).expect("a template");
        pages.add(PageKind::Denied, None, template("any: {{sentence}} {{seconds}} {{status}} {{request_id}}"));
        pages.add(PageKind::Denied, Some(Language::German), template("deutsch: {{sentence}}"));
        let (html, headers) = shown(&pages, &LIMITED, Some(3), "it");
        assert_eq!(html, "any: Troppi tentativi. Riprovi tra 3 secondi. 3 429 ID");
        assert_eq!(header(&headers, KnownName::CONTENT_LANGUAGE), None);
        assert_eq!(header(&headers, KnownName::CONTENT_SECURITY_POLICY), None);
        let (html, headers) = shown(&pages, &LIMITED, None, "de-AT, it;q=0.3");
        assert_eq!(html, "deutsch: Zu viele Versuche. Versuchen Sie es später erneut.");
        assert_eq!(header(&headers, KnownName::CONTENT_LANGUAGE), Some("de"));
        // There is no page for errors.
        let failed = Refusal::Failed { words: "the <Host> header is malformed" };
        let (html, _) = shown(&pages, &failed, None, "de");
        assert!(html.contains("The &lt;Host&gt; header is malformed.") && html.contains("Diese Anfrage"), "{html}");
    }
}
