//! Many connections that have asked once and then wait.

use std::io::{Read, Write};

use tokio::runtime;

use super::load;
use super::load::Load;

/// Opens the connections of a job, asks once on each, says so, and holds them until its input ends.
pub(crate) fn hold(load: &'static Load) {
    let runtime = runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let held = runtime.block_on(load::open(load));
    println!("{}", held.len());
    std::io::stdout().flush().expect("someone waits for it");
    let _ = std::io::stdin().read(&mut [0]);
}
