//! Warns about settings of a server that endanger counts.

use redis::Value;
use tracing::warn;

use crate::store::redis::transport::connection::RedisConnection;
use crate::store::redis::transport::url::Address;

/// The warnings that were logged about a server.
#[derive(Debug, Default)]
pub(in crate::store::redis) struct ServerWarnings {
    version: Option<String>,
    policy: Option<String>,
}

/// The first version that has every feature the gateway needs.
const OLDEST: (u32, u32) = (6, 2);

impl ServerWarnings {
    /// Asks the server for its version and policy. Without the permission for `INFO` there are no warnings.
    pub(in crate::store::redis) async fn look(&mut self, connection: &RedisConnection, address: &Address) {
        let server = info(connection, "server").await;
        let version = field(&server, "redis_version").filter(|version| is_too_old(version));
        if let Some(version) = new_problem(&mut self.version, version) {
            warn!(
                server = %address, version,
                "redis {address} has version {version}: portcullis needs 6.2 or later, or Valkey"
            );
        }
        let memory = info(connection, "memory").await;
        let policy = field(&memory, "maxmemory_policy").filter(|policy| *policy != "noeviction");
        if let Some(policy) = new_problem(&mut self.policy, policy) {
            warn!(
                server = %address, maxmemory_policy = policy,
                "redis {address} has `maxmemory-policy {policy}`: when memory is short it drops counters, and limits let \
                 too many requests pass. Set it to `noeviction`"
            );
        }
    }
}

/// The current problem, if it is not the one that was logged last.
fn new_problem<'n>(logged: &mut Option<String>, problem: Option<&'n str>) -> Option<&'n str> {
    if logged.as_deref() == problem {
        return None;
    }
    *logged = problem.map(str::to_owned);
    problem
}

async fn info(connection: &RedisConnection, section: &str) -> String {
    let mut info = redis::cmd("INFO");
    info.arg(section);
    match connection.ask(&info).await {
        Ok(Value::BulkString(text)) => String::from_utf8_lossy(&text).into_owned(),
        Ok(Value::VerbatimString { text, .. }) => text,
        _ => String::new(),
    }
}

fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
}

fn is_too_old(version: &str) -> bool {
    let mut numbers = version.split('.').map_while(|number| number.parse::<u32>().ok());
    // A version without numbers is not known to be old.
    numbers.next().is_some_and(|major| (major, numbers.next().unwrap_or_default()) < OLDEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        for old in ["6.0.16", "5.0.14", "2.8", "6"] {
            assert!(is_too_old(old), "{old}");
        }
        for new in ["6.2.0", "7.0.15", "7.4.1", "8.0.0", "10.0.1", "unstable"] {
            assert!(!is_too_old(new), "{new}");
        }
    }

    #[test]
    fn a_problem_is_logged_once_and_again_after_it_was_fixed() {
        let mut logged = None;
        assert_eq!(new_problem(&mut logged, Some("allkeys-lru")), Some("allkeys-lru"));
        assert_eq!(new_problem(&mut logged, Some("allkeys-lru")), None);
        assert_eq!(new_problem(&mut logged, Some("volatile-ttl")), Some("volatile-ttl"));
        assert_eq!(new_problem(&mut logged, None), None);
        assert_eq!(new_problem(&mut logged, Some("volatile-ttl")), Some("volatile-ttl"));
    }

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "# Memory\r\nmaxmemory_policy_x:a\r\nmaxmemory_policy:noeviction\r\n";
        assert_eq!(field(text, "maxmemory_policy"), Some("noeviction"));
    }
}
