//! The walk through ten thousand routes beside one through ten.

use std::hint::black_box;

use criterion::Criterion;
use http::Method;
use portcullis::rules::client::ClientIp;
use portcullis::rules::list::Membership;
use portcullis::rules::request::CanonicalHead;
use portcullis::rules::route::{BodyMethods, Case, Condition, PathPattern, PathRegex, RequestReadings, RouteTable};
use portcullis::wire::head;

use super::route::route;

pub(crate) fn benches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("routes");
    for (count, few) in [(10, "ten"), (10_000, "ten_thousand")] {
        for (kind, condition, path) in [
            ("on_hosts", of_a_host as fn(usize) -> Condition, "/section-{n}/7"),
            ("of_segments", of_segments, "/shop-{n}/7"),
            ("anywhere", anywhere, "/old/item-{n}.htm"),
            ("without_letters", without_letters, "/{n}"),
        ] {
            let table = RouteTable::new((0..count).map(condition).map(|condition| route("r", condition)).collect());
            // The middle of the table.
            let n = count / 2 + 5;
            let section = if kind == "on_hosts" { n % 10 } else { n };
            let target = path.replace("{n}", &section.to_string());
            for (taken, target) in [("", &*target), ("_none", "/no/such-page.html")] {
                let mut sent = head::RequestHead::to(Method::GET, target).expect("a target");
                sent.set_host(&host(n));
                let head = CanonicalHead::read(&sent, ClientIp::new([192, 0, 2, 1].into()));
                let membership = |_| Membership::None;
                group.bench_function(format!("{few}_{kind}{taken}"), |bench| {
                    bench.iter(|| {
                        black_box(&table).walk(&mut RequestReadings::new(&head, BodyMethods::Known(&[]), &membership))
                    });
                });
            }
        }
    }
    group.finish();
}

fn host(n: usize) -> String {
    format!("shop-{}.example.com", n / 10)
}

fn of_a_host(n: usize) -> Condition {
    let path = PathPattern::new(&format!("/section-{}/*", n % 10), Case::Ignored).expect("a pattern");
    Condition { host: Some(host(n).parse().expect("a host")), path: Some(path), ..Condition::default() }
}

fn of_segments(n: usize) -> Condition {
    expression(&format!("^/shop-{n}/[0-9]+$"))
}

fn anywhere(n: usize) -> Condition {
    expression(&format!("/item-{n}[.]html?$"))
}

/// Of which no text is known that its paths have.
fn without_letters(n: usize) -> Condition {
    let digits: Vec<String> = n.to_string().chars().map(|digit| format!("[{digit}x-z]")).collect();
    expression(&format!("/{}$", digits.concat()))
}

fn expression(text: &str) -> Condition {
    Condition { path_regex: Some(PathRegex::new(text, Case::Ignored).expect("an expression")), ..Condition::default() }
}
