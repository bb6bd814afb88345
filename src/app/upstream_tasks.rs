//! One background task for each upstream in force, for its health checks among other things.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::upstream::Upstream;
use crate::upstream::background_tasks::run_background_tasks;

/// The running tasks.
#[derive(Debug, Default)]
pub struct UpstreamTasks(Vec<(Arc<Upstream>, CancellationToken)>);

impl UpstreamTasks {
    /// Starts tasks for upstreams that are new and stops those of upstreams that are gone.
    pub fn follow(&mut self, upstreams: &[Arc<Upstream>]) {
        let gone = self.0.extract_if(.., |(known, _)| !upstreams.iter().any(|upstream| Arc::ptr_eq(known, upstream)));
        for (_, stop) in gone {
            stop.cancel();
        }
        for upstream in upstreams {
            if !self.0.iter().any(|(known, _)| Arc::ptr_eq(known, upstream)) {
                let stop = CancellationToken::new();
                tokio::spawn(run_background_tasks(Arc::clone(upstream), stop.clone()));
                self.0.push((Arc::clone(upstream), stop));
            }
        }
    }
}
