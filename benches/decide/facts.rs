//! Who asks, and what for: canonical forms of what requests usually look like, and of the worst that 64 KiB can hold.

use std::hint::black_box;
use std::net::IpAddr;

use bytes::Bytes;
use criterion::Criterion;
use portcullis::rules::client::{ForwardingHeader, TrustedProxies};
use portcullis::rules::request::text::normalise;
use portcullis::rules::request::{BodyFields, CanonicalHost, RequestPath};
use portcullis::wire::head::{Fields, KnownName};

pub(crate) fn benches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("facts");
    for (name, path) in [
        ("canonical_path/canonical", "/api/v1/accounts/4711/orders"),
        ("canonical_path/capitals", "/Api/V1/Accounts/4711/Orders"),
        ("canonical_path/spelled", "/api//v1/./accounts/%34711/x/../orders/"),
    ] {
        group.bench_function(name, |bencher| bencher.iter(|| RequestPath::new(black_box(path))));
    }
    group.bench_function("canonical_host", |bencher| {
        bencher.iter(|| CanonicalHost::new(black_box("www.example.com:8080")));
    });
    for (name, text) in
        [("normalise/ascii", "alice@example.com"), ("normalise/capitals", "Alice"), ("normalise/wide", "Ａｌｉｃｅ")]
    {
        group.bench_function(name, |bencher| bencher.iter(|| normalise(black_box(text))));
    }

    let proxies = TrustedProxies::new(
        ["10.0.0.0/8", "fd00::/8"].iter().filter_map(|network| network.parse().ok()).collect(),
        ForwardingHeader::XForwardedFor,
    );
    let headers = Fields::from_iter([(KnownName::X_FORWARDED_FOR, "203.0.113.9, 198.51.100.7, 10.1.2.3")]);
    group.bench_function("identify", |bencher| {
        bencher.iter(|| proxies.identify(black_box(IpAddr::from([10, 0, 0, 1])), black_box(&headers)));
    });
    for (name, kind, body) in bodies() {
        let headers = Fields::from_iter([(KnownName::CONTENT_TYPE, kind)]);
        let body = Bytes::from(body);
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let fields = BodyFields::read(black_box(&headers), black_box(&body), true, 64 * 1024);
                fields
                    .form("username")
                    .chain(fields.json("username"))
                    .map(|value| normalise(&value).len())
                    .sum::<usize>()
            });
        });
    }
    group.finish();
}

fn bodies() -> Vec<(&'static str, &'static str, Vec<u8>)> {
    let form = "application/x-www-form-urlencoded";
    let parts = "multipart/form-data; boundary=b";
    let json = "application/json";
    let full = |piece: &str| piece.repeat(64 * 1024 / piece.len()).into_bytes();
    let part = "--b\r\nContent-Disposition: form-data; name=\"username\"\r\n\r\nalice\r\n--b--\r\n";
    vec![
        ("field/urlencoded", form, b"csrf=0123456789abcdef&username=alice&password=correct+horse".to_vec()),
        ("field/multipart", parts, part.as_bytes().to_vec()),
        ("field/json", json, br#"{"username":"alice","password":"correct horse"}"#.to_vec()),
        ("worst/pairs", form, full("a&")),
        ("worst/escaped_names", form, full("%u0061&")),
        ("worst/semicolons", form, full(";")),
        ("worst/one_name", form, full("%")),
        ("worst/long_value", form, [b"username=", &full("\u{fdfa}")[..]].concat()),
        ("worst/folding_names", json, full("{\"\u{212a}\":")),
        ("worst/scalars", json, [b"[", &full("1,")[..]].concat()),
        ("worst/exponents", json, [&b"{"[..], &full("\"username\":1e300,")].concat()),
        ("worst/parts", parts, full("content-disposition:\n\n")),
        ("worst/names", parts, full("content-disposition: name=\"")),
        ("worst/names_alone", parts, [b"content-disposition:", &full("name=")[..]].concat()),
        ("worst/quotes", parts, [b"content-disposition:", &full("name=\"\\")[..]].concat()),
        ("worst/dashes", parts, full("-")),
        ("worst/boundaries", parts, full("--b")),
    ]
}
