use std::net::IpAddr;

use proptest::prelude::*;

use crate::gateway::headers::*;
use crate::rules::client::ClientIp;

fn fields(lines: &[(&str, &str)]) -> Fields {
    let mut fields = Fields::default();
    for (name, value) in lines {
        fields.append(Name::of(name), value.as_bytes());
    }
    fields
}

/// The value of the only field with this name.
fn single<'f>(fields: &'f Fields, name: &str) -> Option<&'f str> {
    let values: Vec<&[u8]> =
        fields.iter().filter(|field| field.name == Name::of(name)).map(|field| field.value).collect();
    assert!(values.len() < 2, "{name}");
    values.first().map(|value| str::from_utf8(value).unwrap())
}

fn sorted_names(fields: &Fields) -> Vec<&str> {
    let mut names: Vec<_> = fields.iter().map(|field| field.name.as_str()).collect();
    names.sort_unstable();
    names
}

fn identity(peer: &str, client: &str) -> Identity {
    let address = |text: &str| ClientIp::new(text.parse::<IpAddr>().expect("an address"));
    Identity { peer: address(peer), peer_is_trusted: peer != client, client: address(client) }
}

fn prepared(identity: &Identity, lines: &[(&str, &str)]) -> Fields {
    let mut headers = fields(lines);
    prepare(&mut headers, identity, false, RequestId::random());
    headers
}

fn prepare(headers: &mut Fields, identity: &Identity, is_tls: bool, id: RequestId) {
    let of_peer = forwarding_of_peer(identity.peer, is_tls);
    prepare_request(headers, identity, is_tls, || &of_peer, id, &SignificantHeaders::default(), |_| ());
}

fn direct() -> Identity {
    identity("192.0.2.1", "192.0.2.1")
}

fn proxied() -> Identity {
    identity("10.0.0.1", "192.0.2.1")
}

#[track_caller]
fn check_connection(lines: &[(&str, &str)], asks_for_upgrade: bool, left: &[&str]) {
    let mut headers = fields(lines);
    let significant_headers = SignificantHeaders::default();
    assert_eq!(strip_connection(&mut headers, |name| significant_headers.in_requests(name)), asks_for_upgrade);
    assert_eq!(sorted_names(&headers), left);
}

#[test]
fn what_connection_names_goes_no_further() {
    check_connection(&[("connection", "keep-alive, X-Hop"), ("x-hop", "1"), ("x-end", "1")], false, &["x-end"]);
    check_connection(&[("connection", "X-A"), ("connection", "x-b"), ("x-a", "1"), ("x-b", "1")], false, &[]);
    check_connection(&[("connection", "Upgrade"), ("upgrade", "websocket")], true, &["upgrade"]);
}

#[test]
fn a_trusted_proxys_list_is_carried_on() {
    let given = [
        ("host", "shop.example"),
        ("x-forwarded-for", "203.0.113.9"),
        ("x-forwarded-for", "192.0.2.1"),
        ("forwarded", "for=192.0.2.1"),
        ("x-forwarded-proto", "https"),
        ("x-forwarded-host", "www.shop.example"),
        ("x-forwarded-port", "443"),
    ];
    let headers = prepared(&proxied(), &given);
    assert_eq!(single(&headers, "x-forwarded-for"), Some("203.0.113.9, 192.0.2.1, 10.0.0.1"));
    assert_eq!(single(&headers, "forwarded"), Some("for=192.0.2.1, for=10.0.0.1"));
    assert_eq!(single(&headers, "x-forwarded-proto"), Some("https"));
    assert_eq!(single(&headers, "x-forwarded-host"), Some("www.shop.example"));
    assert_eq!(single(&headers, "x-forwarded-port"), Some("443"));
    assert_eq!(single(&headers, "x-real-ip"), Some("192.0.2.1"));
}

#[test]
fn over_tls_the_scheme_is_https_unless_a_trusted_proxy_knows_better() {
    let proto = |identity: &Identity, lines: &[(&str, &str)]| {
        let mut headers = fields(lines);
        prepare(&mut headers, identity, true, RequestId::random());
        let text = |name| single(&headers, name).map(str::to_owned);
        (text("x-forwarded-proto").unwrap(), text("forwarded"))
    };
    assert_eq!(proto(&direct(), &[("x-forwarded-proto", "http")]).0, "https");
    assert_eq!(proto(&proxied(), &[]).0, "https");
    let (proto, elements) = proto(&proxied(), &[("x-forwarded-proto", "http"), ("forwarded", "for=192.0.2.1")]);
    assert_eq!(proto, "http");
    assert_eq!(elements.unwrap(), "for=192.0.2.1, for=10.0.0.1;proto=https");
}

#[test]
fn even_a_trusted_proxy_is_not_believed_nonsense() {
    let given = [
        ("host", "shop.example"),
        ("x-forwarded-proto", "gopher"),
        ("x-forwarded-host", "a b"),
        ("x-original-url", "/admin"),
        ("x_forwarded_for", "203.0.113.9"),
    ];
    let headers = prepared(&proxied(), &given);
    assert_eq!(single(&headers, "x-forwarded-proto"), Some("http"));
    assert_eq!(single(&headers, "x-forwarded-host"), Some("shop.example"));
    assert_eq!(single(&headers, "x-original-url"), None);
    assert_eq!(single(&headers, "x_forwarded_for"), None);
}

#[test]
fn an_ipv6_peer_is_written_as_each_field_asks() {
    let headers = prepared(&identity("2001:db8::1", "192.0.2.1"), &[("forwarded", "for=192.0.2.1")]);
    assert_eq!(single(&headers, "x-forwarded-for"), Some("2001:db8::1"));
    assert_eq!(single(&headers, "forwarded"), Some("for=192.0.2.1, for=\"[2001:db8::1]\""));
}

#[test]
fn an_answers_length_is_its_bodys_unless_no_body_follows() {
    let lines = [("content-length", "5"), ("transfer-encoding", "chunked"), ("connection", "x-a"), ("x-a", "1")];
    let mut answer = fields(&lines);
    prepare_answer(&mut answer, BodyLength::Sent, &SignificantHeaders::default());
    assert!(answer.is_empty());
    let mut answer = fields(&lines);
    prepare_answer(&mut answer, BodyLength::NotSent, &SignificantHeaders::default());
    assert_eq!(single(&answer, "content-length"), Some("5"));
    assert_eq!(answer.len(), 1);
}

proptest! {
    #[test]
    fn an_address_is_written_as_everyone_writes_it(bits in any::<u32>()) {
        let address = std::net::Ipv4Addr::from_bits(bits);
        let mut text = Vec::new();
        write_address(&mut text, address.into());
        prop_assert_eq!(text, address.to_string().into_bytes());
    }

    #[test]
    fn no_field_of_a_client_speaks_for_the_gateway(
        lines in prop::collection::vec((field_name(), "[!-~]{1,12}"), 0..12),
        is_trusted in any::<bool>(),
    ) {
        let lines: Vec<(&str, &str)> = lines.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let mut headers = fields(&lines);
        headers.insert(KnownName::HOST, b"a");
        let significant_headers = SignificantHeaders::default();
        strip_connection(&mut headers, |name| significant_headers.in_requests(name));
        let who = if is_trusted { proxied() } else { direct() };
        let id = RequestId::random();
        prepare(&mut headers, &who, false, id);

        let (peer, client) = (who.peer.address().to_string(), who.client.address().to_string());
        let all = |name: KnownName| headers.get_all(name).collect::<Vec<_>>();
        prop_assert_eq!(all(KnownName::HOST), [b"a"]);
        prop_assert_eq!(all(KnownName::X_REAL_IP), [client.as_bytes()]);
        prop_assert_eq!(all(KnownName::X_REQUEST_ID), [id.as_bytes()]);
        prop_assert_eq!(all(KnownName::X_FORWARDED_HOST).len(), 1);
        prop_assert_eq!(all(KnownName::X_FORWARDED_PROTO).len(), 1);
        prop_assert_eq!(all(KnownName::X_FORWARDED_FOR).len(), 1);
        prop_assert!(all(KnownName::X_FORWARDED_FOR)[0].ends_with(peer.as_bytes()));
        if !is_trusted {
            prop_assert_eq!(all(KnownName::X_FORWARDED_FOR), [peer.as_bytes()]);
            prop_assert_eq!(all(KnownName::X_FORWARDED_HOST), [b"a"]);
            prop_assert_eq!(all(KnownName::X_FORWARDED_PROTO), [b"http"]);
        }
        for field in headers.iter() {
            let is_te = field.name == KnownName::TE.into() && field.value == b"trailers"
                || field.name == KnownName::CONNECTION.into() && field.value == b"te";
            let kind = HeaderKind::of(field.name);
            let is_own = matches!(field.name, Name::Known(known) if WRITTEN_ANEW.has(known));
            let is_passed_on = kind == HeaderKind::EndToEnd || is_own || is_te;
            prop_assert!(is_passed_on || is_trusted && kind == HeaderKind::Forwarding, "{:?}", field.name);
        }
    }

    #[test]
    fn filtered_trailers_are_allowed_ones(names in prop::collection::vec(field_name(), 0..8)) {
        let lines: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "x")).collect();
        let mut trailers = fields(&lines).to_header_map();
        filter_trailers(&mut trailers);
        let may_trail = |name: &str| {
            HeaderKind::of(Name::of(name)) == HeaderKind::EndToEnd && !["host", "trailer"].contains(&name)
        };
        prop_assert!(trailers.keys().all(|name| may_trail(name.as_str())));
    }
}

fn field_name() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "connection",
        "te",
        "trailer",
        "transfer-encoding",
        "content-length",
        "x-forwarded-for",
        "x-forwarded-host",
        "x-forwarded-proto",
        "x-real-ip",
        "x-request-id",
        "forwarded",
        "upgrade",
        "x_forwarded_for",
        "x.real.ip",
        "content_length",
        "cookie",
        "proxy",
        "host",
        "keep-alive",
        "x-original-url",
    ]);
    prop_oneof![known.prop_map(str::to_owned), "[a-z_.-]{1,12}", "x[_.-]forwarded[_.-][a-z]{1,5}"]
}
