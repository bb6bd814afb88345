//! Claims of verified tokens: who is counted by them, where their keys come from, and what happens when those change.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use portcullis::words::clock;
use portcullis::words::clock::Timestamp;
use serde_json::{Value, json};

use crate::advice::advice;
use crate::support::{
    Answer, CertificateAuthority, Gateway, Origin, Request, SecureOrigin, SigningKey, Stopwatch, eventually,
};

fn now() -> u64 {
    clock::wall().since(Timestamp::EPOCH).as_secs()
}

fn set(keys: &[Value]) -> String {
    json!({ "keys": keys }).to_string()
}

/// A token of a key that is called `a`.
fn token(key: &SigningKey, subject: &str) -> String {
    token_of("a", key, &json!({ "sub": subject, "exp": now() + 600 }))
}

fn token_of(name: &str, key: &SigningKey, claims: &Value) -> String {
    key.token(&json!({ "alg": "EdDSA", "typ": "JWT", "kid": name }), claims)
}

/// A configuration that lets each key pass once an hour.
fn once(origin: &Origin, jwt: &str, key: &str) -> String {
    format!(
        "upstream: {}\nadmin: {{address: 127.0.0.1:0}}\njwt: {jwt}\n\
         routes:\n  - match: /*\n    limits:\n      - {{name: once, key: {key}, rate: 1/hour}}\n",
        origin.url()
    )
}

fn bearer(gateway: &Gateway, token: &str) -> Request {
    gateway.get("/").header("Authorization", &format!("Bearer {token}"))
}

#[track_caller]
fn assert_statuses<const N: usize>(requests: [Request; N], expected: [u16; N]) {
    assert_eq!(requests.map(|request| request.status()), expected);
}

#[test]
fn a_claim_counts_whatever_the_token_and_unverified_ones_share_one_budget() {
    let (origin, key, other) = (Origin::start(), SigningKey::ed25519(), SigningKey::ed25519());
    let config = once(&origin, "{jwks_file: keys.json}", "jwt.sub");
    let gateway = Gateway::with_files(config, &[("keys.json", &set(&[key.jwk(json!({ "kid": "a" }))]))]);
    let ask = |token: &str| bearer(&gateway, token);
    let again = token_of("a", &key, &json!({ "sub": "alice", "jti": "2" }));
    assert_statuses([ask(&token(&key, "alice")), ask(&again), ask(&token(&key, "bob"))], [200, 429, 200]);
    // No token, an invented one, one of another issuer and an expired one: one budget.
    let expired = token_of("a", &key, &json!({ "sub": "carol", "exp": now() - 31 }));
    assert_statuses(
        [ask("invented"), gateway.get("/"), ask(&token(&other, "dave")), ask(&expired), ask(&token(&key, "erin"))],
        [200, 429, 429, 429, 200],
    );
}

#[test]
fn issuer_audience_and_times_are_kept() {
    let (origin, key) = (Origin::start(), SigningKey::p256());
    let jwt = "{jwks_file: keys.json, issuer: \"https://id.example.com\", audience: [api, web], leeway: 0s}";
    let config = once(&origin, jwt, "[jwt.sub]");
    let gateway = Gateway::with_files(config, &[("keys.json", &set(&[key.jwk(json!({ "use": "sig" }))]))]);
    let good = json!({ "iss": "https://id.example.com", "aud": "web", "exp": now() + 60, "nbf": now() });
    let ask = |subject: &str, name: &str, value: Value| {
        let mut claims = good.clone();
        claims["sub"] = json!(subject);
        claims[name] = value;
        bearer(&gateway, &key.token(&json!({ "alg": "ES256" }), &claims))
    };
    assert_statuses([ask("alice", "aud", json!(["x", "api"])), ask("bob", "x", json!(1))], [200, 200]);
    // The first of those that do not verify spends their budget.
    assert_statuses(
        [
            ask("1", "iss", json!("https://id.example.com/")),
            ask("2", "aud", json!("other")),
            ask("3", "exp", json!(now() - 1)),
            ask("4", "nbf", json!(now() + 60)),
        ],
        [200, 429, 429, 429],
    );
}

#[test]
fn the_first_that_is_there_is_the_person_or_else_the_client() {
    let (origin, key) = (Origin::start(), SigningKey::ed25519());
    let config = once(&origin, "{jwks_file: keys.json, from: cookie.id}", "{first: [jwt.sub, client_ip]}");
    let gateway = Gateway::with_files(config, &[("keys.json", &set(&[key.jwk(json!({}))]))]);
    let ask = |from: &str, token: &str| gateway.get("/").from(from).header("Cookie", &format!("id={token}"));
    let alice = token(&key, "alice");
    assert_statuses([ask("127.0.0.2", &alice), ask("127.0.0.3", &alice)], [200, 429]);
    assert_statuses([ask("127.0.0.2", "opaque"), ask("127.0.0.2", "other"), ask("127.0.0.3", "x")], [200, 429, 200]);
    // A token that a lenient application may take shares the budget of those that are not understood.
    let odd = |from: &str, padding: &str| ask(from, &format!("{}{padding}", token(&key, "mallory")));
    assert_statuses([odd("127.0.0.4", "="), odd("127.0.0.5", "=="), odd("127.0.0.6", "!")], [200, 429, 429]);
}

#[test]
fn what_is_not_understood_is_not_missing() {
    let (origin, key) = (Origin::start(), SigningKey::ed25519());
    let config = once(&origin, "{jwks_file: keys.json, from: cookie.id}", "jwt.sub, missing: skip");
    let gateway = Gateway::with_files(config, &[("keys.json", &set(&[key.jwk(json!({}))]))]);
    let ask = |cookie: &str| gateway.get("/").header("Cookie", cookie);
    let alice = token(&key, "alice");
    // Surely no token that verifies.
    assert_statuses([ask("id=opaque"), ask("id=opaque"), gateway.get("/"), gateway.get("/")], [200; 4]);
    let odd = [format!("id={alice}="), format!("id={alice}=="), format!("id={alice}.")];
    assert_statuses(odd.each_ref().map(|cookie| ask(cookie)), [200, 429, 429]);
    assert_statuses([ask(&format!("id={alice}")), ask(&format!("id={alice}"))], [200, 429]);
}

#[test]
fn a_token_in_a_list_of_credentials_is_not_missing() {
    let (origin, key) = (Origin::start(), SigningKey::ed25519());
    let config = once(&origin, "{jwks_file: keys.json}", "jwt.sub, missing: skip");
    let gateway = Gateway::with_files(config, &[("keys.json", &set(&[key.jwk(json!({}))]))]);
    let ask = |line: &str| gateway.get("/").header("Authorization", line);
    let alice = token(&key, "alice");
    assert_statuses([ask("Basic eDp5"), ask("Basic eDp5"), gateway.get("/"), gateway.get("/")], [200; 4]);
    let lists =
        [format!("X,Bearer {alice}"), format!("Basic eDp5, Bearer {alice}"), format!("Basic eDp5,bearer {alice}")];
    assert_statuses(lists.each_ref().map(|line| ask(line)), [200, 429, 429]);
}

#[test]
fn what_stands_beside_a_verified_token_counts_too() {
    let (origin, key) = (Origin::start(), SigningKey::ed25519());
    let config = once(&origin, "{jwks_file: keys.json}", "jwt.sub");
    let gateway = Gateway::with_files(config, &[("keys.json", &set(&[key.jwk(json!({}))]))]);
    let ask = |lines: &[String]| {
        lines.iter().fold(gateway.get("/"), |request, line| request.header("Authorization", line)).status()
    };
    let of = |name: &str| format!("Bearer {}", token(&key, name));
    assert_eq!(ask(&[of("alice"), of("bob")]), 200);
    assert_eq!(ask(&[of("alice")]), 429);
    assert_eq!(ask(&[of("bob")]), 429);
    // Several lines are not as clients write them: they have counted under the empty value, too.
    assert_eq!(ask(&["Bearer invented".to_owned()]), 429);
    assert_eq!(ask(&[of("carol"), "Basic eDp5".to_owned()]), 429);
    assert_eq!(ask(&[of("dave"), "Bearer invented".to_owned()]), 429);
    assert_eq!((ask(&[of("carol")]), ask(&[of("dave")])), (200, 200));
}

#[test]
fn a_key_file_that_changes_is_read_and_what_it_no_longer_verifies_is_forgotten() {
    let (origin, old, new) = (Origin::start(), SigningKey::ed25519(), SigningKey::ed25519());
    let config = once(&origin, "{jwks_file: keys.json}", "jwt.sub");
    let gateway = Gateway::with_files(config, &[("keys.json", &set(&[old.jwk(json!({ "kid": "a" }))]))]);
    assert_statuses([bearer(&gateway, &token(&old, "alice")), bearer(&gateway, "invented")], [200, 200]);
    let before = gateway.reloads();
    gateway.write("keys.json", &set(&[new.jwk(json!({ "kid": "a" }))]));
    eventually("the keys are read", || gateway.reloads() > before);
    assert_statuses([bearer(&gateway, &token(&new, "bob")), bearer(&gateway, &token(&old, "carol"))], [200, 429]);
}

#[test]
fn a_key_file_that_vanishes_or_is_none_is_named_and_the_keys_stay() {
    let (origin, key) = (Origin::start(), SigningKey::ed25519());
    let config = once(&origin, "{jwks_file: keys.json}", "jwt.sub");
    let good = set(&[key.jwk(json!({ "kid": "a" }))]);
    let gateway = Gateway::with_files(config, &[("keys.json", &good)]);
    let refused = || {
        let all = advice(&gateway);
        all.into_iter().find(|advice| advice["kind"] == "reload_refused").map(|advice| advice["message"].to_string())
    };
    assert_eq!(refused(), None);
    for (number, broken) in (1..).zip([None, Some("{\"keys\": [\n 1, 1,]}"), Some("{\"keys\": []}")]) {
        let failed = gateway.failed_reloads();
        match broken {
            None => fs::remove_file(gateway.path("keys.json")).expect("the file is there"),
            Some(text) => gateway.write("keys.json", text),
        }
        eventually("the mistake is logged", || gateway.failed_reloads() > failed);
        let words = ["no such file", "keys.json:2:7", "its list `keys` is empty"][number - 1];
        let said = refused().expect("advice");
        assert!(said.contains("keys.json") && said.contains(words), "{said}");
        assert!(gateway.stderr().join("\n").contains(words));
        let subject = format!("alice-{number}");
        assert_statuses(
            [bearer(&gateway, &token(&key, &subject)), bearer(&gateway, &token(&key, &subject))],
            [200, 429],
        );
    }
    let before = gateway.reloads();
    gateway.write("keys.json", &good);
    eventually("the keys are read", || gateway.reloads() > before);
    assert_eq!(refused(), None);
}

/// A server of keys, how often it was asked, and what it answers now.
struct Keys {
    server: Origin,
    asked: Arc<AtomicUsize>,
    answer: Arc<Mutex<(u16, String)>>,
}

impl Keys {
    fn start(answer: (u16, String)) -> Self {
        let (asked, answer) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(answer)));
        let (counted, answered) = (Arc::clone(&asked), Arc::clone(&answer));
        let server = Origin::answering(move |_| {
            counted.fetch_add(1, Ordering::SeqCst);
            let (status, body) = answered.lock().expect("no test panicked").clone();
            Answer::new(status, &[("Location", "/elsewhere")], body)
        });
        Self { server, asked, answer }
    }

    fn answer(&self, status: u16, body: String) {
        *self.answer.lock().expect("no test panicked") = (status, body);
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    fn config(&self, origin: &Origin) -> String {
        once(origin, &format!("{{jwks_url: \"{}/keys\"}}", self.server.url()), "jwt.sub")
    }
}

/// Whether a token of this subject, which is asked about once, verifies: once the shared budget is spent.
fn verifies(gateway: &Gateway, token: &str) -> bool {
    assert_eq!(gateway.get("/").status(), 429, "the shared budget is spent");
    bearer(gateway, token).status() == 200
}

fn subjects() -> impl FnMut() -> String {
    let mut number = 0;
    move || {
        number += 1;
        format!("person {number}")
    }
}

#[test]
fn keys_are_fetched_and_a_new_name_of_a_key_fetches_them_again() {
    let (origin, old, new, invented) =
        (Origin::start(), SigningKey::ed25519(), SigningKey::ed25519(), SigningKey::ed25519());
    let keys = Keys::start((200, set(&[old.jwk(json!({ "kid": "a" }))])));
    let gateway = Gateway::start(keys.config(&origin));
    let mut person = subjects();
    assert_eq!(gateway.get("/").status(), 200);
    eventually("the keys are fetched", || verifies(&gateway, &token(&old, &person())));
    assert_eq!(keys.asked(), 1);
    keys.answer(200, set(&[old.jwk(json!({ "kid": "a" })), new.jwk(json!({ "kid": "b" }))]));
    let mut of_new = || token_of("b", &new, &json!({ "sub": person() }));
    eventually("the new key is fetched", || verifies(&gateway, &of_new()));
    assert_eq!(keys.asked(), 2);
    // Whoever invents names of keys causes one question in half a minute.
    let watch = Stopwatch::start();
    for number in 0..200 {
        let invented = token_of(&number.to_string(), &invented, &json!({ "sub": "victim" }));
        assert_eq!(bearer(&gateway, &invented).status(), 429);
    }
    assert!(watch.elapsed().as_secs() < 25, "the test is too slow to say");
    assert_eq!(keys.asked(), 2);
    assert!(verifies(&gateway, &of_new()));
    assert!(advice(&gateway).is_empty());
}

#[test]
fn a_start_does_not_wait_for_keys_and_gets_them_when_they_can_be_had() {
    let (origin, key) = (Origin::start(), SigningKey::ed25519());
    let keys = Keys::start((503, String::new()));
    let gateway = Gateway::start(keys.config(&origin));
    assert_statuses([bearer(&gateway, &token(&key, "alice")), bearer(&gateway, &token(&key, "bob"))], [200, 429]);
    let said = || advice(&gateway).into_iter().find(|advice| advice["kind"] == "keys_unavailable");
    eventually("it is said", || said().is_some());
    let message = said().expect("advice")["message"].to_string();
    assert!(
        message.contains("/keys cannot be had: it was answered with 503") && message.contains("no key is known"),
        "{message}"
    );
    keys.answer(200, set(&[key.jwk(json!({ "kid": "a" }))]));
    let mut person = subjects();
    eventually("the keys are fetched", || verifies(&gateway, &token(&key, &person())));
    eventually("it is no longer said", || said().is_none());
}

#[test]
fn what_is_known_stays_while_the_keys_cannot_be_had() {
    let (origin, key) = (Origin::start(), SigningKey::ed25519());
    let keys = Keys::start((200, set(&[key.jwk(json!({ "kid": "a" }))])));
    let gateway = Gateway::start(keys.config(&origin));
    assert_eq!(gateway.get("/").status(), 200);
    let mut person = subjects();
    eventually("the keys are fetched", || verifies(&gateway, &token(&key, &person())));
    keys.answer(200, "<html>Down for maintenance</html>".to_owned());
    let unknown = token_of("b", &key, &json!({ "sub": "alice" }));
    assert_eq!(bearer(&gateway, &unknown).status(), 429);
    eventually("they are asked for", || keys.asked() > 1);
    let has_kept = || advice(&gateway).iter().any(|advice| advice["message"].to_string().contains("stay in force"));
    eventually("it is said", has_kept);
    assert!(gateway.stderr().join("\n").contains("is no set of keys"));
    assert!(verifies(&gateway, &token(&key, &person())));
    // A reload that changes nothing about the keys keeps them.
    gateway.reload(keys.config(&origin) + "headers: off\n");
    assert!(verifies(&gateway, &token(&key, &person())));
}

#[test]
fn keys_come_over_https_from_the_authority_that_is_named_and_no_redirection_is_followed() {
    let (origin, key) = (Origin::start(), SigningKey::ed25519());
    let keys = Keys::start((302, String::new()));
    let authority = CertificateAuthority::generate();
    let secure = SecureOrigin::before(keys.server.address(), &authority, &["localhost"]);
    let url = format!("https://localhost:{}/keys", secure.address().port());
    let jwt = |ca: &str| format!("{{jwks_url: \"{url}\"{ca}}}");
    let config = |ca: &str| once(&origin, &jwt(ca), "jwt.sub");
    let gateway = Gateway::with_files(config(", ca: ca.pem"), &[("ca.pem", authority.pem())]);
    let says = |words: &str| advice(&gateway).iter().any(|advice| advice["message"].to_string().contains(words));
    eventually("the redirection is refused", || says("302"));
    keys.answer(200, set(&[key.jwk(json!({ "kid": "a" }))]));
    assert_eq!(gateway.get("/").status(), 200);
    let mut person = subjects();
    eventually("the keys are fetched", || verifies(&gateway, &token(&key, &person())));
    // Another authority: other keys.
    gateway.write("other.pem", CertificateAuthority::generate().pem());
    gateway.reload(config(", ca: other.pem"));
    eventually("the certificate is refused", || says("certificate"));
    assert!(!verifies(&gateway, &token(&key, &person())));
}

#[test]
fn forward_auth_counts_by_claims_too() {
    let (origin, key) = (Origin::start(), SigningKey::ed25519());
    let config = once(&origin, "{jwks_file: keys.json}", "jwt.sub")
        + "listen: [\"127.0.0.1:0\", {address: \"127.0.0.1:0\", serves: decisions}]\n";
    let gateway = Gateway::with_files(config, &[("keys.json", &set(&[key.jwk(json!({}))]))]);
    let ask = |subject: &str| {
        Request::new(gateway.addresses()[1], "GET", "/auth")
            .header("X-Forwarded-Method", "GET")
            .header("X-Forwarded-Proto", "https")
            .header("X-Forwarded-Host", "example.com")
            .header("X-Forwarded-Uri", "/")
            .header("Authorization", &format!("Bearer {}", token(&key, subject)))
    };
    assert_statuses([ask("alice"), ask("alice"), ask("bob")], [200, 429, 200]);
}

#[test]
fn a_header_carries_the_token_and_no_lookalike_of_it_reaches_the_application() {
    let (origin, key) = (Origin::start(), SigningKey::ed25519());
    let config = once(&origin, "{jwks_file: keys.json, from: header.x-access-token}", "jwt.sub");
    let gateway = Gateway::with_files(config, &[("keys.json", &set(&[key.jwk(json!({}))]))]);
    let ask = |name: &str, subject: &str| gateway.get("/").header(name, &token(&key, subject));
    assert_statuses([ask("X-Access-Token", "alice"), ask("x-access-token", "alice")], [200, 429]);
    assert_eq!(ask("X_Access_Token", "bob").status(), 200);
    assert!(!origin.last().head.to_ascii_lowercase().contains("access_token"), "{}", origin.last().head);
    assert_eq!(gateway.get("/").status(), 429, "it counted as without a token");
}
