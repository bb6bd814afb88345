//! The page that computes the proof of work for a challenge.

use std::fmt::Write;
use std::sync::LazyLock;

use http::Method;

use super::page::Template;
use super::refusal::Refusal;
use crate::challenge::ChallengeToken;
use crate::challenge::token::NONCE;
use crate::gateway::exchange::Exchange;
use crate::key::KeyHash;
use crate::pool::Buffer;

/// A challenge page, and the policy for its script.
#[derive(Debug)]
pub struct ChallengePage {
    pub html: Buffer,
    pub content_security_policy: String,
}

/// The challenge page for a key of the limit or list of that name.
pub fn page(exchange: &Exchange, name: &str, key: KeyHash, refusal: &Refusal<'_>) -> ChallengePage {
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
    let html = TEMPLATE.fill(|mark, html| match mark {
        "nonce" => html.extend_from_slice(scripts.as_bytes()),
        "token" => html.extend_from_slice(token.to_text().as_bytes()),
        "difficulty" => html.extend_from_slice(itoa::Buffer::new().format(token.difficulty()).as_bytes()),
        "lifetime" => html.extend_from_slice(itoa::Buffer::new().format(token.left(now).as_secs()).as_bytes()),
        "repeat" => html.extend_from_slice(repeat.as_bytes()),
        "detail" => refusal.explain(html),
        _ => html.extend_from_slice(exchange.facts.request_id.as_bytes()),
    });
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{scripts}'; style-src 'nonce-{scripts}'; worker-src blob:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
    );
    ChallengePage { html, content_security_policy: policy }
}

fn random() -> [u8; NONCE] {
    let mut bytes = [0; NONCE];
    getrandom::fill(&mut bytes).expect("the system has random bytes");
    bytes
}

static TEMPLATE: LazyLock<Template> = LazyLock::new(|| Template::new(include_str!("pages/challenge.html")));
