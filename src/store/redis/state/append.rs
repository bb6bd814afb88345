//! Appends entries to a stream. No decision depends on it.

use redis::Value;

use super::store::RedisStore;
use crate::store::redis::topology::failure::Failure;

impl RedisStore {
    /// Appends an entry and trims the stream to `max` entries. Fails with the error text of the server.
    pub async fn append(
        &self,
        key: &str,
        max: u64,
        fields: &[(&'static str, String)],
    ) -> Result<(), (Failure, String)> {
        let mut append = redis::cmd("XADD");
        append.arg(key).arg("MAXLEN").arg(max).arg("*");
        for (name, value) in fields {
            append.arg(*name).arg(value);
        }
        let links = &self.core.links;
        match links.command(links.slot(key.as_bytes()), &append).await {
            Ok(Value::ServerError(error)) => {
                let words = format!("{} {}", error.code(), error.details().unwrap_or_default());
                match error.code() {
                    // The server takes no entries now, but will later.
                    "LOADING" | "READONLY" | "OOM" | "MASTERDOWN" | "CLUSTERDOWN" | "TRYAGAIN" | "MOVED" | "ASK"
                    | "BUSY" | "MISCONF" | "NOREPLICAS" => Err((Failure::Open, words)),
                    "NOPERM" => Err((Failure::Refused, format!("{words}: allow the user `+xadd` on this key"))),
                    _ => Err((Failure::Refused, words)),
                }
            }
            Ok(_) => Ok(()),
            Err(failure) => Err((failure, String::new())),
        }
    }
}
