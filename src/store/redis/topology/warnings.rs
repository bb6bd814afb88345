//! Says by name what about a server endangers counts.

use redis::Value;
use tracing::warn;

use crate::store::redis::transport::connect::Connection;
use crate::store::redis::transport::url::Address;

/// What was said of a server already.
#[derive(Debug, Default)]
pub(in crate::store::redis) struct Warnings {
    version: Option<String>,
    policy: Option<String>,
}

/// The first version that has all that is needed.
const OLDEST: (u32, u32) = (6, 2);

impl Warnings {
    /// Asks the server what it is. Who may not ask that is told nothing: `INFO` is for administrators.
    pub(in crate::store::redis) async fn look(&mut self, connection: &Connection, address: &Address) {
        let server = info(connection, "server").await;
        let version = field(&server, "redis_version").filter(|version| is_too_old(version));
        if let Some(version) = news(&mut self.version, version) {
            warn!(
                server = %address, version,
                "redis {address} is of version {version}: portcullis needs 6.2 or later, or Valkey"
            );
        }
        let memory = info(connection, "memory").await;
        let policy = field(&memory, "maxmemory_policy").filter(|policy| *policy != "noeviction");
        if let Some(policy) = news(&mut self.policy, policy) {
            warn!(
                server = %address, maxmemory_policy = policy,
                "redis {address} has `maxmemory-policy {policy}`: under pressure it drops counters, and limits let \
                 too much pass. Set it to `noeviction`"
            );
        }
    }
}

/// What is amiss now, if it is not what was said last.
fn news<'n>(said: &mut Option<String>, amiss: Option<&'n str>) -> Option<&'n str> {
    if said.as_deref() == amiss {
        return None;
    }
    *said = amiss.map(str::to_owned);
    amiss
}

async fn info(connection: &Connection, section: &str) -> String {
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
    // What has no number is not known to be old.
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
    fn the_same_is_said_once_and_again_after_it_was_mended() {
        let mut said = None;
        assert_eq!(news(&mut said, Some("allkeys-lru")), Some("allkeys-lru"));
        assert_eq!(news(&mut said, Some("allkeys-lru")), None);
        assert_eq!(news(&mut said, Some("volatile-ttl")), Some("volatile-ttl"));
        assert_eq!(news(&mut said, None), None);
        assert_eq!(news(&mut said, Some("volatile-ttl")), Some("volatile-ttl"));
    }

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "# Memory\r\nmaxmemory_policy_x:a\r\nmaxmemory_policy:noeviction\r\n";
        assert_eq!(field(text, "maxmemory_policy"), Some("noeviction"));
    }
}
