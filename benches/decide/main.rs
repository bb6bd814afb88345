//! What a decision costs, part by part: `cargo bench --bench decide`.

mod facts;
mod list;
mod plan;
mod route;
mod routes_many;
mod store;

use criterion::Criterion;

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    facts::benches(&mut criterion);
    list::benches(&mut criterion);
    route::benches(&mut criterion);
    routes_many::benches(&mut criterion);
    plan::benches(&mut criterion);
    store::benches(&mut criterion);
    criterion.final_summary();
}
