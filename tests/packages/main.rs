//! What is shipped, installed and run as its users do it: the Debian package, the image with its Compose file, the Helm
//! chart. The first two take minutes, so that only `packaging/test` runs them; `PROFILE=dist` has it test what a release ships.

mod chart;
mod debian;
mod image;
mod machine;
mod release;
mod stand_ins;

#[expect(dead_code, unreachable_pub, unused_imports, reason = "each test binary uses a part of it")]
#[path = "../support/mod.rs"]
mod support;

/// How the packages are built: what is shipped is built with `dist`, which takes longer.
fn profile() -> String {
    std::env::var("PROFILE").unwrap_or_else(|_| "dev".to_owned())
}
