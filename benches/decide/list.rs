//! Lists of a million networks: loaded in under a second, looked up in under a microsecond.

use std::fmt::Write;
use std::hint::black_box;
use std::net::{Ipv4Addr, Ipv6Addr};

use criterion::Criterion;
use portcullis::rules::client::ClientIp;
use portcullis::rules::list;
use portcullis::rules::list::AddressSet;

const NETWORKS: u32 = 1_000_000;

pub(crate) fn benches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("list");
    group.sample_size(10);
    let v4 = file(|bits| format!("{}/30", Ipv4Addr::from_bits(bits & !3)));
    group.bench_function("load_a_million_ipv4_networks", |bench| bench.iter(|| load(&v4)));
    let v6 = file(|bits| format!("{}", Ipv6Addr::from_bits((0x2001_0db8 << 96) | (u128::from(bits) << 48) | 1)));
    group.bench_function("load_a_million_ipv6_addresses", |bench| bench.iter(|| load(&v6)));

    let (v4, v6) = (load(&v4), load(&v6));
    let mut turn = 0_u32;
    group.bench_function("look_up_ipv4_in_a_million", |bench| {
        bench.iter(|| {
            turn = scatter(turn);
            v4.contains(black_box(ClientIp::new(Ipv4Addr::from_bits(turn).into())))
        });
    });
    group.bench_function("look_up_ipv6_in_a_million", |bench| {
        bench.iter(|| {
            turn = scatter(turn);
            let bits = (0x2001_0db8 << 96) | (u128::from(turn) << 48) | 1;
            v6.contains(black_box(ClientIp::new(Ipv6Addr::from_bits(bits).into())))
        });
    });
    group.finish();
}

fn load(text: &str) -> AddressSet {
    list::addresses(black_box(text)).expect("every line is a network")
}

/// A list file in no order, as they come.
fn file(line: impl Fn(u32) -> String) -> String {
    let mut text = String::from("# a million networks\n");
    let mut bits = 1;
    for _ in 0..NETWORKS {
        bits = scatter(bits);
        writeln!(text, "{}", line(bits)).expect("a string takes everything");
    }
    text
}

/// A walk through all of 32 bits that looks like none.
fn scatter(bits: u32) -> u32 {
    bits.wrapping_mul(1_664_525).wrapping_add(1_013_904_223)
}
