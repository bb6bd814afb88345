use super::*;
use crate::rules::client::ClientIp;
use crate::rules::jwt::{Claims, PresentedTokens, RequestClaims};
use crate::rules::key::{Fold, KeyHash, NamePattern, NameSpelling, Spelling, UserMark};
use crate::wire::head;
use crate::wire::head::FieldName;

/// A request as it is written in these tests: `POST /login?next=1`, then header lines.
fn head(request: &str) -> head::RequestHead {
    let mut lines = request.lines().map(str::trim);
    let (method, target) = lines.next().unwrap().split_once(' ').unwrap();
    let mut head = head::RequestHead::to(method.parse().unwrap(), target).unwrap();
    for line in lines {
        let (name, value) = line.split_once(':').unwrap();
        head.fields.append(&name.parse::<FieldName>().unwrap(), value.trim().as_bytes());
    }
    head.set_host("Example.com:8080");
    head
}

fn form(head: &head::RequestHead, body: &str, whole: bool) -> BodyFields {
    BodyFields::read(&head.fields, &body.to_owned().into(), whole, 65536)
}

fn part(selector: &str) -> KeyPart {
    match selector.strip_prefix("raw ") {
        Some(selector) => KeyPart { selector: selector.parse().unwrap(), spelling: Spelling::AsSent },
        None => KeyPart { selector: selector.parse().unwrap(), spelling: Spelling::Usual },
    }
}

fn with_source<T>(request: &str, body: &str, whole: bool, then: impl FnOnce(&ValueSource<'_>) -> T) -> T {
    let sent = head(request);
    let head = CanonicalHead::read(&sent, ClientIp::new("2001:db8::1:2:3:4".parse().unwrap()));
    let fields = if body.is_empty() { BodyFields::none() } else { form(&sent, body, whole) };
    let captures = [("id", Cow::Borrowed("7")), ("id", Cow::Borrowed("seven"))];
    then(&ValueSource {
        head: &head,
        fields: &fields,
        routes: &["login"],
        captures: &captures,
        device: None,
        identity: Identity::default(),
    })
}

#[track_caller]
fn check(selector: &str, request: &str, body: &str, expected: &[&str]) {
    let part = part(selector);
    with_source(request, body, true, |source| {
        assert_eq!(values(&part, source).unwrap().values.as_slice(), expected, "{selector} of {request}");
    });
}

/// The parts of every key, read back.
fn keys_of(
    selectors: &[&str],
    request: &str,
    body: &str,
    whole: bool,
) -> Result<Vec<(Vec<String>, bool)>, TooManyValues> {
    let spec = KeySpec { parts: selectors.iter().map(|selector| part(selector)).collect(), ..KeySpec::default() };
    let extracted = with_source(request, body, whole, |source| keys(&spec, source))?;
    let read = |candidate: &ExtractedKey| {
        let mut parts = Vec::new();
        let mut rest = candidate.key.as_bytes();
        while let Some((&length, tail)) = rest.split_first() {
            let (part, tail) = tail.split_at(length.into());
            parts.push(String::from_utf8_lossy(part).into_owned());
            rest = tail;
        }
        (parts, candidate.missing)
    };
    Ok(extracted.keys.iter().map(read).collect())
}

const FORM: &str = "POST /login\nContent-Type: application/x-www-form-urlencoded";

const JSON: &str = "POST /login\nContent-Type: application/json";

#[test]
fn every_selector_finds_its_value() {
    check("header.x-api-key", "GET /\nX-Api-Key: One", "", &["One"]);
    check("cookie.sid", "GET /\nCookie: a=b; sid=S1", "", &["S1"]);
    check("query.q", "GET /?q=a%20B", "", &["a B"]);
    check("path.id", "GET /", "", &["7", "seven"]);
    check("form.user", FORM, "user=Alice", &["alice"]);
    check("json.a.b", JSON, r#"{"a": {"b": "X"}}"#, &["x"]);
    check("param.user", "GET /?user=Alice", "", &["alice"]);
    check("param.user", FORM, "user=Alice", &["alice"]);
    check("param.user", JSON, r#"{"user": "Alice"}"#, &["alice"]);
    check("bearer", "GET /\nAuthorization: bearer Token", "", &["Token"]);
    check("basic.user", "GET /\nAuthorization: Basic QWxpY2U6eA==", "", &["alice"]);
    check("host", "GET /", "", &["example.com"]);
    check("method", "post /", "", &["POST"]);
    check("path", "GET /Login//", "", &["/login"]);
    check("route", "GET /", "", &["login"]);
    check("client_ip", "GET /", "", &["2001:db8::"]);
}

#[test]
fn names_are_counted_in_one_spelling_unless_they_are_raw() {
    check("param.user", FORM, "user=+%EF%BC%A1lice+", &["alice"]);
    check("param.user", FORM, "user=alice&user=ALICE&user=%20alice", &["alice"]);
    check("raw param.user", FORM, "user=+Alice", &[" Alice"]);
    check("basic.user", "GET /\nAuthorization: Basic IEFsaWNlOng=", "", &["alice"]);
    check("query.user", "GET /?user=Alice", "", &["Alice"]);
    check("query.user", "GET /?user=+Alice%0a", "", &[" Alice\n", "Alice"]);
    let local = KeyPart { selector: "param.user".parse().unwrap(), spelling: Spelling::LocalPart };
    assert_eq!(values_of(&local, "user=bob&user=BOB%40example.com"), Ok(vec!["bob".into()]));
}

#[test]
fn every_value_that_is_sent_counts_once() {
    check(
        "param.user",
        "POST /?user=a\nContent-Type: application/x-www-form-urlencoded",
        "user=b&user=a&user=c",
        &["a", "b", "c"],
    );
    check("header.x-k", "GET /\nX-K: one\nX-K: two\nX-K: one", "", &["one", "two"]);
    check("bearer", "GET /\nAuthorization: Bearer a\nAuthorization: Bearer b", "", &["a", "b", ""]);
}

#[test]
fn what_is_missing_is_the_empty_value() {
    for selector in ["header.x", "cookie.x", "query.x", "path.x", "form.x", "json.x", "param.x", "bearer", "basic.user"]
    {
        check(selector, "GET /", "", &[""]);
    }
    let absent =
        |request, body| with_source(request, body, true, |source| values(&part("param.user"), source).unwrap().absent);
    assert!(absent("GET /", ""));
    assert!(absent("GET /?user=%20", ""));
    assert!(absent(FORM, "user=alice&user="));
    assert!(!absent(FORM, "user=alice"));
}

#[test]
fn of_a_body_not_seen_whole_the_empty_value_counts_too() {
    let keys = |selectors: &[&str], whole| keys_of(selectors, FORM, "user=alice&pad=xxx", whole).unwrap();
    assert_eq!(keys(&["form.user"], true), [(vec!["alice".into()], false)]);
    assert_eq!(keys(&["form.user"], false), [(vec!["alice".into()], false), (vec![String::new()], true)]);
    assert_eq!(keys(&["form.other"], false), [(vec![String::new()], true)]);
    assert_eq!(keys(&["host"], false), [(vec!["example.com".into()], false)]);
}

#[test]
fn a_key_is_made_of_every_combination() {
    let keys = keys_of(&["query.a", "host", "query.b"], "GET /?a=1&a=2&b=x&b=y", "", true).unwrap();
    let combinations: Vec<_> = keys.iter().map(|(parts, _)| parts.join(" ")).collect();
    assert_eq!(combinations, ["1 example.com x", "1 example.com y", "2 example.com x", "2 example.com y"]);
    assert_eq!(keys_of(&[], "GET /", "", true).unwrap(), [(vec![], false)]);
}

#[test]
fn eight_values_are_counted_and_nine_are_too_many() {
    let query = |count: usize| (0..count).map(|i| format!("a={i}&b={i}&c=1&c=2")).collect::<Vec<_>>().join("&");
    let count = |selectors: &[&str], values| {
        keys_of(selectors, &format!("GET /?{}", query(values)), "", true).map(|keys| keys.len())
    };
    assert_eq!(count(&["query.a"], 8), Ok(8));
    assert_eq!(count(&["query.a"], 9), Err(TooManyValues));
    assert_eq!(count(&["query.a", "query.b"], 8), Ok(64));
    assert_eq!(count(&["query.a", "query.b", "query.c"], 8), Err(TooManyValues));
    assert_eq!(count(&["query.a"], 2_000), Err(TooManyValues));
}

#[test]
fn a_value_sent_a_hundred_times_is_one_value() {
    let request = format!("GET /?{}", ["a=1"; 100].join("&"));
    assert_eq!(keys_of(&["query.a"], &request, "", true).unwrap().len(), 1);
}

#[test]
fn a_wider_net_is_another_key() {
    let of = |prefix| {
        let spec = KeySpec {
            parts: vec![KeyPart { selector: Selector::ClientIp(Some(prefix)), spelling: Spelling::Usual }],
            ..KeySpec::default()
        };
        with_source("GET /", "", true, |source| keys(&spec, source).unwrap())
    };
    let (host, net) = (of(Prefix { v4: 32, v6: 64 }), of(Prefix { v4: 24, v6: 48 }));
    // The address is the same in both: only zeros are cut.
    assert_ne!(host, net);
    assert_eq!(host, of(Prefix { v4: 24, v6: 64 }));
}

fn first(selectors: &[&str]) -> KeyPart {
    let choices = selectors.iter().map(|selector| part(selector)).collect();
    KeyPart { selector: Selector::First(choices), spelling: Spelling::Usual }
}

fn values_for(part: &KeyPart, request: &str, identity: Identity<'_>) -> Vec<String> {
    with_source(request, "", true, |source| {
        let found = values(part, &ValueSource { identity, ..*source }).unwrap();
        found.values.iter().map(ToString::to_string).collect()
    })
}

#[test]
fn a_user_is_each_account_whose_session_the_request_carries() {
    let of = |users: &[UserMark]| values_for(&part("user"), "GET /", Identity { users, ..Identity::default() });
    assert_eq!(of(&[]), [""]);
    let [alice, bob] = [0x00ff, 0xff00].map(|half| UserMark::of(KeyHash(half << 64)));
    assert_eq!(of(&[alice, bob]), ["00000000000000ff", "000000000000ff00"]);
}

/// What a request claims with tokens that verify as these claims, and with others.
fn claims(tokens: &[serde_json::Value], has_others: bool) -> RequestClaims {
    let tokens = tokens.iter().map(|claims| Cow::Owned(claims.to_string())).collect();
    RequestClaims::of(&PresentedTokens { tokens, has_others, may_hide: false }, |token| {
        Ok(Claims::new(&serde_json::from_str(token).unwrap(), None).unwrap().into())
    })
}

#[test]
fn a_claim_is_a_value_as_it_stands_in_the_token() {
    let claims = claims(&[serde_json::json!({"sub": "Alice", "groups": (0..20).collect::<Vec<u8>>()})], false);
    let of = |selector, claims| values_for(&part(selector), "GET /", Identity { claims, ..Identity::default() });
    assert_eq!(of("jwt.sub", &claims), ["Alice"]);
    assert_eq!(of("jwt.groups", &claims).len(), 20, "no client chooses how many there are");
    assert_eq!(of("jwt.plan", &claims), [""]);
    assert_eq!(of("jwt.sub", RequestClaims::NONE), [""]);
}

#[test]
fn what_stands_beside_a_verified_token_may_be_read_instead() {
    let [alice, bob] = ["alice", "bob"].map(|name| serde_json::json!({ "sub": name }));
    let of =
        |part: &KeyPart, claims: &RequestClaims| values_for(part, "GET /", Identity { claims, ..Identity::default() });
    let (sub, first) = (part("jwt.sub"), first(&["jwt.sub", "client_ip"]));
    assert_eq!(of(&sub, &claims(&[alice.clone(), bob], false)), ["alice", "bob"]);
    assert_eq!(of(&sub, &claims(std::slice::from_ref(&alice), true)), ["alice", ""]);
    let beside = of(&first, &claims(&[alice], true));
    assert_eq!(beside, ["7:jwt.sub:alice", "", "9:client_ip:2001:db8::/64"]);
    // Credentials of another kind alone hide no token.
    assert_eq!(of(&first, &claims(&[], true)), ["9:client_ip:2001:db8::/64"]);
}

#[test]
fn the_first_that_is_there_counts_and_says_what_it_is() {
    let part = first(&["user", "query.a", "client_ip"]);
    let users = [UserMark::of(KeyHash(0xa11ce))];
    let of = |request, users| values_for(&part, request, Identity { users, ..Identity::default() });
    assert_eq!(of("GET /?a=x", &users), ["4:user:0000000000000000"]);
    assert_eq!(of("GET /?a=alice", &[]), ["7:query.a:alice"]);
    assert_eq!(of("GET /", &[]), ["9:client_ip:2001:db8::/64"]);
    // An application may read the one that is empty.
    assert_eq!(of("GET /?a=x&a=", &[]), ["7:query.a:x", "9:client_ip:2001:db8::/64"]);
    assert_eq!(values_for(&first(&["user", "bearer"]), "GET /", Identity::default()), [""]);
}

#[test]
fn what_may_be_hidden_in_a_body_is_not_passed_over() {
    let part = first(&["form.user", "client_ip"]);
    let of = |whole| {
        with_source(FORM, "x=y", whole, |source| {
            values(&part, source).unwrap().values.iter().map(ToString::to_string).collect::<Vec<_>>()
        })
    };
    assert_eq!(of(true), ["9:client_ip:2001:db8::/64"]);
    assert_eq!(of(false), ["", "9:client_ip:2001:db8::/64"]);
}

fn folded(selector: &str, fold: Fold, pattern: Option<&str>) -> KeyPart {
    let pattern = pattern.map(|text| NamePattern::new(text).unwrap());
    let name = NameSpelling { fold: Some(fold), pattern, ..NameSpelling::default() };
    KeyPart { selector: selector.parse().unwrap(), spelling: Spelling::Name(Box::new(name)) }
}

fn values_of(part: &KeyPart, body: &str) -> Result<Vec<String>, TooManyValues> {
    with_source(FORM, body, true, |source| {
        let mut found: Vec<_> = values(part, source)?.values.iter().map(ToString::to_string).collect();
        found.sort();
        Ok(found)
    })
}

#[test]
fn a_folded_name_counts_as_each_of_its_readings() {
    let part = folded("param.user", Fold::Letters, None);
    assert_eq!(values_of(&part, "user=A.L%C3%8CCE"), Ok(vec!["alice".into()]));
    assert_eq!(values_of(&part, "user=%3Cb1%3Ealice"), Ok(vec!["alice".into(), "b1alice".into()]));
    assert_eq!(values_of(&part, "user=alice&user=a.lice&user=b-o-b"), Ok(vec!["alice".into(), "bob".into()]));
    assert_eq!(values_of(&part, "x=y"), Ok(vec![String::new()]));
    assert_eq!(values_of(&part, "user=%21%21"), Ok(vec!["!!".into()]));
    let query = folded("query.user", Fold::Email, None);
    with_source("GET /?user=A.b%2Bc@GMail.com", "", true, |source| {
        assert_eq!(values(&query, source).unwrap().values.as_slice(), ["ab@gmail.com"]);
    });
}

#[test]
fn eight_names_are_counted_with_all_their_readings_and_nine_are_too_many() {
    let part = folded("param.user", Fold::Letters, None);
    let body =
        |count: usize| (0..count).map(|at| format!("user=%3Cb%3Eu{at}&user=U{at}")).collect::<Vec<_>>().join("&");
    assert_eq!(values_of(&part, &body(4)).map(|found| found.len()), Ok(8));
    assert_eq!(values_of(&part, &body(5)), Err(TooManyValues));
    let same = ["user=%20alice", "user=alice"].repeat(40).join("&");
    assert_eq!(values_of(&part, &same), Ok(vec!["alice".into()]));
    let hostile: Vec<_> = (0..8).map(|at| format!("user=%3Cb%3E%26x{at};%2501{at}a")).collect();
    let found = values_of(&part, &hostile.join("&"));
    assert!(found.as_ref().is_err() || found.as_ref().is_ok_and(|found| found.len() <= MAX_KEYS), "{found:?}");
}

#[test]
fn names_that_do_not_match_share_one_value_and_count_as_those_they_may_be() {
    let part = folded("param.user", Fold::Letters, Some("[a-z]{1,8}"));
    assert_eq!(values_of(&part, "user=Alice"), Ok(vec!["alice".into()]));
    assert_eq!(values_of(&part, "user=alice1"), Ok(vec![OTHER.into()]));
    assert_eq!(values_of(&part, "user=%3Cb1%3Ealice"), Ok(vec![OTHER.into(), "alice".into()]));
    assert_eq!(values_of(&part, "x=y"), Ok(vec![String::new()]), "what is missing is no name");
    let plain = NameSpelling { pattern: NamePattern::new("[a-z]+").ok(), ..NameSpelling::default() };
    let plain = KeyPart { selector: Selector::Param("user".into()), spelling: Spelling::Name(Box::new(plain)) };
    assert_eq!(values_of(&plain, "user=Alice&user=a.b&user=c.d"), Ok(vec![OTHER.into(), "alice".into()]));
}

#[test]
fn where_a_success_forgets_failures_other_spellings_share_a_second_value() {
    let mut part = folded("param.user", Fold::Letters, None);
    if let Spelling::Name(name) = &mut part.spelling {
        name.tells_others = true;
    }
    assert_eq!(values_of(&part, "user=Alice"), Ok(vec!["alice".into()]));
    assert_eq!(values_of(&part, "user=a.lice"), Ok(vec!["alice".into(), "alice\0".into()]));
    let own = |sent| part.is_own_name(sent);
    assert!(own("Alice") && own(" alice ") && !own("a.lice") && !own("<b>alice") && !own("J\u{f6}rg"));
    let mut mail = folded("param.user", Fold::Email, None);
    if let Spelling::Name(name) = &mut mail.spelling {
        name.tells_others = true;
    }
    assert_eq!(values_of(&mail, "user=a.lice@gmail.com"), Ok(vec!["alice@gmail.com".into()]));
    assert!(mail.is_own_name("a.lice@gmail.com") && mail.is_own_name("a.lice@example.com"));
    assert!(!mail.is_own_name("alice+x@example.com"));
}
